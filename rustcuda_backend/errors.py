"""The errors a user can cause or mend, all printed alike and without a traceback."""

from __future__ import annotations

PREFIX = "rustcuda: "


class RustcudaError(Exception):
    """A mistake or a lack that the user can mend.

    Args:
        what: One sentence: what happened, and with which thing.
        where: The place: a setting and the file it stands in, a path, a kernel.
        hint: What to do, best as a line that can be typed as it is.
    """

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        """The message as users see it: every line carries the prefix."""
        lines = [f"error: {self.what}"]
        if self.where:
            lines.append(f"  where: {self.where}")
        if self.hint:
            first, *rest = self.hint.splitlines()
            lines.append(f"  what to do: {first}")
            lines += [f"    {line}" for line in rest]
        return "\n".join(PREFIX + line for text in lines for line in text.splitlines())


class SettingsError(RustcudaError):
    """A setting that is unknown, of the wrong type, or out of its range."""


class CapabilityError(SettingsError):
    """A capability that does not exist, or that rustc or ptxas does not know."""


class ToolError(RustcudaError):
    """Rust, ptxas or the packer is missing, broken or too old."""


class CompileError(RustcudaError):
    """The kernel crate does not compile, or compiles to no kernels."""


class SignatureError(RustcudaError):
    """A kernel's parameters cannot be passed from Python, or contradict each other."""


class AssembleError(RustcudaError):
    """ptxas or the packer refused what the compiler wrote."""


class FormatError(RustcudaError):
    """A PTX text, cubin or fatbin that is malformed or of an unknown version."""
