"""Looks at what a crate that is written for cuda-oxide would be compiled by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rustcuda_backend import oxide_crates, oxide_environ, oxide_tools
from rustcuda_backend.compilers.choice import Choice, choose
from rustcuda_backend.diagnosis import Line
from rustcuda_backend.errors import ToolError
from rustcuda_backend.llvm_tools import LlvmTools
from rustcuda_backend.oxide_tools import Backend
from rustcuda_backend.rust import RustToolchain
from rustcuda_backend.settings import Settings

_TOPIC = "cuda-oxide"


@dataclass(frozen=True)
class OxideLook:
    """What was found.

    Attributes:
        lines: What to say of it.
        applies: Whether cuda-oxide would compile the crate, so that stock rustc is not needed.
        toolchain, llvm: What goes with the backend library; None where it is missing.
    """

    lines: tuple[Line, ...]
    applies: bool
    toolchain: RustToolchain | None = None
    llvm: LlvmTools | None = None


def look(
    settings: Settings, directory: Path, libdevice: Path | None, environ: Mapping[str, str]
) -> OxideLook:
    """Looks at everything that cuda-oxide needs for a crate, if that would compile it.

    Args:
        settings: The crate's settings.
        directory: Its folder.
        libdevice: NVIDIA's libdevice.10.bc, if its tools are here.
        environ: The environment.
    """
    try:
        choice = choose(settings, directory, environ)
    except ToolError as error:
        return OxideLook((_missing(error),), applies=True)
    if not choice.backend:
        return OxideLook(tuple(_without_backend(settings, directory, choice)), applies=False)
    lines = [Line(_TOPIC, "ok", f"{choice.backend.library} ({choice.backend.source}); {choice.why}")]
    try:
        environ = oxide_tools.read_config(directory).completed(environ)
        toolchain = oxide_tools.find_toolchain(choice.backend, settings.toolchain, directory, environ)
    except ToolError as error:
        return OxideLook((*lines, _missing(error)), applies=True)
    lines.append(_toolchain_line(toolchain, choice.backend))
    try:
        tools = oxide_tools.find_tools(choice.backend, settings, directory, libdevice or Path(), environ)
        oxide_environ.check_cargo(toolchain, directory, environ, settings.cargo_args)
    except ToolError as error:
        return OxideLook((*lines, _missing(error)), applies=True, toolchain=toolchain)
    llvm = tools.llvm
    lines.append(
        Line(_TOPIC, "ok", f"LLVM {llvm.version} ({llvm.llc}, {llvm.opt}, {llvm.llvm_link}; {llvm.source})")
    )
    if tools.libdevice.is_file():  # else NVIDIA's tools are missing, which has a line of its own
        lines.append(Line(_TOPIC, "ok", str(tools.libdevice)))
    return OxideLook(tuple(lines), applies=True, toolchain=toolchain, llvm=llvm)


def _missing(error: ToolError) -> Line:
    return Line(_TOPIC, "missing", f"{error.what} ({error.where})" if error.where else error.what, error.hint)


def _without_backend(settings: Settings, directory: Path, choice: Choice) -> Iterator[Line]:
    if settings.compiler == "auto" and oxide_crates.depends_on_device(directory, settings):
        text = f"{choice.why}: stock rustc compiles what it can of it. To have the library:"
        yield Line(_TOPIC, "note", text, oxide_tools.INSTALL_HINT)


def _toolchain_line(toolchain: RustToolchain, backend: Backend) -> Line:
    shown = f"rustc {toolchain.version} ({toolchain.rustc}; {toolchain.source})"
    if backend.fingerprint or backend.driver:
        return Line(_TOPIC, "ok", f"{shown}, which the library was built for")
    return Line(_TOPIC, "ok", f"{shown}; the library does not say which rustc it was built for")
