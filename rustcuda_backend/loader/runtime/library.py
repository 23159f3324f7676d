"""The fatbin and the GPUs it is loaded on."""

from __future__ import annotations

import os as _os
from _thread import RLock as _RLock

from rustcuda_backend.loader.runtime.arguments import _came
from rustcuda_backend.loader.runtime.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DriverError,
    DriverTooOld,
    FatbinMismatch,
    ForkedProcess,
    MissingKernel,
    NoImage,
)
from rustcuda_backend.loader.runtime.images import _choose
from rustcuda_backend.loader.runtime.in_c import _in_c
from rustcuda_backend.loader.runtime.opening import _open_driver
from rustcuda_backend.loader.runtime.seam import (
    _CAPABILITY_MAJOR,
    _CAPABILITY_MINOR,
    _CAPTURE_RELAXED,
    _LIMITS,
    _NO_BINARY,
    _SHARED_OPTIN,
    _SHARED_UNASKED,
    _UNSUPPORTED_PTX_VERSION,
)
from rustcuda_backend.loader.runtime.torch_state import _torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from rustcuda_backend.loader.runtime.images import _Image
    from rustcuda_backend.loader.runtime.kernel import _Kernel
    from rustcuda_backend.loader.runtime.seam import _Driver
    from rustcuda_backend.loader.runtime.structs import _Structs

    _Result = TypeVar("_Result")


class _Device:
    """One GPU on which the fatbin is loaded."""

    __slots__ = (
        "capability", "context", "image", "index", "limits", "module", "shared_optin", "shared_unasked",
    )  # fmt: skip

    def __init__(self, driver: _Driver, index: int, capability: str, image: _Image) -> None:
        self.index, self.capability, self.image = index, capability, image
        self.context = driver.primary_context(index)
        self.module = 0
        self.limits = tuple(driver.attribute(index, attribute) for attribute, _ in _LIMITS)
        self.shared_unasked = driver.attribute(index, _SHARED_UNASKED)
        self.shared_optin = driver.attribute(index, _SHARED_OPTIN)


class _Library:
    """One fatbin: loaded once per GPU, at the first need, whichever thread has it first.

    Size and SHA-256 are the fatbin's; in an object file it begins at `offset`, else it is all of the file.
    """

    def __init__(
        self, file: str, size: int, sha256: str, images: tuple[_Image, ...], cuda: str, offset: int = 0
    ) -> None:
        self.file, self.offset, self.size, self.sha256 = file, offset, size, sha256
        self.images, self.cuda = images, cuda
        self.kernels: list[_Kernel] = []
        self.lock = _RLock()
        self._driver: _Driver | None = None
        self._devices: dict[int, _Device] = {}
        # What launches look at each time; set by `use`.
        self.launch_kernel: Callable[..., Any] | None = None
        self.success: Any = None
        self.no_extra: Any = None
        self.structs: _Structs | None = None
        self._watching = self._forked = False

    @property
    def driver(self) -> _Driver:
        """The driver, opened at the first use."""
        if self._driver is None:
            with self.lock:
                if self._driver is None:
                    if self._forked or _torch.forked():
                        raise ForkedProcess
                    driver = _open_driver()
                    driver.init()
                    self.use(driver)
        return self._driver  # type: ignore[return-value]

    def use(self, driver: _Driver) -> None:
        """Launches through a driver that is initialized."""
        self.launch_kernel, self.success = driver.launch_kernel, driver.success
        self.no_extra = driver.no_extra
        self._driver = driver
        # Windows has no fork.
        if not self._watching and hasattr(_os, "register_at_fork"):
            _os.register_at_fork(after_in_child=self._after_fork)
            self._watching = True

    def _after_fork(self) -> None:
        """Makes each launch in a forked process an error: the driver would fail there, or crash."""

        def refuse(*_: object) -> None:
            raise ForkedProcess

        self.launch_kernel, self._driver, self._forked = refuse, None, True
        _in_c.forget()
        # Another thread of the parent may have held it.
        self.lock = _RLock()

    def load(self, device: object = None) -> None:
        """Loads the fatbin and every kernel on one GPU, by index, `"cuda:1"` or torch.device."""
        index = self.index(device)
        count = self.driver.device_count()
        if not 0 <= index < count:
            raise ArgumentValueError("", "device", f"one of this machine's {count} GPUs", f"{index}")
        for kernel in self.kernels:
            try:
                kernel.entry(index)
            except MissingKernel:  # noqa: PERF203
                continue  # an error only for who calls it
        self.device(index)

    def unload(self, device: object = None) -> None:
        """Unloads the fatbin from one GPU or, with None, from all; the next launch loads it again.

        Nothing that was launched may still be running.
        """
        with self.lock:
            indices = list(self._devices) if device is None else [self.index(device)]
            for index in indices:
                left = self._devices.pop(index, None)
                if left is None:
                    continue
                for kernel in self.kernels:
                    kernel.forget(index)
                _in_c.forget()
                self.within(left, lambda module=left.module: self.driver.unload_module(module))  # type: ignore[misc]
                self.driver.release_context(index)

    def index(self, device: object) -> int:
        """A GPU's index, of None the current one's."""
        if device is None:
            return self.current_device()
        if isinstance(device, int) and not isinstance(device, bool):
            return device
        # torch.device("cuda:1"), whose index is None for "cuda".
        kind, _, number = str(device).partition(":")
        if kind == "cuda" and not number:
            return self.current_device()
        if kind == "cuda" and number.isdecimal():
            return int(number)
        raise ArgumentTypeError("", "device", "a GPU's index, 'cuda:0' or a CUDA torch.device", _came(device))

    def current_device(self) -> int:
        """The current GPU: torch's where torch is loaded, else the current context's, else the first."""
        driver = self.driver
        if _torch.look():
            return int(_torch.module.cuda.current_device())
        return driver.context_device() if driver.current_context() else 0

    def current_stream(self, device: int) -> int:
        """torch's current stream of a GPU; without torch the default stream."""
        return _torch.raw_stream(device) if _torch.look() and _torch.raw_stream else 0

    def device(self, index: int) -> _Device:
        """The GPU with that index, with the fatbin loaded."""
        device = self._devices.get(index)
        if device is None:
            with self.lock:
                device = self._devices.get(index)
                if device is None:
                    device = self._devices[index] = self._relaxed(lambda: self._load_on(index))
        return device

    def _load_on(self, index: int) -> _Device:
        driver = self.driver
        major = driver.attribute(index, _CAPABILITY_MAJOR)
        minor = driver.attribute(index, _CAPABILITY_MINOR)
        capability = f"{major}.{minor}"
        choice = _choose(major, minor, self.images)
        if choice is None:
            raise self._no_image(capability)
        image, kind = choice
        version = driver.version()
        built = f"{kind} {image.name} from CUDA {self.cuda}"
        if version < image.cuda:
            raise DriverTooOld(version, image.cuda, image.branch, built)
        data = self._read()
        device = _Device(driver, index, capability, image)
        try:
            device.module = self.within(device, lambda: driver.load_module(data))
        except DriverError as error:
            if error.code == _NO_BINARY:
                raise self._no_image(capability) from error
            if error.code == _UNSUPPORTED_PTX_VERSION:
                # The driver knows the GPU, but not yet this version of PTX; that of its own release it does.
                major_cuda, _, minor_cuda = self.cuda.partition(".")
                needs = int(major_cuda) * 1000 + int(minor_cuda) * 10
                raise DriverTooOld(version, needs, 0, built) from error
            raise
        return device

    def _no_image(self, capability: str) -> NoImage:
        file = _os.path.basename(self.file)  # noqa: PTH119
        return NoImage(file, capability, tuple(f"{image}" for image in self.images))

    def _read(self) -> bytes:
        """The fatbin, if it is the very one that this loader was generated for."""
        from hashlib import sha256

        try:
            with open(self.file, "rb") as file:  # noqa: PTH123
                data = file.read()
        except OSError as error:
            raise FatbinMismatch(f"{self.file} cannot be read: {error.strerror}; reinstall it") from error
        if self.offset:
            data = data[self.offset : self.offset + self.size]
        if len(data) != self.size or sha256(data).hexdigest() != self.sha256:
            raise FatbinMismatch(
                f"{self.file} is not the file that this loader was generated with "
                f"({len(data)} bytes, should be {self.size}, SHA-256 {self.sha256}); reinstall the package"
            )
        return data

    def within(self, device: _Device, work: Callable[[], _Result]) -> _Result:
        """Does work while a GPU's context is current, and makes the earlier one current again."""
        return self._relaxed(lambda: self._within(device, work))

    def _within(self, device: _Device, work: Callable[[], _Result]) -> _Result:
        driver = self.driver
        earlier = driver.current_context()
        if earlier == device.context:
            return work()
        driver.set_context(device.context)
        try:
            return work()
        finally:
            driver.set_context(earlier)

    def _relaxed(self, work: Callable[[], _Result]) -> _Result:
        """Does work that may come while a stream is captured into a graph.

        Loading leaves that stream alone, but in a thread of the strict kind the driver would refuse it, and
        the capture would fail.
        """
        driver = self.driver
        mode = driver.relax_capture(_CAPTURE_RELAXED)
        try:
            return work()
        finally:
            driver.relax_capture(mode)
