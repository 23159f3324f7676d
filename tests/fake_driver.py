"""Stands for the CUDA driver and torch in tests of the loader: at its seam, and as a C library."""

from __future__ import annotations
import __future__

import ctypes
import sys
import threading
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rustcuda_backend.loader import carried
from rustcuda_backend.loader.runtime.errors import DriverError


def import_loader(path: Path) -> types.ModuleType:
    """Imports `pkg.kernels_cuda` from a generated file, so that coverage counts for `runtime/*.py`.

    What runs is the generated text; its copy of the runtime merely goes by the files and lines it came from.
    """
    text = path.read_text(encoding="utf-8")
    head, runtime, tail = text.partition(carried.runtime_code())
    assert runtime, "the module carries the runtime as it is"
    module = types.ModuleType("pkg.kernels_cuda")
    module.__file__ = str(path)
    sys.modules["pkg.kernels_cuda"] = module
    parts = [(head, str(path))]
    for section in carried.sections():
        lines = section.source.splitlines()
        kept = ["" if number in section.dropped else line for number, line in enumerate(lines, 1)]
        parts += [("\n".join(section.imports), str(path)), ("\n".join(kept), str(section.path))]
    parts.append(("\n" * (head + runtime).count("\n") + tail, str(path)))
    flags = __future__.annotations.compiler_flag
    for part, name in parts:
        exec(compile(part, name, "exec", flags, dont_inherit=True), vars(module))  # noqa: S102
    return module


# CUdevice_attribute numbers, as on an H200.
LIMITS = {
    1: 1024, 2: 1024, 3: 1024, 4: 64, 5: 2**31 - 1, 6: 65535, 7: 65535, 8: 49152, 97: 232448,
}  # fmt: skip


class Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("fields", ctypes.c_uint * 7),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("attribute_count", ctypes.c_uint),
    )


LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(Config), ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
)


@dataclass(frozen=True)
class Launch:
    """One call of cuLaunchKernel, with the bytes that each parameter's address led to."""

    kernel: str
    device: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    stream: int
    packed: tuple[bytes, ...]


@dataclass
class FakeDriver:
    """A driver at the loader's seam that records what it is asked for.

    Attributes:
        kernels: Name to the sizes in bytes of its parameters.
        capabilities: One per GPU.
        cuda: What cuDriverGetVersion says.
        fail: Driver function to the error it gives.
        owners: Address to the GPU that it belongs to.
        error: The loader's own DriverError; each generated module has one.
    """

    kernels: dict[str, tuple[int, ...]]
    capabilities: tuple[tuple[int, int], ...] = ((9, 0),)
    cuda: int = 12080
    fail: dict[str, tuple[str, int]] = field(default_factory=dict)
    owners: dict[int, int] = field(default_factory=dict)
    error: type[Exception] = DriverError
    calls: list[str] = field(default_factory=list)
    images: list[tuple[int, bytes]] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    shared_allowed: list[tuple[str, int]] = field(default_factory=list)
    large_clusters: list[tuple[str, int]] = field(default_factory=list)
    extended: list[tuple[tuple[int, int, int] | None, bool]] = field(default_factory=list)
    function_attributes: dict[int, int] = field(default_factory=lambda: {0: 1024, 4: 40})
    constants: dict[str, int] = field(default_factory=dict)
    copies: list[tuple[int, bytes, int]] = field(default_factory=list)
    thread: threading.local = field(default_factory=threading.local)
    contexts: dict[int, int] = field(default_factory=dict)
    success = 0
    no_extra = object()
    boxed_function = boxed_address = int

    def _enter(self, call: str) -> None:
        self.calls.append(call)
        if call in self.fail:
            name, code = self.fail[call]
            raise self.error(name, code, call)

    def init(self) -> None:
        self._enter("cuInit")

    def version(self) -> int:
        return self.cuda

    def device_count(self) -> int:
        return len(self.capabilities)

    def attribute(self, device: int, attribute: int) -> int:
        if attribute in (75, 76):
            return self.capabilities[device][attribute - 75]
        return LIMITS[attribute]

    def primary_context(self, device: int) -> int:
        self._enter("cuDevicePrimaryCtxRetain")
        return 1000 + device

    def current_context(self) -> int:
        return getattr(self.thread, "context", 0)

    def set_context(self, context: int) -> None:
        self._enter("cuCtxSetCurrent")
        self.thread.context = context

    def context_device(self) -> int:
        return self.current_context() - 1000

    def load_module(self, image: bytes) -> int:
        self._enter("cuModuleLoadData")
        assert self.thread.capture == 2, "a stream may be captured"
        self.images.append((self.context_device(), image))
        return 2000 + self.context_device()

    def function(self, module: int, name: bytes) -> int:
        assert module == 2000 + self.context_device()
        self._enter("cuModuleGetFunction")
        if name.decode() not in self.kernels:
            raise self.error("CUDA_ERROR_NOT_FOUND", 500, "cuModuleGetFunction")
        function = 100 * self.current_context() + list(self.kernels).index(name.decode())
        self.contexts[function] = self.current_context()
        return function

    def _name(self, function: int) -> str:
        assert self.contexts[function] == self.current_context()
        return list(self.kernels)[function % 100]

    def function_attribute(self, function: int, attribute: int) -> int:
        self._name(function)
        return self.function_attributes.get(attribute, 0)

    def set_function_attribute(self, function: int, attribute: int, value: int) -> None:
        changed = self.shared_allowed if attribute == 8 else self.large_clusters
        changed.append((self._name(function), value))

    def occupancy(self, function: int, threads: int, shared: int) -> int:
        return 2048 // threads if self._name(function) and not shared else 1

    def best_block(self, function: int, shared: int) -> int:
        return 512 if self._name(function) and not shared else 128

    def relax_capture(self, mode: int) -> int:
        before = getattr(self.thread, "capture", 0)
        self.thread.capture = mode
        return before

    def release_context(self, device: int) -> None:
        self.calls.append(f"release {device}")

    def unload_module(self, module: int) -> None:
        self.calls.append(f"unload {module} of {self.context_device()}")
        for function in [one for one, context in self.contexts.items() if context == self.current_context()]:
            del self.contexts[function]

    def global_memory(self, module: int, name: bytes) -> tuple[int, int]:
        if name.decode() not in self.constants:
            raise self.error("CUDA_ERROR_NOT_FOUND", 500, "cuModuleGetGlobal")
        return module + 0x100, self.constants[name.decode()]

    def copy_to(self, address: int, data: bytes, stream: int) -> None:
        self.copies.append((address, data, stream))

    def configuration(self, *given: object) -> tuple[object, ...]:
        return given

    def pointer_device(self, address: int) -> int:
        if address not in self.owners:
            raise self.error("CUDA_ERROR_INVALID_VALUE", 1, "cuPointerGetAttribute")
        return self.owners[address]

    def launch_address(self) -> int:
        """Of a C function that does what `launch_kernel` does."""

        def launch(config: Any, function: int, parameters: int, extra: int | None) -> int:
            fields, stream = config[0].fields, config[0].stream or 0
            assert extra is None
            assert (config[0].attributes, config[0].attribute_count) == (None, 0)
            given = (tuple(fields[:3]), tuple(fields[3:6]), fields[6], stream, None, False)
            return self.launch_kernel(given, function, parameters, self.no_extra)

        self.c_function = LAUNCH(launch)
        return ctypes.cast(self.c_function, ctypes.c_void_p).value or 0

    def launch_error(self, result: int) -> Exception:
        name = self.fail["cuLaunchKernel"][0] if "cuLaunchKernel" in self.fail else "CUDA_ERROR_CONTEXT"
        return self.error(name, result, "cuLaunchKernel")

    def launch_kernel(self, config: tuple[Any, ...], function: int, parameters: int, extra: object) -> int:
        self.calls.append("cuLaunchKernel")
        grid, block, shared, stream, cluster, cooperative = config
        if self.current_context() != self.contexts.get(function):
            return 400 if self.current_context() else 201
        if "cuLaunchKernel" in self.fail:
            return self.fail["cuLaunchKernel"][1]
        assert extra is self.no_extra
        kernel, sizes = list(self.kernels.items())[function % 100]
        addresses = (ctypes.c_uint64 * len(sizes)).from_address(parameters)
        assert all(address % 8 == 0 for address in addresses)
        packed = tuple(ctypes.string_at(at, size) for at, size in zip(addresses, sizes, strict=True))
        self.launches.append(Launch(kernel, self.context_device(), grid, block, shared, stream, packed))
        if cluster or cooperative:
            self.extended.append((cluster, cooperative))
        return 0


@dataclass
class FakeTensor:
    """What the loader looks at in a torch tensor."""

    address: int
    dtype: str = "torch.float32"
    index: int = 0
    is_cuda: bool = True
    contiguous: bool = True
    count: int = 6
    ndim: int = 1
    requires_grad: bool = False
    shape: tuple[int, ...] = (6,)

    def __post_init__(self) -> None:
        self.dtype = sys.intern(self.dtype)  # dtypes are compared by identity

    @property
    def device(self) -> str:
        return f"cuda:{self.index}" if self.is_cuda else "cpu"

    def data_ptr(self) -> int:
        return self.address

    def get_device(self) -> int:
        return self.index if self.is_cuda else -1

    def is_contiguous(self) -> bool:
        return self.contiguous

    def numel(self) -> int:
        return self.count

    def size(self, dimension: int) -> int:
        return self.shape[dimension]

    def stride(self) -> tuple[int, ...]:
        return (1,) if self.contiguous else (2,)


@dataclass
class CudaArray:
    """An array of CuPy's or Numba's kind."""

    address: int
    typestr: str = "<f4"
    shape: tuple[int, ...] = (6,)
    strides: tuple[int, ...] | None = None
    read_only: bool = False

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        return {
            "shape": self.shape,
            "typestr": self.typestr,
            "data": (self.address, self.read_only),
            "strides": self.strides,
            "version": 3,
        }


DTYPES = (
    "bool",
    "int8",
    "uint8",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
)


def fake_torch(*, current: int = 0, cuda: bool = True) -> types.ModuleType:
    """A module to stand as `torch`: stream 70 + index is each GPU's current one."""
    torch, torch_c, torch_cuda = (types.ModuleType(name) for name in ("torch", "torch._C", "torch.cuda"))
    if cuda:

        def current_stream(index: int) -> int:
            stream: int = torch.stream_of(index)  # which tests may replace
            return stream

        vars(torch)["stream_of"] = lambda index: 70 + index
        vars(torch_c)["_cuda_getCurrentRawStream"] = current_stream
    vars(torch_cuda)["current_device"] = lambda: current
    grad = [True]
    vars(torch).update(_C=torch_c, cuda=torch_cuda, grad=grad, is_grad_enabled=lambda: grad[0])
    vars(torch).update({name: sys.intern(f"torch.{name}") for name in DTYPES})
    return torch


# A driver library for a machine without one: it answers what the loader asks for, and writes each launch
# to the file $STUB_LOG, with as many bytes of each parameter as $STUB_SIZES says ("4,8").
STUB_SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uintptr_t context;
static FILE *opened(void) { return fopen(getenv("STUB_LOG"), "a"); }
static int failing(const char *call) {
    const char *wanted = getenv("STUB_FAIL");
    const char *code = getenv("STUB_CODE");
    return wanted && !strcmp(wanted, call) ? (code ? atoi(code) : 700) : 0;
}
int cuInit(unsigned flags) { return failing("cuInit"); }
int cuDriverGetVersion(int *version) { *version = 12080; return 0; }
int cuDeviceGetCount(int *count) { *count = 2; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : 100000;
    return 0;
}
int cuDevicePrimaryCtxRetain(uintptr_t *result, int device) { *result = 0x7f0000001000 + device; return 0; }
int cuCtxGetCurrent(uintptr_t *result) { *result = context; return 0; }
int cuCtxSetCurrent(uintptr_t wanted) { context = wanted; return 0; }
int cuCtxGetDevice(int *device) { *device = (int)(context & 0xff); return 0; }
int cuModuleLoadData(uintptr_t *module, const char *image) {
    FILE *log = opened();
    fprintf(log, "image %.6s\n", image);
    fclose(log);
    *module = 0x7f0000002000 + (context & 0xf);
    return 0;
}
int cuModuleGetFunction(uintptr_t *function, uintptr_t module, const char *name) {
    if (module != 0x7f0000002000 + (context & 0xf) || strcmp(name, "saxpy")) return 500;
    *function = 0x7f0000003000 + (context & 0xf);
    return 0;
}
int cuFuncSetAttribute(uintptr_t function, int attribute, int value) {
    FILE *log = opened();
    fprintf(log, "attribute %lx %d %d\n", function, attribute, value);
    fclose(log);
    return 0;
}
int cuFuncGetAttribute(int *value, int attribute, uintptr_t function) {
    *value = attribute == 0 ? 1024 : 100 + attribute;
    return function >> 12 == 0x7f0000003 ? 0 : 400;
}
int cuModuleUnload(uintptr_t module) { return module >> 12 == 0x7f0000002 ? 0 : 400; }
int cuDevicePrimaryCtxRelease_v2(int device) { return device < 2 ? 0 : 101; }
int cuModuleGetGlobal_v2(uint64_t *address, size_t *size, uintptr_t module, const char *name) {
    *address = 0x7f0000004000;
    *size = 16;
    return strcmp(name, "TABLE") ? 500 : 0;
}
int cuMemcpyHtoDAsync_v2(uint64_t address, const char *data, size_t size, uintptr_t stream) {
    FILE *log = opened();
    fprintf(log, "copy %lx %.*s %lx\n", address, (int)size, data, stream);
    fclose(log);
    return 0;
}
int cuDevicePrimaryCtxRelease(int device) { return cuDevicePrimaryCtxRelease_v2(device); }
int cuModuleGetGlobal(uint64_t *address, size_t *size, uintptr_t module, const char *name) {
    return cuModuleGetGlobal_v2(address, size, module, name);
}
int cuMemcpyHtoDAsync(uint64_t address, const char *data, size_t size, uintptr_t stream) {
    return cuMemcpyHtoDAsync_v2(address, data, size, stream);
}
int cuThreadExchangeStreamCaptureMode(int *mode) {
    static __thread int now;
    int before = now;
    now = *mode;
    *mode = before;
    return 0;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, uintptr_t function, int threads, size_t shared) {
    *blocks = 2048 / threads + (int)shared;
    return 0;
}
int cuOccupancyMaxPotentialBlockSize(int *grid, int *block, uintptr_t function, void *callback, size_t shared,
                                     int limit) {
    *grid = 7;
    *block = 512 + (int)shared + limit;
    return callback != 0;
}
int cuPointerGetAttribute(int *data, int attribute, uint64_t address) {
    *data = attribute == 9 ? 1 : -5;
    return address == 0xbad ? 1 : 0;
}
int cuGetErrorName(int error, const char **name) {
    *name = error == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : error == 500 ? "CUDA_ERROR_NOT_FOUND" : 0;
    return *name ? 0 : 1;
}
static int launch(uintptr_t f, unsigned *c, uintptr_t stream, void **parameters, void **extra) {
    if (!context) return 201;
    if ((context & 0xf) != (f & 0xf)) return 400;
    if (failing("cuLaunchKernelEx")) return 700;
    FILE *log = opened();
    fprintf(log, "launch %lx %u %u %u %u %u %u %u %lx %d %lx", f, c[0], c[1], c[2], c[3], c[4], c[5], c[6],
            stream, extra != 0, context);
    char sizes[200];
    strcpy(sizes, getenv("STUB_SIZES"));
    int index = 0;
    for (char *size = strtok(sizes, ","); size; size = strtok(0, ",")) {
        fputc(' ', log);
        for (int byte = 0; byte < atoi(size); byte++)
            fprintf(log, "%02x", ((unsigned char *)parameters[index])[byte]);
        index++;
    }
    fputc('\n', log);
    fclose(log);
    return 0;
}
struct attribute { unsigned id, filler, value[16]; };
int cuLaunchKernelEx(unsigned *config, uintptr_t function, void **parameters, void **extra) {
    if (!config[12])
        return launch(function, config, *(uintptr_t *)(config + 8), parameters, extra);
    FILE *log = opened();
    struct attribute *attributes = *(struct attribute **)(config + 10);
    fprintf(log, "extended %lx", function);
    for (int i = 0; i < 7; i++) fprintf(log, " %u", config[i]);
    fprintf(log, " %lx", *(uintptr_t *)(config + 8));
    for (unsigned i = 0; i < config[12]; i++) {
        unsigned *value = attributes[i].value;
        fprintf(log, " [%u: %u", attributes[i].id, value[0]);
        fprintf(log, attributes[i].id == 4 ? " %u %u]" : "]", value[1], value[2]);
    }
    fprintf(log, " %x\n", *(unsigned *)parameters[0]);
    fclose(log);
    return 0;
}
int cuGetProcAddress_v2(const char *symbol, void **result, int version, uint64_t flags, int *status) {
    *result = dlsym(RTLD_DEFAULT, symbol);
    if (!*result) {
        void *self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        *result = self ? dlsym(self, symbol) : 0;
    }
    if (status) *status = *result ? 0 : 1;
    return *result ? 0 : 500;
}
int cuGetProcAddress(const char *symbol, void **result, int version, uint64_t flags) {
    return cuGetProcAddress_v2(symbol, result, version, flags, 0);
}
"""
