"""Finding cuda-oxide's backend library, its Rust toolchain, LLVM's tools, and the crates that need them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from oxide_stand_ins import StandIn, llvm, make_stand_in, program
from test_rust import make_toolchain

from rustcuda_backend import oxide_tools
from rustcuda_backend.errors import ToolError
from rustcuda_backend.llvm_tools import find_llvm
from rustcuda_backend.oxide_crates import depends_on_device
from rustcuda_backend.oxide_tools import Backend, find_backend, find_toolchain, find_tools
from rustcuda_backend.rust import RustToolchain
from rustcuda_backend.settings import Settings

pytestmark = pytest.mark.skipif(os.name != "posix", reason="its stand-ins are shell scripts")


@pytest.fixture
def stand_in(tmp_path: Path, toolchain: RustToolchain) -> StandIn:
    return make_stand_in(tmp_path / "rust", toolchain)


def refused(backend: Backend, directory: Path, environ: dict[str, str], setting: str = "") -> ToolError:
    with pytest.raises(ToolError) as caught:
        find_toolchain(backend, setting, directory, environ)
    return caught.value


class TestBackend:
    def places(self, folder: Path) -> dict[str, Path]:
        made = {}
        for name in ("setting", "variable", "config", "cache"):
            path = folder / name / ("cuda-oxide" if name == "cache" else "") / oxide_tools.LIBRARY
            path.parent.mkdir(parents=True)
            path.touch()
            made[name] = path
        return made

    def test_the_order(self, tmp_path: Path) -> None:
        made = self.places(tmp_path)
        crate = tmp_path / "project" / "kernels"
        config = tmp_path / "project" / oxide_tools.CONFIG
        config.parent.mkdir(parents=True)
        config.write_text(f'backend = "../config/{oxide_tools.LIBRARY}"\n', encoding="utf-8")
        origins = {"cuda_oxide_backend": "here"}
        settings = Settings(cuda_oxide_backend=str(made["setting"]), origins=origins)
        environ = {"CUDA_OXIDE_BACKEND": str(made["variable"]), "CARGO_HOME": str(tmp_path / "cache")}
        assert find_backend(settings, crate, environ) == Backend(made["setting"], "here")
        found = find_backend(Settings(), crate, environ)
        assert found == Backend(made["variable"], "environment variable CUDA_OXIDE_BACKEND")
        del environ["CUDA_OXIDE_BACKEND"]
        found = find_backend(Settings(), crate, environ)
        assert found
        assert found.library.samefile(made["config"])
        assert found.source == str(config)
        config.write_text("", encoding="utf-8")
        assert find_backend(Settings(), crate, environ) == Backend(made["cache"], "cargo-oxide's cache")
        home = {"HOME": str(tmp_path / "home")}
        assert find_backend(Settings(), crate, home) is None
        (tmp_path / "home").mkdir()
        (tmp_path / "cache").rename(tmp_path / "home" / ".cargo")
        found = find_backend(Settings(), crate, home)
        assert found
        assert found.library == tmp_path / "home/.cargo/cuda-oxide" / oxide_tools.LIBRARY
        assert find_backend(Settings(), crate, {}) is None

    @pytest.mark.parametrize("place", ["setting", "variable", "config"])
    def test_one_that_is_named_and_not_there(self, tmp_path: Path, place: str) -> None:
        self.places(tmp_path)
        environ = {"CARGO_HOME": str(tmp_path / "cache")}
        gone = str(tmp_path / "gone.so")
        settings = Settings(cuda_oxide_backend=gone if place == "setting" else "")
        if place == "variable":
            environ["CUDA_OXIDE_BACKEND"] = gone
        if place == "config":
            (tmp_path / ".cargo").mkdir()
            (tmp_path / oxide_tools.CONFIG).write_text(f'backend = "{gone}"\n', encoding="utf-8")
        with pytest.raises(ToolError, match=r"is not there: .*gone\.so"):
            find_backend(settings, tmp_path, environ)

    def test_a_setting_is_relative_to_the_crate(self, tmp_path: Path) -> None:
        (tmp_path / "x.so").touch()
        found = find_backend(Settings(cuda_oxide_backend="x.so"), tmp_path, {})
        assert found
        assert found.library == tmp_path / "x.so"

    @pytest.mark.parametrize(
        "text",
        [
            *("backend = 1", 'extra-rustflags = "-O"', "env = []", "[env]\nA = 1"),
            # What no variable, file name or flag can be.
            *('[env]\nA = "a\\u0000b"', '[env]\n"A=B" = "b"', '[env]\n"" = "b"', '[env]\n"\\u0000" = "b"'),
            *(
                '[env]\nCUDA_OXIDE_LLC = "a\\u0000/b"',
                'backend = "a\\u0000b"',
                'extra-rustflags = ["\\u001f"]',
            ),
        ],
    )
    def test_a_configuration_that_cargo_oxide_would_refuse(self, tmp_path: Path, text: str) -> None:
        (tmp_path / ".cargo").mkdir()
        (tmp_path / oxide_tools.CONFIG).write_text(text, encoding="utf-8")
        with pytest.raises(ToolError, match="not as cargo-oxide reads it") as caught:
            oxide_tools.read_config(tmp_path)
        assert caught.value.where == str(tmp_path / oxide_tools.CONFIG)

    @pytest.mark.parametrize(
        ("text", "line"),
        [(b"backend =\n", 1), (b"\n\n[env\n", 3), (b'backend = "a"\nbackend = "b"\n', 2), (b"# \xff\n", 0)],
    )
    def test_a_configuration_that_is_no_toml(self, tmp_path: Path, text: bytes, line: int) -> None:
        (tmp_path / ".cargo").mkdir()
        (tmp_path / oxide_tools.CONFIG).write_bytes(text)
        with pytest.raises(ToolError, match="is not valid TOML") as caught:
            find_backend(Settings(), tmp_path / "kernels", {})
        assert caught.value.where == str(tmp_path / oxide_tools.CONFIG)
        assert f"line {line}" in caught.value.what or not line


class TestToolchain:
    def backend(self, stand_in: StandIn) -> Backend:
        return Backend(stand_in.backend, "here")

    def test_the_noted_one_is_looked_for_among_rustups(self, stand_in: StandIn, tmp_path: Path) -> None:
        other = make_toolchain(tmp_path / "other")
        kept = tmp_path / "rustup" / "toolchains" / "nightly-2026-04-03-some"
        kept.parent.mkdir(parents=True)
        kept.symlink_to(stand_in.root)
        program(kept.parent / "broken" / "bin" / "rustc", "#!/bin/sh\nexit 1\n")
        environ = {"PATH": str(other.parent), "RUSTUP_HOME": str(tmp_path / "rustup")}
        found = find_toolchain(self.backend(stand_in), "", tmp_path, environ)
        assert found.rustc == stand_in.root / "bin" / "rustc"
        assert found.source == "rustup's, the backend library's own"
        environ = {"PATH": str(other.parent), "HOME": str(tmp_path)}
        error = refused(self.backend(stand_in), tmp_path, environ)
        assert "there is no Rust toolchain here that cuda-oxide's backend library fits" in error.what
        assert "it is rustc 1.96.0, not rustc 1.96.0-nightly (55e86c996 2026-04-02)" in error.where
        # Of 2026-04-02, so that it is the next day's.
        assert "rustup toolchain install nightly-2026-04-03 --component llvm-tools" in error.hint

    def test_without_a_note_the_library_of_rustc_decides(self, stand_in: StandIn, tmp_path: Path) -> None:
        stand_in.backend.with_name("toolchain-fingerprint.txt").unlink()
        other = make_toolchain(tmp_path / "other")
        path = os.pathsep.join([str(other.parent), str(stand_in.root / "bin")])
        found = find_toolchain(self.backend(stand_in), "", tmp_path, {"PATH": path})
        assert found.sysroot == stand_in.root
        error = refused(self.backend(stand_in), tmp_path, {"PATH": str(other.parent)})
        assert "rustc 1.96.0 does not have librustc_driver-0123abcd.so" in error.where
        assert error.hint.startswith("rebuild the library")

    def test_a_library_that_tells_nothing_fits_any(self, stand_in: StandIn, tmp_path: Path) -> None:
        stand_in.backend.with_name("toolchain-fingerprint.txt").unlink()
        stand_in.backend.write_bytes(b"\x7fELF")
        other = make_toolchain(tmp_path / "other")
        found = find_toolchain(self.backend(stand_in), "", tmp_path, {"PATH": str(other.parent)})
        assert found.rustc == other

    @pytest.mark.parametrize("by", ["setting", "RUSTC"])
    def test_one_that_is_asked_for_must_fit(self, stand_in: StandIn, tmp_path: Path, by: str) -> None:
        other = make_toolchain(tmp_path / "other")
        environ = {"PATH": str(stand_in.root / "bin"), **({"RUSTC": str(other)} if by == "RUSTC" else {})}
        setting = str(other) if by == "setting" else ""
        error = refused(self.backend(stand_in), tmp_path, environ, setting)
        assert "is not the backend library's: it is rustc 1.96.0, not" in error.what
        gone = {"RUSTC": str(tmp_path / "gone")} if by == "RUSTC" else {}
        setting = str(tmp_path / "gone") if by == "setting" else ""
        error = refused(self.backend(stand_in), tmp_path, {**environ, **gone}, setting)
        assert "cannot be used" in error.what

    def test_a_rust_toolchain_file(self, stand_in: StandIn, tmp_path: Path) -> None:
        other = make_toolchain(tmp_path / "other")
        (tmp_path / "rust-toolchain").write_text("nightly-1", encoding="utf-8")
        program(tmp_path / "bin" / "rustup", f"#!/bin/sh\necho '{other}'\n")
        path = os.pathsep.join([str(tmp_path / "bin"), str(stand_in.root / "bin")])
        # The library knows better than the file.
        found = find_toolchain(self.backend(stand_in), "", tmp_path, {"PATH": path})
        assert found.sysroot == stand_in.root
        # Also where rustup does not have what the file, or a variable, names.
        program(tmp_path / "bin" / "rustup", "#!/bin/sh\necho not installed >&2\nexit 1\n")
        for more in ({}, {"RUSTUP_TOOLCHAIN": "nightly-2"}):
            found = find_toolchain(self.backend(stand_in), "", tmp_path, {"PATH": path, **more})
            assert found.sysroot == stand_in.root
        program(tmp_path / "bin" / "rustup", f"#!/bin/sh\necho '{other}'\n")
        # Where it does not, the file is somebody's choice.
        stand_in.backend.with_name("toolchain-fingerprint.txt").unlink()
        error = refused(self.backend(stand_in), tmp_path, {"PATH": path})
        assert "rust-toolchain" in error.where
        assert "does not have librustc_driver" in error.what

    def test_rustups_own_come_before_path(self, stand_in: StandIn, tmp_path: Path) -> None:
        # rustup's proxy on PATH obeys a rust-toolchain file, and may fetch what that names.
        program(tmp_path / "bin" / "rustc", f"#!/bin/sh\ntouch '{tmp_path / 'asked'}'\nexit 1\n")
        (tmp_path / ".rustup" / "toolchains").mkdir(parents=True)
        (tmp_path / ".rustup" / "toolchains" / "nightly-1").symlink_to(stand_in.root)
        environ = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)}
        assert find_toolchain(self.backend(stand_in), "", tmp_path, environ).sysroot == stand_in.root
        assert not (tmp_path / "asked").exists()

    @pytest.mark.parametrize("date", ["2026-02-30", "9999-12-31", "0000-01-01", "soon", "2026-1-1"])
    def test_a_note_with_an_impossible_date(self, stand_in: StandIn, tmp_path: Path, date: str) -> None:
        note = stand_in.backend.with_name("toolchain-fingerprint.txt")
        text = note.read_text(encoding="utf-8").replace("date: 2026-04-02", f"date: {date}")
        note.write_text(text, encoding="utf-8")
        error = refused(self.backend(stand_in), tmp_path, {"PATH": str(stand_in.root / "bin")})
        assert error.hint.startswith("rebuild the library")

    def test_without_cargo(self, stand_in: StandIn, tmp_path: Path) -> None:
        (stand_in.root / "bin" / "cargo").unlink()
        error = refused(self.backend(stand_in), tmp_path, {"PATH": str(stand_in.root / "bin")})
        assert "there is no cargo beside it" in error.where

    def test_without_any(self, stand_in: StandIn, tmp_path: Path) -> None:
        error = refused(self.backend(stand_in), tmp_path, {"PATH": str(tmp_path)})
        assert error.where == "there is no rustc on PATH"


class TestLlvm:
    @pytest.fixture
    def bare(self, toolchain: RustToolchain, tmp_path: Path) -> RustToolchain:
        """A toolchain without the component llvm-tools."""
        return replace(toolchain, sysroot=tmp_path / "toolchains" / "nightly-1")

    def folder(self, toolchain: RustToolchain) -> Path:
        return toolchain.sysroot / "lib" / "rustlib" / toolchain.host / "bin"

    def test_the_toolchains_own_come_first(self, bare: RustToolchain, tmp_path: Path) -> None:
        llvm(self.folder(bare), "22.1.2-rust-1.96.0-nightly")
        llvm(tmp_path / "bin", "22.9.9", suffix="-22")
        found = find_llvm(bare, {"PATH": str(tmp_path / "bin")})
        assert found.llc == self.folder(bare) / "llc"
        assert (found.version, found.major) == ("22.1.2-rust-1.96.0-nightly", 22)

    def test_those_on_path(self, bare: RustToolchain, tmp_path: Path) -> None:
        llvm(tmp_path / "bin", "14.0.6")
        llvm(tmp_path / "bin", "21.1.8", suffix="-21")
        found = find_llvm(bare, {"PATH": str(tmp_path / "bin")})
        names = [path.name for path in (found.llc, found.opt, found.llvm_link)]
        assert names == ["llc-21", "opt-21", "llvm-link-21"]
        assert found.source == "PATH"

    def test_the_others_may_be_elsewhere_if_of_the_same_major_version(
        self, bare: RustToolchain, tmp_path: Path
    ) -> None:
        llvm(self.folder(bare), "22.1.2", without="llvm-link")
        llvm(tmp_path / "bin", "21.1.8", suffix="-21")
        llvm(tmp_path / "more", "22.1.8", suffix="-22")
        path = os.pathsep.join([str(tmp_path / "bin"), str(tmp_path / "more")])
        found = find_llvm(bare, {"PATH": path})
        assert found.llc == self.folder(bare) / "llc"
        assert found.llvm_link == tmp_path / "more" / "llvm-link-22"

    @pytest.mark.parametrize("lost", ["opt", "llvm-link"])
    def test_the_missing_one_is_named(self, bare: RustToolchain, tmp_path: Path, lost: str) -> None:
        llc = llvm(self.folder(bare), "22.1.2", without=lost)
        old = llvm(tmp_path / "bin", "14.0.6")
        program(tmp_path / "bin" / "llc-21", "#!/bin/sh\nexit 1\n")
        with pytest.raises(ToolError) as caught:
            find_llvm(bare, {"PATH": str(tmp_path / "bin")})
        where = caught.value.where
        assert f"{llc} is of LLVM 22.1.2, but there is no {lost} of LLVM 22" in where
        assert f"{tmp_path / 'bin' / 'llc-21'}: it does not say its version" in where
        assert f"{old}: LLVM 14.0.6" in where
        assert "rustup component add llvm-tools --toolchain nightly-1" in caught.value.hint

    def test_without_any(self, bare: RustToolchain, tmp_path: Path) -> None:
        with pytest.raises(ToolError) as caught:
            find_llvm(replace(bare, sysroot=tmp_path), {"PATH": str(tmp_path)})
        assert caught.value.where.startswith("no llc in ")
        assert "rustup component add llvm-tools," in caught.value.hint

    def test_those_that_are_named(self, bare: RustToolchain, tmp_path: Path) -> None:
        llvm(self.folder(bare), "22.1.2")
        mine = llvm(tmp_path / "mine", "21.1.8")
        program(tmp_path / "link", "#!/bin/sh\necho LLVM version 21.0.0\n")
        environ = {"PATH": "", "CUDA_OXIDE_LLC": str(mine), "CUDA_OXIDE_LLVM_LINK": str(tmp_path / "link")}
        found = find_llvm(bare, environ)
        assert (found.llc, found.opt, found.llvm_link) == (mine, mine.with_name("opt"), tmp_path / "link")
        # No other than the named one, even where it does not fit.
        with pytest.raises(ToolError, match="one LLVM version"):
            find_llvm(bare, {**environ, "CUDA_OXIDE_OPT": str(self.folder(bare) / "opt")})
        # One that is not there is called by its name.
        for variable in ("CUDA_OXIDE_OPT", "CUDA_OXIDE_LLVM_LINK", "CUDA_OXIDE_LLC"):
            gone = str(tmp_path / "gone")
            with pytest.raises(ToolError) as caught:
                find_llvm(bare, {**environ, variable: gone})
            assert gone in caught.value.where
            assert variable in caught.value.where

    def test_those_that_are_named_as_path_has_them(self, bare: RustToolchain, tmp_path: Path) -> None:
        llvm(tmp_path / "bin", "22.1.2", suffix="-22")
        named = {
            "CUDA_OXIDE_LLC": "llc-22",
            "CUDA_OXIDE_OPT": "opt-22",
            "CUDA_OXIDE_LLVM_LINK": "llvm-link-22",
        }
        found = find_llvm(bare, {"PATH": str(tmp_path / "bin"), **named})
        assert [path.parent for path in (found.llc, found.opt, found.llvm_link)] == [tmp_path / "bin"] * 3


def test_libdevice(stand_in: StandIn, tmp_path: Path) -> None:
    backend = Backend(stand_in.backend, "here")
    environ = {"PATH": str(stand_in.root / "bin")}
    given, mine = tmp_path / "given.bc", tmp_path / "mine.bc"
    mine.touch()
    assert find_tools(backend, Settings(), tmp_path, given, environ).libdevice == given
    environ["CUDA_OXIDE_LIBDEVICE"] = str(mine)
    assert find_tools(backend, Settings(), tmp_path, given, environ).libdevice == mine
    mine.unlink()
    with pytest.raises(ToolError, match="CUDA_OXIDE_LIBDEVICE names no file"):
        find_tools(backend, Settings(), tmp_path, given, environ)


# ---- Crates ----

PLAIN = '[dependencies]\nserde = "1"\n'
DEVICE = '[dependencies]\ncuda-device = { git = "https://git.invalid/cuda-oxide.git" }\n'
BY_PATH = '[dependencies]\nmore = { path = "../more" }\n'
INHERITING = "[dependencies]\nmore.workspace = true\nnone.workspace = true\n"
TESTS = '[dev-dependencies]\ncuda-device = "1"\n'
OPTIONAL = '[dependencies]\ncuda-device = { version = "1", optional = true }\n'
WORKSPACE = '[workspace]\nmembers = ["k"]\n[workspace.dependencies]\nmore = { path = "more" }\n'


CRATES: dict[str, tuple[dict[str, str], bool]] = {
    "git": ({"k/Cargo.toml": DEVICE}, True),
    "another": ({"k/Cargo.toml": PLAIN}, False),
    "nothing": ({"k/Cargo.toml": ""}, False),
    "no tables": ({"k/Cargo.toml": "dependencies = 1\ntarget = 2\nbuild-dependencies = []\n"}, False),
    "no TOML": ({"k/Cargo.toml": "no TOML"}, False),
    "renamed": ({"k/Cargo.toml": '[dependencies]\nd = { package = "cuda-device", version = "1" }\n'}, True),
    "tests only": ({"k/Cargo.toml": TESTS}, False),
    "optional": ({"k/Cargo.toml": OPTIONAL}, False),
    "of a target": ({"k/Cargo.toml": "[target.'cfg(unix)'.dependencies]\ncuda-device = \"1\"\n"}, True),
    "by path": ({"k/Cargo.toml": BY_PATH, "more/Cargo.toml": DEVICE}, True),
    "loop": (
        {
            "k/Cargo.toml": BY_PATH,
            "more/Cargo.toml": '[build-dependencies]\nk = { path = "../k" }\n',
        },
        False,
    ),
    "inherited": ({"k/Cargo.toml": INHERITING, "Cargo.toml": WORKSPACE, "more/Cargo.toml": DEVICE}, True),
    "inherited from nothing": ({"k/Cargo.toml": INHERITING, "Cargo.toml": "[workspace]\n"}, False),
    # Of a crate by path, what a build of this one takes.
    "tests of another": ({"k/Cargo.toml": BY_PATH, "more/Cargo.toml": TESTS}, False),
    "build scripts": ({"k/Cargo.toml": '[build-dependencies]\ncuda-device = "1"\n'}, False),
    "odd features": ({"k/Cargo.toml": f"{OPTIONAL}[features]\ndefault = 1\nx = [2]\n"}, False),
}

# A lock that any build has settled: it holds all that some feature or some test asks for.
LOCK = """\
version = 4
[[package]]
name = "k"
version = "0.1.0"
dependencies = ["cuda-device", "more", "serde"]
[[package]]
name = "more"
version = "0.1.0"
dependencies = ["cuda-device 1.0.0"]
[[package]]
name = "serde"
version = "1.0.0"
dependencies = ["cuda-device"]
[[package]]
name = "cuda-device"
version = "1.0.0"
"""
ODD_LOCKS = (
    "no TOML",
    "package = 1",
    'package = ["k"]',
    "[[package]]\ndependencies = [1]",
    "[package]\nname = 1",
)


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder / "k"


@pytest.mark.parametrize(("files", "expected"), CRATES.values(), ids=CRATES)
def test_whether_a_crate_depends_on_the_device_crate(
    tmp_path: Path, files: dict[str, str], expected: bool
) -> None:
    crate = write(tmp_path, files)
    assert depends_on_device(crate, Settings()) is expected
    # A build leaves Cargo.lock behind; the next one chooses the same compiler, whatever is in it.
    for lock in (LOCK, *ODD_LOCKS):
        (tmp_path / "Cargo.lock").write_text(lock, encoding="utf-8")
        (crate / "Cargo.lock").write_text(lock, encoding="utf-8")
        assert depends_on_device(crate, Settings()) is expected


@pytest.mark.parametrize(
    ("features", "settings", "expected"),
    [
        ("", Settings(), False),
        ("", Settings(features=("cuda-device",)), True),
        ("", Settings(cargo_args=("--all-features",)), True),
        ('default = ["gpu"]\ngpu = ["dep:cuda-device"]', Settings(), True),
        (
            'default = ["gpu"]\ngpu = ["dep:cuda-device"]',
            Settings(cargo_args=("--no-default-features",)),
            False,
        ),
        ('gpu = ["dep:cuda-device"]', Settings(), False),
        ('gpu = ["dep:cuda-device"]', Settings(features=("gpu",)), True),
        ('gpu = ["dep:cuda-device"]', Settings(cargo_args=("--features", "x,gpu")), True),
        ('gpu = ["dep:cuda-device"]', Settings(cargo_args=("--features=gpu",)), True),
        ('gpu = ["dep:cuda-device"]', Settings(cargo_args=("-F=gpu",)), True),
        ('gpu = ["dep:cuda-device"]', Settings(cargo_args=("-Fx,gpu",)), True),
        # A feature that only has the name.
        ('cuda-device = []\ngpu = ["dep:cuda-device"]', Settings(features=("cuda-device",)), False),
        ('gpu = ["cuda-device/f16"]', Settings(features=("gpu",)), True),
        ('gpu = ["cuda-device?/f16"]', Settings(features=("gpu",)), False),
        ('gpu = ["gpu", "more"]\nmore = ["gpu"]', Settings(features=("gpu",)), False),
    ],
)
def test_an_optional_device_crate_counts_where_a_feature_asks_for_it(
    tmp_path: Path, features: str, settings: Settings, expected: bool
) -> None:
    crate = write(tmp_path, {"k/Cargo.toml": f"{OPTIONAL}[features]\n{features}\n"})
    assert depends_on_device(crate, settings) is expected


@pytest.mark.parametrize(
    ("dependency", "expected"),
    [
        ('more = { path = "../more" }', False),
        ('more = { path = "../more", features = ["gpu"] }', True),
        ("more.workspace = true", True),
        ('more = { workspace = true, features = ["gpu"] }', True),
        (
            'more = { path = "../more" }\nagain = { path = "../more", package = "more", features = ["gpu"] }',
            True,
        ),
        ('more = { path = "../more", optional = true, features = ["gpu"] }', False),
        ('more = { path = "../more", optional = true }\n[features]\ndefault = ["more/gpu"]', True),
        ('more = { path = "../more" }\n[features]\ndefault = ["more?/gpu"]', True),
    ],
)
def test_features_that_a_crate_asks_of_another(tmp_path: Path, dependency: str, expected: bool) -> None:
    shared = WORKSPACE.replace('path = "more"', 'path = "more", features = ["gpu"]')
    more = f'{OPTIONAL}[features]\ngpu = ["dep:cuda-device"]\n'
    files = {"k/Cargo.toml": f"[dependencies]\n{dependency}\n", "Cargo.toml": shared, "more/Cargo.toml": more}
    assert depends_on_device(write(tmp_path, files), Settings()) is expected


# The second is what cargo takes besides before edition 2024.
@pytest.mark.parametrize("key", ["default-features", "default_features"])
@pytest.mark.parametrize(("value", "expected"), [("true", True), ("false", False)])
def test_default_features_of_another(tmp_path: Path, key: str, value: str, expected: bool) -> None:
    more = f'{OPTIONAL}[features]\ndefault = ["dep:cuda-device"]\n'
    manifest = f'[dependencies]\nmore = {{ path = "../more", {key} = {value} }}\n'
    files = {"k/Cargo.toml": manifest, "more/Cargo.toml": more}
    assert depends_on_device(write(tmp_path, files), Settings()) is expected
