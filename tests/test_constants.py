"""Constant memory of several capabilities, put together for the loader."""

import pytest

from rustcuda_backend.capability import Capability
from rustcuda_backend.constants import ConstantSymbol
from rustcuda_backend.errors import SignatureError
from rustcuda_backend.pipeline import merge_constants
from rustcuda_backend.ptx import PtxModule

TABLE = ConstantSymbol("TABLE", "[f32; 64]", "f32", 256, 4)
LINE = ConstantSymbol("LINE", "(f32, u32)", "", 8, 4)


def module(number: int, *constants: ConstantSymbol) -> PtxModule:
    return PtxModule(Capability(number, 0), "", (), "8.0", constants)


def test_each_constant_is_there_once_in_order_of_the_names() -> None:
    assert merge_constants([module(8, TABLE), module(9, LINE, TABLE)]) == (LINE, TABLE)


@pytest.mark.parametrize(
    "other",
    [
        ConstantSymbol("TABLE", "[f32; 65]", "f32", 260, 4),
        # An alias may be another type for another capability.
        ConstantSymbol("TABLE", "[f32; 64]", "f64", 512, 8),
    ],
)
def test_a_constant_of_two_types_names_both_capabilities(other: ConstantSymbol) -> None:
    with pytest.raises(SignatureError, match=r"the constant 'TABLE' has another type for 9\.0 than for 8\.0"):
        merge_constants([module(8, TABLE), module(9, other)])
