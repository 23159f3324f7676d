"""Finding a Rust toolchain: the order, what fits, and the line that mends it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rustcuda_backend.errors import ToolError
from rustcuda_backend.rust import INSTALL_HINT, RustToolchain, find_toolchain, target_cpus, toolchain_file

pytestmark = pytest.mark.skipif(os.name != "posix", reason="its stand-ins for rustc are shell scripts")


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def make_toolchain(
    root: Path, version: str = "1.96.0", *, source: bool = True, target: bool = False, cargo: bool = True
) -> Path:
    """A folder that answers as a Rust toolchain does; nothing in it compiles."""
    rustc = program(
        root / "bin" / "rustc",
        f'if [ "$1" = -vV ]; then printf "rustc {version}\\nhost: some-host\\nrelease: {version}\\n"; '
        f"else echo '{root}'; fi",
    )
    if cargo:
        program(root / "bin" / "cargo", "exit 0")
    library = root / "lib" / "rustlib"
    if source:
        (library / "src/rust/library/core").mkdir(parents=True)
        (library / "src/rust/library/core/Cargo.toml").touch()
    if target:
        (library / "nvptx64-nvidia-cuda/lib").mkdir(parents=True)
        (library / "nvptx64-nvidia-cuda/lib/libcore-1.rlib").touch()
    return rustc


def path_of(*folders: Path) -> dict[str, str]:
    return {"PATH": os.pathsep.join([*(str(folder) for folder in folders), "/usr/bin/nonexistent", ""])}


def test_the_first_on_path_that_fits_is_taken(tmp_path: Path) -> None:
    old = make_toolchain(tmp_path / "old", "1.95.0")
    bare = make_toolchain(tmp_path / "bare", source=False)
    good = make_toolchain(tmp_path / "good")
    later = make_toolchain(tmp_path / "later", "1.97.0")
    environ = path_of(old.parent, bare.parent, good.parent, later.parent)
    found = find_toolchain("", tmp_path, environ)
    assert found == RustToolchain(
        rustc=good,
        cargo=good.with_name("cargo"),
        version="1.96.0",
        verbose_version="rustc 1.96.0\nhost: some-host\nrelease: 1.96.0\n",
        host="some-host",
        sysroot=tmp_path / "good",
        source="PATH",
    )
    assert found.library_source == tmp_path / "good/lib/rustlib/src/rust/library"
    assert found.target_libraries is None


def test_a_toolchain_with_the_targets_libraries_needs_no_source(tmp_path: Path) -> None:
    rustc = make_toolchain(tmp_path / "t", source=False, target=True)
    found = find_toolchain("", tmp_path, path_of(rustc.parent))
    assert found.target_libraries == tmp_path / "t/lib/rustlib/nvptx64-nvidia-cuda/lib"
    assert found.library_source is None


def test_the_setting_wins_over_rustc_and_rustc_over_path(tmp_path: Path) -> None:
    first, second, third = (make_toolchain(tmp_path / name) for name in "abc")
    environ = path_of(third.parent) | {"RUSTC": str(second)}
    assert find_toolchain(str(first), tmp_path, environ).rustc == first
    assert find_toolchain(str(first.parents[1]), tmp_path, environ).rustc == first
    assert find_toolchain("a", tmp_path, environ).rustc == first
    found = find_toolchain("", tmp_path, environ)
    assert (found.rustc, found.source) == (second, "environment variable RUSTC")


@pytest.mark.parametrize("how", ["setting", "RUSTC"])
@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"version": "1.95.0"}, "rustc 1.95.0 is older than 1.96"),
        ({"source": False}, "it has neither the target nvptx64-nvidia-cuda nor the source of core"),
        ({"cargo": False}, "there is no cargo beside it"),
    ],
)
def test_one_that_was_asked_for_and_does_not_fit_is_an_error(
    tmp_path: Path, how: str, options: dict[str, object], problem: str
) -> None:
    bad = make_toolchain(tmp_path / "bad", **options)  # type: ignore[arg-type]
    good = make_toolchain(tmp_path / "good")
    environ = path_of(good.parent) | ({"RUSTC": str(bad)} if how == "RUSTC" else {})
    with pytest.raises(ToolError) as raised:
        find_toolchain(str(bad) if how == "setting" else "", tmp_path, environ)
    assert problem in raised.value.what
    assert str(bad) in raised.value.where
    assert INSTALL_HINT in raised.value.hint


@pytest.mark.parametrize(
    ("text", "problem"),
    [("exit 1", "failed"), ("echo nothing", "no rustc"), ("echo 'it broke' >&2; exit 1", "it broke")],
)
def test_a_program_that_is_no_rustc(tmp_path: Path, text: str, problem: str) -> None:
    rustc = program(tmp_path / "rustc", text)
    with pytest.raises(ToolError, match=problem):
        find_toolchain(str(rustc), tmp_path, path_of())
    rustc.unlink()
    with pytest.raises(ToolError, match="No such file"):
        find_toolchain(str(rustc), tmp_path, path_of())


def test_a_rustc_that_does_not_tell_its_sysroot(tmp_path: Path) -> None:
    rustc = program(tmp_path / "rustc", 'if [ "$1" = -vV ]; then echo x; else echo "no root" >&2; exit 1; fi')
    with pytest.raises(ToolError, match="no root"):
        find_toolchain(str(rustc), tmp_path, path_of())


def test_none_at_all_says_how_to_install_one(tmp_path: Path) -> None:
    with pytest.raises(ToolError) as raised:
        find_toolchain("", tmp_path, {})
    assert raised.value.where == "there is no rustc on PATH"
    assert raised.value.hint == INSTALL_HINT
    assert "apt-get install rustc-web cargo-web rust-web-src" in INSTALL_HINT


def test_those_that_do_not_fit_are_named(tmp_path: Path) -> None:
    old = make_toolchain(tmp_path / "old", "1.95.0")
    with pytest.raises(ToolError) as raised:
        find_toolchain("", tmp_path, path_of(old.parent))
    assert raised.value.where == f"{old}: rustc 1.95.0 is older than 1.96"


def test_a_toolchain_of_rustup_without_source_is_mended_by_rustup(tmp_path: Path) -> None:
    rustc = make_toolchain(tmp_path / "toolchains" / "stable-x", source=False)
    line = "rustup component add rust-src --toolchain stable-x"
    for environ in (path_of(rustc.parent), {"RUSTC": str(rustc)}):
        with pytest.raises(ToolError) as raised:
            find_toolchain("", tmp_path, environ)
        assert raised.value.hint == line


def make_rustup(folder: Path, rustc: Path, *, fails: bool = False) -> Path:
    """A rustup that knows one toolchain and notes how it was asked."""
    text = "echo 'error: toolchain is not installed' >&2; exit 1" if fails else f"echo '{rustc}'"
    return program(folder / "rustup", f'echo "$PWD $*" >> "{folder}/asked"; {text}')


def test_rustup_is_asked_for_a_named_toolchain(tmp_path: Path) -> None:
    rustc = make_toolchain(tmp_path / "toolchains" / "nightly-x", "1.99.0-nightly")
    make_rustup(tmp_path / "up", rustc)
    found = find_toolchain("nightly-x", tmp_path, path_of(tmp_path / "up"))
    assert (found.rustc, found.rustup_name) == (rustc, "nightly-x")
    asked = (tmp_path / "up/asked").read_text(encoding="utf-8")
    assert asked == f"{tmp_path} which --toolchain nightly-x rustc\n"


def test_a_rust_toolchain_file_is_read_by_rustup_from_the_crates_folder(tmp_path: Path) -> None:
    rustc = make_toolchain(tmp_path / "toolchains" / "pinned")
    other = make_toolchain(tmp_path / "other")
    make_rustup(tmp_path / "up", rustc)
    crate = tmp_path / "project" / "crate"
    crate.mkdir(parents=True)
    file = tmp_path / "project" / "rust-toolchain.toml"
    file.touch()
    assert toolchain_file(crate) == file
    found = find_toolchain("", crate, path_of(other.parent, tmp_path / "up"))
    assert (found.rustc, found.source) == (rustc, f"{file}, read by rustup")
    assert (tmp_path / "up/asked").read_text(encoding="utf-8") == f"{crate} which rustc\n"
    # Without rustup nobody obeys the file, as with plain cargo.
    assert find_toolchain("", crate, path_of(other.parent)).rustc == other


def test_rustup_toolchain_in_the_environment(tmp_path: Path) -> None:
    rustc = make_toolchain(tmp_path / "toolchains" / "chosen")
    make_rustup(tmp_path / "up", rustc)
    environ = path_of(tmp_path / "up") | {"RUSTUP_TOOLCHAIN": "chosen"}
    found = find_toolchain("", tmp_path, environ)
    assert found.source == "environment variable RUSTUP_TOOLCHAIN, read by rustup"


def test_a_toolchain_that_rustup_lacks(tmp_path: Path) -> None:
    make_rustup(tmp_path / "up", tmp_path, fails=True)
    with pytest.raises(ToolError, match="toolchain is not installed") as raised:
        find_toolchain("nope", tmp_path, path_of(tmp_path / "up"))
    assert raised.value.where == "setting 'toolchain' = 'nope'"
    with pytest.raises(ToolError, match="rustup: No such file"):
        find_toolchain("nope", tmp_path, path_of())


def test_unstable_features_are_allowed_by_crate_and_not_at_all_on_nightly(tmp_path: Path) -> None:
    make_toolchain(tmp_path / "s")
    stable = find_toolchain(str(tmp_path / "s"), tmp_path, {})
    assert stable.bootstrap(["b", "a", "b"]) == {"RUSTC_BOOTSTRAP": "___,a,b"}
    make_toolchain(tmp_path / "n", "1.99.0-nightly")
    assert find_toolchain(str(tmp_path / "n"), tmp_path, {}).bootstrap(["a"]) == {}


def test_the_real_toolchain_knows_the_gpus(toolchain: RustToolchain) -> None:
    known = target_cpus(toolchain)
    assert {"sm_70", "sm_90", "sm_90a", "sm_100f", "sm_121"} <= known
    assert "sm_999" not in known
