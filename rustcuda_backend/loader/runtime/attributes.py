"""What the driver says of a kernel."""

from __future__ import annotations

# Names of our attributes, with the numbers of CUfunction_attribute.
_ATTRIBUTES = {
    "most_threads": 0, "shared_bytes": 1, "constant_bytes": 2, "local_bytes": 3, "registers": 4,
    "ptx_version": 5, "binary_version": 6, "most_dynamic_shared_bytes": 8,
}  # fmt: skip


class _Attributes:
    """A kernel on one GPU.

    Attributes:
        most_threads: The largest block.
        shared_bytes: Static shared memory of a block.
        constant_bytes: Constant memory.
        local_bytes: Local memory of a thread; spilled registers are in it.
        registers: Registers of a thread.
        ptx_version, binary_version: The capabilities it was compiled for, e.g. 90.
        most_dynamic_shared_bytes: How much dynamic shared memory a block may have so far.
    """

    __slots__ = tuple(_ATTRIBUTES)

    most_threads: int
    shared_bytes: int
    constant_bytes: int
    local_bytes: int
    registers: int
    ptx_version: int
    binary_version: int
    most_dynamic_shared_bytes: int

    def __init__(self, values: dict[str, int]) -> None:
        for name, value in values.items():
            setattr(self, name, value)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)}" for name in _ATTRIBUTES)
        return f"<attributes {values}>"
