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
            launch_kernel: cuLaunchKernel itself, with as little of ours around it as can be. It takes the
                function, grid, block, bytes of shared memory, stream, the address of the array of addresses,
                and 0; it returns what equals `success`, or what `launch_error` understands.
            success: What it returns after a launch.
            boxed_function: From a function's handle to the form that `launch_kernel` takes fastest.
            boxed_address: The same for the address of the array of addresses.
        """

        launch_kernel: Callable[..., Any]
        success: Any
        boxed_function: Callable[[int], Any]
        boxed_address: Callable[[int], Any]

        def launch_error(self, result: Any) -> DriverError:
            """The error for what `launch_kernel` returned."""

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


# CUresult numbers that get an error or a treatment of their own.
_INVALID_CONTEXT = 201
_NO_BINARY = 209
_UNSUPPORTED_PTX_VERSION = 222
_INVALID_HANDLE = 400
_NOT_FOUND = 500
_OUT_OF_RESOURCES = 701

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
