"""The driver through NVIDIA's cuda-python."""

from __future__ import annotations

from rustcuda_backend.loader.runtime.errors import DriverError, NoDriver
from rustcuda_backend.loader.runtime.seam import _MAX_DYNAMIC_SHARED, _POINTER_DEVICE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _BindingsDriver:
    """The driver through NVIDIA's cuda-python, versions 12 and 13."""

    def __init__(self) -> None:
        from importlib import import_module

        self._cu: Any = import_module("cuda.bindings.driver")
        self.launch_kernel: Any = self._cu.cuLaunchKernel
        self.success: Any = (self._cu.CUresult.CUDA_SUCCESS,)
        self.boxed_function: Any = self._cu.CUfunction
        self.boxed_address: Any = int

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

    def launch_error(self, result: Any) -> DriverError:
        return self._error(result[0], "cuLaunchKernel")
