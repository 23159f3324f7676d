"""Runs the plan: compile, assemble, pack, generate. All output is in memory until all of it is there."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

from rustcuda_backend import cache, cuda, elf, launch_bounds, plan, preparation, process
from rustcuda_backend.assembly import assembled
from rustcuda_backend.build_lock import alone_in
from rustcuda_backend.capability import Capability
from rustcuda_backend.compilers import Compiler, Pass
from rustcuda_backend.constants import ConstantSymbol
from rustcuda_backend.cubin import Cubin
from rustcuda_backend.cuda import CudaTools
from rustcuda_backend.cuda_versions import cuda_version
from rustcuda_backend.errors import SignatureError
from rustcuda_backend.loader.content import LoaderContent
from rustcuda_backend.loader.generate import GeneratedLoader, generate
from rustcuda_backend.loader.names import check_names, reserved_names
from rustcuda_backend.plan import CapabilityList, Plan
from rustcuda_backend.ptx import PtxModule
from rustcuda_backend.report import Report
from rustcuda_backend.settings import CONTAINERS, Settings
from rustcuda_backend.signature import KernelSignature
from rustcuda_backend.version import VERSION

_WAIT_SECONDS = 0.2


@dataclass(frozen=True)
class Image:
    """The outcome of one pass: the PTX, and the cubin that ptxas made of it."""

    ptx: PtxModule
    cubin: Cubin


@dataclass(frozen=True)
class Kernels:
    """All that a build makes, ready to be written beside each other.

    Attributes:
        loader: The generated module and its stub.
        fatbin: The code for all capabilities.
        container: The kind of file that carries it.
        sources: The files that they were compiled from; see `Compiler.sources`.
    """

    loader: GeneratedLoader
    fatbin: bytes
    container: str = "fatbin"
    # Kernels are the same wherever they were compiled.
    sources: frozenset[Path] = field(default=frozenset(), compare=False)

    def files(self, name: str) -> dict[str, bytes]:
        """File contents by file name, for a module called `name` (its last part)."""
        return {
            f"{name}.py": self.loader.python.encode(),
            f"{name}.pyi": self.loader.stub.encode(),
            name + CONTAINERS[self.container]: (
                elf.object_file(self.fatbin) if self.container == "elf" else self.fatbin
            ),
        }


def build_all(
    project: Path,
    crates: Sequence[tuple[str, Settings]],
    report: Report,
    environ: Mapping[str, str] = os.environ,
    *,
    editable: bool = False,
) -> list[Kernels]:
    """Builds several kernel crates, one after another, with what `build` takes for each.

    Args:
        project: The folder of pyproject.toml.
        crates: Dotted name of the module to generate, and the crate's settings.
        report: Where progress and the closing tables go.
        environ: The environment.
        editable: Whether the GPU that is present is the default capability.

    Raises:
        RustcudaError: Whatever the user has to mend.
    """
    # Mistakes in the last crate's settings are said before the first one is compiled.
    for _, settings in crates:
        preparation.check_source(project, settings)
        plan.choose_capabilities(settings, environ, editable=editable)
    several = len(crates) > 1
    return [
        build(project, module, settings, report, environ, editable=editable, several=several)
        for module, settings in crates
    ]


def build(
    project: Path,
    module: str,
    settings: Settings,
    report: Report,
    environ: Mapping[str, str] = os.environ,
    *,
    editable: bool = False,
    several: bool = False,
) -> Kernels:
    """Builds the kernels of a project.

    Args:
        project: The folder of pyproject.toml.
        module: Dotted name of the module to generate.
        settings: The project's settings.
        report: Where progress and the closing table go.
        environ: The environment.
        editable: Whether the GPU that is present is the default capability.
        several: Whether this is one of several crates, whose tables must say which they are of.

    Raises:
        RustcudaError: Whatever the user has to mend.
    """
    with process.ending_children():
        preparation.check_source(project, settings)
        listed = plan.choose_capabilities(settings, environ, editable=editable)
        version = cuda_version(settings.cuda_version, where=settings.where("cuda_version"))
        prepared = preparation.prepare(settings, project, version, listed, report, environ)
        tools = prepared.cuda
        work = plan.make_plan(listed, prepared.directory, settings, environ)
        count = f"{len(work.passes)} capabilities" if len(work.passes) > 1 else "one capability"
        report.note(f"{prepared.package}: {count} from {listed.source}, {work.jobs} at a time")
        compiler = prepared.make(work.cargo_jobs)
        with alone_in(prepared.directory, report):
            images = _run_passes(work, compiler, tools, settings, report, prepared.name if several else "")
            sources = frozenset().union(*map(compiler.sources, work.passes))
        signatures = merge_signatures([image.ptx for image in images])
        for warning in launch_bounds.without_room(
            (signature, image.ptx.capability) for image in images for signature in image.ptx.signatures
        ):
            report.warn(warning)
        fatbin = cuda.pack(
            tools,
            [image.cubin for image in images],
            [image.ptx for image in images if image.ptx.capability.ptx],
        )
        report.step(f"packed {len(fatbin)} bytes")
        loader = generate(_loader_content(module, signatures, images, tools, fatbin, settings.container))
        if several:
            report.note(f"{prepared.package} in {module}:")
        _closing_table(report, listed, images, prepared.why, compiler, tools)
        return Kernels(loader, fatbin, settings.container, sources)


def _run_passes(
    work: Plan, compiler: Compiler, tools: CudaTools, settings: Settings, report: Report, name: str
) -> list[Image]:
    """Runs the passes side by side; the first failure ends the others."""
    report.expect(2 * len(work.passes) + 1)
    reserved_names()  # before the threads, which all need them
    compiled: list[PtxModule] = []
    # With a core for each pass, all of them are done as soon as the first one alone would be.
    if work.jobs < len(work.passes) and compiler.worth_sharing(work.passes):
        compiled.append(_compile(work.passes[0], compiler, report))
        compiler.share(work.passes[0], work.passes[1:])

    def run(index: int) -> Image:
        build_pass = work.passes[index]
        module = compiled[index] if index < len(compiled) else _compile(build_pass, compiler, report)
        # Crates of one workspace share the passes' folders.
        sm = build_pass.capability.sm
        kept = build_pass.directory / (f"{name}-{sm}.ptx" if name else f"{sm}.ptx")
        return _assemble(module, kept, tools, settings, report)

    with ThreadPoolExecutor(work.jobs) as pool:
        try:
            futures = [pool.submit(run, index) for index in range(len(work.passes))]
            pending = set(futures)
            while pending:
                # With a limit: a Ctrl-C that comes just before a wait is noticed only after it.
                done, pending = wait(pending, _WAIT_SECONDS, FIRST_EXCEPTION)
                for future in done:
                    future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            process.end_all()
            raise
    return [future.result() for future in futures]


def _compile(build_pass: Pass, compiler: Compiler, report: Report) -> PtxModule:
    started = time.monotonic()
    module = compiler.compile(build_pass)
    check_names(module.signatures, module.constants)
    report.step(f"{build_pass.capability.sm} compiled in {time.monotonic() - started:.1f} s")
    return module


def _assemble(module: PtxModule, kept: Path, tools: CudaTools, settings: Settings, report: Report) -> Image:
    started = time.monotonic()
    own = (*(("-lineinfo",) if settings.lineinfo else ()), *module.ptxas_arguments)
    arguments = (*dict.fromkeys(own), *settings.ptxas_args)
    # Also where the cubin comes from the cache: people read it.
    cache.write_atomically(kept, module.text.encode())
    cubin = assembled(module, tools, arguments, kept)
    for message in cubin.messages:
        report.once(message)
    report.step(f"{module.capability.sm} assembled in {time.monotonic() - started:.1f} s")
    return Image(module, cubin)


def merge_signatures(modules: Sequence[PtxModule]) -> tuple[KernelSignature, ...]:
    """The union of all capabilities' kernels, in order of their names.

    Raises:
        SignatureError: One name has two signatures.
    """
    union: dict[str, tuple[KernelSignature, Capability]] = {}
    for module in modules:
        for signature in module.signatures:
            known, capability = union.setdefault(signature.name, (signature, module.capability))
            if known.parameters != signature.parameters:
                raise SignatureError(
                    f"kernel '{signature.name}' has other parameters for {module.capability.name} "
                    f"than for {capability.name}",
                    hint="give them the same parameters, or different names",
                )
    return tuple(union[name][0] for name in sorted(union))


def merge_constants(modules: Sequence[PtxModule]) -> tuple[ConstantSymbol, ...]:
    """The union of all capabilities' constant memory, in order of the names.

    Raises:
        SignatureError: One name has two types.
    """
    union: dict[str, tuple[ConstantSymbol, Capability]] = {}
    for module in modules:
        for symbol in module.constants:
            known, capability = union.setdefault(symbol.name, (symbol, module.capability))
            if (known.rust_type, known.size) != (symbol.rust_type, symbol.size):
                raise SignatureError(
                    f"the constant '{symbol.name}' has another type for {module.capability.name} "
                    f"than for {capability.name}",
                    hint="give them the same type, or different names",
                )
    return tuple(union[name][0] for name in sorted(union))


def _loader_content(
    module: str,
    signatures: tuple[KernelSignature, ...],
    images: Sequence[Image],
    tools: CudaTools,
    fatbin: bytes,
    container: str,
) -> LoaderContent:
    lacking = {}
    for signature in signatures:
        without = tuple(
            image.ptx.capability
            for image in images
            if signature.name not in {kernel.name for kernel in image.ptx.signatures}
        )
        if without:
            lacking[signature.name] = without
    return LoaderContent(
        module=module,
        signatures=signatures,
        lacking=lacking,
        capabilities=tuple(image.ptx.capability for image in images),
        version=tools.version,
        fatbin=fatbin,
        generator=f"rustcuda-backend {VERSION}",
        suffix=CONTAINERS[container],
        offset=elf.OFFSET if container == "elf" else 0,
        constants=merge_constants([image.ptx for image in images]),
    )


def _closing_table(
    report: Report,
    listed: CapabilityList,
    images: Sequence[Image],
    why: str,
    compiler: Compiler,
    tools: CudaTools,
) -> None:
    rows = []
    for image in images:
        kernels = image.cubin.kernels
        rows.append(
            [
                image.cubin.capability.name,
                "SASS",
                str(len(kernels)),
                str(max(kernel.registers for kernel in kernels)),
                str(sum(kernel.spill_stores + kernel.spill_loads for kernel in kernels)),
                str(max(kernel.shared for kernel in kernels)),
                str(tools.version.driver_floor(image.cubin.capability).branch),
            ]
        )
        if image.ptx.capability.ptx:
            floor = str(tools.version.driver_floor(image.ptx.capability).branch)
            rows.append([image.ptx.capability.name, "PTX", str(len(kernels)), "-", "-", "-", floor])
    header = ("capability", "image", "kernels", "registers", "spills (B)", "shared (B)", "driver from")
    report.table(header, rows)
    report.note(f"capabilities: {listed.source}")
    report.note(f"compiler: {why}")
    for line in compiler.used():
        report.note(line)
    report.note(f"ptxas {tools.ptxas_version} ({tools.ptxas}; {tools.source})")
