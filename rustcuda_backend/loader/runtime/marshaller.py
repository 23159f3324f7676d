"""Packs a kernel's arguments into what cuLaunchKernel reads."""

from __future__ import annotations

from rustcuda_backend.loader.runtime.arguments import _Parameter
from rustcuda_backend.loader.runtime.arrays import _Pointer, _Rows, _Slice, _WholeSlice
from rustcuda_backend.loader.runtime.scalars import _ByValue, _scalar_class
from rustcuda_backend.loader.runtime.structs import _StructParameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rustcuda_backend.loader.runtime.library import _Library


_CLASSES: dict[str, type[_Parameter]] = {
    "array": _ByValue,
    "struct": _StructParameter,
    "pointer": _Pointer,
    "slice": _Slice,
    "whole_slice": _WholeSlice,
    "rows": _Rows,
}


def _parameter_class(kind: str, dtype: str) -> type[_Parameter]:
    return _scalar_class(dtype) if kind == "scalar" else _CLASSES[kind]


class _Marshaller:
    """Packs one kernel's arguments: its converters and a store of blocks that are free.

    A block is the array of addresses that cuLaunchKernel takes, followed by the values they point to.
    The driver has copied the values when a launch returns, so a block can be used again then; a launch takes
    a block out of the store for as long as it needs it, so that no two threads ever share one.

    Attributes:
        converters: From a Python value to what is packed for it, one per parameter.
        pack_into: Of the values' struct.
        offset: Where in a block the values begin, in bytes.
        free: The store: each block with its address as the driver takes it.
    """

    __slots__ = ("_pieces", "_size", "converters", "free", "library", "offset", "pack_into")

    def __init__(
        self,
        parameters: tuple[_Parameter, ...],
        library: _Library,
    ) -> None:
        from struct import Struct

        self.library = library
        self.converters = tuple(parameter.convert for parameter in parameters)
        packing = Struct("<" + "".join(parameter.format for parameter in parameters))
        self.pack_into, self._size = packing.pack_into, packing.size
        self._pieces: list[int] = []
        begin = 0
        for parameter in parameters:
            self._pieces += [begin + piece for piece in parameter.pieces]
            begin += Struct("<" + parameter.format).size
        self.offset = 8 * len(self._pieces)
        # Launches pop without looking whether there is one, and look when that fails.
        self.free: list[tuple[Any, Any]] = []

    def block(self) -> tuple[Any, Any]:
        """A block and its address, a free one or a new one."""
        try:
            return self.free.pop()
        except IndexError:
            return self._new_block()

    def _new_block(self) -> tuple[Any, Any]:
        from array import array

        # One word more than needed: the block of a kernel without parameters has an address, too.
        block = array("Q", bytes(self.offset + self._size + 8))
        address = block.buffer_info()[0]
        for slot, piece in enumerate(self._pieces):
            block[slot] = address + self.offset + piece
        return block, self.library.driver.boxed_address(address)
