"""From settings to a compiler that is ready: which one it is, its tools, and the crate as it takes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rustcuda_backend import cuda, llvm_tools, oxide_environ, oxide_tools, plan, sysroot, toolchain_pin
from rustcuda_backend.artefact import artefact_path, read_artefact
from rustcuda_backend.compilers import Compiler, cuda_oxide
from rustcuda_backend.compilers.choice import Choice, choose
from rustcuda_backend.compilers.cuda_oxide import CudaOxideCompiler
from rustcuda_backend.compilers.embedded import EmbeddedCompiler
from rustcuda_backend.compilers.nvptx import NvptxCompiler
from rustcuda_backend.crate import Crate, crate_directory, load_crate, load_crate_as_it_stands
from rustcuda_backend.cuda import CudaTools
from rustcuda_backend.cuda_versions import CudaVersion
from rustcuda_backend.device_crates import make_ignored
from rustcuda_backend.oxide_tools import Backend
from rustcuda_backend.plan import CapabilityList
from rustcuda_backend.report import Report
from rustcuda_backend.rust import RustToolchain, find_toolchain
from rustcuda_backend.rustflags import user_rustflags
from rustcuda_backend.settings import Settings


@dataclass(frozen=True)
class Prepared:
    """What kernels are made from, and what compiles it.

    Attributes:
        package: The cargo package, for messages.
        name: Its name in file names.
        directory: Where each pass gets a folder of its own.
        cuda: NVIDIA's tools.
        why: Which compiler, and what decided, for messages.
        make: Makes the compiler, for a number of rustc's that each pass may run at once.
    """

    package: str
    name: str
    directory: Path
    cuda: CudaTools
    why: str
    make: Callable[[int], Compiler]


@dataclass(frozen=True)
class _Given:
    """What a build is given."""

    settings: Settings
    directory: Path
    version: CudaVersion
    listed: CapabilityList
    report: Report
    environ: Mapping[str, str]

    def cuda_tools(self) -> CudaTools:
        return cuda.find_tools(self.version, ptxas=self.settings.ptxas, environ=self.environ)

    def check(self, toolchain: RustToolchain, tools: CudaTools, *, stock: bool) -> None:
        if warning := toolchain_pin.overruled(toolchain, self.directory):
            self.report.warn(warning)
        for warning in plan.check_capabilities(self.listed, toolchain if stock else None, tools):
            self.report.warn(warning)

    def warn_of_places(self, crate: Crate) -> None:
        if crate.outside and "SOURCE_DATE_EPOCH" in self.environ:
            self.report.warn(
                f"the wheel depends on this folder's name, by {', '.join(crate.outside)}: crates that are "
                f"outside the cargo workspace {crate.workspace}; put a workspace around all of them"
            )


def check_source(project: Path, settings: Settings) -> None:
    """Makes sure that what kernels are made from is there, without asking cargo.

    Raises:
        SettingsError: It is not, or lies outside the project.
    """
    if settings.kernels:
        artefact_path(project, settings)
    else:
        crate_directory(project, settings)


def prepare(
    settings: Settings,
    project: Path,
    version: CudaVersion,
    listed: CapabilityList,
    report: Report,
    environ: Mapping[str, str],
) -> Prepared:
    """Chooses the compiler, finds its tools, and reads the crate; or reads what is already compiled.

    Args:
        settings: The project's settings.
        project: The folder of pyproject.toml.
        version: The CUDA version asked for.
        listed: The capabilities to build for.
        report: Where notes and warnings go.
        environ: The environment.

    Raises:
        RustcudaError: Something is missing or wrong.
    """
    if settings.kernels:
        return _for_embedded(_Given(settings, project, version, listed, report, environ))
    directory = crate_directory(project, settings)
    given = _Given(settings, directory, version, listed, report, environ)
    choice = choose(settings, directory, environ)
    return _for_cuda_oxide(given, choice, choice.backend) if choice.backend else _for_nvptx(given, choice)


def _for_embedded(given: _Given) -> Prepared:
    embedded = read_artefact(given.directory, given.settings)
    tools = given.cuda_tools()
    for warning in (*embedded.warnings, *plan.check_capabilities(given.listed, None, tools)):
        given.report.warn(warning)
    for capability in given.listed.capabilities:
        embedded.best_for(capability)  # or says why there is none
    directory = given.directory / "target" / "rustcuda"
    make_ignored(directory)
    return Prepared(
        embedded.package,
        embedded.package.replace("-", "_"),
        directory,
        tools,
        f"none ({embedded.where}: cuda-oxide has compiled them)",
        lambda _: EmbeddedCompiler(embedded, given.report),
    )


def _for_nvptx(given: _Given, choice: Choice) -> Prepared:
    settings, directory, report, environ = given.settings, given.directory, given.report, given.environ
    toolchain = find_toolchain(settings.toolchain, directory, environ)
    tools = given.cuda_tools()
    given.check(toolchain, tools, stock=True)
    crate = load_crate(directory, settings, toolchain, {**environ, "RUSTC": str(toolchain.rustc)})
    if crate.device_only:
        report.note(
            f"{crate.package} is written for cuda-oxide: its host part is cut away, "
            "and stock rustc compiles the rest"
        )
    given.warn_of_places(crate)

    def make(cargo_jobs: int) -> Compiler:
        if not sysroot.is_cached(toolchain, tools.libdevice):
            report.note(f"making core for the GPU, once for rustc {toolchain.version} (half a minute)")
        return NvptxCompiler(
            toolchain,
            sysroot.sysroot(toolchain, tools.libdevice),
            crate,
            settings,
            user_rustflags(toolchain, crate.directory, environ, settings.cargo_args),
            environ,
            cargo_jobs,
            report,
        ).with_library()

    return _prepared(crate, tools, choice, make)


def _for_cuda_oxide(given: _Given, choice: Choice, backend: Backend) -> Prepared:
    settings, directory, report, environ = given.settings, given.directory, given.report, given.environ
    tools = given.cuda_tools()
    oxide = oxide_tools.find_tools(backend, settings, directory, tools.libdevice, environ)
    toolchain = oxide.toolchain
    environ = oxide.config.completed(environ)
    oxide_environ.check_cargo(toolchain, directory, environ, settings.cargo_args)
    given.check(toolchain, tools, stock=False)
    llvm_tools.check_capabilities(oxide.llvm, given.listed.capabilities, given.listed.source)
    for warning in cuda_oxide.unsupported(settings):
        report.warn(warning)
    crate = load_crate_as_it_stands(
        directory, settings, toolchain, {**environ, "RUSTC": str(toolchain.rustc)}
    )
    report.note(f"{crate.package} is compiled by cuda-oxide: {choice.why}")
    given.warn_of_places(crate)

    def make(cargo_jobs: int) -> Compiler:
        flags = user_rustflags(
            toolchain, crate.directory, environ, settings.cargo_args, target=toolchain.host
        )
        return CudaOxideCompiler(oxide, crate, settings, flags, environ, cargo_jobs, report)

    return _prepared(crate, tools, choice, make)


def _prepared(crate: Crate, tools: CudaTools, choice: Choice, make: Callable[[int], Compiler]) -> Prepared:
    why = f"{choice.name} ({choice.why})"
    return Prepared(crate.package, crate.name, crate.passes_directory, tools, why, make)
