"""Finding a Rust toolchain that can compile for the GPU, and what is unstable in using it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rustcuda_backend import process
from rustcuda_backend.errors import ToolError

TARGET = "nvptx64-nvidia-cuda"
MINIMUM = (1, 96)

# Feature gates that kernels need; the passes set them, so that they need not stand in the crate.
CRATE_FEATURES = ("abi_ptx", "stdarch_nvptx", "asm_experimental_arch", "link_llvm_intrinsics", "f16")

# The name under which cargo asks rustc about the target. Unless it may use unstable flags as well,
# cargo fails "to learn about target-specific information".
_CARGO_PROBE = "___"

INSTALL_HINT = """\
with rustup:   rustup toolchain install stable --profile minimal --component rust-src && rustup default stable
on Debian:     apt-get install rustc-web cargo-web rust-web-src"""


@dataclass(frozen=True)
class RustToolchain:
    """One rustc with the cargo beside it.

    Attributes:
        rustc, cargo: The programs themselves, not rustup's proxies.
        version: `"1.96.0"`, or `"1.97.0-nightly"`.
        verbose_version: All of `rustc -vV`, which identifies the compiler.
        host: The host's target triple.
        sysroot: Its sysroot.
        source: Why this one was taken, for messages.
    """

    rustc: Path
    cargo: Path
    version: str
    verbose_version: str
    host: str
    sysroot: Path
    source: str

    @property
    def numbers(self) -> tuple[int, int]:
        """`(1, 96)`."""
        major, minor = self.version.split(".")[:2]
        return int(major), int(minor)

    @property
    def target_libraries(self) -> Path | None:
        """Where `rustup target add` has put `core` for the GPU, if it has."""
        path = self.sysroot / "lib" / "rustlib" / TARGET / "lib"
        return path if any(path.glob("libcore-*.rlib")) else None

    @property
    def library_source(self) -> Path | None:
        """The source of `core`, from which it can be compiled for the GPU, if it is there."""
        path = self.sysroot / "lib" / "rustlib" / "src" / "rust" / "library"
        return path if (path / "core" / "Cargo.toml").is_file() else None

    @property
    def rustup_name(self) -> str:
        """The name under which rustup keeps it; empty if rustup does not."""
        return self.sysroot.name if self.sysroot.parent.name == "toolchains" else ""

    def misfit(self) -> str:
        """What keeps this toolchain from compiling kernels; empty if nothing does."""
        if self.numbers < MINIMUM:
            return f"rustc {self.version} is older than {MINIMUM[0]}.{MINIMUM[1]}"
        if not (self.target_libraries or self.library_source):
            return f"it has neither the target {TARGET} nor the source of core (rust-src)"
        if not self.cargo.is_file():
            return f"there is no cargo beside it ({self.cargo})"
        return ""

    def bootstrap(self, crates: Sequence[str]) -> dict[str, str]:
        """The environment that lets the named crates, and cargo's probe, use unstable features.

        Crates are named one by one since build scripts see `RUSTC_BOOTSTRAP=1` and would probe this
        compiler as a nightly one, which it is not for them.
        """
        if "nightly" in self.version or "dev" in self.version:
            return {}
        return {"RUSTC_BOOTSTRAP": ",".join((_CARGO_PROBE, *sorted(set(crates))))}


@dataclass(frozen=True)
class _Candidate:
    rustc: str
    source: str
    explicit: bool


@dataclass(frozen=True)
class Look:
    """One rustc that was looked at.

    Attributes:
        rustc, source: Which one, and why it was looked at.
        explicit: Whether somebody asked for it, so that no other is tried.
        toolchain: What is behind it; None where it cannot be asked.
        problem: What keeps it from compiling kernels; `""` if nothing does.
    """

    rustc: str
    source: str
    explicit: bool
    toolchain: RustToolchain | None
    problem: str

    @property
    def mend(self) -> str:
        """The line that makes it fit, or that gets another one."""
        if self.toolchain and self.toolchain.numbers >= MINIMUM and self.toolchain.rustup_name:
            return f"rustup component add rust-src --toolchain {self.toolchain.rustup_name}"
        return f"name one that fits, or none; to install one:\n{INSTALL_HINT}"


def find_toolchain(setting: str, directory: Path, environ: Mapping[str, str]) -> RustToolchain:
    """The Rust toolchain for a crate.

    Order: the setting, RUSTC, what rustup is told (RUSTUP_TOOLCHAIN or a rust-toolchain file), then
    every rustc on PATH. The first three are somebody's choice: if such a one does not fit, that is an
    error and no other is tried.

    Args:
        setting: `toolchain`: the path of a rustc, of a toolchain's folder, or a rustup toolchain's name.
        directory: The crate's folder, where rustup looks for a rust-toolchain file.
        environ: The environment.

    Raises:
        ToolError: None fits; says what was looked at and the line that mends it.
    """
    misfits = []
    hint = INSTALL_HINT
    for look in looks(setting, directory, environ):
        if look.toolchain and not look.problem:
            return look.toolchain
        if look.explicit:
            raise ToolError(
                f"the Rust toolchain that was asked for cannot compile kernels: {look.problem}",
                where=f"{look.source}: {look.rustc}",
                hint=look.mend,
            )
        misfits.append(f"{look.rustc}: {look.problem}")
        if look.toolchain and look.toolchain.numbers >= MINIMUM and look.toolchain.rustup_name:
            hint = look.mend
    looked_at = "; ".join(misfits) or "there is no rustc on PATH"
    raise ToolError("no Rust toolchain that can compile kernels was found", where=looked_at, hint=hint)


def looks(
    setting: str, directory: Path, environ: Mapping[str, str], *, pinned: bool = True
) -> Iterator[Look]:
    """Looks at every candidate in the order of `find_toolchain`, whether or not an earlier one fits.

    Args:
        setting: As for `find_toolchain`.
        directory: As for `find_toolchain`.
        environ: As for `find_toolchain`.
        pinned: Whether what rustup is told counts.

    Raises:
        ToolError: rustup does not have the toolchain that it is asked for.
    """
    for candidate in _candidates(setting, directory, environ, pinned=pinned):
        toolchain = inspect(candidate.rustc, candidate.source, directory, environ)
        where = (candidate.rustc, candidate.source, candidate.explicit)
        if isinstance(toolchain, str):
            yield Look(*where, None, toolchain)
        else:
            yield Look(*where, toolchain, toolchain.misfit())


def _candidates(
    setting: str, directory: Path, environ: Mapping[str, str], *, pinned: bool
) -> Iterator[_Candidate]:
    if setting:
        yield _named(setting, directory, environ)
    if environ.get("RUSTC"):
        yield _Candidate(environ["RUSTC"], "environment variable RUSTC", explicit=True)
    chosen = "environment variable RUSTUP_TOOLCHAIN" if environ.get("RUSTUP_TOOLCHAIN") else ""
    chosen = chosen or str(toolchain_file(directory) or "")
    # Without rustup nothing obeys either of them, cargo neither.
    if pinned and chosen and shutil.which("rustup", path=environ.get("PATH", "")):
        yield _rustup(["rustup", "which", "rustc"], chosen, directory, environ)
    seen = set()
    for folder in environ.get("PATH", "").split(os.pathsep):
        rustc = shutil.which("rustc", path=folder) if folder else None
        if rustc and Path(rustc).resolve() not in seen:
            seen.add(Path(rustc).resolve())
            yield _Candidate(rustc, "PATH", explicit=False)


def _named(setting: str, directory: Path, environ: Mapping[str, str]) -> _Candidate:
    source = "setting 'toolchain'"
    path = directory / Path(setting).expanduser()
    if path.is_dir():
        return _Candidate(str(path / "bin" / "rustc"), source, explicit=True)
    if path.is_file() or os.sep in setting:
        return _Candidate(str(path), source, explicit=True)
    argv = ["rustup", "which", "--toolchain", setting, "rustc"]
    return _rustup(argv, f"{source} = '{setting}'", directory, environ)


def _rustup(argv: Sequence[str], source: str, directory: Path, environ: Mapping[str, str]) -> _Candidate:
    """The rustc that rustup names; the proxy on PATH need not be the first rustc there."""
    found = _output(argv, directory, environ)
    if isinstance(found, ToolError):
        raise ToolError(
            f"the Rust toolchain that was asked for is not to be had: {found.what}",
            where=source,
            hint="rustup toolchain install NAME --component rust-src",
        )
    return _Candidate(str(process.path(found.strip())), f"{source}, read by rustup", explicit=True)


def toolchain_file(directory: Path) -> Path | None:
    """The rust-toolchain file that rustup would obey in a folder."""
    for folder in (directory, *directory.parents):
        for name in ("rust-toolchain", "rust-toolchain.toml"):
            if (folder / name).is_file():
                return folder / name
    return None


def inspect(rustc: str, source: str, directory: Path, environ: Mapping[str, str]) -> RustToolchain | str:
    """The toolchain behind a rustc, or why it cannot be asked; whether it fits is not looked at.

    Args:
        rustc: The program, which may be rustup's proxy.
        source: Why it is looked at, for messages.
        directory: The crate's folder.
        environ: The environment.
    """
    version = _output([rustc, "-vV"], directory, environ)
    sysroot = _output([rustc, "--print", "sysroot"], directory, environ)
    if isinstance(version, ToolError):
        return version.what
    if isinstance(sysroot, ToolError):
        return sysroot.what
    fields = dict(re.findall(r"^(\S+): (.+)$", version, re.MULTILINE))
    if "release" not in fields or "host" not in fields:
        return "it is no rustc: it does not answer -vV as one does"
    root = process.path(sysroot.strip())
    real = shutil.which("rustc", path=str(root / "bin")) or rustc
    cargo = Path(real).with_name("cargo.exe" if os.name == "nt" else "cargo")
    return RustToolchain(Path(real), cargo, fields["release"], version, fields["host"], root, source)


def _output(argv: Sequence[str], directory: Path, environ: Mapping[str, str]) -> str | ToolError:
    try:
        finished = process.run(argv, cwd=directory, env=environ)
    except OSError as error:
        return ToolError(f"{argv[0]}: {error.strerror}")
    if finished.ok:
        return finished.stdout
    return ToolError((finished.stderr.strip() or f"{argv[0]} failed").splitlines()[0])


def target_cpus(toolchain: RustToolchain) -> frozenset[str]:
    """The names (`sm_90a`) that this rustc takes as `-C target-cpu` for the GPU."""
    finished = process.run([toolchain.rustc, "--print", "target-cpus", "--target", TARGET])
    return frozenset(re.findall(r"\bsm_\d+[af]?\b", finished.stdout))
