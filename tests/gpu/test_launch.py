"""Launches on a GPU: threads, streams, graphs, forks, other libraries' arrays, and what kernels tell."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("kernels_cuda")


def fresh(code: str, folder: Path) -> str:
    """Runs code in a new interpreter, with the sample's loader as `k`; gives what it prints."""
    head = "import torch\nfrom sample_ext import kernels_cuda as k\n"
    done = subprocess.run(
        [sys.executable, "-c", head + code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def vectors(torch: Any) -> Any:
    """Makes vectors of one value on the GPU."""
    return lambda value, count=1024: torch.full((count,), float(value), device="cuda")


def test_a_million_launches_from_threads_never_mix_arguments(
    torch: Any, kernels_cuda: Any, vectors: Any
) -> None:
    """Each thread adds its own number to its own vector: another one's argument would show in the sum."""
    count, each = 8, 125_000
    launch = kernels_cuda.saxpy[1, 256]
    results = [vectors(0, 32) for _ in range(count)]
    ones = vectors(1, 32)
    torch.cuda.synchronize()
    failures: list[BaseException] = []
    barrier = threading.Barrier(count)

    def work(number: int) -> None:
        try:
            own = results[number]
            barrier.wait()
            for turn in range(each):
                launch(1.0 if turn % 2 else float(number), ones, own)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    torch.cuda.synchronize()
    assert not failures
    for number, result in enumerate(results):
        # Whole numbers below 2**24 are exact in f32.
        assert result.eq((number + 1) * (each // 2)).all(), number


def test_a_thread_that_has_no_context_launches(torch: Any, kernels_cuda: Any, vectors: Any) -> None:
    x, y = vectors(1), vectors(1)
    torch.cuda.synchronize()
    thread = threading.Thread(target=lambda: [kernels_cuda.saxpy[1, 256](1.0, x, y) for _ in range(3)])
    thread.start()
    thread.join()
    torch.cuda.synchronize()
    assert y.eq(4).all()


def test_streams(torch: Any, kernels_cuda: Any, vectors: Any) -> None:
    x, y = vectors(1, 1 << 20), vectors(0, 1 << 20)
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        x.mul_(2)
        kernels_cuda.saxpy[1024, 256](1.0, x, y)
    stream.synchronize()
    assert y.eq(2).all()
    for given in (stream, stream.cuda_stream):
        with torch.cuda.stream(stream):
            torch.cuda._sleep(20_000_000)
            x.mul_(2)
        kernels_cuda.saxpy[1024, 256, 0, given](1.0, x, y)
    stream.synchronize()
    assert y.eq(2 + 4 + 8).all()


CAPTURE = """
x, y = torch.ones(1024, device="cuda"), torch.zeros(1024, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    k.saxpy[1, 256, {shared}](1.0, x, y)
for _ in range(3):
    graph.replay()
torch.cuda.synchronize()
assert y.eq(3).all(), y
print("replayed")
"""


@pytest.mark.parametrize("shared", [0, 60000])
def test_the_first_launch_of_all_may_be_in_a_capture(tmp_path: Path, shared: int) -> None:
    assert fresh(CAPTURE.format(shared=shared), tmp_path) == "replayed"


def test_children_of_a_process_that_used_cuda_get_an_error(tmp_path: Path) -> None:
    code = """
import os
x, y = torch.ones(1024, device="cuda"), torch.zeros(1024, device="cuda")
launch = k.saxpy[1, 256]
launch(1.0, x, y)
for work in (lambda: launch(1.0, x, y), lambda: k.softmax[1, 32](None, None, 1)):
    if not os.fork():
        try:
            work()
        except k.ForkedProcess:
            print("refused", flush=True)
        os._exit(0)
    os.wait()
launch(1.0, x, y)
torch.cuda.synchronize()
assert y.eq(2).all()
"""
    assert fresh(code, tmp_path).split() == ["refused", "refused"]


def test_children_of_a_process_where_only_torch_used_cuda_get_an_error(tmp_path: Path) -> None:
    code = """
import os
x, y = torch.ones(1024, device="cuda"), torch.zeros(1024, device="cuda")
torch.cuda.synchronize()
if not os.fork():
    try:
        k.saxpy[1, 256](1.0, x, y)
    except k.ForkedProcess:
        print("refused", flush=True)
    os._exit(0)
os.wait()
"""
    assert fresh(code, tmp_path) == "refused"


def test_children_may_use_cuda_that_their_parent_has_not(tmp_path: Path) -> None:
    code = """
import os
for _ in range(2):
    if not os.fork():
        x, y = torch.ones(1024, device="cuda"), torch.zeros(1024, device="cuda")
        k.saxpy[1, 256](1.0, x, y)
        torch.cuda.synchronize()
        if y.eq(1).all():
            print("ran", flush=True)
        os._exit(0)
    os.wait()
"""
    assert fresh(code, tmp_path).split() == ["ran", "ran"]


def test_much_dynamic_shared_memory(kernels_cuda: Any, torch: Any, vectors: Any) -> None:
    x, y = vectors(1), vectors(0)
    most = torch.cuda.get_device_properties(0).shared_memory_per_block_optin
    kernels_cuda.saxpy[1, 256, most](1.0, x, y)
    kernels_cuda.saxpy[1, 256, 100](1.0, x, y)
    torch.cuda.synchronize()
    assert y.eq(2).all()
    with pytest.raises(kernels_cuda.LaunchTooLarge, match="bytes of shared memory per block"):
        kernels_cuda.saxpy[1, 256, most + 1](1.0, x, y)


def test_cooperative_launches_and_clusters(torch: Any, kernels_cuda: Any, vectors: Any) -> None:
    x, y = vectors(1), vectors(0)
    kernels_cuda.saxpy.launch(grid=2, block=256, cooperative=True)(1.0, x, y)
    torch.cuda.synchronize()
    assert y.eq(1).all()
    with pytest.raises(kernels_cuda.LaunchTooLarge, match="blocks of a cooperative launch"):
        kernels_cuda.saxpy.launch(grid=1_000_000, block=256, cooperative=True)(1.0, x, y)
    if torch.cuda.get_device_capability()[0] < 9:
        with pytest.raises(kernels_cuda.LaunchTooLarge, match="blocks in a cluster"):
            kernels_cuda.saxpy.launch(grid=2, block=256, cluster=2)(1.0, x, y)
        return
    kernels_cuda.saxpy.launch(grid=2, block=256, cluster=2)(1.0, x, y)
    kernels_cuda.saxpy.launch(grid=16, block=256, cluster=16)(1.0, x, y)
    torch.cuda.synchronize()
    assert y.eq(3).all()


def test_what_a_kernel_tells(kernels_cuda: Any, torch: Any) -> None:
    saxpy = kernels_cuda.saxpy
    facts = saxpy.attributes
    assert 1 <= facts.registers <= 255
    assert 32 <= facts.most_threads <= 1024
    major, minor = torch.cuda.get_device_capability()
    assert facts.binary_version // 10 == major or facts.ptx_version <= 10 * major + minor
    assert saxpy.occupancy(256) >= saxpy.occupancy(512) >= 1
    assert saxpy.suggest_block() % 32 == 0


def test_unloading_and_launching_again(torch: Any, kernels_cuda: Any, vectors: Any) -> None:
    x, y = vectors(1), vectors(0)
    launch = kernels_cuda.saxpy[1, 256]
    launch(1.0, x, y)
    torch.cuda.synchronize()
    kernels_cuda.unload()
    launch(1.0, x, y)
    torch.cuda.synchronize()
    kernels_cuda.unload(0)
    kernels_cuda.load(0)
    launch(1.0, x, y)
    torch.cuda.synchronize()
    assert y.eq(3).all()


def test_writing_to_what_requires_grad_is_refused(torch: Any, kernels_cuda: Any, vectors: Any) -> None:
    x, y = vectors(1).requires_grad_(), vectors(1).requires_grad_()
    with pytest.raises(kernels_cuda.ArgumentValueError, match=r"argument 'y'.* requires grad"):
        kernels_cuda.saxpy[1, 256](1.0, x, y)
    with torch.no_grad():
        kernels_cuda.saxpy[1, 256](1.0, x, y)
    kernels_cuda.saxpy[1, 256](1.0, x, y.detach())
    assert y.eq(3).all()


def test_meta_tensors_are_refused(torch: Any, kernels_cuda: Any, vectors: Any) -> None:
    with pytest.raises(kernels_cuda.ArgumentValueError, match=r"argument 'x'.*meta"):
        kernels_cuda.saxpy[1, 256](1.0, torch.ones(8, device="meta"), vectors(0, 8))


def test_dlpack_from_torch_itself(torch: Any, kernels_cuda: Any, vectors: Any) -> None:
    """An object that has nothing but DLPack: torch's own capsules, as another library would give them."""

    class Foreign:
        def __init__(self, tensor: Any) -> None:
            self.tensor = tensor

        def __dlpack__(self, **more: Any) -> Any:
            more.pop("max_version", None)
            return self.tensor.__dlpack__(**more)

        def __dlpack_device__(self) -> Any:
            return self.tensor.__dlpack_device__()

    x, y = vectors(1), vectors(2)
    kernels_cuda.saxpy[1, 256](1.0, Foreign(x), Foreign(y))
    torch.cuda.synchronize()
    assert y.eq(3).all()
    with pytest.raises(kernels_cuda.ArgumentTypeError, match="its dtype must be float32"):
        kernels_cuda.saxpy[1, 256](1.0, Foreign(x.double()), Foreign(y))


def test_cupy_arrays(kernels_cuda: Any) -> None:
    cupy = pytest.importorskip("cupy")
    x, y = cupy.ones(1024, dtype="f4"), cupy.zeros(1024, dtype="f4")
    kernels_cuda.saxpy[1, 256](2.0, x, y)
    cupy.cuda.Device().synchronize()
    assert (y == 2).all()


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")
def test_jax_arrays_are_read(torch: Any, kernels_cuda: Any, vectors: Any) -> None:
    jax = pytest.importorskip("jax")
    y = vectors(1)
    kernels_cuda.saxpy[1, 256](2.0, jax.numpy.ones(1024, dtype="float32"), y)
    torch.cuda.synchronize()
    assert y.eq(3).all()


def test_tensors_that_torch_traces_with_are_refused(torch: Any, kernels_cuda: Any, vectors: Any) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    x, y = vectors(1), vectors(1)
    kernels_cuda.saxpy[1, 32](2.0, x, y)
    with FakeTensorMode() as mode:
        traced = mode.from_tensor(x)
    for tensor in (traced, torch.empty(4, device="meta")):
        with pytest.raises(kernels_cuda.ArgumentValueError, match="register the kernel by its torch_op"):
            kernels_cuda.saxpy[1, 32](2.0, tensor, y)
