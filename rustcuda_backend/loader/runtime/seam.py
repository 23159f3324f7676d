"""The seam to the CUDA driver, and the driver's numbers that are used across it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from rustcuda_backend.loader.runtime.errors import DriverError

    class _Driver(Protocol):
        """The seam to the CUDA driver: plain ints and bytes in and out, `DriverError` on failure.

        Attributes:
            launch_kernel: cuLaunchKernelEx itself, with as little of ours around it as can be: its four
                arguments take far less time to pass than the eleven of cuLaunchKernel. It takes what
                `configuration` made, a function, the address of the array of addresses, and `no_extra`; it
                returns what equals `success`, or what `launch_error` understands.
            no_extra: Stands for no further argument.
            success: What it returns after a launch.
            boxed_function: From a function's handle to the form that `launch_kernel` takes fastest.
            boxed_address: The same for the address of the array of addresses.
        """

        launch_kernel: Callable[..., Any]
        no_extra: Any
        success: Any
        boxed_function: Callable[[int], Any]
        boxed_address: Callable[[int], Any]

        def configuration(
            self, grid: tuple[int, int, int], block: tuple[int, int, int], shared: int, stream: int,
            cluster: tuple[int, int, int] | None, cooperative: bool,
        ) -> Any:  # fmt: skip
            """All of a launch but function and arguments, for any number of launches, in several threads."""

        def launch_error(self, result: Any) -> DriverError:
            """The error for what `launch_kernel` returned."""

        def launch_address(self) -> int:
            """Where cuLaunchKernelEx lies, for who calls it from C."""

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

        def release_context(self, device: int) -> None:
            """Gives back what `primary_context` retained."""

        def current_context(self) -> int:
            """The calling thread's context, 0 for none."""

        def set_context(self, context: int) -> None:
            """Makes a context the calling thread's; 0 for none."""

        def context_device(self) -> int:
            """The GPU of the calling thread's context."""

        def load_module(self, image: bytes) -> int:
            """Loads a fatbin into the calling thread's context."""

        def unload_module(self, module: int) -> None:
            """Unloads a module of the calling thread's context."""

        def global_memory(self, module: int, name: bytes) -> tuple[int, int]:
            """Address and size in bytes of a variable of a module."""

        def copy_to(self, address: int, data: bytes, stream: int) -> None:
            """Copies bytes to a GPU in the order of a stream; they can be dropped afterwards."""

        def relax_capture(self, mode: int) -> int:
            """Sets which calls the calling thread may make while a stream is captured; the mode before."""

        def function(self, module: int, name: bytes) -> int:
            """A kernel of a module."""

        def function_attribute(self, function: int, attribute: int) -> int:
            """A CUfunction_attribute; asking for it also loads a function that was left for later."""

        def set_function_attribute(self, function: int, attribute: int, value: int) -> None:
            """Sets a CUfunction_attribute."""

        def occupancy(self, function: int, threads: int, shared: int) -> int:
            """How many blocks of a kernel one multiprocessor runs at once."""

        def best_block(self, function: int, shared: int) -> int:
            """The threads of a block with which a kernel fills a GPU best."""

        def pointer_device(self, address: int) -> int:
            """The GPU whose memory an address lies in."""


# CUresult numbers that get an error or a treatment of their own.
_INVALID_CONTEXT = 201
_NO_BINARY = 209
_UNSUPPORTED_PTX_VERSION = 222
_INVALID_HANDLE = 400
_NOT_FOUND = 500
_OUT_OF_RESOURCES = 701
_COOPERATIVE_TOO_LARGE = 720
_INVALID_CLUSTER = 912

# CUdevice_attribute numbers.
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76
_SHARED_UNASKED, _SHARED_OPTIN = 8, 97
# In the order of a launch's numbers: block, grid, threads.
_LIMITS = (
    (2, "threads in block x"), (3, "threads in block y"), (4, "threads in block z"),
    (5, "blocks in grid x"), (6, "blocks in grid y"), (7, "blocks in grid z"), (1, "threads per block"),
)  # fmt: skip

# CUfunction_attribute numbers.
_FUNCTION_THREADS = 0
_MAX_DYNAMIC_SHARED = 8
_LARGE_CLUSTERS = 14
# CUlaunchAttributeID numbers.
_COOPERATIVE, _CLUSTER = 2, 4
_CAPTURE_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED
_POINTER_DEVICE = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
