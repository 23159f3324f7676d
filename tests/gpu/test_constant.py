"""rustcuda_device::constant, on a GPU."""

from __future__ import annotations

from typing import Any

import pytest


def test_constants_are_zero_at_first(torch: Any, intrinsics: Any) -> None:
    x = torch.arange(32, device="cuda").to(torch.float32)
    intrinsics.constant_line[1, 32](x)
    assert not x.any()


def filled(intrinsics: Any, name: str) -> Any:
    """A constant of the loader, which must be able to fill it."""
    if not hasattr(intrinsics, name):
        pytest.skip("this loader does not fill constant memory")
    return getattr(intrinsics, name)


def test_a_polynomial_of_coefficients_from_python(torch: Any, intrinsics: Any) -> None:
    filled(intrinsics, "COEFFICIENTS").set([1.0, -2.0, 0.5, 3.0])
    x = torch.arange(-8, 8, device="cuda").to(torch.float32)
    expected = ((x - 2.0) * x + 0.5) * x + 3.0
    intrinsics.constant_polynomial[1, 32](x)
    assert x.equal(expected)


def test_a_table_from_python_can_be_changed(torch: Any, intrinsics: Any) -> None:
    table = filled(intrinsics, "TABLE")
    for factor in (1, 7):
        table.set(b"".join((factor * place).to_bytes(2, "little") for place in range(32)))
        x = torch.tensor(range(31, -1, -1), dtype=torch.uint32, device="cuda")
        intrinsics.constant_table[1, 32](x)
        assert x.tolist() == [factor * place for place in range(31, -1, -1)]


def test_numbers_of_16_bits_from_python(torch: Any, intrinsics: Any) -> None:
    filled(intrinsics, "WEIGHTS").set([0.5, -3.0])
    x = torch.arange(32, device="cuda").to(torch.float32)
    expected = 0.5 * x - 3.0
    intrinsics.constant_weights[1, 32](x)
    assert x.equal(expected)
