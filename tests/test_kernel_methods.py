"""What kernels and their module do beside plain launches: clusters, facts, unloading, forks, captures."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

import pytest
from fake_driver import FakeTensor, fake_torch
from loaders import FATBIN, Loaded

X = FakeTensor(0x7000)


def test_launch_says_the_same_as_brackets(loaded: Loaded) -> None:
    loaded.module.saxpy[(2, 3), 32, 1024, 0x55](1, 1.0, X, X)
    loaded.module.saxpy.launch(grid=(2, 3), block=32, shared=1024, stream=0x55)(1, 1.0, X, X)
    assert loaded.driver.launches[0] == loaded.driver.launches[1]
    assert not loaded.driver.extended


def test_clusters_and_cooperative_launches(loaded: Loaded) -> None:
    saxpy = loaded.module.saxpy
    saxpy.launch(grid=(8, 2), block=32, cluster=(4, 2))(1, 1.0, X, X)
    assert loaded.driver.extended == [((4, 2, 1), False)]
    assert not loaded.driver.large_clusters
    saxpy.launch(grid=32, block=64, shared=50000, cluster=16, cooperative=True)(n=1, a=1.0, x=X, y=X)
    assert loaded.driver.extended[1] == ((16, 1, 1), True)
    assert loaded.driver.large_clusters == [("saxpy", 1)]
    assert loaded.driver.shared_allowed == [("saxpy", 50000)]
    assert (loaded.last.grid, loaded.last.block, loaded.last.shared) == ((32, 1, 1), (64, 1, 1), 50000)
    assert loaded.last.packed[2] == (0x7000).to_bytes(8, "little")


@pytest.mark.parametrize(
    ("more", "kind", "message"),
    [
        (
            {"cluster": 3},
            "ArgumentValueError",
            r"argument 'grid': wanted a multiple of the cluster \(3, 1, 1\)",
        ),
        ({"cluster": 0}, "ArgumentValueError", "argument 'cluster': wanted 1 or more"),
        ({"cluster": "a"}, "ArgumentTypeError", "argument 'cluster': wanted ints"),
        ({"cooperative": True, "shared": -1}, "ArgumentValueError", "argument 'shared_bytes'"),
        ({"cooperative": True, "block": 2048}, "LaunchTooLarge", "2048 threads in block x"),
    ],
)
def test_wrong_extended_launches(loaded: Loaded, more: Any, kind: str, message: str) -> None:
    with pytest.raises(getattr(loaded.module, kind), match=message):
        loaded.module.saxpy.launch(**{"grid": 8, "block": 32, **more})(1, 1.0, X, X)
    assert not loaded.driver.launches


def test_clusters_need_hopper(make_loader: Any) -> None:
    loaded = make_loader(capabilities=((8, 0),))
    with pytest.raises(loaded.module.LaunchTooLarge, match=r"none on a GPU of compute capability 8\.0"):
        loaded.module.saxpy.launch(grid=8, block=32, cluster=2)(1, 1.0, X, X)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (720, "8 blocks of a cooperative launch asked for, at most what the GPU runs at once"),
        (912, "8 blocks in clusters asked for, at most clusters that divide the grid evenly"),
    ],
)
def test_limits_that_only_the_driver_knows(make_loader: Any, code: int, message: str) -> None:
    loaded = make_loader(fail={"cuLaunchKernel": ("CUDA_ERROR_X", code)})
    with pytest.raises(loaded.module.LaunchTooLarge, match=message) as caught:
        loaded.module.saxpy.launch(grid=8, block=32, cooperative=True)(1, 1.0, X, X)
    assert isinstance(caught.value.__cause__, loaded.module.DriverError)


def test_a_kernels_registers_limit_its_blocks(make_loader: Any) -> None:
    loaded = make_loader(function_attributes={0: 640})
    loaded.module.saxpy[1, 640](1, 1.0, X, X)
    with pytest.raises(loaded.module.LaunchTooLarge, match=r"641 threads .* at most 640 \(its registers\)"):
        loaded.module.saxpy[1, 641](1, 1.0, X, X)


def test_facts_about_a_kernel(make_loader: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = make_loader(capabilities=((9, 0), (9, 0)))
    monkeypatch.setitem(sys.modules, "torch", fake_torch(current=1))
    saxpy = loaded.module.saxpy
    assert (saxpy.occupancy(256), saxpy.occupancy((16, 16), shared=1)) == (8, 1)
    assert (saxpy.suggest_block(), saxpy.suggest_block(shared=1024)) == (512, 128)
    assert saxpy.attributes.registers == 40
    assert saxpy.attributes.most_threads == 1024
    assert "registers=40" in repr(saxpy.attributes)
    assert loaded.driver.images == [(1, FATBIN)]
    assert loaded.driver.current_context() == 0
    with pytest.raises(loaded.module.ArgumentTypeError, match="argument 'block'"):
        saxpy.occupancy("a")


# ---- Unloading ----


def test_unloading_gives_back_and_the_next_launch_loads_again(
    make_loader: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "torch", fake_torch())
    loaded = make_loader(capabilities=((9, 0), (9, 0)))
    kept = loaded.module.saxpy[1, 32, 60000]
    for index in (0, 1):
        at = FakeTensor(0x10, index=index)
        kept(1, 1.0, at, at)
    loaded.module.unload(1)
    assert {"unload 2001 of 1", "release 1"} < set(loaded.driver.calls)
    loaded.module.unload(1)
    loaded.module.unload()
    assert [call for call in loaded.driver.calls if call.startswith("release")] == ["release 1", "release 0"]
    before = len(loaded.driver.launches)
    for index in (0, 1, 0):
        at = FakeTensor(0x10, index=index)
        kept(1, 1.0, at, at)
    assert len(loaded.driver.launches) == before + 3
    assert [index for index, _ in loaded.driver.images] == [0, 1, 0, 1]
    assert loaded.driver.shared_allowed == [("saxpy", 60000)] * 4, "the new function is opted in, too"


def test_unloading_what_never_was_loaded_and_no_gpu(loaded: Loaded) -> None:
    loaded.module.unload()
    with pytest.raises(loaded.module.ArgumentTypeError, match="wanted a GPU's index"):
        loaded.module.unload("cpu")


def test_an_extended_launch_after_unloading_loads_again(loaded: Loaded) -> None:
    kept = loaded.module.saxpy.launch(grid=8, block=32, cooperative=True)
    for _ in range(2):
        kept(1, 1.0, X, X)
        loaded.module.unload()
    assert len(loaded.driver.launches) == 2


def test_a_launch_after_unloading_may_still_fail(loaded: Loaded) -> None:
    kept = loaded.module.saxpy[1, 32]
    kept(1, 1.0, X, X)
    loaded.module.unload()
    loaded.driver.fail["cuLaunchKernel"] = ("CUDA_ERROR_ILLEGAL_ADDRESS", 700)
    with pytest.raises(loaded.module.DriverError, match="ILLEGAL_ADDRESS"):
        kept(1, 1.0, X, X)


# ---- Captures and forks ----


def test_loading_is_allowed_while_a_stream_is_captured(loaded: Loaded) -> None:
    loaded.driver.thread.capture = 1  # what torch.cuda.graph sets for its thread
    loaded.module.saxpy[1, 32, 60000](1, 1.0, X, X)  # the fake driver looks when it loads
    assert loaded.driver.thread.capture == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_children_of_a_process_that_used_cuda_get_an_error(seam: Any) -> None:
    done, log = seam(
        "import os, sys\n"
        "kept = k.saxpy[1, 1]\n"
        "kept(1, 1.0, None, None)\n"
        "for work in (lambda: kept(1, 1.0, None, None), lambda: k.saxpy[2, 1](1, 1.0, None, None), k.load):\n"
        "    if not os.fork():\n"
        "        try: work()\n"
        "        except k.ForkedProcess as error: print(error, flush=True)\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
        "kept(1, 1.0, None, None)\n"
    )
    assert done.stderr == ""
    assert done.stdout.count("this process was forked from one that had used CUDA") == 3
    assert sum(line.startswith("launch") for line in log) == 2, "the parent's, before and after"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_children_may_use_cuda_that_their_parent_has_only_imported(seam: Any) -> None:
    done, log = seam(
        "import os\nkept = k.saxpy[1, 1]\n"
        "for _ in range(2):\n"
        "    if not os.fork():\n"
        "        kept(1, 1.0, None, None)\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
    )
    assert done.stderr == ""
    assert sum(line.startswith("launch") for line in log) == 2


def test_torch_knows_of_forks_that_came_too_late(loaded: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = fake_torch()
    vars(torch._C)["_cuda_isInBadFork"] = lambda: True
    monkeypatch.setitem(sys.modules, "torch", torch)
    loaded.module._library._driver = None
    with pytest.raises(loaded.module.ForkedProcess):
        loaded.module.load(0)


def test_what_cuinit_says_in_a_child_of_a_process_whose_torch_used_cuda(seam: Any) -> None:
    code = "try: k.load()\nexcept k.KernelError as error: print(type(error).__name__)\n"
    done, _ = seam(code, STUB_FAIL="cuInit", STUB_CODE="3")
    assert done.stdout == "ForkedProcess\n"


# ---- The real seams ----


def test_a_real_seam_launches_clusters_and_cooperatively(seam: Any) -> None:
    done, log = seam(
        "k.saxpy.launch(grid=(4, 5, 6), block=(7, 8, 9), shared=75000, stream=0x7f00aabbccdd,\n"
        "    cluster=(2, 5, 1), cooperative=True)(0xfffffffe, 1.5, 0x10, None)\n"
        "k.saxpy.launch(grid=4, block=7, cluster=4)(5, 1.5, 0x10, None)\n"
        "k.saxpy.launch(grid=4, block=7, cooperative=True)(6, 1.5, 0x10, None)\n"
    )
    assert done.stderr == ""
    function = "extended 7f0000003000"
    start = f"{function} 4 5 6 7 8 9 75000 7f00aabbccdd"
    assert [line for line in log if line.startswith("extended")] == [
        f"{start} [2: 1] [4: 2 5 1] fffffffe",
        f"{function} 4 1 1 7 1 1 0 0 [4: 4 1 1] 5",
        f"{function} 4 1 1 7 1 1 0 0 [2: 1] 6",
    ]


def test_a_real_seam_asks_loads_and_unloads(seam: Any) -> None:
    done, log = seam(
        "print(k.saxpy.occupancy(256, 3), k.saxpy.suggest_block(5))\n"
        "a = k.saxpy.attributes\n"
        "print(a.most_threads, a.registers, a.most_dynamic_shared_bytes)\n"
        "d = k._library.driver\n"
        "print(d.relax_capture(1), d.relax_capture(2), d.relax_capture(0))\n"
        "print(*d.global_memory(0, b'TABLE'))\n"
        "d.copy_to(0x40, b'data', 0x7f0000000001)\n"
        "try: d.global_memory(0, b'OTHER')\n"
        "except k.DriverError as error: print(error)\n"
        "k.unload(); k.unload(1); k.saxpy[1, 1](1, 1.0, None, None)\n"
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "11 517", "1024 104 108", "0 1 2", "139637976743936 16",
        "cuModuleGetGlobal failed: CUDA_ERROR_NOT_FOUND (500)",
    ]  # fmt: skip
    assert "copy 40 data 7f0000000001" in log
    assert log.count("image FATBIN") == 2


def test_threads_that_fork_and_load_do_not_wait_for_each_other(loaded: Loaded) -> None:
    library = loaded.module._library
    held = threading.Event()
    release = threading.Event()

    def hold() -> None:
        with library.lock:
            held.set()
            release.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    library._after_fork()
    with pytest.raises(loaded.module.ForkedProcess):
        loaded.module.load(0)
    release.set()
    thread.join()
