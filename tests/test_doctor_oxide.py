"""What `doctor` says of crates that are written for cuda-oxide."""

from __future__ import annotations

from pathlib import Path

import pytest
from oxide_stand_ins import StandIn, llvm, make_stand_in
from projects import MakeProject
from test_cuda_oxide import MANIFEST

from rustcuda_backend.diagnosis import Line
from rustcuda_backend.doctor import examine
from rustcuda_backend.rust import RustToolchain


@pytest.fixture
def stand_in(tmp_path: Path, toolchain: RustToolchain) -> StandIn:
    return make_stand_in(tmp_path / "rust", toolchain)


@pytest.fixture
def project(make_project: MakeProject) -> Path:
    return make_project(manifest=MANIFEST, settings='capabilities = ["8.0", "11.0"]\ncuda-version = "13.0"')


def environ(stand_in: StandIn, **more: str) -> dict[str, str]:
    return stand_in.environ(PATH=f"{stand_in.root / 'bin'}:/usr/bin:/bin", CARGO_HOME="/nowhere", **more)


def said(lines: list[Line], *states: str) -> list[str]:
    return [
        line.text for line in lines if line.topic == "cuda-oxide" and line.state in (states or (line.state,))
    ]


def test_all_that_a_build_would_use(project: Path, stand_in: StandIn) -> None:
    lines = examine(project, [], environ(stand_in))
    assert not [line for line in lines if line.state == "missing"]
    library, rustc, tools, libdevice = said(lines, "ok")
    reason = "environment variable CUDA_OXIDE_BACKEND); the crate depends on cuda-device"
    assert library == f"{stand_in.backend} ({reason}"
    assert rustc.startswith(f"rustc 1.96.0-nightly ({stand_in.root / 'bin/rustc'}; PATH), which the library")
    assert tools.startswith(f"LLVM 22.1.2 ({stand_in.llvm / 'llc'}, {stand_in.llvm / 'opt'}, ")
    assert libdevice.endswith("libdevice.10.bc")
    # Stock rustc and its core have no part in it.
    assert not {"Rust", "core"} & {line.topic for line in lines}


def test_a_library_that_does_not_say_its_rustc(project: Path, stand_in: StandIn) -> None:
    stand_in.backend.with_name("toolchain-fingerprint.txt").unlink()
    stand_in.backend.write_bytes(b"\x7fELF")
    (line,) = [
        text for text in said(examine(project, [], environ(stand_in)), "ok") if text.startswith("rustc")
    ]
    assert line.endswith("the library does not say which rustc it was built for")


def test_without_the_library_stock_rustc_does_what_it_can(
    project: Path, stand_in: StandIn, toolchain: RustToolchain
) -> None:
    variables = {
        **environ(stand_in),
        "CUDA_OXIDE_BACKEND": "",
        "PATH": f"{toolchain.rustc.parent}:/usr/bin:/bin",
    }
    lines = examine(project, [], variables)
    (line,) = [line for line in lines if line.topic == "cuda-oxide"]
    assert line.state == "note"
    assert "stock rustc compiles what it can of it" in line.text
    assert "cargo oxide setup" in line.fix
    assert "Rust" in {line.topic for line in lines}


def test_no_word_of_it_for_other_crates(make_project: MakeProject, stand_in: StandIn) -> None:
    assert not said(examine(make_project(), [], environ(stand_in)))


def test_what_is_missing(project: Path, stand_in: StandIn) -> None:
    gone = {**environ(stand_in), "CUDA_OXIDE_BACKEND": "/gone.so"}
    assert said(examine(project, [], gone), "missing") == [
        "cuda-oxide's backend library is not there: /gone.so (environment variable CUDA_OXIDE_BACKEND)"
    ]
    (stand_in.llvm / "opt").unlink()
    (text,) = said(examine(project, [], environ(stand_in)), "missing")
    assert "there is no opt of LLVM 22" in text
    (stand_in.root / "lib/librustc_driver-0123abcd.so").unlink()
    (text,) = said(examine(project, [], environ(stand_in)), "missing")
    assert "does not have librustc_driver-0123abcd.so" in text


def test_an_llvm_that_is_too_old_for_a_capability(project: Path, stand_in: StandIn) -> None:
    llvm(stand_in.llvm, "21.1.8")
    (line,) = [line for line in examine(project, [], environ(stand_in)) if line.state == "missing"]
    assert (line.topic, line.text.partition(" (")[0]) == (
        "capabilities", "LLVM 21.1.8 writes no PTX for capability 11.0",
    )  # fmt: skip
