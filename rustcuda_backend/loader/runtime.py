"""The code that every generated loader carries: it checks arguments and launches kernels.

Importing it touches neither the driver nor torch, and imports nothing slow; the work starts at the first
launch or at `load`. The generator copies everything below the imports of `__future__` into each
`kernels_cuda.py`, where kernels become module attributes: hence the underscores, and no use of
builtins that make good kernel names (`max`, `sum`, `abs`, `round`, …).
"""

from __future__ import annotations

import os as _os
import sys as _sys
from _thread import RLock as _RLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol, TypeVar

    _Result = TypeVar("_Result")

    class _Driver(Protocol):
        """The seam to the CUDA driver: plain ints and bytes in and out, `DriverError` on failure."""

        def init(self) -> None:
            """Calls cuInit; raises NoDriver where there is no driver or no GPU."""

        def version(self) -> int:
            """The CUDA version of the driver, e.g. 12080."""

        def device_count(self) -> int:
            """How many GPUs this process sees."""

        def attribute(self, device: int, attribute: int) -> int:
            """A CUdevice_attribute of the GPU with that index."""

        def primary_context(self, device: int) -> int:
            """Retains the primary context of a GPU; it stays current wherever it was."""

        def current_context(self) -> int:
            """The calling thread's context, 0 for none."""

        def set_context(self, context: int) -> None:
            """Makes a context the calling thread's; 0 for none."""

        def context_device(self) -> int:
            """The GPU of the calling thread's context."""

        def load_module(self, image: bytes) -> int:
            """Loads a fatbin into the calling thread's context."""

        def function(self, module: int, name: bytes) -> int:
            """A kernel of a module."""

        def allow_shared(self, function: int, size: int) -> None:
            """Lets a kernel be launched with up to that many bytes of dynamic shared memory."""

        def pointer_device(self, address: int) -> int:
            """The GPU whose memory an address lies in."""

        def launch(
            self, function: int, gx: int, gy: int, gz: int, bx: int, by: int, bz: int,
            shared: int, stream: int, parameters: int,
        ) -> None:  # fmt: skip
            """Calls cuLaunchKernel; `parameters` is the address of the array of addresses."""


# ---- What can go wrong. Each error's `args` are its fields, so that all of them can be pickled. ----


class KernelError(RuntimeError):
    """Base of everything that loading or launching a kernel raises."""


class DriverError(KernelError):
    """A call to the CUDA driver failed.

    Attributes:
        name: The driver's name of the error, e.g. `CUDA_ERROR_ILLEGAL_ADDRESS`.
        code: Its number.
        call: The driver's function.
    """

    def __init__(self, name: str, code: int, call: str) -> None:
        super().__init__(name, code, call)
        self.name, self.code, self.call = name, code, call

    def __str__(self) -> str:
        return f"{self.call} failed: {self.name} ({self.code})"


class NoDriver(KernelError):  # noqa: N818
    """There is no CUDA driver, or it finds no GPU."""

    def __str__(self) -> str:
        return f"{super().__str__()}; kernels need an NVIDIA GPU and its driver (nvidia-smi shows both)"


class NoImage(KernelError):  # noqa: N818
    """The package has no code for this GPU.

    Attributes:
        capability: The GPU's compute capability, e.g. `"9.0"`.
        available: The capabilities built into the package.
    """

    def __init__(self, file: str, capability: str, available: tuple[str, ...]) -> None:
        super().__init__(file, capability, available)
        self.file, self.capability, self.available = file, capability, available

    def __str__(self) -> str:
        wanted = ";".join((*self.available, self.capability))
        return (
            f"{self.file} has no code for this GPU of compute capability {self.capability}, only for "
            f"{', '.join(self.available)}; rebuild the package with {self.capability} in its list: "
            f"[tool.rustcuda] capabilities, or TORCH_CUDA_ARCH_LIST='{wanted}'"
        )


class DriverTooOld(KernelError):  # noqa: N818
    """The driver cannot load the code built for this GPU.

    Attributes:
        has: The CUDA version of the driver, as cuDriverGetVersion gives it, e.g. 11040.
        needs: The CUDA version that it must have at least.
        branch: The first driver branch that has it, e.g. 525; 0 where it is not known.
    """

    def __init__(self, has: int, needs: int, branch: int, why: str) -> None:
        super().__init__(has, needs, branch, why)
        self.has, self.needs, self.branch, self.why = has, needs, branch, why

    def __str__(self) -> str:
        needs = f"CUDA {_cuda_name(self.needs)}"
        driver = (
            f"driver {self.branch} or newer ({needs})" if self.branch else f"a driver for {needs} or newer"
        )
        has = _cuda_name(self.has)
        return f"the NVIDIA driver supports CUDA {has}, but {self.why} needs {driver}: update the driver"


class FatbinMismatch(KernelError):  # noqa: N818
    """The fatbin beside the loader is not the one that the loader was generated for."""


class MissingKernel(KernelError):  # noqa: N818
    """The code for this GPU does not have this kernel.

    Attributes:
        kernel: Its name.
        capability: The GPU's compute capability.
        available: The capabilities whose code has the kernel.
    """

    def __init__(self, kernel: str, capability: str, image: str, available: tuple[str, ...]) -> None:
        super().__init__(kernel, capability, image, available)
        self.kernel, self.capability, self.image, self.available = kernel, capability, image, available

    def __str__(self) -> str:
        return (
            f"kernel '{self.kernel}' is not in the code for this GPU (compute capability "
            f"{self.capability}, served by {self.image}); only these have it: "
            f"{', '.join(self.available) or 'none'}"
        )


class LaunchTooLarge(KernelError):  # noqa: N818
    """A launch exceeds a limit of the GPU or of the kernel.

    Attributes:
        kernel: Its name.
        limit: Which limit, e.g. `"threads per block"`.
        got: What the launch asked for.
        most: The most there can be.
    """

    def __init__(self, kernel: str, limit: str, got: str, most: str) -> None:
        super().__init__(kernel, limit, got, most)
        self.kernel, self.limit, self.got, self.most = kernel, limit, got, most

    def __str__(self) -> str:
        return f"kernel '{self.kernel}': {self.got} {self.limit} asked for, at most {self.most} possible"


class ArgumentsError(KernelError):
    """A launch got wrong arguments.

    Attributes:
        kernel: The kernel's name.
        argument: The argument by its Rust name; `""` where it is about none in particular.
        wanted: What the kernel takes.
        got: What came.
        hint: What to do; may be `""`.
    """

    def __init__(self, kernel: str, argument: str, wanted: str, got: str, hint: str = "") -> None:
        super().__init__(kernel, argument, wanted, got, hint)
        self.kernel, self.argument, self.wanted, self.got, self.hint = kernel, argument, wanted, got, hint

    def __str__(self) -> str:
        place = f"kernel '{self.kernel}'" if self.kernel else "load"
        argument = f", argument '{self.argument}'" if self.argument else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}{argument}: wanted {self.wanted}, got {self.got}{hint}"


class ArgumentTypeError(ArgumentsError, TypeError):
    """An argument of the wrong type, dtype or number."""


class ArgumentValueError(ArgumentsError, ValueError):
    """An argument of the right type that cannot be: out of range, wrong device, not contiguous."""


_ERRORS = (
    "KernelError", "DriverError", "NoDriver", "NoImage", "DriverTooOld", "FatbinMismatch", "MissingKernel",
    "LaunchTooLarge", "ArgumentsError", "ArgumentTypeError", "ArgumentValueError",
)  # fmt: skip

# CUresult numbers that get an error of their own.
_OUT_OF_RESOURCES = 701
_NOT_FOUND = 500
_NO_BINARY = 209
_UNSUPPORTED_PTX_VERSION = 222

# CUdevice_attribute numbers.
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76
_SHARED_UNASKED, _SHARED_OPTIN = 8, 97
# In the order of a launch's numbers: block, grid, threads.
_LIMITS = (
    (2, "threads in block x"), (3, "threads in block y"), (4, "threads in block z"),
    (5, "blocks in grid x"), (6, "blocks in grid y"), (7, "blocks in grid z"), (1, "threads per block"),
)  # fmt: skip

_MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_POINTER_DEVICE = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL


def _cuda_name(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"


# ---- The driver ----


def _open_driver() -> _Driver:
    """cuda.bindings where it is installed, else ctypes; RUSTCUDA_DRIVER forces one."""
    forced = _os.environ.get("RUSTCUDA_DRIVER", "")
    if forced not in ("", "ctypes", "cuda-bindings"):
        raise KernelError(f"RUSTCUDA_DRIVER is '{forced}': set it to ctypes or cuda-bindings, or unset it")
    if forced == "ctypes":
        return _CtypesDriver()
    try:
        return _BindingsDriver()
    # An installation may be broken in any way; the driver library itself then still serves.
    except Exception as error:
        if forced:
            raise NoDriver(f"cuda.bindings cannot be imported: {error}") from error
        return _CtypesDriver()


class _BindingsDriver:
    """The driver through NVIDIA's cuda-python, versions 12 and 13."""

    def __init__(self) -> None:
        from importlib import import_module

        self._cu: Any = import_module("cuda.bindings.driver")
        self._launch = self._cu.cuLaunchKernel

    def _call(self, name: str, *arguments: Any) -> Any:
        error, *results = getattr(self._cu, name)(*arguments)
        if int(error):
            raise self._error(error, name)
        return results[0] if results else None

    def _error(self, error: Any, call: str) -> DriverError:
        return DriverError(getattr(error, "name", "CUDA_ERROR"), int(error), call)

    def init(self) -> None:
        try:
            self._call("cuInit", 0)
        # Without a driver library cuda.bindings raises an error of its own instead of returning one.
        except Exception as error:
            raise NoDriver(f"no usable CUDA driver: {error}") from error

    def version(self) -> int:
        return int(self._call("cuDriverGetVersion"))

    def device_count(self) -> int:
        return int(self._call("cuDeviceGetCount"))

    def attribute(self, device: int, attribute: int) -> int:
        kind = self._cu.CUdevice_attribute(attribute)
        return int(self._call("cuDeviceGetAttribute", kind, self._call("cuDeviceGet", device)))

    def primary_context(self, device: int) -> int:
        return int(self._call("cuDevicePrimaryCtxRetain", self._call("cuDeviceGet", device)))

    def current_context(self) -> int:
        return int(self._call("cuCtxGetCurrent"))

    def set_context(self, context: int) -> None:
        self._call("cuCtxSetCurrent", self._cu.CUcontext(context))

    def context_device(self) -> int:
        return int(self._call("cuCtxGetDevice"))

    def load_module(self, image: bytes) -> int:
        return int(self._call("cuModuleLoadData", image))

    def function(self, module: int, name: bytes) -> int:
        return int(self._call("cuModuleGetFunction", self._cu.CUmodule(module), name))

    def allow_shared(self, function: int, size: int) -> None:
        kind = self._cu.CUfunction_attribute(_MAX_DYNAMIC_SHARED)
        self._call("cuFuncSetAttribute", self._cu.CUfunction(function), kind, size)

    def pointer_device(self, address: int) -> int:
        kind = self._cu.CUpointer_attribute(_POINTER_DEVICE)
        return int(self._call("cuPointerGetAttribute", kind, address))

    def launch(
        self, function: int, gx: int, gy: int, gz: int, bx: int, by: int, bz: int,
        shared: int, stream: int, parameters: int,
    ) -> None:  # fmt: skip
        (error,) = self._launch(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, 0)
        if error:
            raise self._error(error, "cuLaunchKernel")


class _CtypesDriver:
    """The driver through its own library, with nothing installed."""

    def __init__(self) -> None:
        import ctypes

        name = "nvcuda.dll" if _sys.platform == "win32" else "libcuda.so.1"
        try:
            self._cu = ctypes.CDLL(name)
        except OSError as error:
            raise NoDriver(f"no CUDA driver library: {error}") from error
        pointer, number, word = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint
        self._byref, self._int, self._pointer, self._text = ctypes.byref, number, pointer, ctypes.c_char_p
        types: dict[str, tuple[Any, ...]] = {
            "cuInit": (word,),
            "cuDriverGetVersion": (pointer,),
            "cuDeviceGetCount": (pointer,),
            "cuDeviceGet": (pointer, number),
            "cuDeviceGetAttribute": (pointer, number, number),
            "cuDevicePrimaryCtxRetain": (pointer, number),
            "cuCtxGetCurrent": (pointer,),
            "cuCtxSetCurrent": (pointer,),
            "cuCtxGetDevice": (pointer,),
            "cuModuleLoadData": (pointer, ctypes.c_char_p),
            "cuModuleGetFunction": (pointer, pointer, ctypes.c_char_p),
            "cuFuncSetAttribute": (pointer, number, number),
            "cuPointerGetAttribute": (pointer, number, ctypes.c_ulonglong),
            "cuLaunchKernel": (pointer, *(word,) * 7, pointer, pointer, pointer),
            "cuGetErrorName": (number, pointer),
        }
        for call, argument_types in types.items():
            getattr(self._cu, call).argtypes = argument_types
        self._launch = self._cu.cuLaunchKernel

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._cu, name)(*arguments)
        if code:
            raise self._error(code, name)

    def _error(self, code: int, call: str) -> DriverError:
        text = self._text()
        self._cu.cuGetErrorName(code, self._byref(text))
        return DriverError((text.value or b"CUDA_ERROR").decode(), code, call)

    def _number(self, name: str, *arguments: Any) -> int:
        result = self._int()
        self._call(name, self._byref(result), *arguments)
        return result.value

    def _handle(self, name: str, *arguments: Any) -> int:
        result = self._pointer()
        self._call(name, self._byref(result), *arguments)
        return result.value or 0

    def init(self) -> None:
        try:
            self._call("cuInit", 0)
        except DriverError as error:
            raise NoDriver(f"no usable CUDA driver: {error}") from error

    def version(self) -> int:
        return self._number("cuDriverGetVersion")

    def device_count(self) -> int:
        return self._number("cuDeviceGetCount")

    def attribute(self, device: int, attribute: int) -> int:
        return self._number("cuDeviceGetAttribute", attribute, self._number("cuDeviceGet", device))

    def primary_context(self, device: int) -> int:
        return self._handle("cuDevicePrimaryCtxRetain", self._number("cuDeviceGet", device))

    def current_context(self) -> int:
        return self._handle("cuCtxGetCurrent")

    def set_context(self, context: int) -> None:
        self._call("cuCtxSetCurrent", context)

    def context_device(self) -> int:
        return self._number("cuCtxGetDevice")

    def load_module(self, image: bytes) -> int:
        return self._handle("cuModuleLoadData", image)

    def function(self, module: int, name: bytes) -> int:
        return self._handle("cuModuleGetFunction", module, name)

    def allow_shared(self, function: int, size: int) -> None:
        self._call("cuFuncSetAttribute", function, _MAX_DYNAMIC_SHARED, size)

    def pointer_device(self, address: int) -> int:
        return self._number("cuPointerGetAttribute", _POINTER_DEVICE, address)

    def launch(
        self, function: int, gx: int, gy: int, gz: int, bx: int, by: int, bz: int,
        shared: int, stream: int, parameters: int,
    ) -> None:  # fmt: skip
        code = self._launch(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, None)
        if code:
            raise self._error(code, "cuLaunchKernel")


# ---- Which code serves a GPU ----


class _Image:
    """The code of one capability in the fatbin, and the oldest driver that loads it."""

    __slots__ = ("branch", "cuda", "major", "minor", "ptx", "suffix")

    def __init__(self, major: int, minor: int, suffix: str, ptx: bool, branch: int, cuda: int) -> None:
        self.major, self.minor, self.suffix, self.ptx = major, minor, suffix, ptx
        self.branch, self.cuda = branch, cuda

    @property
    def name(self) -> str:
        return f"{self.major}.{self.minor}{self.suffix}"

    def __str__(self) -> str:
        return f"{self.name}+PTX" if self.ptx else self.name

    def sass_runs_on(self, major: int, minor: int) -> bool:
        """NVIDIA's binary compatibility: later minors of one major; `a` and `f` are narrower."""
        if self.suffix == "a":
            return (self.major, self.minor) == (major, minor)
        # 10.1, later renamed 11.0, is a family of its own.
        if self.suffix == "f" and (10, 1) in ((self.major, self.minor), (major, minor)):
            return (self.major, self.minor) == (major, minor)
        return self.major == major and self.minor <= minor

    def ptx_runs_on(self, major: int, minor: int) -> bool:
        """PTX serves every later GPU, but with `a` and `f` no more than the SASS does."""
        if self.suffix:
            return self.ptx and self.sass_runs_on(major, minor)
        return self.ptx and (self.major, self.minor) <= (major, minor)


def _choose(major: int, minor: int, images: tuple[_Image, ...]) -> tuple[_Image, str] | None:
    """The image that serves a GPU and the kind of code, `"SASS"` or `"PTX"`; None where none does."""

    def nearest(image: _Image) -> tuple[int, int, int]:
        return image.major, image.minor, ("", "f", "a").index(image.suffix)

    sass = sorted((image for image in images if image.sass_runs_on(major, minor)), key=nearest)
    if sass:
        return sass[-1], "SASS"
    ptx = sorted((image for image in images if image.ptx_runs_on(major, minor)), key=nearest)
    return (ptx[-1], "PTX") if ptx else None


# ---- The fatbin and the GPUs it is loaded on ----


class _Device:
    """One GPU on which the fatbin is loaded."""

    __slots__ = ("capability", "context", "image", "limits", "module", "shared_optin", "shared_unasked")

    def __init__(self, driver: _Driver, index: int, capability: str, image: _Image) -> None:
        self.capability, self.image = capability, image
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
        self._raw_stream: Callable[[int], int] | None = None

    @property
    def driver(self) -> _Driver:
        """The driver, opened at the first use."""
        if self._driver is None:
            with self.lock:
                if self._driver is None:
                    driver = _open_driver()
                    driver.init()
                    self._driver = driver
        return self._driver

    def load(self, device: object = None) -> None:
        """Loads the fatbin and every kernel on one GPU, by index, `"cuda:1"` or torch.device."""
        index = self.current_device() if device is None else self._index(device)
        count = self.driver.device_count()
        if not 0 <= index < count:
            raise ArgumentValueError("", "device", f"one of this machine's {count} GPUs", f"{index}")
        for kernel in self.kernels:
            try:
                kernel.entry(index)
            except MissingKernel:  # noqa: PERF203
                continue  # an error only for who calls it
        self.device(index)

    def _index(self, device: object) -> int:
        if isinstance(device, int):
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
        if self.raw_stream is not None:
            return int(_sys.modules["torch"].cuda.current_device())
        return driver.context_device() if driver.current_context() else 0

    @property
    def raw_stream(self) -> Callable[[int], int] | None:
        """What torch has to get from a GPU's index to its current stream; None while torch is not loaded."""
        if self._raw_stream is None:
            # torch is never imported from here: without it, no argument is torch's.
            torch: Any = _sys.modules.get("torch")
            self._raw_stream = getattr(getattr(torch, "_C", None), "_cuda_getCurrentRawStream", None)
        return self._raw_stream

    def device(self, index: int) -> _Device:
        """The GPU with that index, with the fatbin loaded."""
        device = self._devices.get(index)
        if device is None:
            with self.lock:
                device = self._devices.get(index)
                if device is None:
                    device = self._devices[index] = self._load_on(index)
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
        driver = self.driver
        earlier = driver.current_context()
        if earlier == device.context:
            return work()
        driver.set_context(device.context)
        try:
            return work()
        finally:
            driver.set_context(earlier)


# ---- Arguments ----

# The struct format, bytes, and for numbers the range of each Rust scalar.
_FORMATS = {
    "bool": "?", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "f16": "e", "bf16": "H", "i32": "i",
    "u32": "I", "f32": "f", "i64": "q", "u64": "Q", "isize": "q", "usize": "Q", "f64": "d",
}  # fmt: skip
# The least magnitude that no longer rounds to a finite value.
_FLOAT_LIMITS = {"f16": 65520.0, "bf16": 2.0**128 - 2.0**119, "f32": 2.0**128 - 2.0**103, "f64": float("inf")}
_TORCH_DTYPES = {
    "bool": "bool", "int8": "i8", "uint8": "u8", "int16": "i16", "uint16": "u16", "int32": "i32",
    "uint32": "u32", "int64": "i64", "uint64": "u64", "float16": "f16", "bfloat16": "bf16", "float32": "f32",
    "float64": "f64",
}  # fmt: skip
_TYPESTRS = {
    "|b1": "bool", "|i1": "i8", "|u1": "u8", "<i2": "i16", "<u2": "u16", "<i4": "i32", "<u4": "u32",
    "<i8": "i64", "<u8": "u64", "<f2": "f16", "<f4": "f32", "<f8": "f64", "<V2": "bf16", "|V2": "bf16",
}  # fmt: skip
_BOOL_DTYPES = ("bool", "torch.bool")
_SAME = {"isize": "i64", "usize": "u64"}

# What a zero-length slice points to: Rust wants an aligned address other than null.
_DANGLING = 256


def _came(value: object) -> str:
    """What an argument is, in few words."""
    if hasattr(value, "data_ptr"):
        where = getattr(value, "device", "an unknown device")
        dtype = str(getattr(value, "dtype", "")).rpartition(".")[2]
        return f"a {dtype} tensor on {where}"
    kind = type(value)
    if hasattr(value, "ndim") and hasattr(value, "dtype"):
        return f"a {value.dtype} {kind.__module__}.{kind.__qualname__}"
    if value is None:
        return "None"
    text = repr(value)
    return f"{kind.__qualname__} {text if len(text) <= 40 else text[:37] + '...'}"


class _Parameter:
    """One parameter of a kernel: turns a Python value into the numbers that are packed for it.

    Each kind has a `convert`, which appends what is to be packed to a list and returns the index of the GPU
    that the value lives on, or -1.
    """

    format = ""

    def __init__(
        self, library: _Library, kernel: str, name: str, dtype: str, mutable: bool, rust: str
    ) -> None:
        self.library, self.kernel, self.name, self.rust = library, kernel, name, rust
        self.dtype, self.mutable = dtype, mutable
        self.prepare()

    def prepare(self) -> None:
        """Works out what depends on the dtype alone."""

    def wrong_type(self, value: object, hint: str = "", wanted: str = "") -> ArgumentTypeError:
        return ArgumentTypeError(self.kernel, self.name, wanted or self.rust, _came(value), hint)

    def wrong_value(self, wanted: str, got: str, hint: str = "") -> ArgumentValueError:
        return ArgumentValueError(self.kernel, self.name, wanted, got, hint)


class _Scalar(_Parameter):
    """A number passed by value."""

    def prepare(self) -> None:
        # Every value has 8 bytes of the block to itself, so that all of them are aligned.
        code = _FORMATS[self.dtype]
        size = 1 if code in "?bB" else 2 if code in "hHe" else 4 if code in "iIf" else 8
        self.format = f"{code}{8 - size}x"
        self.low = -(1 << (8 * size - 1)) if self.dtype[0] == "i" else 0
        self.high = (1 << (8 * size - (self.dtype[0] == "i"))) - 1

    def check_single(self, value: Any) -> None:
        """Refuses arrays of several elements, and GPU memory, reading which would wait for the GPU."""
        if getattr(value, "ndim", 0) != 0 or getattr(value, "is_cuda", False):
            raise self.wrong_type(value, "pass a number, e.g. value.item()")


class _Integer(_Scalar):
    def convert(self, value: Any, values: list[Any]) -> int:
        if type(value) is not int:
            value = self._as_int(value)
        if not self.low <= value <= self.high:
            raise self.wrong_value(f"{self.rust} ({self.low} to {self.high})", f"{value}")
        values.append(value)
        return -1

    def _as_int(self, value: Any) -> int:
        self.check_single(value)
        if str(getattr(value, "dtype", "")) in _BOOL_DTYPES:
            raise self.wrong_type(value)
        try:
            return int(type(value).__index__(value))
        except (AttributeError, TypeError, ValueError, RuntimeError) as error:
            hint = "a float; use int(…)" if isinstance(value, float) else ""
            raise self.wrong_type(value, hint) from error


class _Float(_Scalar):
    def prepare(self) -> None:
        super().prepare()
        self.limit = _FLOAT_LIMITS[self.dtype]

    def convert(self, value: Any, values: list[Any]) -> int:
        if type(value) is not float:
            value = self._as_float(value)
        # Infinities and NaN pass: only they differ from 0 when subtracted from themselves.
        if not -self.limit < value < self.limit and value - value == 0.0:
            raise self.wrong_value(f"a number in the range of {self.rust}", f"{value}")
        values.append(value)
        return -1

    def _as_float(self, value: Any) -> float:
        self.check_single(value)
        # float() would also read text and drop imaginary parts.
        number = hasattr(value, "__float__") or hasattr(value, "__index__")
        if not number or "complex" in str(getattr(value, "dtype", "")):
            raise self.wrong_type(value)
        try:
            return float(value)
        except OverflowError as error:
            raise self.wrong_value(f"a number in the range of {self.rust}", _came(value)) from error
        except (TypeError, ValueError, RuntimeError) as error:
            raise self.wrong_type(value) from error


class _BFloat16(_Float):
    def convert(self, value: Any, values: list[Any]) -> int:
        from struct import pack, unpack

        super().convert(value, values)
        number = values.pop()
        if number != number:
            values.append(0x7FC0)
            return -1
        # Rounds to nearest, ties to even, as the GPU and torch do. Beyond f32 there is only infinity.
        (bits,) = unpack("<I", pack("<f", number))
        values.append((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)
        return -1


class _Bool(_Scalar):
    def convert(self, value: Any, values: list[Any]) -> int:
        if type(value) is not bool:
            self.check_single(value)
            # numpy.bool_, and torch and numpy arrays of one bool.
            if str(getattr(value, "dtype", "")) not in _BOOL_DTYPES:
                raise self.wrong_type(value)
            value = bool(value)
        values.append(value)
        return -1


class _Array(_Parameter):
    """What pointers and slices have in common: GPU memory of one dtype."""

    format = "Q"

    def prepare(self) -> None:
        self.wanted_dtype = _SAME.get(self.dtype, self.dtype)
        # torch.dtype objects known to fit; filled as they come, for torch is not imported from here.
        self.fitting: set[object] = set()

    def check_tensor(self, value: Any) -> None:
        if not getattr(value, "is_cuda", False):
            raise self.wrong_value(f"{self.rust} on a GPU", _came(value), "move it there with .cuda()")
        if value.dtype not in self.fitting:
            name = str(value.dtype).rpartition(".")[2]
            if self.dtype and _TORCH_DTYPES.get(name) != self.wanted_dtype:
                raise self.wrong_type(value, self._dtype_hint())
            self.fitting.add(value.dtype)

    def _dtype_hint(self) -> str:
        names = [name for name, rust in _TORCH_DTYPES.items() if rust == self.wanted_dtype]
        return f"its dtype must be {names[0]}"

    def interface(self, value: Any) -> Mapping[str, Any]:
        """The `__cuda_array_interface__` of an array that is not torch's, checked."""
        interface: Mapping[str, Any] | None = getattr(value, "__cuda_array_interface__", None)
        if interface is None:
            if hasattr(value, "__array_interface__"):
                hint = "it lies in host memory: move it to a GPU, e.g. torch.from_numpy(value).cuda()"
                raise self.wrong_type(value, hint, f"{self.rust} on a GPU")
            raise self.wrong_type(value, "takes GPU arrays: torch, CuPy, __cuda_array_interface__")
        if self.dtype and _TYPESTRS.get(interface["typestr"]) != self.wanted_dtype:
            raise self.wrong_type(value, self._dtype_hint())
        if self.mutable and interface["data"][1]:
            raise self.wrong_value(f"{self.rust} that may be written", "a read-only array")
        return interface

    def device_of(self, address: int) -> int:
        if not address:
            return -1  # an empty array may lie nowhere
        try:
            return self.library.driver.pointer_device(address)
        except DriverError as error:
            raise self.wrong_value(f"{self.rust} on a GPU", f"the address {address:#x} ({error})") from error


class _Pointer(_Array):
    """A raw pointer or reference: arrays of any strides, an address, or None for null."""

    def convert(self, value: Any, values: list[Any]) -> int:
        data_ptr = getattr(value, "data_ptr", None)
        if data_ptr is None:
            return self._other(value, values)
        self.check_tensor(value)
        values.append(data_ptr())
        return int(value.get_device())

    def _other(self, value: Any, values: list[Any]) -> int:
        if value is None:
            values.append(0)
            return -1
        if hasattr(type(value), "__index__") and not hasattr(value, "ndim") and not isinstance(value, bool):
            address = int(type(value).__index__(value))
            if not 0 <= address < 1 << 64:
                raise self.wrong_value(f"{self.rust}, or an address from 0 to 2**64 - 1", f"{address}")
            values.append(address)
            return -1
        address = int(self.interface(value)["data"][0])
        values.append(address)
        return self.device_of(address)


class _Slice(_Array):
    """A slice: a contiguous array, passed as its address and its number of elements."""

    format = "QQ"

    def convert(self, value: Any, values: list[Any]) -> int:
        data_ptr = getattr(value, "data_ptr", None)
        if data_ptr is None:
            return self._other(value, values)
        self.check_tensor(value)
        if not value.is_contiguous():
            raise self._strided(f"strides {tuple(value.stride())}")
        values.append(data_ptr() or _DANGLING)
        values.append(value.numel())
        return int(value.get_device())

    def _other(self, value: Any, values: list[Any]) -> int:
        interface = self.interface(value)
        address = int(interface["data"][0])
        count, strides = 1, interface.get("strides")
        step = int(interface["typestr"][2:])
        for position in range(len(interface["shape"]) - 1, -1, -1):
            extent = interface["shape"][position]
            # The stride of an extent of 1 is never used.
            if strides is not None and extent > 1 and strides[position] != step * count:
                raise self._strided(f"strides {tuple(strides)} in bytes")
            count *= extent
        values.append(address or _DANGLING)
        values.append(count)
        return self.device_of(address)

    def _strided(self, got: str) -> ArgumentValueError:
        return self.wrong_value(f"{self.rust} that is contiguous", got, "use .contiguous()")


class _Rows(_Slice):
    """A slice that goes with the elements of a row, the array's last dimension."""

    format = "QQI4x"

    def convert(self, value: Any, values: list[Any]) -> int:
        device = super().convert(value, values)
        shape = value.shape if hasattr(value, "data_ptr") else value.__cuda_array_interface__["shape"]
        width = int(shape[-1]) if len(shape) else 1
        if width >= 1 << 32:
            raise self.wrong_value(f"{self.rust} with rows of less than 2**32", f"rows of {width}")
        values.append(width)
        return device


def _parameter_class(kind: str, dtype: str) -> type[_Integer | _Float | _Bool | _Pointer | _Slice]:
    if kind != "scalar":
        return _Rows if kind == "rows" else _Slice if kind == "slice" else _Pointer
    if dtype == "bf16":
        return _BFloat16
    return _Bool if dtype == "bool" else _Float if dtype in _FLOAT_LIMITS else _Integer


# ---- Kernels and launches ----


class _Marshaller:
    """Packs one kernel's arguments: its converters and a store of blocks that are free.

    A block is the array of addresses that cuLaunchKernel takes, followed by the values they point to.
    The driver has copied the values when a launch returns, so a block can be used again then; a launch takes
    a block out of the store for as long as it needs it, so that no two threads ever share one.
    """

    __slots__ = ("_count", "_slots", "converters", "free", "offset", "pack_into")

    def __init__(self, parameters: tuple[_Integer | _Float | _Bool | _Pointer | _Slice, ...]) -> None:
        from struct import Struct

        self.converters = tuple(parameter.convert for parameter in parameters)
        packing = Struct("<" + "".join(parameter.format for parameter in parameters))
        self.pack_into = packing.pack_into
        self._slots = packing.size // 8
        self.offset = 8 * self._slots
        self.free: list[tuple[Any, int]] = []

    def block(self) -> tuple[Any, int]:
        """A block and its address, a free one or a new one."""
        try:
            return self.free.pop()
        except IndexError:
            return self._new_block()

    def _new_block(self) -> tuple[Any, int]:
        from array import array

        # One slot more than needed: the block of a kernel without parameters has an address, too.
        block = array("Q", bytes(2 * self.offset + 8))
        address = block.buffer_info()[0]
        for slot in range(self._slots):
            block[slot] = address + self.offset + 8 * slot
        return block, address


class _Entry:
    """One kernel on one GPU."""

    __slots__ = ("device", "function", "shared")

    def __init__(self, device: _Device, function: int) -> None:
        self.device, self.function = device, function
        self.shared = device.shared_unasked


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
    ) -> None:
        self.__name__ = self.__qualname__ = name
        self._library, self._parameters = library, parameters
        self._most_threads, self._lacking = most_threads, lacking
        self._signature = ", ".join(f"{rust_name}: {rust}" for rust_name, _, _, _, _, rust in parameters)
        self.__doc__ = f"{name}[grid, block]({self._signature})" + (f"\n\n{doc}" if doc else "")
        self._marshaller: _Marshaller | None = None
        self._entries: dict[int, _Entry] = {}
        library.kernels.append(self)

    def __repr__(self) -> str:
        return f"<kernel {self.__name__}[grid, block]({self._signature})>"

    def __call__(self, *_arguments: object, **_named: object) -> None:
        """Tells how to launch."""
        raise ArgumentTypeError(
            self.__name__, "", f"a launch {self.__name__}[grid, block](…)", "a call without grid and block"
        )

    def __getitem__(self, launch: Any) -> _Launch:
        if type(launch) is not tuple or not 2 <= len(launch) <= 4:
            wanted = "[grid, block], [grid, block, shared_bytes] or [grid, block, shared_bytes, stream]"
            raise ArgumentTypeError(self.__name__, "", wanted, f"[{launch!r}]")
        grid, block = launch[0], launch[1]
        shared = launch[2] if len(launch) > 2 else 0
        stream = launch[3] if len(launch) > 3 else None
        if type(shared) is not int or shared < 0:
            shared = _whole(self.__name__, "shared_bytes", shared, 0)
        name = self.__name__
        return _Launch(self, _extent(name, "grid", grid), _extent(name, "block", block), shared, stream)

    @property
    def marshaller(self) -> _Marshaller:
        """What packs the arguments, made at the first launch."""
        if self._marshaller is None:
            self._marshaller = _Marshaller(
                tuple(
                    _parameter_class(kind, dtype)(self._library, self.__name__, name, dtype, mutable, rust)
                    for name, _, kind, dtype, mutable, rust in self._parameters
                )
            )
        return self._marshaller

    def entry(self, index: int) -> _Entry:
        """The kernel on one GPU, loaded at the first need."""
        entry = self._entries.get(index)
        if entry is None:
            with self._library.lock:
                entry = self._entries.get(index)
                if entry is None:
                    entry = self._entries[index] = self._load_on(index)
        return entry

    def _load_on(self, index: int) -> _Entry:
        library = self._library
        device = library.device(index)
        name = self.__name__.encode()
        try:
            function = library.within(device, lambda: library.driver.function(device.module, name))
        except DriverError as error:
            if error.code != _NOT_FOUND:
                raise
            having = tuple(image.name for image in library.images if image.name not in self._lacking)
            raise MissingKernel(self.__name__, device.capability, device.image.name, having) from error
        return _Entry(device, function)

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
            at = convert(value, [])
            if first_at >= 0 and at >= 0 and at != first_at:
                break
            if first_at < 0 <= at:
                first, first_at = name, at
        wanted = f"all arrays on one GPU, like '{first}' on cuda:{first_at}"
        return ArgumentValueError(self.__name__, name, wanted, f"one on cuda:{at}")


class _Launch:
    """A kernel with its grid and block: call it with the kernel's arguments, as often as wanted."""

    __slots__ = ("_block", "_checked", "_grid", "_kernel", "_shared", "_stream", "_stream_device")

    def __init__(
        self,
        kernel: _Kernel,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared: int,
        stream: object,
    ) -> None:
        self._kernel, self._grid, self._block, self._shared = kernel, grid, block, shared
        self._stream: int | None = None
        self._stream_device = -1
        if stream is not None:
            self._stream, self._stream_device = _stream_handle(kernel.__name__, stream)
        self._checked: _Entry | None = None

    def __repr__(self) -> str:
        return f"<launch {self._kernel.__name__}[{self._grid}, {self._block}, {self._shared}]>"

    def __call__(self, *arguments: Any, **named: Any) -> None:
        """Checks the arguments and launches the kernel; returns before the kernel has run."""
        kernel = self._kernel
        marshaller = kernel._marshaller or kernel.marshaller
        converters = marshaller.converters
        if named or len(arguments) != len(converters):
            arguments = kernel.in_order(arguments, named)
        values: list[Any] = []
        device = -1
        for convert, value in zip(converters, arguments):  # noqa: B905
            at = convert(value, values)
            if at != device and at >= 0:
                if device >= 0:
                    raise kernel.two_devices(arguments)
                device = at
        if device < 0 or (self._stream_device >= 0 and self._stream_device != device):
            device = self._settle_device(device)
        entry = kernel._entries.get(device) or kernel.entry(device)
        if entry is not self._checked:
            self._check(entry)
        stream = self._stream
        if stream is None:
            raw_stream = kernel._library._raw_stream or kernel._library.raw_stream
            stream = raw_stream(device) if raw_stream is not None else 0
        held = marshaller.block()
        marshaller.pack_into(held[0], marshaller.offset, *values)
        self._start(entry, stream, held[1])
        marshaller.free.append(held)

    def _start(self, entry: _Entry, stream: int, address: int) -> None:
        library = self._kernel._library
        driver = library._driver or library.driver
        earlier = driver.current_context()
        context = entry.device.context
        if earlier != context:
            driver.set_context(context)
        try:
            driver.launch(entry.function, *self._grid, *self._block, self._shared, stream, address)
        except DriverError as error:
            if error.code == _OUT_OF_RESOURCES:
                threads = self._block[0] * self._block[1] * self._block[2]
                most = "what its registers and shared memory allow"
                name = self._kernel.__name__
                raise LaunchTooLarge(name, "threads per block", f"{threads}", most) from error
            raise
        finally:
            if earlier != context:
                driver.set_context(earlier)

    def _settle_device(self, device: int) -> int:
        """The GPU to launch on where the arguments name none, or another than the stream."""
        if device < 0:
            return self._stream_device if self._stream_device >= 0 else self._kernel._library.current_device()
        wanted = f"a stream of the arrays' GPU, cuda:{device}"
        got = f"one of cuda:{self._stream_device}"
        raise ArgumentValueError(self._kernel.__name__, "stream", wanted, got)

    def _check(self, entry: _Entry) -> None:
        """Holds the launch against the limits of a GPU, and opts in to much shared memory."""
        gx, gy, gz = self._grid
        bx, by, bz = self._block
        threads = bx * by * bz
        most_bx, most_by, most_bz, most_gx, most_gy, most_gz, most_threads = entry.device.limits
        if (
            threads > (self._kernel._most_threads or most_threads)
            or threads > most_threads
            or (bx > most_bx or by > most_by or bz > most_bz)
            or (gx > most_gx or gy > most_gy or gz > most_gz)
        ):
            raise self._too_large(entry, (bx, by, bz, gx, gy, gz, threads))
        if self._shared > entry.shared:
            self._allow_shared(entry)
        self._checked = entry

    def _too_large(self, entry: _Entry, numbers: tuple[int, ...]) -> LaunchTooLarge:
        """The error for the first number that exceeds its limit."""
        name, most_threads = self._kernel.__name__, self._kernel._most_threads
        for number, most, (_, limit) in zip(numbers, entry.device.limits, _LIMITS):  # noqa: B905
            if number > most:
                return LaunchTooLarge(name, limit, f"{number}", f"{most}")
        most_text = f"{most_threads} (its launch bounds)"
        return LaunchTooLarge(name, "threads per block", f"{numbers[-1]}", most_text)

    def _allow_shared(self, entry: _Entry) -> None:
        """Opts in to more dynamic shared memory than a kernel gets unasked."""
        most = entry.device.shared_optin
        if self._shared > most:
            limit = "bytes of shared memory per block"
            raise LaunchTooLarge(self._kernel.__name__, limit, f"{self._shared}", f"{most}")
        library = self._kernel._library
        with library.lock:
            # Another thread may have allowed more in the meantime.
            if self._shared > entry.shared:
                library.within(
                    entry.device, lambda: library.driver.allow_shared(entry.function, self._shared)
                )
                entry.shared = self._shared


def _extent(kernel: str, what: str, value: Any) -> tuple[int, int, int]:
    """Grid or block as three numbers."""
    if type(value) is int and value > 0:
        return (value, 1, 1)
    numbers = value if isinstance(value, tuple | list) else (value,)
    if not 1 <= len(numbers) <= 3:
        raise ArgumentTypeError(kernel, what, "an int or a tuple of 1 to 3", f"{value!r}")
    x, y, z = (*(_whole(kernel, what, number, 1) for number in numbers), 1, 1)[:3]
    return (x, y, z)


def _whole(kernel: str, what: str, value: Any, least: int) -> int:
    try:
        number = int(type(value).__index__(value))
    except (AttributeError, TypeError) as error:
        wanted = "an int" if what == "shared_bytes" else "ints"
        raise ArgumentTypeError(kernel, what, wanted, _came(value)) from error
    if not least <= number < 1 << 32:
        raise ArgumentValueError(kernel, what, f"{least} or more, below 2**32", f"{number}")
    return number


def _stream_handle(kernel: str, stream: Any) -> tuple[int, int]:
    """A stream's handle, and the index of its GPU or -1."""
    if type(stream) is int and stream >= 0:
        return stream, -1
    handle = getattr(stream, "cuda_stream", None)
    if handle is not None:
        return int(handle), int(getattr(stream, "device_index", -1))
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1]), -1
    raise ArgumentTypeError(kernel, "stream", "a torch stream, its handle as an int, or None", _came(stream))
