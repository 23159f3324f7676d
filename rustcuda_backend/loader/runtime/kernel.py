"""A kernel as a module attribute."""

from __future__ import annotations

from _weakref import ref as _ref

from rustcuda_backend.loader.runtime.attributes import _ATTRIBUTES, _Attributes
from rustcuda_backend.loader.runtime.configuration import _extent, _whole
from rustcuda_backend.loader.runtime.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DriverError,
    MissingKernel,
)
from rustcuda_backend.loader.runtime.extended import _ExtendedLaunch
from rustcuda_backend.loader.runtime.in_c import _in_c
from rustcuda_backend.loader.runtime.launch import _Launch, _launch_any
from rustcuda_backend.loader.runtime.marshaller import _Marshaller, _parameter_class
from rustcuda_backend.loader.runtime.seam import _FUNCTION_THREADS, _NOT_FOUND
from rustcuda_backend.loader.runtime.torch_op import _torch_op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from rustcuda_backend.loader.runtime.library import _Device, _Library
    from rustcuda_backend.loader.runtime.seam import _Driver

    _Result = TypeVar("_Result")

# How many configurations of a kernel are kept ready.
_MOST_LAUNCHES = 256


class _Entry:
    """One kernel on one GPU.

    Attributes:
        device: The GPU.
        handle: The function's handle.
        function: The same as the driver's `launch_kernel` takes it; missing after unloading.
        most_threads: The largest block that its registers and launch bounds allow.
        shared: Bytes of dynamic shared memory that it may have.
    """

    __slots__ = ("device", "function", "handle", "most_threads", "shared")

    def __init__(self, device: _Device, handle: int, function: Any, most_threads: int) -> None:
        self.device, self.handle, self.function, self.most_threads = device, handle, function, most_threads
        self.shared = device.shared_unasked

    @property
    def loaded(self) -> bool:
        """Whether it has not been unloaded."""
        return hasattr(self, "function")


class _Kernel:
    """A kernel: `kernel[grid, block](…)` launches it.

    `kernel[grid, block, shared_bytes, stream]` also sets the dynamic shared memory in bytes and the stream: a
    torch stream, an int, or None for torch's current stream of the arguments' GPU (without torch: the
    default stream). Grid and block are ints or tuples of up to three.
    """

    def __init__(
        self,
        library: _Library,
        name: str,
        doc: str,
        parameters: tuple[tuple[str, str, str, str, bool, str], ...],
        most_threads: int,
        lacking: tuple[str, ...],
        launcher: Callable[..., None] = _launch_any,
        known_in_c: bytes = b"",
    ) -> None:
        self.__name__ = self.__qualname__ = name
        self.library, self._parameters = library, parameters
        self.most_threads, self._lacking, self._launcher = most_threads, lacking, launcher
        self._known_in_c = known_in_c
        self._signature = ", ".join(f"{rust_name}: {rust}" for rust_name, _, _, _, _, rust in parameters)
        self.__doc__ = f"{name}[grid, block]({self._signature})" + (f"\n\n{doc}" if doc else "")
        self._marshaller: _Marshaller | None = None
        self._entries: dict[int, _Entry] = {}
        self._launches: dict[tuple[Any, ...], Callable[..., None]] = {}
        library.kernels.append(self)

    def __repr__(self) -> str:
        return f"<kernel {self.__name__}[grid, block]({self._signature})>"

    def __get__(self, *_: object) -> _Kernel:
        """Makes `help` treat a kernel as the routine that it is, instead of listing what all kernels have."""
        return self

    @property
    def __signature__(self) -> Any:
        from inspect import Parameter, Signature

        return Signature(
            [
                Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, annotation=rust)
                for _, name, _, _, _, rust in self._parameters
            ]
        )

    def __call__(self, *_arguments: object, **_named: object) -> None:
        """Tells how to launch."""
        raise ArgumentTypeError(
            self.__name__, "", f"a launch {self.__name__}[grid, block](…)", "a call without grid and block"
        )

    def __getitem__(self, launch: Any) -> Callable[..., None]:
        try:
            grid, block = launch
            # 4.0 and True would be found as 4 and 1 are.
            if type(grid) is int and type(block) is int:
                return self._launches[launch]
        except (KeyError, TypeError, ValueError):  # lists cannot be looked up
            pass
        return self._configure(launch)

    def launch(
        self,
        *,
        grid: Any,
        block: Any,
        shared: Any = 0,
        stream: Any = None,
        cluster: Any = None,
        cooperative: bool = False,
    ) -> Callable[..., None]:
        """The same as `kernel[grid, block, shared, stream]`, with more to say.

        Args:
            grid: Blocks: an int or a tuple of up to three.
            block: Threads of a block, likewise.
            shared: Bytes of dynamic shared memory.
            stream: A stream; None for torch's current one.
            cluster: Blocks of a cluster, like grid; None for none, or for what the kernel itself says.
            cooperative: Whether all blocks must run at once, so that they can wait for one another.

        Returns:
            What launches the kernel when it is called with the kernel's arguments.
        """
        if cluster is None and not cooperative:
            return self[grid, block, shared, stream]
        name = self.__name__
        made = _ExtendedLaunch(
            self,
            _extent(name, "grid", grid),
            _extent(name, "block", block),
            _whole(name, "shared_bytes", shared, 0),
            stream,
        )
        made.cluster = None if cluster is None else _extent(name, "cluster", cluster)
        made.cooperative = bool(cooperative)
        bound: Callable[..., None] = self._launcher.__get__(made)
        return bound

    def torch_op(self, name: str, *, grid: Any, block: Any, shared: Any = 0) -> Callable[..., None]:
        """Registers the kernel as a custom operator of torch, for torch.compile, torch.export and the like.

        The operator takes the kernel's arguments, and torch knows which of them it writes to. It has no
        gradient: give it one by a torch.autograd.Function around it.

        Args:
            name: The operator's name, e.g. `"mypackage::saxpy"`.
            grid: Blocks, or a function from the kernel's arguments to them; where they are 0, nothing is
                launched.
            block: Threads of a block, or a function likewise.
            shared: Bytes of dynamic shared memory, or a function likewise.

        Returns:
            The operator, to be called with the kernel's arguments.
        """
        return _torch_op(self, self._parameters, name, grid, block, shared)

    def occupancy(self, block: Any, shared: int = 0) -> int:
        """How many blocks of this size one multiprocessor of the current GPU runs at once.

        Args:
            block: Threads of a block: an int or a tuple of up to three.
            shared: Bytes of dynamic shared memory of each.
        """
        x, y, z = _extent(self.__name__, "block", block)
        memory = _whole(self.__name__, "shared_bytes", shared, 0)
        return self._ask(lambda driver, function: driver.occupancy(function, x * y * z, memory))

    def suggest_block(self, shared: int = 0) -> int:
        """The number of threads of a block with which the kernel fills the current GPU best.

        Args:
            shared: Bytes of dynamic shared memory of each block.
        """
        memory = _whole(self.__name__, "shared_bytes", shared, 0)
        return self._ask(lambda driver, function: driver.best_block(function, memory))

    @property
    def attributes(self) -> _Attributes:
        """Registers, memory and limits of the kernel on the current GPU."""
        return self._ask(
            lambda driver, function: _Attributes(
                {name: driver.function_attribute(function, number) for name, number in _ATTRIBUTES.items()}
            )
        )

    def _ask(self, question: Callable[[_Driver, int], _Result]) -> _Result:
        """Asks the driver about the kernel on the current GPU."""
        library = self.library
        entry = self.entry(library.current_device())
        return library.within(entry.device, lambda: question(library.driver, entry.handle))

    def _configure(self, launch: Any) -> Callable[..., None]:
        if type(launch) is not tuple or not 2 <= len(launch) <= 4:
            wanted = "[grid, block], [grid, block, shared_bytes] or [grid, block, shared_bytes, stream]"
            raise ArgumentTypeError(self.__name__, "", wanted, f"[{launch!r}]")
        name = self.__name__
        grid, block = _extent(name, "grid", launch[0]), _extent(name, "block", launch[1])
        shared = _whole(name, "shared_bytes", launch[2], 0) if len(launch) > 2 else 0
        stream = launch[3] if len(launch) > 3 else None
        if stream is not None:
            # Kept with a stream, it would keep that alive.
            return self._bound(grid, block, shared, stream)
        # Under what was found, not what was given: tuples of floats are equal to those of ints.
        numbers = (grid, block, shared)
        made = self._launches.get(numbers)
        if made is None:
            made = self._bound(grid, block, shared, None)
            # A grid may follow the size of data: not too many.
            if len(self._launches) >= _MOST_LAUNCHES:
                self._launches.clear()
            self._launches[numbers] = made
        if type(launch[0]) is int and type(launch[1]) is int and len(launch) == 2:
            self._launches[launch] = made
        return made

    def _bound(
        self, grid: tuple[int, int, int], block: tuple[int, int, int], shared: int, stream: object
    ) -> Callable[..., None]:
        made = _Launch(self, grid, block, shared, stream)
        # A bound method is what Python calls fastest of all that can carry something along.
        bound: Callable[..., None] = self._launcher.__get__(made)
        if self._known_in_c and _in_c.module:
            in_c: Callable[..., None] = _in_c.module.Launch(
                made.start_any, bound, self._known_in_c, grid, block, shared, made.stream
            )
            # The two must not keep one another: with a stream, each launch makes new ones.
            made.in_c = _ref(in_c)
            return in_c
        return bound

    @property
    def marshaller(self) -> _Marshaller:
        """What packs the arguments, made at the first launch."""
        if self._marshaller is None:
            self._marshaller = _Marshaller(
                tuple(
                    _parameter_class(kind, dtype)(self.library, self.__name__, name, dtype, mutable, rust)
                    for name, _, kind, dtype, mutable, rust in self._parameters
                ),
                self.library,
            )
        return self._marshaller

    def entry(self, index: int) -> _Entry:
        """The kernel on one GPU, loaded at the first need."""
        entry = self._entries.get(index)
        if entry is None:
            with self.library.lock:
                entry = self._entries.get(index)
                if entry is None:
                    entry = self._entries[index] = self._load_on(index)
        return entry

    def _load_on(self, index: int) -> _Entry:
        library = self.library
        device = library.device(index)
        name = self.__name__.encode()
        try:
            handle = library.within(device, lambda: library.driver.function(device.module, name))
        except DriverError as error:
            if error.code != _NOT_FOUND:
                raise
            having = tuple(image.name for image in library.images if image.name not in self._lacking)
            raise MissingKernel(self.__name__, device.capability, device.image.name, having) from error
        # Asking also loads the function, which must not wait for a launch that is being captured.
        most = library.within(device, lambda: library.driver.function_attribute(handle, _FUNCTION_THREADS))
        return _Entry(device, handle, library.driver.boxed_function(handle), most)

    def forget(self, index: int) -> None:
        """Makes launches on a GPU load the kernel again; kept ones know by the entry's missing function."""
        entry = self._entries.pop(index, None)
        if entry is not None:
            del entry.function

    def in_order(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments in the kernel's order, those given by name included."""
        takes = [parameter[0] for parameter in self._parameters]
        wanted = f"{len(takes)} arguments ({', '.join(takes)})"
        if len(arguments) > len(takes):
            raise ArgumentTypeError(self.__name__, "", wanted, f"{len(arguments)}")
        for name in named:
            if not any(name in parameter[:2] for parameter in self._parameters):
                raise ArgumentTypeError(self.__name__, "", wanted, f"one named '{name}'")
        left = dict(named)
        ordered = list(arguments)
        for position, (rust_name, python_name, *_) in enumerate(self._parameters):
            given = [name for name in dict.fromkeys((rust_name, python_name)) if name in left]
            if position < len(arguments):
                if given:
                    raise ArgumentTypeError(self.__name__, rust_name, "it once", "it by position and by name")
                continue
            if not given:
                raise ArgumentTypeError(self.__name__, rust_name, wanted, f"none for '{rust_name}'")
            ordered.append(left.pop(given[0]))
        if left:
            raise ArgumentTypeError(self.__name__, "", wanted, f"'{next(iter(left))}' twice")
        return tuple(ordered)

    def two_devices(self, arguments: tuple[Any, ...]) -> ArgumentValueError:
        """The error for arguments on different GPUs; names the first two that differ."""
        first, first_at = "", -1
        for (name, *_), convert, value in zip(self._parameters, self.marshaller.converters, arguments):  # noqa: B905
            at = convert(value, [], None)
            if first_at >= 0 and at >= 0 and at != first_at:
                break
            if first_at < 0 <= at:
                first, first_at = name, at
        wanted = f"all arrays on one GPU, like '{first}' on cuda:{first_at}"
        return ArgumentValueError(self.__name__, name, wanted, f"one on cuda:{at}")
