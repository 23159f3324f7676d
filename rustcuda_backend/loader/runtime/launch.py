"""A kernel with its grid and block, and the launch that takes all kinds of arguments."""

from __future__ import annotations

from rustcuda_backend.loader.runtime.configuration import _stream_handle
from rustcuda_backend.loader.runtime.errors import ArgumentValueError, LaunchTooLarge
from rustcuda_backend.loader.runtime.in_c import _in_c
from rustcuda_backend.loader.runtime.seam import (
    _COOPERATIVE_TOO_LARGE,
    _INVALID_CLUSTER,
    _INVALID_CONTEXT,
    _INVALID_HANDLE,
    _LIMITS,
    _MAX_DYNAMIC_SHARED,
    _OUT_OF_RESOURCES,
)
from rustcuda_backend.loader.runtime.torch_state import _torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from rustcuda_backend.loader.runtime.kernel import _Entry, _Kernel

# Stands for an argument that was not given.
_MISSING = object()
# For how many streams of a GPU a configuration is kept ready.
_MOST_STREAMS = 64


class _Launch:
    """A kernel with its grid and block.

    Each kernel's own launcher, which the generator wrote, is a function of one of these and the arguments.
    It does in one go what is done in most launches, and leaves all the others to `start`.

    Attributes:
        kernel: The kernel.
        grid, block, shared, cluster, cooperative: The configuration.
        stream: A stream's handle; None for the current one.
        ready: GPU to stream to what the driver takes to launch there, and the kernel on that GPU: what has
            been found to fit.
        free, pack_into: The marshaller's.
        in_c: A weak reference to the same launch in C, which comes here with what it does not know yet; None
            where there is none.
    """

    __slots__ = (
        "_stream_device", "block", "cluster", "cooperative", "free", "grid", "in_c", "kernel", "pack_into",
        "ready", "shared", "stream",
    )  # fmt: skip

    def __init__(
        self,
        kernel: _Kernel,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared: int,
        stream: object,
    ) -> None:
        self.kernel, self.grid, self.block, self.shared = kernel, grid, block, shared
        self.cluster: tuple[int, int, int] | None = None
        self.cooperative = False
        self.in_c: Any = None
        self.stream: int | None = None
        self._stream_device = -1
        if stream is not None:
            self.stream, self._stream_device = _stream_handle(kernel.__name__, stream)
        self.ready: dict[int, dict[int, tuple[Any, _Entry]]] = {}
        self.pack_into: Callable[..., None]
        self.free: list[tuple[Any, Any]]

    def __repr__(self) -> str:
        return f"<launch {self.kernel.__name__}[{self.grid}, {self.block}, {self.shared}]>"

    def start(self, arguments: tuple[Any, ...], more: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Checks arguments of every kind, with errors that say all, and launches the kernel."""
        kernel = self.kernel
        marshaller = kernel.marshaller
        converters = marshaller.converters
        arguments = (*(value for value in arguments if value is not _MISSING), *more)
        if named or len(arguments) != len(converters):
            arguments = kernel.in_order(arguments, named)
        values: list[Any] = []
        device = -1
        for convert, value in zip(converters, arguments):  # noqa: B905
            at = convert(value, values, self.stream)
            if at != device and at >= 0:
                if device >= 0:
                    raise kernel.two_devices(arguments)
                device = at
        if device < 0 or (self._stream_device >= 0 and self._stream_device != device):
            device = self._settle_device(device)
        stream = self.stream
        if stream is None:
            stream = kernel.library.current_stream(device)
        config, entry = self._made_ready(device, stream)
        held = marshaller.block()
        marshaller.pack_into(held[0], marshaller.offset, *values)
        result = self._launch(config, entry, held[1])
        if result != kernel.library.success:
            self.mend(result, config, entry, held[1])
        marshaller.free.append(held)
        self._let_c(entry, stream)

    def _let_c(self, entry: _Entry, stream: int) -> None:
        """Lets C do such launches from now on."""
        library = self.kernel.library
        in_c = self.in_c and self.in_c()
        if in_c is None or not _torch.look():
            return
        if not _in_c.use(library.driver):
            in_c.leave()
            return
        # Another thread may have unloaded the kernel since; while it does, it has the lock.
        with library.lock:
            if entry.loaded:
                in_c.ready(entry.device.index, stream, entry.handle)

    def start_any(self, *arguments: Any, **named: Any) -> None:
        """The same for arguments as they came."""
        self.start(arguments, (), named)

    def _made_ready(self, device: int, stream: int) -> tuple[Any, _Entry]:
        """What `ready` has for a GPU and a stream, or what it then keeps."""
        streams = self.ready.get(device, {})
        made = streams.get(stream)
        if made is not None and made[1].loaded:
            return made
        entry = self.kernel.entry(device)
        self._check_fit(entry)
        driver = self.kernel.library.driver
        made = (
            driver.configuration(self.grid, self.block, self.shared, stream, self.cluster, self.cooperative),
            entry,
        )
        if _torch.look():
            # `ready` last: a launcher that finds something there needs the others.
            self.pack_into, self.free = self.kernel.marshaller.pack_into, self.kernel.marshaller.free
            if len(streams) >= _MOST_STREAMS:
                streams = {}
            self.ready[device] = {**streams, stream: made}
        return made

    def _launch(self, config: Any, entry: _Entry, address: Any) -> Any:
        library = self.kernel.library
        launch: Any = library.launch_kernel
        return launch(config, entry.function, address, library.no_extra)

    def mend(self, result: Any, config: Any, entry: _Entry, address: Any) -> None:
        """Launches in the right context where only that was wrong; else raises what the driver said.

        Looking at the context before each launch would cost more than all the checks of the arguments. The
        driver refuses functions of another context than the current one.
        """
        library, context = self.kernel.library, entry.device.context
        driver = library.driver
        error = driver.launch_error(result)
        earlier = driver.current_context()
        if error.code in (_INVALID_CONTEXT, _INVALID_HANDLE) and earlier != context:
            # A thread that had no context keeps this one where that leaves its current GPU the same, so that
            # its next launch needs no mending.
            keep = not earlier and library.current_device() == entry.device.index
            driver.set_context(context)
            try:
                result = self._launch(config, entry, address)
            finally:
                if not keep:
                    driver.set_context(earlier)
            if result == driver.success:
                return
            error = driver.launch_error(result)
        limit = self._too_large(error.code)
        if limit is not None:
            raise limit from error
        raise error

    def _too_large(self, code: int) -> LaunchTooLarge | None:
        """The error that says which limit the driver found exceeded, if that is what it found."""
        name, (x, y, z) = self.kernel.__name__, self.grid
        blocks = x * y * z
        if code == _OUT_OF_RESOURCES:
            x, y, z = self.block
            threads = x * y * z
            most = "what its registers and shared memory allow"
            return LaunchTooLarge(name, "threads per block", f"{threads}", most)
        if code == _COOPERATIVE_TOO_LARGE:
            most = "what the GPU runs at once (see occupancy)"
            return LaunchTooLarge(name, "blocks of a cooperative launch", f"{blocks}", most)
        if code == _INVALID_CLUSTER:
            most = "clusters that divide the grid evenly and fit the GPU"
            return LaunchTooLarge(name, "blocks in clusters", f"{blocks}", most)
        return None

    def _settle_device(self, device: int) -> int:
        """The GPU to launch on where the arguments name none, or another than the stream."""
        if device < 0:
            return self._stream_device if self._stream_device >= 0 else self.kernel.library.current_device()
        wanted = f"a stream of the arrays' GPU, cuda:{device}"
        got = f"one of cuda:{self._stream_device}"
        raise ArgumentValueError(self.kernel.__name__, "stream", wanted, got)

    def _check_fit(self, entry: _Entry) -> None:
        """Holds the configuration against the limits of a GPU and of the kernel there."""
        x, y, z = self.block
        threads = x * y * z
        numbers = (*self.block, *self.grid, threads)
        name, bounds = self.kernel.__name__, self.kernel.most_threads
        for number, most, (_, limit) in zip(numbers, entry.device.limits, _LIMITS):  # noqa: B905
            if number > most:
                raise LaunchTooLarge(name, limit, f"{number}", f"{most}")
        most, why = (bounds, "launch bounds") if bounds else (entry.most_threads, "registers")
        if threads > most:
            raise LaunchTooLarge(name, "threads per block", f"{threads}", f"{most} (its {why})")
        if self.shared > entry.shared:
            self._allow_shared(entry)

    def _allow_shared(self, entry: _Entry) -> None:
        """Opts in to more dynamic shared memory than a kernel gets unasked."""
        most = entry.device.shared_optin
        if self.shared > most:
            limit = "bytes of shared memory per block"
            raise LaunchTooLarge(self.kernel.__name__, limit, f"{self.shared}", f"{most}")
        library = self.kernel.library
        with library.lock:
            # Another thread may have allowed more in the meantime.
            if self.shared > entry.shared:
                library.within(
                    entry.device,
                    lambda: library.driver.set_function_attribute(
                        entry.handle, _MAX_DYNAMIC_SHARED, self.shared
                    ),
                )
                entry.shared = self.shared


# The launcher of a kernel that has none of its own.
_launch_any = _Launch.start_any
