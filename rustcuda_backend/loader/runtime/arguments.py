"""What all parameters have in common."""

from __future__ import annotations

from rustcuda_backend.loader.runtime.errors import ArgumentTypeError, ArgumentValueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rustcuda_backend.loader.runtime.library import _Library


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
    that the value lives on, or -1. It is told the stream of the launch, None for the current one.
    """

    # The struct format of what is packed, a multiple of 8 bytes, and where in it the PTX parameters begin.
    format = ""
    pieces: tuple[int, ...] = (0,)

    def __init__(
        self, library: _Library, kernel: str, name: str, dtype: str, mutable: bool, rust: str
    ) -> None:
        self.library, self.kernel, self.name, self.rust = library, kernel, name, rust
        self.dtype, self.mutable = dtype, mutable
        self.prepare()

    def prepare(self) -> None:
        """Works out what depends on the dtype alone."""

    def convert(self, value: Any, values: list[Any], stream: int | None) -> int:  # noqa: ARG002
        """Appends what is to be packed; returns the GPU or -1."""
        raise self.wrong_type(value)

    def wrong_type(self, value: object, hint: str = "", wanted: str = "") -> ArgumentTypeError:
        return ArgumentTypeError(self.kernel, self.name, wanted or self.rust, _came(value), hint)

    def wrong_value(self, wanted: str, got: str, hint: str = "") -> ArgumentValueError:
        return ArgumentValueError(self.kernel, self.name, wanted, got, hint)
