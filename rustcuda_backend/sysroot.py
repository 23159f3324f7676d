"""The sysroot that kernels are compiled against: `core` and `alloc` for the GPU, libdevice, memcmp.

It is made once for each rustc and libdevice, in the cache. One `core` serves all capabilities: it
reaches the linker as LLVM bitcode, and becomes machine code only with the kernels.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from rustcuda_backend import cache, machine, process, rlib
from rustcuda_backend.errors import ToolError
from rustcuda_backend.rust import TARGET, RustToolchain

_SOURCES = Path(__file__).parent / "device" / "sysroot"
_LIBRARIES = ("core", "alloc", "compiler_builtins")

# Raised when what this module makes changes, so that old sysroots are left aside.
_RECIPE = "5"

_EMPTY_MANIFEST = """\
[package]
name = "empty"
version = "0.0.0"
edition = "2021"
[lib]
path = "lib.rs"
[profile.release]
panic = "abort"
[workspace]
"""


def sysroot(toolchain: RustToolchain, libdevice: Path) -> Path:
    """The sysroot for a toolchain, from the cache or made now (some 30 s from the source of core).

    Args:
        toolchain: The compiler it is for.
        libdevice: NVIDIA's `libdevice.10.bc`, whose functions (`__nv_expf`, …) kernels then can call.

    Raises:
        ToolError: `core` does not compile.
    """
    key = _key(toolchain, libdevice)
    return cache.folder("sysroot", key, lambda folder: _make(toolchain, libdevice, folder))


def is_cached(toolchain: RustToolchain, libdevice: Path) -> bool:
    """Whether `sysroot` would return at once."""
    return cache.is_whole(cache.directory() / "sysroot" / _key(toolchain, libdevice))


def _key(toolchain: RustToolchain, libdevice: Path) -> str:
    ours = [path.read_bytes() for path in sorted(_SOURCES.iterdir()) if path.is_file()]
    return cache.digest(_RECIPE, toolchain.verbose_version, libdevice.read_bytes(), *ours)


def _make(toolchain: RustToolchain, libdevice: Path, folder: Path) -> None:
    libraries = folder / "lib" / "rustlib" / TARGET / "lib"
    libraries.mkdir(parents=True)
    compiled = toolchain.target_libraries or _core(toolchain)
    for name in _LIBRARIES:
        for path in sorted(compiled.glob(f"lib{name}-*.r*")):
            shutil.copyfile(path, libraries / path.name)
    _link_host(toolchain, folder)
    memory = _compile_memory(toolchain, folder)
    (core,) = libraries.glob("libcore-*.rlib")
    # On this target object files are LLVM bitcode: fat LTO takes these as it takes core's own. They
    # inline, so that no call is left in the PTX.
    added = {
        "mem.rcgu.o": memory,
        "cast.rcgu.o": (_SOURCES / "shared_cast.bc").read_bytes(),
        "nv.rcgu.o": libdevice.read_bytes(),
    }
    core.write_bytes(rlib.add_members(core.read_bytes(), added))
    _check(toolchain, folder)


def _core(toolchain: RustToolchain) -> Path:
    """The compiled libraries, which are the slow part and serve every libdevice."""
    key = cache.digest("2", toolchain.verbose_version)
    return cache.folder("core", key, lambda folder: _compile_core(toolchain, folder))


def _compile_core(toolchain: RustToolchain, folder: Path) -> None:
    """Compiles `core` and `alloc` from the toolchain's own source into a folder of rlibs."""
    work = folder / "build"
    work.mkdir()
    (work / "Cargo.toml").write_text(_EMPTY_MANIFEST, encoding="utf-8")
    (work / "lib.rs").write_text("#![no_std]\n", encoding="utf-8")
    vendor = toolchain.library_source / "vendor" if toolchain.library_source else None
    # cargo wants to know all of std's dependencies; rust-src brings them, so no registry is asked.
    replaced = (
        (
            *("--config", 'source.crates-io.replace-with="std-vendor"'),
            *("--config", f"source.std-vendor.directory='{vendor}'"),
        )
        if vendor and vendor.is_dir()
        else ()
    )
    argv = (
        *(toolchain.cargo, "build", "--release", "--target", TARGET, "-Zbuild-std=core,alloc"),
        *("--target-dir", work / "target"),
        *(("--offline",) if replaced else ()),
        *replaced,
    )
    environ = clean_environment() | {
        "RUSTC": str(toolchain.rustc),
        "RUSTC_BOOTSTRAP": "1",
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(("-Cembed-bitcode=yes", "-Ctarget-cpu=sm_70")),
    }
    finished = process.run(argv, cwd=work, env=environ)
    if not finished.ok:
        raise ToolError(
            f"core does not compile for {TARGET}:\n{finished.stderr.rstrip()}",
            where=f"{toolchain.rustc} ({toolchain.version})",
            hint=machine.hint_if_full(finished.stderr, folder)
            or "install another Rust toolchain, or one with the target's libraries:\n"
            f"rustup target add {TARGET}",
        )
    for name in _LIBRARIES:
        for path in (work / "target" / TARGET / "release" / "deps").glob(f"lib{name}-*.r*"):
            path.replace(folder / path.name)
    shutil.rmtree(work)


def clean_environment() -> dict[str, str]:
    """This process's environment without what would steer cargo and rustc from outside."""
    steering = ("RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER")
    prefixes = ("CARGO_BUILD_", "CARGO_PROFILE_", "CARGO_TARGET_", "RUSTUP_")
    return {
        name: value
        for name, value in os.environ.items()
        if name not in steering and not name.startswith(prefixes)
    }


def _link_host(toolchain: RustToolchain, folder: Path) -> None:
    """Lends the host's libraries to the sysroot, for proc macros and build scripts."""
    host = Path("lib", "rustlib", toolchain.host)
    try:
        (folder / host).symlink_to(toolchain.sysroot / host, target_is_directory=True)
    except OSError:  # Windows without the right to make links
        shutil.copytree(toolchain.sysroot / host, folder / host)


def _compile_memory(toolchain: RustToolchain, folder: Path) -> bytes:
    """memcmp and bcmp, which comparing slices calls and nothing on the GPU has."""
    output = folder / "mem.rcgu.o"
    argv = (
        *(toolchain.rustc, "--crate-type=rlib", "--edition=2024", f"--target={TARGET}"),
        *("--sysroot", folder, "-Copt-level=3", "-Cpanic=abort", "-Ctarget-cpu=sm_70"),
        *(f"--emit=obj={output}", _SOURCES / "mem.rs"),
    )
    finished = process.run(argv, cwd=folder, env=clean_environment() | {"RUSTC_BOOTSTRAP": "1"})
    if not finished.ok:
        raise ToolError(
            f"memcmp does not compile for {TARGET}:\n{finished.stderr.rstrip()}",
            where=str(toolchain.rustc),
            hint=machine.hint_if_full(finished.stderr, folder),
        )
    data = output.read_bytes()
    output.unlink()
    return data


def _check(toolchain: RustToolchain, folder: Path) -> None:
    """Makes sure that this rustc links every part: ptxas would otherwise meet unknown functions.

    Raises:
        ToolError: It does not.
    """
    output = folder / "probe.ptx"
    argv = (
        *(toolchain.rustc, "--crate-type=staticlib", "--edition=2024", f"--target={TARGET}"),
        *("--sysroot", folder, "-Copt-level=3", "-Cpanic=abort", "-Ctarget-cpu=sm_70", "-Clto=fat"),
        # Without `link` rustc leaves out what other crates' bitcode holds.
        *(f"--emit=asm={output},link={output.with_suffix('.a')}", _SOURCES / "probe.rs"),
    )
    finished = process.run(argv, cwd=folder, env=clean_environment() | {"RUSTC_BOOTSTRAP": "1"})
    text = output.read_text(encoding="utf-8") if finished.ok else ""
    missing = re.findall(r"^\.extern \.func .*?(\w+)$", text, re.MULTILINE)
    if missing or not finished.ok:
        raise ToolError(
            f"rustc {toolchain.version} does not link the sysroot for the GPU: "
            + (f"{', '.join(missing)} missing" if finished.ok else f"\n{finished.stderr.rstrip()}"),
            where=str(toolchain.rustc),
            hint=machine.hint_if_full(finished.stderr, folder)
            or "use another version of Rust; 1.96 to 1.99 are known to work",
        )
    output.unlink()
    output.with_suffix(".a").unlink()
