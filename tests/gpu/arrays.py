"""Launches of kernels on numpy arrays, also of types that numpy or torch has only half: by their bits."""

from __future__ import annotations

from typing import Any

import numpy
from ulps import BF16, F16, Format

# The numpy type of the bits that stand for a torch type.
_BITS = {"float16": "uint16", "bfloat16": "uint16"}


def to_gpu(torch: Any, array: Any, dtype: str) -> Any:
    """A tensor on the GPU with these elements, or these bits."""
    plain = numpy.ascontiguousarray(array)
    if plain.dtype.kind == "u":
        plain = plain.view(f"i{plain.dtype.itemsize}")  # torch knows few operations on the others
    return torch.from_numpy(plain.copy()).cuda().view(getattr(torch, dtype))


def from_gpu(torch: Any, tensor: Any, dtype: str) -> Any:
    """The elements of a tensor, or their bits."""
    kind = numpy.dtype(_BITS.get(dtype, dtype))
    if kind.kind == "u" and kind.itemsize > 1:
        tensor = tensor.view(getattr(torch, f"int{8 * kind.itemsize}"))
    return tensor.cpu().numpy().view(kind)


def launch(torch: Any, kernel: Any, inputs: Any, dtype: str, out: str, results: int = 1) -> Any:
    """Launches a kernel of `kernels!` on rows of inputs; gives rows of results."""
    rows = inputs.reshape(len(inputs), -1)
    places = to_gpu(torch, numpy.zeros(len(rows) * results, _BITS.get(out, out)), out)
    kernel[(len(rows) + 127) // 128, 128](to_gpu(torch, rows.reshape(-1), dtype), places)
    return from_gpu(torch, places, out).reshape(len(rows), results)


def values_of(bits: Any, form: Format) -> Any:
    """Halves as float64."""
    assert form in (F16, BF16)
    plain = numpy.ascontiguousarray(bits)
    with numpy.errstate(all="ignore"):  # signaling NaNs
        if form is F16:
            return plain.view(numpy.float16).astype(numpy.float64)
        return (plain.astype(numpy.uint32) << 16).view(numpy.float32).astype(numpy.float64)


def rounded(values: Any, form: Format) -> Any:
    """The nearest numbers of a format, ties to even, as float64."""
    with numpy.errstate(all="ignore"):
        ulp = ulps_of(values, form)
        nearest = numpy.rint(values / ulp) * ulp
        beyond = numpy.abs(nearest) >= 2.0 ** (form.most + 1)
        return numpy.where(beyond, numpy.copysign(numpy.inf, values), nearest)


def ulps_of(values: Any, form: Format) -> Any:
    """The distance of numbers of the format around these."""
    exponents = numpy.frexp(numpy.where(numpy.isfinite(values), values, 1.0))[1] - 1
    return numpy.ldexp(1.0, numpy.maximum(exponents, form.least) - form.precision + 1)


def bits_of(values: Any, form: Format) -> Any:
    """The bits of the nearest numbers of a format."""
    nearest = rounded(numpy.asarray(values, numpy.float64), form)
    with numpy.errstate(all="ignore"):
        if form is F16:
            return nearest.astype(numpy.float16).view(numpy.uint16)
        return (nearest.astype(numpy.float32).view(numpy.uint32) >> 16).astype(numpy.uint16)


def joined(low: Any, high: Any) -> Any:
    """Pairs of 16 bits in 32."""
    return low.astype(numpy.uint32) | high.astype(numpy.uint32) << 16


def assert_same(got: Any, expected: Any) -> None:
    """The same numbers, zeros with the same sign, and NaN where NaN is expected."""
    got, expected = numpy.asarray(got, numpy.float64), numpy.asarray(expected, numpy.float64)
    same = (got == expected) & (numpy.signbit(got) == numpy.signbit(expected))
    same |= numpy.isnan(got) & numpy.isnan(expected)
    wrong = numpy.flatnonzero(~same.reshape(-1))
    assert not wrong.size, [
        (int(k), float(got.reshape(-1)[k]), float(expected.reshape(-1)[k])) for k in wrong[:5]
    ]
