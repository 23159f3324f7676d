"""Kernels that the real cuda-oxide has compiled: the FFTs of the wheel ferrum-gpu 0.3.0, packed by us.

Their sources are not in the wheel; which tables of twiddles they read follows from their PTX. Complex
numbers are pairs of f32, or two arrays (`_split`), and every block transforms one row.
"""

from __future__ import annotations

import math
from typing import Any

import pytest


@pytest.fixture(scope="session")
def ferrum(_gpu: None) -> Any:
    """The module that a build with `kernels = "_native.abi3.so"` makes, in a package ferrum_kernels."""
    return pytest.importorskip("ferrum_kernels.kernels_cuda")


def unit(torch: Any, turns: Any) -> Any:
    """e^(-2 pi i turns) as pairs of f32, computed in f64."""
    angles = -2 * math.pi * turns.double().reshape(-1)
    return torch.stack([angles.cos(), angles.sin()], 1).float().cuda()


def all_powers(torch: Any, n: int) -> Any:
    """The n-th roots of unity in order."""
    return unit(torch, torch.arange(n) / n)


def of_stages(torch: Any, n: int, radix: int) -> Any:
    """For stages of 1, radix, radix^2, … points: for each point j and input k the root of j * k."""
    tables, points = [], 1
    while points < n:
        products = torch.arange(points)[:, None] * torch.arange(radix)[None, :]
        tables.append(unit(torch, products / (radix * points)))
        points *= radix
    return torch.cat(tables)


def of_halves(torch: Any, n: int) -> Any:
    """The first half of the n-th roots, then of the n/2-th, and so on, and one element that nobody reads."""
    tables, points = [], n
    while points > 1:
        tables.append(unit(torch, torch.arange(points // 2) / points))
        points //= 2
    return torch.cat([*tables, unit(torch, torch.zeros(1))])


def rows(torch: Any, count: int, n: int) -> Any:
    generator = torch.Generator().manual_seed(n)
    return torch.randn(count, n, dtype=torch.complex64, generator=generator).cuda()


def sized(*arrays: Any) -> list[Any]:
    """What a kernel gets for slices: pointers and lengths in turn."""
    return [argument for array in arrays for argument in (array, array.numel())]


def assert_close(got: Any, expected: Any) -> None:
    error = (got - expected).abs().max() / expected.abs().max()
    assert float(error) < 2e-6


# kernel, points, threads of a block, the radix of its stages or 0 where it reads all roots
FFTS = (
    ("fft_c2c_256", 256, 64, 4),
    ("fft_c2c_256_r16s", 256, 32, 0),
    ("fft_c2c_1024", 1024, 256, 4),
    ("fft_c2c_4096", 4096, 512, 8),
    ("fft_c2c_4096_r16s", 4096, 256, 0),
    ("fft_c2c_4096_4step_reg", 4096, 256, 0),
)
SPLIT_FFTS = (
    ("fft_c2c_256_r16s_split", 256, 32, 0),
    ("fft_c2c_1024_split", 1024, 256, 4),
    ("fft_c2c_4096_4step_reg_split", 4096, 256, 0),
)


@pytest.mark.parametrize(("kernel", "n", "threads", "radix"), FFTS)
def test_an_fft_of_pairs(torch: Any, ferrum: Any, kernel: str, n: int, threads: int, radix: int) -> None:
    x = rows(torch, 100, n)
    twiddles = of_stages(torch, n, radix) if radix else all_powers(torch, n)
    out = torch.zeros_like(torch.view_as_real(x))
    getattr(ferrum, kernel)[len(x), threads](*sized(torch.view_as_real(x), twiddles, out))
    assert_close(torch.view_as_complex(out), torch.fft.fft(x))


@pytest.mark.parametrize(("kernel", "n", "threads", "radix"), SPLIT_FFTS)
def test_an_fft_of_two_arrays(torch: Any, ferrum: Any, kernel: str, n: int, threads: int, radix: int) -> None:
    x = rows(torch, 100, n)
    twiddles = of_stages(torch, n, radix) if radix else all_powers(torch, n)
    real, imaginary = x.real.contiguous(), x.imag.contiguous()
    outs = torch.zeros_like(real), torch.zeros_like(real)
    getattr(ferrum, kernel)[len(x), threads](*sized(real, imaginary, twiddles, *outs))
    assert_close(torch.complex(*outs), torch.fft.fft(x))


@pytest.mark.parametrize("log_n", range(1, 12))
def test_the_fft_of_any_power_of_two(torch: Any, ferrum: Any, log_n: int) -> None:
    """Forward and backward: the table alone has the sign."""
    n = 2**log_n
    x = rows(torch, 33, n)
    kernel = ferrum.fft_radix2_c2c_pow2_1d_fallback[len(x), min(n // 2, 256)]
    forward, backward = of_halves(torch, n), of_halves(torch, n) * torch.tensor([1.0, -1.0]).cuda()
    there, back = torch.zeros_like(torch.view_as_real(x)), torch.zeros_like(torch.view_as_real(x))
    kernel(*sized(torch.view_as_real(x), forward, there), log_n)
    assert_close(torch.view_as_complex(there), torch.fft.fft(x))
    kernel(*sized(there, backward, back), log_n)
    assert_close(torch.view_as_complex(back) / n, x)


def test_an_fft_of_two_dimensions(torch: Any, ferrum: Any) -> None:
    """Rows, transposition, rows, transposition: four launches in a row on one stream."""
    n = 256
    x = rows(torch, n, n)
    twiddles = of_stages(torch, n, 4)
    array, other = torch.view_as_real(x).clone(), torch.zeros_like(torch.view_as_real(x))
    for _ in range(2):
        ferrum.fft_c2c_256[n, 64](*sized(array, twiddles, other))
        ferrum.transpose_complex_pow2[(n // 16, n // 16), (16, 16)](*sized(other, array), 8)
    assert_close(torch.view_as_complex(array), torch.fft.fft2(x))


def test_pairs_and_two_arrays(torch: Any, ferrum: Any) -> None:
    """The last block is not full."""
    x = rows(torch, 1, 1000)[0]
    real, imaginary = torch.zeros(1000).cuda(), torch.zeros(1000).cuda()
    ferrum.deinterleave[8, 128](*sized(torch.view_as_real(x), real, imaginary))
    assert real.equal(x.real)
    assert imaginary.equal(x.imag)
    pairs = torch.zeros(1000, 2).cuda()
    ferrum.interleave[8, 128](*sized(real, imaginary, pairs))
    assert torch.view_as_complex(pairs).equal(x)


def test_products(torch: Any, ferrum: Any) -> None:
    x, y = rows(torch, 2, 1000)
    pairs = torch.zeros(1000, 2).cuda()
    ferrum.cmul_interleaved[8, 128](*sized(torch.view_as_real(x), torch.view_as_real(y), pairs))
    assert_close(torch.view_as_complex(pairs), x * y)
    parts = [part.contiguous() for part in (x.real, x.imag, y.real, y.imag)]
    outs = torch.zeros(1000).cuda(), torch.zeros(1000).cuda()
    ferrum.cmul_split[8, 128](*sized(*parts, *outs))
    assert_close(torch.complex(*outs), x * y)
