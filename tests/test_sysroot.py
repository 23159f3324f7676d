"""The sysroot for the GPU: what is in it, what kernels can do with it, and how its making fails."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from rustcuda_backend import process, sysroot
from rustcuda_backend.cuda import CudaTools
from rustcuda_backend.errors import ToolError
from rustcuda_backend.process import Finished
from rustcuda_backend.rust import TARGET, RustToolchain

pytestmark = pytest.mark.skipif(os.name != "posix", reason="its stand-ins for cargo are shell scripts")

SOURCES = Path(sysroot.__file__).parent / "device/sysroot"
LIBRARIES = Path("lib/rustlib", TARGET, "lib")

# How LLVM bitcode begins.
BITCODE = b"BC\xc0\xde"


@pytest.fixture(scope="session")
def core(toolchain: RustToolchain) -> Path:
    """The compiled core, from the cache of the user who runs the tests, or compiled once."""
    return sysroot._core(toolchain)


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RUSTCUDA_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def cache_with_core(core: Path, empty_cache: Path) -> Path:
    shutil.copytree(core, empty_cache / "core" / core.name)
    return empty_cache


def members(archive: Path) -> dict[str, bytes]:
    """The files in an `ar` archive as GNU ar writes it."""
    data = archive.read_bytes()
    assert data.startswith(b"!<arch>\n")
    found: dict[str, bytes] = {}
    long_names = b""
    at = 8
    while at < len(data):
        header = data[at : at + 60]
        assert header[58:] == b"`\n"
        name, size = header[:16].decode().rstrip(), int(header[48:58])
        content = data[at + 60 : at + 60 + size]
        at += 60 + size + size % 2
        if name == "//":
            long_names = content
        elif name.startswith("/") and name[1:].isdigit():
            found[long_names[int(name[1:]) :].partition(b"/\n")[0].decode()] = content
        elif name != "/":
            found[name.removesuffix("/")] = content
    return found


def record(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the programs that are run from now on."""
    started: list[str] = []
    run = process.run

    def recording(argv: Sequence[str | Path], **options: object) -> Finished:
        started.append(Path(argv[0]).name)
        return run(argv, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(process, "run", recording)
    return started


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def check(made: Path, toolchain: RustToolchain, libdevice: Path) -> None:
    """Whether a sysroot has all that it should have."""
    names = [path.name for path in (made / LIBRARIES).glob("*.rlib")]
    assert sorted(name.partition("-")[0] for name in names) == ["liballoc", "libcompiler_builtins", "libcore"]
    host = made / "lib/rustlib" / toolchain.host / "lib"
    assert list(host.glob("libstd-*.rlib")), "build scripts and proc macros need the host's libraries"
    (library,) = (made / LIBRARIES).glob("libcore-*.rlib")
    content = members(library)
    assert list(content)[-3:] == ["mem.rcgu.o", "cast.rcgu.o", "nv.rcgu.o"]
    assert content["nv.rcgu.o"] == libdevice.read_bytes()
    assert content["cast.rcgu.o"] == (SOURCES / "shared_cast.bc").read_bytes()
    objects = [data for name, data in content.items() if name.endswith(".o")]
    assert len(objects) > 3
    assert all(data.startswith(BITCODE) for data in objects), "fat LTO takes bitcode only"
    if ar := shutil.which("ar"):
        assert process.run([ar, "t", library]).stdout.split() == list(content)
    assert not list(made.glob("*.o"))


def test_it_is_made_once_for_each_libdevice_from_one_core(
    toolchain: RustToolchain,
    tools: CudaTools,
    tools13: CudaTools,
    cache_with_core: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started = record(monkeypatch)
    assert not sysroot.is_cached(toolchain, tools.libdevice)
    made = sysroot.sysroot(toolchain, tools.libdevice)
    assert made.parent == cache_with_core / "sysroot"
    assert sysroot.is_cached(toolchain, tools.libdevice)
    assert sysroot.sysroot(toolchain, tools.libdevice) == made
    assert started == ["rustc", "rustc"], "for memcmp and for the check; core is there"
    other = sysroot.sysroot(toolchain, tools13.libdevice)
    assert other != made
    assert len(started) == 4
    check(made, toolchain, tools.libdevice)
    check(other, toolchain, tools13.libdevice)
    another_rustc = dataclasses.replace(toolchain, verbose_version="another")
    assert not sysroot.is_cached(another_rustc, tools.libdevice)


@pytest.fixture
def with_target(toolchain: RustToolchain, core: Path, tmp_path: Path) -> RustToolchain:
    """A toolchain with the target's libraries, and without the source of core.

    It stands in for one after `rustup target add nvptx64-nvidia-cuda`: the programs and the host's
    libraries are the real ones, by links, and the target's libraries are those of our cache.
    """
    root = tmp_path / "toolchain"
    (root / "bin").mkdir(parents=True)
    (root / LIBRARIES).mkdir(parents=True)
    for name, real in (("rustc", toolchain.rustc), ("cargo", toolchain.cargo)):
        (root / "bin" / name).symlink_to(real)
    host = Path("lib/rustlib", toolchain.host)
    (root / host).symlink_to(toolchain.sysroot / host, target_is_directory=True)
    for library in core.glob("*.rlib"):
        shutil.copyfile(library, root / LIBRARIES / library.name)
    return dataclasses.replace(
        toolchain, rustc=root / "bin/rustc", cargo=root / "bin/cargo", sysroot=root, source="a test"
    )


def test_the_targets_libraries_are_taken_where_the_toolchain_has_them(
    with_target: RustToolchain, tools: CudaTools, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert with_target.misfit() == ""
    started = record(monkeypatch)
    made = sysroot.sysroot(with_target, tools.libdevice)
    assert started == ["rustc", "rustc"]
    check(made, with_target, tools.libdevice)
    assert not (empty_cache / "core").exists()


KERNEL = """\
#![no_std]
#![feature(abi_ptx, stdarch_nvptx)]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! { unsafe { core::arch::nvptx::trap() } }
unsafe extern "C" { fn __nv_expf(x: f32) -> f32; fn __nv_rsqrt(x: f64) -> f64; }
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn kernel(x: *mut f32, y: *mut f64, same: *mut bool, a: *const u8, n: usize) {
    unsafe {
        let bytes = core::slice::from_raw_parts(a, n);
        *x = __nv_expf(*x);
        *y = __nv_rsqrt(*y);
        *same = bytes == b"some bytes of this kernel";
        *same.add(1) = bytes < &bytes[n / 2..];
        *same.add(2) = *a.cast::<[u8; 40]>() == *a.add(64).cast::<[u8; 40]>();
    }
}
"""


@pytest.mark.parametrize("kind", ["source", "target"])
def test_what_it_brings_is_inlined_into_kernels(
    request: pytest.FixtureRequest,
    toolchain: RustToolchain,
    tools: CudaTools,
    tmp_path: Path,
    kind: str,
) -> None:
    if kind == "target":
        # In this order: what is compiled once for all tests must not go into one test's cache.
        toolchain = request.getfixturevalue("with_target")
        request.getfixturevalue("empty_cache")
    source, output = tmp_path / "kernel.rs", tmp_path / "kernel.ptx"
    source.write_text(KERNEL, encoding="utf-8")
    argv: tuple[str | Path, ...] = (
        *(toolchain.rustc, "--edition=2024", "--crate-type=staticlib", f"--target={TARGET}", source),
        *("--sysroot", sysroot.sysroot(toolchain, tools.libdevice), "-Ctarget-cpu=sm_80", "-Copt-level=3"),
        *("-Clto=fat", "-Ccodegen-units=1", "-Cpanic=abort", f"--emit=link,asm={output}"),
    )
    compiled = process.run(argv, cwd=tmp_path, env={**os.environ, "RUSTC_BOOTSTRAP": "1"})
    assert compiled.ok, compiled.stderr
    text = output.read_text(encoding="utf-8")
    assert ".entry kernel" in text
    for name in ("call", ".extern", ".func", "__nv_", "memcmp", "bcmp"):
        assert name not in text
    assert "ex2.approx" in text
    assert "rsqrt.approx" in text
    assembled = process.run([tools.ptxas, "-arch=sm_80", output, "-o", tmp_path / "cubin"])
    assert assembled.ok, assembled.stderr


# --- making core, by a cargo that only writes down how it is called --------------------------------------


@pytest.fixture
def source_only(toolchain: RustToolchain, tmp_path: Path) -> RustToolchain:
    """A toolchain whose cargo is a script that fails; tests replace it."""
    root = tmp_path / "toolchain"
    (root / "lib/rustlib/src/rust/library/core").mkdir(parents=True)
    (root / "lib/rustlib/src/rust/library/core/Cargo.toml").touch()
    cargo = program(root / "bin/cargo", "echo 'error: no core today' >&2; exit 101")
    return dataclasses.replace(toolchain, cargo=cargo, sysroot=root)


def record_call(toolchain: RustToolchain, *more: str) -> Path:
    """Makes the toolchain's cargo write its arguments and its environment into a folder."""
    folder = toolchain.sysroot / "called"
    folder.mkdir()
    lines = (f"printf '%s\\n' \"$@\" >'{folder}/arguments'", f"env -0 >'{folder}/environment'", *more)
    program(toolchain.cargo, "\n".join(lines))
    return folder


def test_a_core_that_does_not_compile(
    source_only: RustToolchain, tools: CudaTools, empty_cache: Path
) -> None:
    with pytest.raises(ToolError) as raised:
        sysroot.sysroot(source_only, tools.libdevice)
    assert raised.value.what == f"core does not compile for {TARGET}:\nerror: no core today"
    assert raised.value.where == f"{source_only.rustc} ({source_only.version})"
    assert f"rustup target add {TARGET}" in raised.value.hint
    assert not [path for path in empty_cache.rglob("*") if path.suffix != ".lock" and path.is_file()]
    assert not sysroot.is_cached(source_only, tools.libdevice)


def test_a_memcmp_that_does_not_compile(
    with_target: RustToolchain, tools: CudaTools, empty_cache: Path, tmp_path: Path
) -> None:
    rustc = program(tmp_path / "rustc", "echo 'error: no memcmp today' >&2; exit 1")
    broken = dataclasses.replace(with_target, rustc=rustc)
    with pytest.raises(ToolError) as raised:
        sysroot.sysroot(broken, tools.libdevice)
    assert raised.value.what == f"memcmp does not compile for {TARGET}:\nerror: no memcmp today"
    assert raised.value.where == str(rustc)
    assert [path.suffix for path in (empty_cache / "sysroot").iterdir()] == [".lock"]


@pytest.mark.parametrize("vendored", [False, True])
def test_core_is_asked_of_cargo_in_a_clean_environment(
    source_only: RustToolchain, empty_cache: Path, monkeypatch: pytest.MonkeyPatch, vendored: bool
) -> None:
    vendor = source_only.sysroot / "lib/rustlib/src/rust/library/vendor"
    if vendored:
        vendor.mkdir()
    steering = {
        "RUSTFLAGS": "--cfg theirs",
        "CARGO_ENCODED_RUSTFLAGS": "--cfg\x1ftheirs",
        "CARGO_BUILD_RUSTFLAGS": "--cfg theirs",
        "CARGO_BUILD_TARGET": "theirs",
        "CARGO_BUILD_JOBS": "1",
        "CARGO_TARGET_DIR": "/theirs",
        "CARGO_TARGET_NVPTX64_NVIDIA_CUDA_RUSTFLAGS": "--cfg theirs",
        "CARGO_PROFILE_RELEASE_LTO": "theirs",
        "RUSTC_WRAPPER": "theirs",
        "RUSTC_WORKSPACE_WRAPPER": "theirs",
        "RUSTUP_TOOLCHAIN": "theirs",
    }
    for name, value in steering.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SOMETHING_ELSE", "stays")
    deps = f"target/{TARGET}/release/deps"
    made = ("core-1.rlib", "core-1.rmeta", "alloc-2.rlib", "compiler_builtins-3.rlib", "unwanted-4.rlib")
    files = " ".join(f"{deps}/lib{name}" for name in made)
    called = record_call(source_only, f"mkdir -p {deps} && touch {files}")
    core = sysroot._core(source_only)
    assert sorted(path.name for path in core.glob("lib*")) == sorted(f"lib{name}" for name in made[:-1])
    assert not (core / "build").exists()
    assert core.parent == empty_cache / "core"
    pairs = (called / "environment").read_text(encoding="utf-8").rstrip("\0").split("\0")
    environ = dict(pair.split("=", 1) for pair in pairs)
    assert environ["CARGO_ENCODED_RUSTFLAGS"] == "-Cembed-bitcode=yes\x1f-Ctarget-cpu=sm_70"
    assert environ["RUSTC"] == str(source_only.rustc)
    assert environ["SOMETHING_ELSE"] == "stays"
    assert not {*steering} - {"CARGO_ENCODED_RUSTFLAGS"} & {*environ}
    arguments = (called / "arguments").read_text(encoding="utf-8").splitlines()
    assert arguments[:4] == ["build", "--release", "--target", TARGET]
    assert ("--offline" in arguments) == vendored, "rust-src brings what cargo asks for, so no registry is"
    assert (f"source.std-vendor.directory='{vendor}'" in arguments) == vendored


def test_the_hosts_libraries_are_copied_where_links_are_not_allowed(
    source_only: RustToolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = source_only.sysroot / "lib/rustlib" / source_only.host / "lib/libstd-1.rlib"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"std")

    def forbidden(*_arguments: object, **_options: object) -> None:
        raise OSError("a privilege is missing")

    monkeypatch.setattr(Path, "symlink_to", forbidden)
    (tmp_path / "made/lib/rustlib").mkdir(parents=True)
    sysroot._link_host(source_only, tmp_path / "made")
    copy = tmp_path / "made" / library.relative_to(source_only.sysroot)
    assert copy.read_bytes() == b"std"
    assert not copy.parent.is_symlink()


def test_a_rustc_that_does_not_link_the_parts_is_an_error(
    toolchain: RustToolchain, tools: CudaTools, cache_with_core: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if its rlibs listed their object files in a way we do not know of.
    monkeypatch.setattr(sysroot.rlib, "add_members", lambda content, _members: content)
    with pytest.raises(ToolError) as raised:
        sysroot.sysroot(toolchain, tools.libdevice)
    for missing in ("__nv_expf", "__rustcuda_shared_to_generic", "memcmp"):
        assert missing in raised.value.what
    assert "1.96 to 1.99" in raised.value.hint
    assert not any(path.is_dir() for path in (cache_with_core / "sysroot").iterdir())


def test_a_check_that_does_not_compile_is_an_error_with_rustcs_message(
    toolchain: RustToolchain,
    tools: CudaTools,
    cache_with_core: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    sources = Path(shutil.copytree(SOURCES, tmp_path / "sources"))
    (sources / "probe.rs").write_text("fn broken(", encoding="utf-8")
    monkeypatch.setattr(sysroot, "_SOURCES", sources)
    with pytest.raises(ToolError, match="this file contains an unclosed delimiter"):
        sysroot.sysroot(toolchain, tools.libdevice)
    assert cache_with_core.is_dir()
