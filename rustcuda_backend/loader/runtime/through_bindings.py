"""The driver through NVIDIA's cuda-python."""

from __future__ import annotations

from rustcuda_backend.loader.runtime.errors import DriverError, NoDriver, _check_forked
from rustcuda_backend.loader.runtime.seam import _CLUSTER, _COOPERATIVE, _POINTER_DEVICE
from rustcuda_backend.loader.runtime.through_ctypes import _CtypesDriver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _BindingsDriver:
    """The driver through NVIDIA's cuda-python, versions 12 and 13."""

    def __init__(self) -> None:
        from importlib import import_module

        self._cu: Any = import_module("cuda.bindings.driver")
        self.launch_kernel: Any = self._cu.cuLaunchKernelEx
        self.no_extra: Any = 0
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
            _check_forked(error)
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

    def release_context(self, device: int) -> None:
        self._call("cuDevicePrimaryCtxRelease", self._call("cuDeviceGet", device))

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

    def unload_module(self, module: int) -> None:
        self._call("cuModuleUnload", self._cu.CUmodule(module))

    def global_memory(self, module: int, name: bytes) -> tuple[int, int]:
        error, address, size = self._cu.cuModuleGetGlobal(self._cu.CUmodule(module), name)
        if int(error):
            raise self._error(error, "cuModuleGetGlobal")
        return int(address), int(size)

    def copy_to(self, address: int, data: bytes, stream: int) -> None:
        self._call("cuMemcpyHtoDAsync", address, data, len(data), self._cu.CUstream(stream))

    def relax_capture(self, mode: int) -> int:
        wanted = self._cu.CUstreamCaptureMode(mode)
        return int(self._call("cuThreadExchangeStreamCaptureMode", wanted))

    def function_attribute(self, function: int, attribute: int) -> int:
        kind = self._cu.CUfunction_attribute(attribute)
        return int(self._call("cuFuncGetAttribute", kind, self._cu.CUfunction(function)))

    def set_function_attribute(self, function: int, attribute: int, value: int) -> None:
        kind = self._cu.CUfunction_attribute(attribute)
        self._call("cuFuncSetAttribute", self._cu.CUfunction(function), kind, value)

    def occupancy(self, function: int, threads: int, shared: int) -> int:
        name, handle = "cuOccupancyMaxActiveBlocksPerMultiprocessor", self._cu.CUfunction(function)
        return int(self._call(name, handle, threads, shared))

    def best_block(self, function: int, shared: int) -> int:
        handle = self._cu.CUfunction(function)
        error, _, block = self._cu.cuOccupancyMaxPotentialBlockSize(handle, None, shared, 0)
        if int(error):
            raise self._error(error, "cuOccupancyMaxPotentialBlockSize")
        return int(block)

    def configuration(
        self, grid: tuple[int, int, int], block: tuple[int, int, int], shared: int, stream: int,
        cluster: tuple[int, int, int] | None, cooperative: bool,
    ) -> Any:  # fmt: skip
        config, attributes = self._cu.CUlaunchConfig(), []
        config.gridDimX, config.gridDimY, config.gridDimZ = grid
        config.blockDimX, config.blockDimY, config.blockDimZ = block
        config.sharedMemBytes, config.hStream = shared, self._cu.CUstream(stream)
        if cooperative:
            attributes.append(self._attribute(_COOPERATIVE))
            attributes[-1].value.cooperative = 1
        if cluster:
            attributes.append(self._attribute(_CLUSTER))
            size = attributes[-1].value.clusterDim
            size.x, size.y, size.z = cluster
        config.attrs, config.numAttrs = attributes, len(attributes)
        return config

    def _attribute(self, number: int) -> Any:
        attribute = self._cu.CUlaunchAttribute()
        attribute.id = self._cu.CUlaunchAttributeID(number)
        return attribute

    def pointer_device(self, address: int) -> int:
        kind = self._cu.CUpointer_attribute(_POINTER_DEVICE)
        return int(self._call("cuPointerGetAttribute", kind, address))

    def launch_error(self, result: Any) -> DriverError:
        return self._error(result[0], "cuLaunchKernelEx")

    def launch_address(self) -> int:
        return _CtypesDriver().launch_address()
