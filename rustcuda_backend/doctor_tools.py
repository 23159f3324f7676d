"""Looks at the tools of a build: Rust, cargo, a linker for the host, and NVIDIA's."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from rustcuda_backend import compatible, process, rust, sysroot, toolkit
from rustcuda_backend.cuda_versions import CUDA_VERSIONS, CudaVersion
from rustcuda_backend.device_crates import DEVICE_CRATE
from rustcuda_backend.diagnosis import Line
from rustcuda_backend.errors import ToolError
from rustcuda_backend.pyproject import read_pyproject
from rustcuda_backend.rust import RustToolchain
from rustcuda_backend.settings import Settings
from rustcuda_backend.toolkit import CudaTools


def rust_lines(
    settings: Settings, directory: Path, environ: Mapping[str, str]
) -> tuple[list[Line], RustToolchain | None]:
    """Every Rust toolchain that was looked at for a crate, and the one that is used."""
    lines: list[Line] = []
    chosen: RustToolchain | None = None
    try:
        for look in rust.looks(settings.toolchain, directory, environ):
            known = f"rustc {look.toolchain.version} " if look.toolchain else ""
            shown = f"{known}({look.rustc}; {look.source})"
            if chosen or (look.problem and not look.explicit):
                why = look.problem or "an earlier one fits"
                lines.append(
                    Line("Rust", "passed over", f"{shown}: {why}", _mend(look) if look.problem else "")
                )
            elif look.problem:
                # Somebody asked for it, so that no other is tried.
                return [*lines, Line("Rust", "missing", f"{shown}: {look.problem}", look.mend)], None
            else:
                chosen = look.toolchain
                lines.append(Line("Rust", "ok", shown))
    except ToolError as error:
        return [*lines, Line("Rust", "missing", f"{error.what} ({error.where})", error.hint)], None
    if not chosen:
        hint = next((line.fix for line in lines if line.fix), rust.INSTALL_HINT)
        lines.append(Line("Rust", "missing", "no Rust toolchain here can compile kernels", hint))
    return lines, chosen


def _mend(look: rust.Look) -> str:
    """What makes a candidate fit; nothing where another one is needed."""
    return look.mend if look.mend.startswith("rustup component") else ""


def cargo_lines(
    toolchain: RustToolchain, crates: Sequence[Path], environ: Mapping[str, str]
) -> Iterator[Line]:
    """cargo, and the linker that proc macros and build scripts need."""
    try:
        finished = process.run([toolchain.cargo, "--version"], env=environ)
        said = (finished.stdout or finished.stderr).strip()
        works = finished.ok
    except OSError as error:
        said, works = f"it does not start: {error.strerror}", False
    yield Line(
        "cargo",
        "ok" if works else "missing",
        f"{said} ({toolchain.cargo})",
        "" if works else rust.INSTALL_HINT,
    )
    variable = f"CARGO_TARGET_{toolchain.host.upper().replace('-', '_')}_LINKER"
    if "windows" in toolchain.host or environ.get(variable):
        return
    linker = shutil.which("cc", path=environ.get("PATH", ""))
    if linker:
        yield Line("linker", "ok", linker)
        return
    needed = any(compatible.DEVICE in _manifest(crate) for crate in crates)  # in DEVICE_CRATE too
    yield Line(
        "linker",
        "missing" if needed else "warning",
        f"there is no cc on PATH, which rustc needs for {DEVICE_CRATE}'s macros",
        "apt-get install gcc  (or your system's C compiler)",
    )


def _manifest(crate: Path) -> str:
    return (crate / "Cargo.toml").read_text(encoding="utf-8", errors="replace")


def cuda_lines(
    settings: Settings, project: Path, environ: Mapping[str, str], *, isolated: bool
) -> tuple[list[Line], CudaTools | None]:
    """NVIDIA's tools for each CUDA version, and those that a build uses.

    Args:
        settings: The project's, for `cuda-version` and `ptxas`.
        project: The folder of pyproject.toml, which may bring the tools into an isolated build.
        environ: The environment.
        isolated: Whether builds are isolated, as pip's are by default.
    """
    lines: list[Line] = []
    chosen = None
    for version in CUDA_VERSIONS.values():
        topic = f"CUDA {version.name}"
        asked = version.name == settings.cuda_version
        looks = toolkit.looks(version, ptxas=settings.ptxas, environ=environ) if asked else []
        try:
            tools = toolkit.find_tools(version, ptxas=settings.ptxas if asked else "", environ=environ)
        except ToolError as error:
            lines += [Line(topic, "passed over", _shown(look)) for look in looks]
            lines.append(
                _not_found(topic, version, error, settings, project, environ, asked=asked, isolated=isolated)
            )
            continue
        lines += [Line(topic, "passed over", _shown(look)) for look in looks if look.problem and look.ptxas]
        text = f"ptxas {tools.ptxas_version} ({tools.ptxas}; {tools.source})"
        if asked:
            chosen = tools
            lines += [Line(topic, "ok", text), Line(topic, "ok", f"packer {tools.packer}; {tools.libdevice}")]
        elif tools.version == version:
            lines.append(Line(topic, "note", f'{text}, used with cuda-version = "{version.name}"'))
    return lines, chosen


def _shown(look: toolkit.Look) -> str:
    return f"{look.source}: {look.ptxas or ''}{', ' if look.ptxas else ''}{look.problem}"


def _not_found(
    topic: str,
    version: CudaVersion,
    error: ToolError,
    settings: Settings,
    project: Path,
    environ: Mapping[str, str],
    *,
    asked: bool,
    isolated: bool,
) -> Line:
    if not asked:
        text = f'not here; needed only with cuda-version = "{version.name}"'
        return Line(topic, "note", text, f"pip install {' '.join(version.wheels)}")
    if isolated and _brought(version, settings, project, environ):
        text = f"{error.what}; an isolated build, which is pip's default, brings its own. For others:"
        return Line(topic, "note", text, error.hint)
    return Line(topic, "missing", error.what, error.hint)


def _brought(version: CudaVersion, settings: Settings, project: Path, environ: Mapping[str, str]) -> bool:
    """Whether front ends install NVIDIA's wheels into an isolated build's environment."""
    try:
        wheels = toolkit.required_wheels(version, ptxas=settings.ptxas, environ=environ)
    except ToolError:
        return False
    if not wheels:
        return False
    system = read_pyproject(project).get("build-system", {})
    if not system or system.get("build-backend") == "rustcuda_backend":
        return True
    # As a plugin we cannot ask for them; the project has to.
    required = {_name(text) for text in system.get("requires", [])}
    return {_name(text) for text in wheels} <= required


def _name(requirement: str) -> str:
    try:
        return canonicalize_name(Requirement(requirement).name)
    except InvalidRequirement:
        return re.split(r"[^\w.-]", requirement)[0]


def sysroot_line(toolchain: RustToolchain, tools: CudaTools) -> Line:
    """Whether `core` for the GPU is there already."""
    if sysroot.is_cached(toolchain, tools.libdevice):
        return Line("core", "ok", "core for the GPU is in the cache")
    return Line("core", "note", "the first build makes core for the GPU, which takes half a minute")
