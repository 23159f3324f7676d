"""What can go wrong. Each error's `args` are its fields, so that all of them can be pickled."""

from __future__ import annotations


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


class ForkedProcess(KernelError):  # noqa: N818
    """The process was forked from one that had used CUDA; the driver does not work in it."""

    def __str__(self) -> str:
        return (
            "this process was forked from one that had used CUDA, where CUDA cannot be used: start processes "
            "by multiprocessing's 'spawn' or 'forkserver', or let only forked processes use CUDA"
        )


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
        if self.kernel.startswith("struct "):
            place = self.kernel
        argument = f", argument '{self.argument}'" if self.argument else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}{argument}: wanted {self.wanted}, got {self.got}{hint}"


class ArgumentTypeError(ArgumentsError, TypeError):
    """An argument of the wrong type, dtype or number."""


class ArgumentValueError(ArgumentsError, ValueError):
    """An argument of the right type that cannot be: out of range, wrong device, not contiguous."""


_ERRORS = (
    "KernelError", "DriverError", "NoDriver", "ForkedProcess", "NoImage", "DriverTooOld", "FatbinMismatch",
    "MissingKernel", "LaunchTooLarge", "ArgumentsError", "ArgumentTypeError", "ArgumentValueError",
)  # fmt: skip


def _check_forked(error: Exception) -> None:
    """Raises ForkedProcess for what cuInit says in a process that was forked too late."""
    # CUDA_ERROR_NOT_INITIALIZED, which cuInit has no other reason for.
    if isinstance(error, DriverError) and error.code == 3:
        raise ForkedProcess from error


def _cuda_name(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"
