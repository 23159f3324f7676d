"""Grid, block, shared memory and stream as users give them."""

from __future__ import annotations

from rustcuda_backend.loader.runtime.arguments import _came
from rustcuda_backend.loader.runtime.errors import ArgumentTypeError, ArgumentValueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


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
    wanted = "an int" if what == "shared_bytes" else "ints"
    if isinstance(value, bool):
        raise ArgumentTypeError(kernel, what, wanted, _came(value))
    try:
        number = int(type(value).__index__(value))
    except (AttributeError, TypeError) as error:
        raise ArgumentTypeError(kernel, what, wanted, _came(value)) from error
    if not least <= number < 1 << 32:
        raise ArgumentValueError(kernel, what, f"{least} or more, below 2**32", f"{number}")
    return number


def _stream_handle(kernel: str, stream: Any) -> tuple[int, int]:
    """A stream's handle, and the index of its GPU or -1."""
    device = -1
    if type(stream) is int:
        handle = stream
    elif getattr(stream, "cuda_stream", None) is not None:
        handle, device = int(stream.cuda_stream), int(getattr(stream, "device_index", -1))
    elif hasattr(stream, "__cuda_stream__"):
        handle = int(stream.__cuda_stream__()[1])
    else:
        wanted = "a torch stream, its handle as an int, or None"
        raise ArgumentTypeError(kernel, "stream", wanted, _came(stream))
    if not 0 <= handle < 1 << 64:
        raise ArgumentValueError(kernel, "stream", "a stream's handle, 0 or more, below 2**64", f"{handle}")
    return handle, device
