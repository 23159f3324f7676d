"""Finding what cuda-oxide needs: its backend library, the rustc it was built for, and LLVM's tools."""

from __future__ import annotations

import datetime
import functools
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rustcuda_backend import process, rust
from rustcuda_backend.cargo_files import read_toml
from rustcuda_backend.errors import ToolError
from rustcuda_backend.rust import RustToolchain
from rustcuda_backend.settings import Settings

LIBRARY = "librustc_codegen_cuda.so"
CONFIG = Path(".cargo", "cuda-oxide.toml")
BACKEND_VARIABLE = "CUDA_OXIDE_BACKEND"
INSTALL_HINT = """\
cargo +nightly-2026-04-03 install --git https://github.com/NVlabs/cuda-oxide.git cargo-oxide
cargo oxide setup
or name the library: cuda-oxide-backend = "/path/to/librustc_codegen_cuda.so"; docs/cuda-oxide.md has more"""

# Each LLVM program that the backend library starts, by the variable that names it.
LLVM_VARIABLES = {"CUDA_OXIDE_LLC": "llc", "CUDA_OXIDE_OPT": "opt", "CUDA_OXIDE_LLVM_LINK": "llvm-link"}
_MINIMUM_LLVM = 21
_LLC_NAMES = ("llc-22", "llc-21", "llc")

_DRIVER = re.compile(rb"librustc_driver-[0-9a-f]+\.so")


@dataclass(frozen=True)
class Config:
    """The project's `.cargo/cuda-oxide.toml`.

    Attributes:
        backend: The library that it names, if it does.
        rustflags: Flags that come before all others.
        environ: Variables that are set unless the environment has them.
        file: Where it is; None where there is none.
    """

    backend: Path | None = None
    rustflags: tuple[str, ...] = ()
    environ: Mapping[str, str] | None = None
    file: Path | None = None


@dataclass(frozen=True)
class Backend:
    """cuda-oxide's backend library.

    Attributes:
        library: The file.
        source: Why this one was taken, for messages.
    """

    library: Path
    source: str

    @property
    def fingerprint(self) -> str:
        """`rustc -vV` of the toolchain that it was built with; empty where cargo-oxide has not noted it."""
        try:
            file = self.library.with_name("toolchain-fingerprint.txt")
            return file.read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return ""

    @functools.cached_property  # a debug build of it is large
    def driver(self) -> str:
        """The library of rustc that it is linked to, which is one compiler's alone; or empty."""
        found = _DRIVER.search(self.library.read_bytes())
        return found[0].decode() if found else ""


@dataclass(frozen=True)
class LlvmTools:
    """LLVM's programs, all of one major version.

    Attributes:
        llc, opt, llvm_link: The programs.
        version: What llc says of its version, e.g. `"22.1.2-rust-1.96.0-nightly"`.
        source: Why these were taken, for messages.
    """

    llc: Path
    opt: Path
    llvm_link: Path
    version: str
    source: str

    @property
    def major(self) -> int:
        """22 of 22.1.2."""
        return _major(self.version)


@dataclass(frozen=True)
class OxideTools:
    """All that a build with cuda-oxide needs beside NVIDIA's tools."""

    backend: Backend
    toolchain: RustToolchain
    llvm: LlvmTools
    libdevice: Path
    config: Config


def find_tools(
    backend: Backend, settings: Settings, directory: Path, libdevice: Path, environ: Mapping[str, str]
) -> OxideTools:
    """Finds what goes with a backend library.

    Args:
        backend: The library.
        settings: The project's, for `toolchain`.
        directory: The crate's folder.
        libdevice: NVIDIA's `libdevice.10.bc`, unless CUDA_OXIDE_LIBDEVICE names another.
        environ: The environment.

    Raises:
        ToolError: Something is missing or does not fit; says the line that mends it.
    """
    config = read_config(directory)
    environ = {**(config.environ or {}), **environ}
    toolchain = find_toolchain(backend, settings.toolchain, directory, environ)
    llvm = find_llvm(toolchain, environ)
    return OxideTools(backend, toolchain, llvm, _libdevice(libdevice, environ), config)


def read_config(directory: Path) -> Config:
    """`.cargo/cuda-oxide.toml` of a crate or of a folder above it.

    Raises:
        ToolError: It has a value of the wrong type.
    """
    for place in (directory, *directory.parents):
        file = place / CONFIG
        if file.is_file():
            return _config(file)
    return Config()


def _config(file: Path) -> Config:
    content = read_toml(file)
    backend, flags = content.get("backend"), content.get("extra-rustflags", [])
    environ = content.get("env", {})
    texts: list[Any] = [backend if backend is not None else ""]
    texts += [*flags] if isinstance(flags, list) else [None]
    texts += [*environ.values()] if isinstance(environ, dict) else [None]
    if not all(isinstance(text, str) for text in texts):
        raise ToolError(
            "cuda-oxide's configuration is not as cargo-oxide reads it",
            where=str(file),
            hint="backend is a string, extra-rustflags a list of strings, [env] a table of strings",
        )
    own = ("RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS")
    return Config(
        # As cargo-oxide takes it: from the folder that has the folder .cargo.
        file.parents[1] / backend if backend else None,
        tuple(flags),
        {name: value for name, value in environ.items() if name not in own},
        file,
    )


def find_backend(settings: Settings, directory: Path, environ: Mapping[str, str]) -> Backend | None:
    """The backend library: by the setting, CUDA_OXIDE_BACKEND, `.cargo/cuda-oxide.toml`, cargo-oxide's cache.

    Args:
        settings: For `cuda-oxide-backend`.
        directory: The crate's folder.
        environ: The environment.

    Returns:
        The library; None if nobody names one and cargo-oxide has built none.

    Raises:
        ToolError: One is named that is no file; no other is looked for then.
    """
    for path, source in _named_backends(settings, directory, environ):
        if path.is_file():
            return Backend(path.absolute(), source)
        raise ToolError(f"cuda-oxide's backend library is not there: {path}", where=source, hint=INSTALL_HINT)
    cached = cached_backend(environ)
    return Backend(cached, "cargo-oxide's cache") if cached and cached.is_file() else None


def _named_backends(
    settings: Settings, directory: Path, environ: Mapping[str, str]
) -> Iterator[tuple[Path, str]]:
    if settings.cuda_oxide_backend:
        path = Path(settings.cuda_oxide_backend).expanduser()
        yield directory / path, settings.where("cuda_oxide_backend")
    if environ.get(BACKEND_VARIABLE):
        yield Path(environ[BACKEND_VARIABLE]), f"environment variable {BACKEND_VARIABLE}"
    config = read_config(directory)
    if config.backend:
        yield config.backend, str(config.file)


def cached_backend(environ: Mapping[str, str]) -> Path | None:
    """Where `cargo oxide setup` puts the library; None where neither CARGO_HOME nor HOME is set."""
    home = _home(environ, "CARGO_HOME", ".cargo")
    return home / "cuda-oxide" / LIBRARY if home else None


def _home(environ: Mapping[str, str], variable: str, name: str) -> Path | None:
    """The folder that a variable names, else the one of that name in the user's."""
    if environ.get(variable):
        return Path(environ[variable])
    return Path(environ["HOME"], name) if environ.get("HOME") else None


def find_toolchain(
    backend: Backend, setting: str, directory: Path, environ: Mapping[str, str]
) -> RustToolchain:
    """The Rust toolchain whose compiler a backend library can be loaded into.

    The library is a part of one compiler. Where cargo-oxide has noted which, that one is looked for, also
    among all that rustup has; else the crate's rust-toolchain file and PATH say which, and it must bring
    the library of rustc that the backend is linked to.

    Args:
        backend: The library.
        setting: `toolchain`; that one, or the one that RUSTC names, must fit.
        directory: The crate's folder.
        environ: The environment.

    Raises:
        ToolError: None fits.
    """
    misfits: list[str] = []
    for toolchain, explicit in _toolchains(backend, setting, directory, environ):
        problem = misfit(toolchain, backend)
        if not problem:
            return toolchain
        if explicit:
            raise ToolError(
                f"the Rust toolchain that was asked for is not the backend library's: {problem}",
                where=f"{toolchain.source}: {toolchain.rustc}",
                hint=f"name none, or the right one:\n{_toolchain_hint(backend)}",
            )
        shown = f"{toolchain.rustc}: {problem}"
        misfits += [shown] if shown not in misfits else []
    raise ToolError(
        f"there is no Rust toolchain here that cuda-oxide's backend library fits ({backend.library})",
        where="; ".join(misfits) or "there is no rustc on PATH",
        hint=_toolchain_hint(backend),
    )


def misfit(toolchain: RustToolchain, backend: Backend) -> str:
    """What keeps a toolchain from loading a backend library; empty if nothing does."""
    if not toolchain.cargo.is_file():
        return f"there is no cargo beside it ({toolchain.cargo})"
    noted = backend.fingerprint
    if noted and noted != toolchain.verbose_version.strip():
        return f"it is {_first_line(toolchain.verbose_version)}, not {_first_line(noted)}"
    if backend.driver and not (toolchain.sysroot / "lib" / backend.driver).is_file():
        return f"rustc {toolchain.version} does not have {backend.driver}"
    return ""


def _toolchains(
    backend: Backend, setting: str, directory: Path, environ: Mapping[str, str]
) -> Iterator[tuple[RustToolchain, bool]]:
    """Candidates, and whether somebody named each, so that no other is tried."""
    named = bool(setting or environ.get("RUSTC"))
    for look in rust.looks(setting, directory, environ):
        if look.toolchain:
            # A rust-toolchain file does not bind where the library notes its own compiler.
            yield look.toolchain, look.explicit and (named or not backend.fingerprint)
        elif look.explicit:
            raise ToolError(
                f"the Rust toolchain that was asked for cannot be used: {look.problem}",
                where=f"{look.source}: {look.rustc}",
                hint=_toolchain_hint(backend),
            )
    folder = _home(environ, "RUSTUP_HOME", ".rustup")
    for rustc in sorted(folder.glob("toolchains/*/bin/rustc")) if folder else ():
        toolchain = rust.inspect(str(rustc), "rustup's, the backend library's own", directory, environ)
        if isinstance(toolchain, RustToolchain):
            yield toolchain, False


def _toolchain_hint(backend: Backend) -> str:
    rebuild = "rebuild the library with the toolchain in use: cargo oxide setup"
    date = re.search(r"^commit-date: (\d+-\d+-\d+)$", backend.fingerprint, re.MULTILINE)
    if "nightly" not in _first_line(backend.fingerprint) or not date:
        return rebuild
    # A nightly is named after the day on which it is made, which follows that of its last commit.
    day = datetime.date.fromisoformat(date[1]) + datetime.timedelta(days=1)
    return f"rustup toolchain install nightly-{day} --component llvm-tools,\nor {rebuild}"


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else ""


def find_llvm(toolchain: RustToolchain, environ: Mapping[str, str]) -> LlvmTools:
    """llc, opt and llvm-link of one major version, 21 or later.

    Without opt cuda-oxide writes slow code, and without llvm-link no PTX at all where a kernel uses sin
    or exp, both with hardly a word; so all three must be there. Order: CUDA_OXIDE_LLC, CUDA_OXIDE_OPT and
    CUDA_OXIDE_LLVM_LINK; the toolchain's component llvm-tools; PATH.

    Args:
        toolchain: The Rust toolchain.
        environ: The environment.

    Raises:
        ToolError: One is missing; says which, and where was looked.
    """
    folder = toolchain.sysroot / "lib" / "rustlib" / toolchain.host / "bin"
    problems: list[str] = []
    for llc, source in _llcs(folder, environ):
        version = _version(llc)
        if _major(version) < _MINIMUM_LLVM:
            problems.append(f"{llc}: {f'LLVM {version}' if version else 'it does not say its version'}")
            continue
        found = {
            name: _matching(variable, name, llc, _major(version), folder, environ)
            for variable, name in LLVM_VARIABLES.items()
            if name != "llc"
        }
        opt, link = found["opt"], found["llvm-link"]
        if opt and link:
            return LlvmTools(llc, opt, link, version, source)
        missing = " and no ".join(name for name, path in found.items() if not path)
        problems.append(f"{llc} is of LLVM {version}, but there is no {missing} of LLVM {_major(version)}")
    name = toolchain.rustup_name
    raise ToolError(
        "cuda-oxide needs llc, opt and llvm-link of one LLVM version, "
        f"{_MINIMUM_LLVM} or later, and they were not found",
        where="; ".join(problems) or f"no llc in {folder}, and none on PATH",
        hint=f"rustup component add llvm-tools{f' --toolchain {name}' if name else ''},\n"
        "or apt-get install llvm-22, or name all three: " + ", ".join(LLVM_VARIABLES),
    )


def _llcs(folder: Path, environ: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    named = environ.get("CUDA_OXIDE_LLC")
    if named:
        yield Path(named), "environment variable CUDA_OXIDE_LLC"
        return
    if (folder / "llc").is_file():
        yield folder / "llc", "the toolchain's llvm-tools"
    for name in _LLC_NAMES:
        if path := shutil.which(name, path=environ.get("PATH", "")):
            yield Path(path), "PATH"


def _matching(
    variable: str, name: str, llc: Path, major: int, folder: Path, environ: Mapping[str, str]
) -> Path | None:
    """The program of the same major version as llc: a named one, one beside llc, the toolchain's, PATH's."""
    if environ.get(variable):
        candidates = [Path(environ[variable])]
    else:
        beside = (llc.with_name(llc.name.replace("llc", name, 1)), llc.with_name(name))
        on_path = (shutil.which(each, path=environ.get("PATH", "")) for each in (f"{name}-{major}", name))
        candidates = [*beside, folder / name, *(Path(path) for path in on_path if path)]
    return next((path for path in candidates if _major(_version(path)) == major), None)


def _version(program: Path) -> str:
    """The LLVM version that a program says it is of; empty if it does not run or is none of LLVM's."""
    try:
        finished = process.run([program, "--version"])
    except OSError:
        return ""
    found = re.search(r"LLVM version (\d[\w.\-]*)", finished.stdout)
    return found[1] if found and finished.ok else ""


def _major(version: str) -> int:
    digits = version.partition(".")[0]
    return int(digits) if digits.isdecimal() else 0


def _libdevice(libdevice: Path, environ: Mapping[str, str]) -> Path:
    named = environ.get("CUDA_OXIDE_LIBDEVICE")
    if named and not Path(named).is_file():
        raise ToolError(
            "CUDA_OXIDE_LIBDEVICE names no file",
            where=f"environment variable CUDA_OXIDE_LIBDEVICE={named}",
            hint="unset it to use the libdevice.10.bc of NVIDIA's wheels",
        )
    return Path(named) if named else libdevice
