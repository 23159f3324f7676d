"""The driver through its own library, with nothing installed."""

from __future__ import annotations

import sys as _sys

from rustcuda_backend.loader.runtime.errors import DriverError, NoDriver, _check_forked
from rustcuda_backend.loader.runtime.seam import _CLUSTER, _COOPERATIVE, _POINTER_DEVICE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


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
            "cuDevicePrimaryCtxRelease_v2": (number,),
            "cuCtxGetCurrent": (pointer,),
            "cuCtxSetCurrent": (pointer,),
            "cuCtxGetDevice": (pointer,),
            "cuModuleLoadData": (pointer, ctypes.c_char_p),
            "cuModuleUnload": (pointer,),
            "cuModuleGetFunction": (pointer, pointer, ctypes.c_char_p),
            "cuModuleGetGlobal_v2": (pointer, pointer, pointer, ctypes.c_char_p),
            "cuMemcpyHtoDAsync_v2": (ctypes.c_ulonglong, ctypes.c_char_p, ctypes.c_size_t, pointer),
            "cuThreadExchangeStreamCaptureMode": (pointer,),
            "cuFuncGetAttribute": (pointer, number, pointer),
            "cuFuncSetAttribute": (pointer, number, number),
            "cuOccupancyMaxActiveBlocksPerMultiprocessor": (pointer, pointer, number, ctypes.c_size_t),
            "cuOccupancyMaxPotentialBlockSize": (
                pointer,
                pointer,
                pointer,
                pointer,
                ctypes.c_size_t,
                number,
            ),
            "cuPointerGetAttribute": (pointer, number, ctypes.c_ulonglong),
            "cuGetErrorName": (number, pointer),
        }
        for call, argument_types in types.items():
            getattr(self._cu, call).argtypes = argument_types
        # Without argument types, and with what they would make of each argument made before: half the time.
        self.launch_kernel: Any = self._cu.cuLaunchKernelEx
        self.no_extra: Any = pointer()
        self.success: Any = 0
        self.boxed_function: Any = pointer.from_param
        self.boxed_address: Any = pointer.from_param

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._cu, name)(*arguments)
        if code:
            raise self._error(code, name.removesuffix("_v2"))

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
            _check_forked(error)
            raise NoDriver(f"no usable CUDA driver: {error}") from error

    def version(self) -> int:
        return self._number("cuDriverGetVersion")

    def device_count(self) -> int:
        return self._number("cuDeviceGetCount")

    def attribute(self, device: int, attribute: int) -> int:
        return self._number("cuDeviceGetAttribute", attribute, self._number("cuDeviceGet", device))

    def primary_context(self, device: int) -> int:
        return self._handle("cuDevicePrimaryCtxRetain", self._number("cuDeviceGet", device))

    def release_context(self, device: int) -> None:
        self._call("cuDevicePrimaryCtxRelease_v2", self._number("cuDeviceGet", device))

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

    def unload_module(self, module: int) -> None:
        self._call("cuModuleUnload", module)

    def global_memory(self, module: int, name: bytes) -> tuple[int, int]:
        address, size = self._pointer(), self._pointer()
        self._call("cuModuleGetGlobal_v2", self._byref(address), self._byref(size), module, name)
        return address.value or 0, size.value or 0

    def copy_to(self, address: int, data: bytes, stream: int) -> None:
        self._call("cuMemcpyHtoDAsync_v2", address, data, len(data), stream)

    def relax_capture(self, mode: int) -> int:
        changed = self._int(mode)
        self._call("cuThreadExchangeStreamCaptureMode", self._byref(changed))
        return changed.value

    def function_attribute(self, function: int, attribute: int) -> int:
        return self._number("cuFuncGetAttribute", attribute, function)

    def set_function_attribute(self, function: int, attribute: int, value: int) -> None:
        self._call("cuFuncSetAttribute", function, attribute, value)

    def occupancy(self, function: int, threads: int, shared: int) -> int:
        return self._number("cuOccupancyMaxActiveBlocksPerMultiprocessor", function, threads, shared)

    def best_block(self, function: int, shared: int) -> int:
        grid, block = self._int(), self._int()
        name = "cuOccupancyMaxPotentialBlockSize"
        self._call(name, self._byref(grid), self._byref(block), function, None, shared, 0)
        return block.value

    def configuration(
        self, grid: tuple[int, int, int], block: tuple[int, int, int], shared: int, stream: int,
        cluster: tuple[int, int, int] | None, cooperative: bool,
    ) -> Any:  # fmt: skip
        from ctypes import addressof, create_string_buffer
        from struct import pack

        # CUlaunchAttribute is a number, 4 bytes to fill up, and 64 bytes of value.
        attributes = pack("<I4xI60x", _COOPERATIVE, 1) if cooperative else b""
        if cluster:
            attributes += pack("<I4xIII52x", _CLUSTER, *cluster)
        # CUlaunchConfig, followed by the attributes that it points to.
        kept = create_string_buffer(56 + len(attributes))
        at = addressof(kept) + 56 if attributes else 0
        kept.raw = pack("<7I4xQQI4x", *grid, *block, shared, stream, at, len(attributes) // 72) + attributes
        return self._byref(kept)  # which keeps it alive

    def pointer_device(self, address: int) -> int:
        return self._number("cuPointerGetAttribute", _POINTER_DEVICE, address)

    def launch_error(self, result: int) -> DriverError:
        return self._error(result, "cuLaunchKernelEx")

    def launch_address(self) -> int:
        from ctypes import c_void_p, cast

        return cast(self._cu.cuLaunchKernelEx, c_void_p).value or 0
