"""The sample's functions against torch in float64, on a GPU, from the installed wheel."""

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="torch is not installed")
if not torch.cuda.is_available():
    pytest.skip("torch sees no NVIDIA GPU", allow_module_level=True)
sample_ext: Any = pytest.importorskip("sample_ext", reason="the sample's wheel is not installed")

# Odd, smaller than a warp, smaller and larger than a block, no multiple of a 16-byte load.
LENGTHS = (1, 3, 31, 32, 33, 255, 1000, 1024, 4096, 4099, 20001, 40003)
ROWS = (1, 2, 7, 129)
F32 = 2e-6
F16 = 2e-3
BF16 = 1e-2


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def normal(*shape: int, dtype: Any = torch.float32) -> Any:
    return torch.randn(shape, device="cuda", dtype=dtype)


def assert_near(actual: Any, expected: Any, tolerance: float) -> None:
    """Compares with a result in float64, relative to each value and to the size of values around 1."""
    torch.testing.assert_close(actual.double(), expected, rtol=tolerance, atol=tolerance)


def torch_rmsnorm(x: Any, weight: Any, eps: float) -> Any:
    x, weight = x.double(), weight.double()
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


def torch_silu_and_mul(x: Any) -> Any:
    gate, value = x.double().chunk(2, dim=-1)
    return torch.nn.functional.silu(gate) * value


@pytest.mark.parametrize("length", LENGTHS)
def test_saxpy(length: int) -> None:
    x, y = normal(length), normal(length)
    expected = 2.5 * x.double() + y.double()
    result = sample_ext.saxpy(2.5, x, y)
    assert result is y
    assert_near(y, expected, F32)


def test_saxpy_of_every_alignment() -> None:
    """Views that start anywhere: kernels that load 16 bytes at once must not assume alignment."""
    for offset in range(1, 5):
        x, y = normal(1003)[offset:], normal(1003)[offset:]
        expected = -0.5 * x.double() + y.double()
        sample_ext.saxpy(-0.5, x, y)
        assert_near(y, expected, F32)


def test_saxpy_writes_nothing_beyond_its_slice() -> None:
    whole = torch.zeros(1024, device="cuda")
    sample_ext.saxpy(1.0, torch.ones(1000, device="cuda"), whole[:1000])
    assert whole[:1000].eq(1).all()
    assert whole[1000:].eq(0).all()


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("rows", ROWS)
def test_rmsnorm(rows: int, length: int) -> None:
    x, weight = normal(rows, length), normal(length)
    assert_near(sample_ext.rmsnorm(x, weight, 1e-5), torch_rmsnorm(x, weight, 1e-5), F32)


def test_rmsnorm_of_strided_rows() -> None:
    x, weight = normal(9, 2 * 640)[:, 640:], normal(640)
    assert not x.is_contiguous()
    result = sample_ext.rmsnorm(x, weight, 1e-5)
    assert result.is_contiguous()
    assert_near(result, torch_rmsnorm(x, weight, 1e-5), F32)


def test_rmsnorm_of_zeros_is_zero() -> None:
    x = torch.zeros(3, 100, device="cuda")
    assert sample_ext.rmsnorm(x, torch.ones(100, device="cuda"), 1e-5).eq(0).all()


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("rows", ROWS)
def test_softmax(rows: int, length: int) -> None:
    x = normal(rows, length)
    assert_near(sample_ext.softmax(x), x.double().softmax(-1), F32)


def test_softmax_of_large_values_stays_finite() -> None:
    x = 1e4 * normal(4, 513)
    assert_near(sample_ext.softmax(x), x.double().softmax(-1), F32)


def test_softmax_of_minus_infinity_is_zero() -> None:
    x = normal(4, 513)
    x[:, ::2] = -torch.inf
    assert_near(sample_ext.softmax(x), x.double().softmax(-1), F32)


def test_softmax_keeps_leading_dimensions() -> None:
    x = normal(2, 3, 5, 77)
    result = sample_ext.softmax(x)
    assert result.shape == x.shape
    assert_near(result, x.double().softmax(-1), F32)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float16, F16), (torch.bfloat16, BF16)])
def test_silu_and_mul(dtype: Any, tolerance: float, rows: int, length: int) -> None:
    x = normal(rows, 2 * length, dtype=dtype)
    result = sample_ext.silu_and_mul(x)
    assert result.dtype == dtype
    assert result.shape == (rows, length)
    assert_near(result, torch_silu_and_mul(x), tolerance)


@pytest.mark.parametrize("length", [*LENGTHS, 32768, 70001])
def test_rows_of_bf16(length: int) -> None:
    x, weight = normal(3, length, dtype=torch.bfloat16), normal(length, dtype=torch.bfloat16)
    assert_near(sample_ext.softmax(x), x.double().softmax(-1), BF16)
    assert_near(sample_ext.rmsnorm(x, weight, 1e-5), torch_rmsnorm(x, weight, 1e-5), BF16)


def test_a_dtype_without_a_kernel_is_refused() -> None:
    with pytest.raises(TypeError, match=r"x must be f32 or bf16, not torch\.float64"):
        sample_ext.softmax(normal(2, 8, dtype=torch.float64))


@pytest.mark.parametrize("shape", [(1, 1), (1, 100), (100, 1), (31, 33), (32, 32), (64, 96), (1000, 77)])
def test_transpose(shape: tuple[int, int]) -> None:
    x = normal(*shape)
    result = sample_ext.transpose(x)
    assert result.is_contiguous()
    assert torch.equal(result, x.T)


def test_transpose_of_strided_rows() -> None:
    x = normal(130, 200)[:, 50:141]
    assert torch.equal(sample_ext.transpose(x), x.T)


@pytest.mark.parametrize("length", [0, *LENGTHS, (1 << 22) + 3])
@pytest.mark.parametrize("bins", [1, 7, 256, 12288])
def test_histogram(length: int, bins: int) -> None:
    x = normal(length)
    # Limits at which the width of an interval is exact, so that both put borders alike.
    expected = torch.histc(x, bins, -2.0, 2.0) if length else torch.zeros(bins, device="cuda")
    counts = sample_ext.histogram(x, bins, -2.0, 2.0)
    assert int(counts.sum()) == int(((x >= -2) & (x <= 2)).sum())
    if bins & (bins - 1) == 0:
        assert torch.equal(counts, expected.int())


def test_histogram_leaves_out_what_is_outside() -> None:
    x = torch.tensor([-1.0, 0.0, 0.5, 1.0, 1.5, torch.nan, torch.inf, -torch.inf], device="cuda")
    assert sample_ext.histogram(x, 2, 0.0, 1.0).tolist() == [1, 2]


@pytest.mark.parametrize("length", [0, *LENGTHS, 1 << 20, (1 << 22) + 3])
def test_reduce_sum(length: int) -> None:
    x = normal(length)
    result = sample_ext.reduce_sum(x)
    assert result.shape == (1,)
    # Errors grow with what is added, not with what comes out.
    assert abs(float(result) - float(x.double().sum())) <= F32 * float(x.double().abs().sum())


def test_reduce_sum_of_every_alignment() -> None:
    for offset in range(5):
        x = torch.ones(100_003, device="cuda")[offset:]
        assert float(sample_ext.reduce_sum(x)) == 100_003 - offset


def test_reduce_sum_has_the_same_bits_each_time() -> None:
    x = normal(1_000_001)
    assert len({float(sample_ext.reduce_sum(x)) for _ in range(20)}) == 1


@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (128, 128, 8), (129, 130, 131), (7, 300, 5), (300, 7, 1000), (3, 0, 4)]
)
def test_sgemm(shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    a, b = normal(m, k), normal(k, n)
    torch.testing.assert_close(
        sample_ext.sgemm(a, b).double(), a.double() @ b.double(), rtol=F32, atol=F32 * max(1, k)
    )


def test_sgemm_of_strided_matrices() -> None:
    a, b = normal(70, 90).T, normal(140, 50)[::2]
    torch.testing.assert_close(sample_ext.sgemm(a, b), a @ b, rtol=1e-4, atol=1e-4)


def test_runs_on_the_current_stream() -> None:
    """The other stream is kept busy, so a launch on any other stream would read y too early."""
    stream = torch.cuda.Stream()
    x, y = torch.ones(1 << 20, device="cuda"), torch.zeros(1 << 20, device="cuda")
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(100_000_000)
        y.fill_(3.0)
        sample_ext.saxpy(1.0, x, y)
    torch.cuda.current_stream().wait_stream(stream)
    assert y.eq(4).all()


def test_empty_tensors() -> None:
    nothing = normal(0)
    assert sample_ext.saxpy(1.0, nothing, nothing) is nothing
    assert sample_ext.softmax(normal(0, 8)).shape == (0, 8)
    assert sample_ext.transpose(normal(0, 8)).shape == (8, 0)
    assert sample_ext.silu_and_mul(normal(0, 8, dtype=torch.float16)).shape == (0, 4)
    assert sample_ext.rmsnorm(normal(0, 8), normal(8)).shape == (0, 8)


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="x has 3 elements, y has 4"):
        sample_ext.saxpy(1.0, normal(3), normal(4))
    with pytest.raises(ValueError, match=r"weight must have shape \(8,\), not \(7,\)"):
        sample_ext.rmsnorm(normal(2, 8), normal(7))
    with pytest.raises(ValueError, match="even"):
        sample_ext.silu_and_mul(normal(2, 7, dtype=torch.float16))
    with pytest.raises(ValueError, match="two dimensions"):
        sample_ext.transpose(normal(2, 3, 4))


def inputs_of(name: str) -> tuple[Any, Any, tuple[Any, ...], float]:
    """A function, the same in torch, inputs for both, and how near they must be."""
    cases: dict[str, tuple[Any, Any, tuple[Any, ...], float]] = {
        "saxpy": (
            lambda x, y: sample_ext.saxpy(2.5, x, y.clone()),
            lambda x, y: 2.5 * x + y,
            (normal(1000), normal(1000)),
            F32,
        ),
        "rmsnorm": (
            sample_ext.rmsnorm,
            lambda x, weight: torch_rmsnorm(x, weight, 1e-6),
            (normal(7, 2, 1000), normal(1000)),
            1e-4,
        ),
        "softmax": (sample_ext.softmax, lambda x: x.softmax(-1), (normal(7, 2, 1000),), 1e-5),
        "silu_and_mul": (
            sample_ext.silu_and_mul,
            torch_silu_and_mul,
            (normal(7, 2, 256, dtype=torch.float16),),
            1e-2,
        ),
        "transpose": (sample_ext.transpose, lambda x: x.t(), (normal(33, 65),), F32),
        "reduce_sum": (sample_ext.reduce_sum, lambda x: x.sum().reshape(1), (normal(50, 1000),), 1e-2),
        "sgemm": (sample_ext.sgemm, lambda a, b: a @ b, (normal(33, 65), normal(65, 40)), 1e-4),
    }
    return cases[name]


# Compiling, torch warns of what is its own affair.
ANY_WARNING = pytest.mark.filterwarnings("ignore")
FUNCTIONS = ("saxpy", "rmsnorm", "softmax", "silu_and_mul", "transpose", "reduce_sum", "sgemm")


def gradients(function: Any, inputs: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    """A function's result, and the gradients of its sum weighted by cosines."""
    leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs]
    result = function(*leaves)
    weights = torch.arange(result.numel(), device="cuda").cos().reshape(result.shape)
    (result * weights).sum().backward()
    return result.detach(), [leaf.grad for leaf in leaves]


@ANY_WARNING
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_are_torchs(name: str, compiled: bool) -> None:
    function, reference, inputs, tolerance = inputs_of(name)
    if compiled:
        function = torch.compile(function, fullgraph=True, backend="aot_eager")
    result, found = gradients(function, inputs)
    expected, wanted = gradients(reference, tuple(tensor.double() for tensor in inputs))
    assert_near(result, expected, tolerance)
    for mine, theirs in zip(found, wanted, strict=True):
        assert_near(mine, theirs, tolerance)


@ANY_WARNING
@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiles_as_one_graph_without_gradients(name: str) -> None:
    function, _, inputs, _ = inputs_of(name)
    with torch.no_grad():
        compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
        assert torch.equal(compiled(*inputs), function(*inputs))


@ANY_WARNING
def test_operators_pass_torchs_own_check() -> None:
    operators = pytest.importorskip("sample_ext.operators")
    x, y = normal(8, 64), normal(8, 64)
    torch.library.opcheck(operators.saxpy, (2.0, normal(64), normal(64)))
    torch.library.opcheck(operators.rmsnorm, (x, 64, normal(64), y, 1e-6))
    torch.library.opcheck(operators.softmax, (x, y, 64))
    torch.library.opcheck(operators.transpose, (x, 64, normal(64, 8), 8, 64))
    half = normal(8, 64, dtype=torch.float16)
    torch.library.opcheck(operators.silu_and_mul_f16, (half, normal(8, 32, dtype=torch.float16), 32))


@ANY_WARNING
def test_exports() -> None:
    class Model(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return sample_ext.softmax(x)

    x = normal(4, 32)
    with torch.no_grad():
        exported = torch.export.export(Model(), (x,))
        assert torch.equal(exported.module()(x), sample_ext.softmax(x))
