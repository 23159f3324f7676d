"""Variables in constant memory as module attributes."""

from __future__ import annotations

from rustcuda_backend.loader.runtime.arguments import _came
from rustcuda_backend.loader.runtime.errors import ArgumentTypeError, ArgumentValueError
from rustcuda_backend.loader.runtime.scalars import _FORMATS, _bf16_bits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from rustcuda_backend.loader.runtime.library import _Library


class _Constant:
    """A variable in constant memory: `set` gives it a value."""

    def __init__(
        self, library: _Library, name: str, symbol: str, rust: str, dtype: str, size: int, doc: str
    ) -> None:
        self.__name__ = self.__qualname__ = name
        self._library, self._symbol, self._rust = library, symbol, rust
        self._dtype, self._size = dtype, size
        self.__doc__ = f"{name}: {rust}" + (f"\n\n{doc}" if doc else "")

    def __repr__(self) -> str:
        return f"<constant {self.__name__}: {self._rust}>"

    def set(self, value: Any, device: object = None) -> None:
        """Copies a value to a GPU, in the order of torch's current stream there.

        Args:
            value: A number, a sequence of numbers (also of sequences), or anything with a buffer of the very
                bytes, e.g. numpy's arrays.
            device: A GPU by index, `"cuda:1"` or torch.device; None for the current one.
        """
        library = self._library
        data = self._bytes(value)
        if len(data) != self._size:
            wanted = f"{self._rust}, {self._size} bytes"
            raise ArgumentValueError(self.__name__, "value", wanted, f"{len(data)} bytes")
        index = library.index(device)
        loaded = library.device(index)

        def copy() -> None:
            address, _ = library.driver.global_memory(loaded.module, self._symbol.encode())
            library.driver.copy_to(address, data, library.current_stream(index))

        library.within(loaded, copy)

    def _bytes(self, value: Any) -> bytes:
        from struct import error, pack

        if getattr(value, "is_cuda", False):
            raise self._wrong(value, "it lies on a GPU: pass value.cpu()")
        if hasattr(value, "numpy"):
            value = value.numpy()  # torch's tensors
        try:
            return memoryview(value).tobytes()
        except TypeError:  # no buffer: numbers
            pass
        if not self._dtype:
            raise self._wrong(value, "pass its bytes")
        try:
            numbers = list(_flat(value))
            if self._dtype == "bf16":
                numbers = [_bf16_bits(float(number)) for number in numbers]
            return pack(f"<{len(numbers)}{_FORMATS[self._dtype]}", *numbers)
        except (error, TypeError, OverflowError) as reason:
            raise self._wrong(value, f"{reason}") from reason

    def _wrong(self, value: object, hint: str) -> ArgumentTypeError:
        return ArgumentTypeError(self.__name__, "value", self._rust, _came(value), hint)


def _flat(value: Any) -> Iterator[Any]:
    """The numbers in sequences of sequences."""
    if not isinstance(value, list | tuple):
        yield value
        return
    for part in value:
        yield from _flat(part)
