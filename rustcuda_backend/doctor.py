"""Says what a build would use here, what is missing, and what mends it."""

from __future__ import annotations

import importlib.metadata
import platform
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rustcuda_backend import cache, doctor_oxide, gpu, llvm_tools, plan
from rustcuda_backend.artefact import read_artefact
from rustcuda_backend.capability import Capability, parse_list
from rustcuda_backend.crate import crate_directory
from rustcuda_backend.cuda import CudaTools
from rustcuda_backend.cuda_versions import cuda_version
from rustcuda_backend.diagnosis import Line
from rustcuda_backend.doctor_oxide import OxideLook
from rustcuda_backend.doctor_tools import cargo_lines, cuda_lines, rust_lines, sysroot_line
from rustcuda_backend.errors import RustcudaError
from rustcuda_backend.plan import CapabilityList
from rustcuda_backend.project import read_project
from rustcuda_backend.rust import RustToolchain
from rustcuda_backend.settings import Settings
from rustcuda_backend.version import VERSION


def examine(
    project: Path, config: Sequence[str], environ: Mapping[str, str], *, isolated: bool = True
) -> list[Line]:
    """Looks at everything that a build needs, inside a project or outside of any.

    Args:
        project: The folder of pyproject.toml.
        config: Config settings, as `key=value`.
        environ: The environment.
        isolated: Whether builds are isolated, as pip's are by default.
    """
    lines = [Line("backend", "ok", f"rustcuda-backend {VERSION}, Python {platform.python_version()}")]
    settings, found = _project(project, config, environ)
    lines += found
    crates, found = _crates(project, settings)
    lines += found
    # Outside a project, and where its settings are wrong, the defaults have to do.
    settings = settings or Settings()
    tools_found, tools = cuda_lines(settings, project, environ, isolated=isolated)
    compiled = all(each.kernels for each in settings.of_each_crate())
    for each, directory in crates or ([] if compiled else [(settings, project)]):
        oxide = doctor_oxide.look(each, directory, tools.libdevice if tools else None, environ)
        lines += oxide.lines
        rust_found, toolchain = (
            ([], oxide.toolchain) if oxide.applies else rust_lines(each, directory, environ)
        )
        lines += [line for line in rust_found if line not in lines]
        if toolchain:
            own = [directory] if crates else []
            lines += [line for line in cargo_lines(toolchain, own, environ) if line not in lines]
            lines += [sysroot_line(toolchain, tools)] if tools and not oxide.applies else []
        if crates:
            lines += _capabilities(each, toolchain, tools, oxide, environ)
    artefacts = [each for each in settings.of_each_crate() if each.kernels]
    for each in artefacts:
        lines += _embedded(project, each, tools, environ)
    built = [*(each for each, _ in crates), *artefacts]
    lines += [*tools_found, _cache(), *_gpus(settings, built, environ), *_packages()]
    return list(dict.fromkeys(lines))


def _problem(topic: str, error: RustcudaError) -> Line:
    return Line(topic, "missing", f"{error.what} ({error.where})" if error.where else error.what, error.hint)


def _project(
    project: Path, config: Sequence[str], environ: Mapping[str, str]
) -> tuple[Settings | None, list[Line]]:
    try:
        settings = read_project(project, config, environ)
    except RustcudaError as error:
        return None, [_problem("project", error)]
    if settings is None:
        return None, [Line("project", "note", f"there is none in {project}; a build with default settings:")]
    sources = ", ".join(
        f"crate {each.crate}" if each.crate else f"kernels of {each.kernels}"
        for each in settings.of_each_crate()
    )
    return settings, [Line("project", "ok", f"{project}, {sources}, CUDA {settings.cuda_version}")]


def _crates(project: Path, settings: Settings | None) -> tuple[list[tuple[Settings, Path]], list[Line]]:
    """Each crate that is there, with its settings and folder."""
    crates, lines = [], []
    for each in settings.of_each_crate() if settings else ():
        if not each.crate:
            continue  # already compiled
        try:
            crates.append((each, crate_directory(project, each)))
        except RustcudaError as error:
            lines.append(_problem("crate", error))
    return crates, lines


def _embedded(
    project: Path, settings: Settings, tools: CudaTools | None, environ: Mapping[str, str]
) -> Iterator[Line]:
    """Kernels that are already compiled, and whether they serve the capabilities."""
    try:
        found = read_artefact(project, settings)
    except RustcudaError as error:
        yield _problem("kernels", error)
        return
    known = ", ".join(each.capability.name for each in found.found)
    yield Line("kernels", "ok", f"{found.path}, package {found.package}, PTX for {known}")
    try:
        listed = plan.choose_capabilities(settings, environ)
        warnings = plan.check_capabilities(listed, None, tools) if tools else []
        for each in listed.capabilities:
            found.best_for(each)
    except RustcudaError as error:
        yield _problem("capabilities", error)
        return
    yield from _listed(listed, warnings)


def _capabilities(
    settings: Settings,
    toolchain: RustToolchain | None,
    tools: CudaTools | None,
    oxide: OxideLook,
    environ: Mapping[str, str],
) -> Iterator[Line]:
    try:
        listed = plan.choose_capabilities(settings, environ)
        stock = None if oxide.applies else toolchain
        warnings = plan.check_capabilities(listed, stock, tools) if toolchain and tools else []
        if oxide.llvm:
            llvm_tools.check_capabilities(oxide.llvm, listed.capabilities, listed.source)
    except RustcudaError as error:
        yield _problem("capabilities", error)
        return
    yield from _listed(listed, warnings)


def _listed(listed: CapabilityList, warnings: Sequence[str]) -> Iterator[Line]:
    names = " ".join(str(capability) for capability in listed.capabilities)
    yield Line("capabilities", "ok", f"{names} from {listed.source}")
    for warning in warnings:
        yield Line("capabilities", "warning", warning)


def _cache() -> Line:
    folder = cache.directory()
    try:
        # No question of rights: root has them all in /proc, where no folder can be made.
        with tempfile.TemporaryDirectory(dir=next(filter(_is_there, (folder, *folder.parents)))):
            return Line("cache", "ok", str(folder))
    except OSError:
        pass
    return Line(
        "cache",
        "missing",
        f"the cache folder {folder} cannot be written",
        f"set {cache.DIRECTORY_VARIABLE} to a folder that can be written",
    )


def _is_there(path: Path) -> bool:
    """Whether there is something, also a link that leads nowhere."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _gpus(settings: Settings, built: Sequence[Settings], environ: Mapping[str, str]) -> Iterator[Line]:
    found, problem = gpu.present_gpus(environ)
    if not found:
        first, *_ = problem.splitlines()
        yield Line("GPU", "note", f"{first}; a build needs none, kernels run only where there is one")
    lists = []
    for each in built:
        try:
            lists.append(plan.choose_capabilities(each, environ))
        except RustcudaError:  # noqa: PERF203
            continue  # said already
    for present in found:
        yield _driver(present, settings)
        for listed in lists:
            yield from _served(present, listed)


def _driver(present: gpu.Gpu, settings: Settings) -> Line:
    shown = f"{present.name}, capability {present.capability}, driver {present.driver}"
    major, minor = (int(number) for number in present.capability.split("."))
    floor = cuda_version(settings.cuda_version).driver_floor(Capability(major, minor)).branch
    needs = f"kernels of CUDA {settings.cuda_version} need {floor}"
    if int(present.driver.partition(".")[0]) >= floor:
        return Line("GPU", "ok", f"{shown}; {needs}")
    return Line(
        "GPU", "warning", f"{shown}: too old, {needs}", f"update NVIDIA's driver to branch {floor} or newer"
    )


def _served(present: gpu.Gpu, listed: CapabilityList) -> Iterator[Line]:
    """Whether a capability list has code for a GPU."""
    try:
        (own,) = parse_list(present.capability)
    except RustcudaError as error:
        yield Line("GPU", "warning", f"{present.name}: {error.what}")
        return
    if any(_runs(capability, own) for capability in listed.capabilities):
        return
    names = ";".join(str(capability) for capability in listed.capabilities)
    yield Line(
        "GPU",
        "warning",
        f"the capabilities from {listed.source} have no code for this GPU",
        f'capabilities = "{names};{own.name}"',
    )


def _runs(built: Capability, own: Capability) -> bool:
    if built.suffix == "a":
        return built.base == own.base
    if built.major == own.major and built.minor <= own.minor:
        return True
    return built.ptx and not built.suffix and built.base <= own.base


def _packages() -> Iterator[Line]:
    """What launches use if it is installed; read from its metadata, since importing torch takes seconds."""
    for name in ("torch", "cuda-bindings"):
        try:
            yield Line("Python", "note", f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:  # noqa: PERF203
            yield Line("Python", "note", f"{name} is not installed; a build does not need it")
