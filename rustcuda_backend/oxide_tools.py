"""Finding what cuda-oxide needs: its backend library, and the rustc it was built for."""

from __future__ import annotations

import datetime
import functools
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rustcuda_backend import rust
from rustcuda_backend.errors import ToolError
from rustcuda_backend.llvm_tools import LLVM_VARIABLES, LlvmTools, find_llvm
from rustcuda_backend.oxide_environ import BACKEND_VARIABLE, LIBDEVICE_VARIABLE
from rustcuda_backend.rust import RustToolchain
from rustcuda_backend.settings import Settings

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LIBRARY = "librustc_codegen_cuda.so"
CONFIG = Path(".cargo", "cuda-oxide.toml")
INSTALL_HINT = """\
cargo +nightly-2026-04-03 install --git https://github.com/NVlabs/cuda-oxide.git cargo-oxide
cargo oxide setup
or name the library: cuda-oxide-backend = "/path/to/librustc_codegen_cuda.so"; docs/cuda-oxide.md has more"""

# What neither variables nor cargo's list of flags can have.
_NEVER = re.compile(r"[\0\x1f]")
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
    environ: Mapping[str, str] = field(default_factory=dict)
    file: Path | None = None

    def completed(self, environ: Mapping[str, str]) -> dict[str, str]:
        """An environment with the variables that it does not have itself."""
        return {**self.environ, **environ}


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
    environ = config.completed(environ)
    toolchain = find_toolchain(backend, settings.toolchain, directory, environ)
    llvm = find_llvm(toolchain, environ)
    return OxideTools(backend, toolchain, llvm, _libdevice(libdevice, environ), config)


def read_config(directory: Path) -> Config:
    """`.cargo/cuda-oxide.toml` of a crate or of a folder above it.

    Raises:
        ToolError: It is no TOML, or has a value of the wrong type.
    """
    for place in (directory, *directory.parents):
        file = place / CONFIG
        if file.is_file():
            return _config(file)
    return Config()


def _config(file: Path) -> Config:
    content = _read(file)
    backend, flags = content.get("backend"), content.get("extra-rustflags", [])
    environ = content.get("env", {})
    texts: list[Any] = [backend if backend is not None else ""]
    texts += [*flags] if isinstance(flags, list) else [None]
    texts += [*environ, *environ.values()] if isinstance(environ, dict) else [None]
    fits = all(isinstance(text, str) and not _NEVER.search(text) for text in texts)
    if not fits or any(not name or "=" in name for name in environ):
        raise ToolError(
            "cuda-oxide's configuration is not as cargo-oxide reads it",
            where=str(file),
            hint="backend is a string, extra-rustflags a list of strings, [env] a table of strings;\n"
            "none has control characters, and names in [env] are not empty and have no =",
        )
    # As cargo-oxide takes it: from the folder that has the folder .cargo.
    start = file.parents[1]
    own = ("RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS")
    environ = {name: value for name, value in environ.items() if name not in own}
    for name in (*LLVM_VARIABLES, LIBDEVICE_VARIABLE):
        path = environ.get(name, "")
        # A program without a folder is one on PATH.
        if os.sep in path or (path and name == LIBDEVICE_VARIABLE):
            environ[name] = str(start / path)
    return Config(start / backend if backend else None, tuple(flags), environ, file)


def _read(file: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ToolError(f"cuda-oxide's configuration is not valid TOML: {error}", where=str(file)) from None
    return content


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

    The library is a part of one compiler. Where cargo-oxide has noted which, that one is looked for among
    all that rustup has and on PATH; else the crate's rust-toolchain file and PATH say which, and it must
    bring the library of rustc that the backend is linked to.

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
    # A rust-toolchain file does not bind where the library notes its own compiler.
    noted = bool(backend.fingerprint)
    if noted and not setting and not environ.get("RUSTC"):
        yield from _of_rustup(directory, environ)
    for look in rust.looks(setting, directory, environ, pinned=not noted):
        if look.toolchain:
            yield look.toolchain, look.explicit
        elif look.explicit:
            raise ToolError(
                f"the Rust toolchain that was asked for cannot be used: {look.problem}",
                where=f"{look.source}: {look.rustc}",
                hint=_toolchain_hint(backend),
            )
    if not noted:
        yield from _of_rustup(directory, environ)


def _of_rustup(directory: Path, environ: Mapping[str, str]) -> Iterator[tuple[RustToolchain, bool]]:
    folder = _home(environ, "RUSTUP_HOME", ".rustup")
    for rustc in sorted(folder.glob("toolchains/*/bin/rustc")) if folder else ():
        toolchain = rust.inspect(str(rustc), "rustup's, the backend library's own", directory, environ)
        if isinstance(toolchain, RustToolchain):
            yield toolchain, False


def _toolchain_hint(backend: Backend) -> str:
    rebuild = "rebuild the library with the toolchain in use: cargo oxide setup"
    written = re.search(r"^commit-date: (.+)$", backend.fingerprint, re.MULTILINE)
    if "nightly" not in _first_line(backend.fingerprint) or not written:
        return rebuild
    try:
        # A nightly is named after the day on which it is made, which follows that of its last commit.
        day = datetime.date.fromisoformat(written[1]) + datetime.timedelta(days=1)
    except (ValueError, OverflowError):
        return rebuild
    return f"rustup toolchain install nightly-{day} --component llvm-tools,\nor {rebuild}"


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else ""


def _libdevice(libdevice: Path, environ: Mapping[str, str]) -> Path:
    named = environ.get(LIBDEVICE_VARIABLE)
    if named and not Path(named).is_file():
        raise ToolError(
            f"{LIBDEVICE_VARIABLE} names no file",
            where=f"environment variable {LIBDEVICE_VARIABLE}={named}",
            hint="unset it to use the libdevice.10.bc of NVIDIA's wheels",
        )
    # cargo runs rustc in another folder than this one.
    return Path(named).absolute() if named else libdevice
