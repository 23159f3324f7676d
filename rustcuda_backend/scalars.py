"""The Rust scalars that kernels can be passed, that pointers can point to, and that structs can hold."""

from __future__ import annotations

# The size of each in bytes.
SCALAR_BYTES = {
    "bool": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "f16": 2, "bf16": 2, "i32": 4, "u32": 4, "f32": 4,
    "i64": 8, "u64": 8, "isize": 8, "usize": 8, "f64": 8,
}  # fmt: skip

# How Python's `struct` calls each; bf16, which it does not know, is packed as its bits.
SCALAR_FORMATS = {
    "bool": "?", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "f16": "e", "bf16": "H", "i32": "i",
    "u32": "I", "f32": "f", "i64": "q", "u64": "Q", "isize": "q", "usize": "Q", "f64": "d",
}  # fmt: skip
