"""cuda-oxide as compiler: cargo with rustc's backend for GPUs, one call for each pass.

cargo is called directly, not `cargo oxide`, which touches sources and fetches what it lacks.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rustcuda_backend import (
    cache,
    cargo_failure,
    dep_info,
    oxide_environ,
    oxide_failure,
    oxide_kernels,
    process,
    ptx,
    ptx_outline,
    rustdoc,
)
from rustcuda_backend.capability import Capability
from rustcuda_backend.compilers import Pass, cargo_pass, copy_host_part, lacks_host_part
from rustcuda_backend.compilers.cargo_pass import CargoPass, Message
from rustcuda_backend.crate import Crate
from rustcuda_backend.device_crates import make_ignored
from rustcuda_backend.errors import CompileError
from rustcuda_backend.oxide_tools import OxideTools
from rustcuda_backend.ptx import PtxModule
from rustcuda_backend.report import Report
from rustcuda_backend.settings import Settings
from rustcuda_backend.signature import KernelSignature

# A wrapper that caches what rustc makes knows nothing of the PTX and leaves it out. cargo takes an empty
# variable for none, whatever its configuration says.
_NO_WRAPPERS = {"RUSTC_WRAPPER": "", "RUSTC_WORKSPACE_WRAPPER": ""}


@dataclass(frozen=True)
class CudaOxideCompiler:
    """Runs passes with cuda-oxide.

    Attributes:
        tools: The backend library, its Rust toolchain, LLVM's tools and libdevice.
        crate: The kernel crate.
        settings: The project's settings.
        rustflags: The user's own flags, which come before ours.
        environ: The environment for cargo, with what `.cargo/cuda-oxide.toml` adds to it.
        cargo_jobs: How many rustc's each pass may run at once.
        report: Where messages go.
    """

    tools: OxideTools
    crate: Crate
    settings: Settings
    rustflags: tuple[str, ...]
    environ: Mapping[str, str]
    cargo_jobs: int
    report: Report

    def used(self) -> Sequence[str]:
        """See `Compiler.used`."""
        tools = self.tools
        return (
            f"cuda-oxide {tools.backend.library} ({tools.backend.source})",
            f"rustc {tools.toolchain.version} ({tools.toolchain.rustc}; {tools.toolchain.source})",
            f"LLVM {tools.llvm.version} ({tools.llvm.llc}; {tools.llvm.source})",
        )

    def worth_sharing(self, passes: Sequence[Pass]) -> bool:
        """See `Compiler.worth_sharing`."""
        return self.crate.has_host_part and lacks_host_part(passes)

    def share(self, first: Pass, others: Sequence[Pass]) -> None:
        """See `Compiler.share`."""
        copy_host_part(first, others, self.tools.toolchain.host)

    def compile(self, build_pass: Pass) -> PtxModule:
        """Runs one pass; see `Compiler.compile`."""
        make_ignored(self.crate.passes_directory)
        kept = self._compiled(build_pass)
        raw = kept.read_text(encoding="utf-8", errors="replace")
        self._check(raw, kept, build_pass.capability)
        named = oxide_kernels.with_stable_names(raw)
        if named.warning:
            self.report.warn(named.warning)
        described = self._describe(build_pass, kept)
        module = oxide_kernels.finish(named.text, build_pass.capability, described)
        self._check_kernels(module, described)
        return dataclasses.replace(module, ptxas_arguments=cargo_pass.ptxas_arguments(self.settings))

    def sources(self, build_pass: Pass) -> frozenset[Path]:
        """See `Compiler.sources`."""
        folder = build_pass.directory / self.tools.toolchain.host
        found = dep_info.of_build(folder, self.settings.profile, self.crate.name)
        return dep_info.without(found, (self.crate.passes_directory,))

    def _compiled(self, build_pass: Pass) -> Path:
        """The PTX of the pass: written by this call, or kept with the library that cargo finds fresh.

        cargo does not know of the PTX. So it is written into an empty folder each time, and kept together
        with the time of the library that came with it.
        """
        kept = _kept(build_pass, self.crate.name)
        library = self._run_cargo(build_pass)
        if library["fresh"] and not _belongs(kept, library):
            shutil.rmtree(build_pass.directory / self.tools.toolchain.host)
            library = self._run_cargo(build_pass)
        if not _belongs(kept, library):
            raise oxide_failure.without_ptx(
                _ptx_folder(build_pass), self.crate, build_pass.capability, self._for_libdevice()
            )
        return kept

    def _run_cargo(self, build_pass: Pass) -> Message:
        """Compiles where anything has changed; returns cargo's message of the crate's library."""
        folder = _ptx_folder(build_pass)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        artifacts = self._cargo(build_pass, folder).compile(
            self._command(build_pass),
            is_own=self._is_own,
            is_noise=_is_count,
            failure=lambda said: oxide_failure.of_pass(
                said, build_pass.capability, self.crate, self.tools.backend, self.settings
            ),
        )
        library = [artifact for artifact in artifacts if self._is_own(artifact)][-1]
        made = {_name(artifact): artifact for artifact in artifacts} | {self.crate.name: library}
        for written in sorted(folder.glob("*.ptx")):
            self._keep(written, made.get(written.stem), build_pass)
        return library

    def _keep(self, written: Path, made: Message | None, build_pass: Pass) -> None:
        """Keeps the PTX of the crate, and that of a dependency which is a kernel crate of the wheel too.

        When the turn comes to that one, cargo finds it fresh, and nothing writes its PTX again.
        """
        beside = made is not None and cargo_pass.is_beside(made, self.crate, self.settings)
        if made and (beside or written.stem == self.crate.name):
            kept = _kept(build_pass, written.stem)
            _stamp_file(kept).unlink(missing_ok=True)
            written.replace(kept)
            cache.write_atomically(_stamp_file(kept), _stamp(made).encode())
        elif names := ptx_outline.kernels(written.read_text(encoding="utf-8", errors="replace")):
            self.report.warn(
                f"the dependency '{written.stem}' has kernels that are not in the wheel: "
                f"{', '.join(names)}; to have them, name its folder in [[tool.rustcuda.crates]]"
            )

    def _cargo(self, build_pass: Pass, folder: Path) -> CargoPass:
        variables = self._variables(build_pass, folder)
        toolchain, environ = self.tools.toolchain, self._environ()
        return CargoPass(toolchain, self.crate, self.settings, environ, variables, self.report)

    def _is_own(self, artifact: Message) -> bool:
        manifest = process.path(artifact["manifest_path"])
        return (
            manifest.resolve() == (self.crate.directory / "Cargo.toml").resolve()
            and _name(artifact) == self.crate.name
            and "custom-build" not in artifact["target"]["kind"]
        )

    def _check(self, raw: str, kept: Path, capability: Capability) -> None:
        if not ptx.is_whole(raw):
            _stamp_file(kept).unlink()  # so that the next build writes it anew
            raise CompileError(
                f"the PTX that cuda-oxide has written is cut off after {kept.stat().st_size} bytes",
                where=str(kept),
                hint="make room on this disk (df -h), then build again",
            )
        _, target = ptx.header(raw, where=str(kept))
        if target != capability.sm:
            raise oxide_failure.of_target(target, capability, self.crate)

    def _check_kernels(self, module: PtxModule, described: Mapping[str, KernelSignature]) -> None:
        there = {entry.name for entry in ptx.parse_entries(module.text)}
        if missing := [name for name in described if name not in there]:
            raise oxide_failure.kernels_missing(missing, self.crate, module.capability)
        odd = [name for name in module.unlaunchable if not oxide_kernels.is_instance(name)]
        if odd:
            names = ", ".join(odd)
            self.report.warn(f"kernels that Python cannot launch, for the types of their parameters: {names}")
        if not module.signatures:
            raise cargo_failure.no_kernels(self.crate, module.capability, odd)

    def _describe(self, build_pass: Pass, compiled: Path) -> dict[str, KernelSignature]:
        """What rustdoc knows of the kernels, called with the pass's own flags."""
        return self._cargo(build_pass, _ptx_folder(build_pass)).describe(
            (*self._cargo_arguments(build_pass), "--"),
            (*rustdoc.cfg_flags(self._user_flags()), *cargo_pass.cfg_flags(build_pass.capability)),
            compiled,
            build_pass.directory / self.tools.toolchain.host,
            oxide_kernels.find,
        )

    def _environ(self) -> dict[str, str]:
        """The environment without what would steer cuda-oxide from outside."""
        ignored = oxide_environ.ignored(self.environ)
        if ignored:
            self.report.warn(
                f"not passed on to cuda-oxide, the settings of [tool.rustcuda] decide: {', '.join(ignored)}"
            )
        return {name: value for name, value in self.environ.items() if name not in (*ignored, "RUSTFLAGS")}

    def _variables(self, build_pass: Pass, folder: Path) -> dict[str, str]:
        tools = self.tools
        libraries = self.environ.get("LD_LIBRARY_PATH")
        own = str(tools.toolchain.sysroot / "lib")
        flags = (*self._user_flags(), *self._flags(build_pass.capability))
        bootstrap = tools.toolchain.bootstrap(self.crate.graph)
        return {
            **cargo_pass.variables(tools.toolchain, bootstrap, self.environ, flags, build_pass),
            **_NO_WRAPPERS,
            # The backend library is linked to a library of rustc's.
            "LD_LIBRARY_PATH": os.pathsep.join([own, *([libraries] if libraries else [])]),
            "CUDA_OXIDE_PTX_DIR": str(folder),
            "CUDA_OXIDE_TARGET": build_pass.capability.sm,
            "CUDA_OXIDE_LLC": str(tools.llvm.llc),
            "CUDA_OXIDE_OPT": str(tools.llvm.opt),
            **{name: str(path) for name, path in self._for_libdevice().items()},
            **self._choices(),
        }

    def _for_libdevice(self) -> dict[str, Path]:
        """What cuda-oxide links libdevice's functions with; where one lacks, it writes no PTX at all."""
        return {
            "CUDA_OXIDE_LLVM_LINK": self.tools.llvm.llvm_link,
            "CUDA_OXIDE_LIBDEVICE": self.tools.libdevice,
        }

    def _choices(self) -> dict[str, str]:
        """cuda-oxide's variables for settings of ours; of NO_FMA the mere presence counts."""
        return {
            "CUDA_OXIDE_DEBUG": "line" if self.settings.lineinfo else "0",
            **({} if self.settings.fmad else {"CUDA_OXIDE_NO_FMA": "1"}),
        }

    def _user_flags(self) -> tuple[str, ...]:
        return (*self.tools.config.rustflags, *self.rustflags)

    def _flags(self, capability: Capability) -> Iterator[str]:
        yield f"-Zcodegen-backend={self.tools.backend.library}"
        if self.settings.profile != "dev":
            yield from ("-Copt-level=3", "-Cdebug-assertions=off")
        # This pass duplicates barriers into both arms of a branch.
        yield "-Zmir-enable-passes=-JumpThreading"
        # Functions of dependencies are compiled with the kernels, and from MIR.
        yield "-Zalways-encode-mir"
        yield "-Csymbol-mangling-version=v0"
        yield from cargo_pass.cfg_flags(capability)
        # cargo sees no change in a library or a variable; in a cfg it does.
        yield f'--cfg=cuda_oxide_internal_backend_identity="{_sha256(self.tools.backend.library)}"'
        yield f'--cfg=rustcuda_oxide="{self._identity()}"'
        for path, shown in self._private_paths():
            yield f"--remap-path-prefix={path}={shown}"

    def _identity(self) -> str:
        """A hash of all else that decides the PTX, and that is the same on every machine."""
        choices = (f"{name}={value}" for name, value in self._choices().items())
        deciding = oxide_environ.deciding(self.environ)
        return cache.digest(*self.tools.llvm.versions, _sha256(self.tools.libdevice), *choices, *deciding)

    def _private_paths(self) -> Iterator[tuple[Path, str]]:
        """Folders whose names must not get into a wheel, and what stands for them there."""
        yield from cargo_pass.private_paths(self.crate, self.environ)
        yield self.tools.toolchain.sysroot / "lib" / "rustlib" / "src" / "rust", "rust"

    def _command(self, build_pass: Pass) -> tuple[str | Path, ...]:
        return (
            *(self.tools.toolchain.cargo, "build", cargo_pass.message_format(self.report)),
            *self._cargo_arguments(build_pass),
        )

    def _cargo_arguments(self, build_pass: Pass) -> Iterator[str | Path]:
        yield from ("--target-dir", build_pass.directory, f"--jobs={self.cargo_jobs}")
        yield f"--bin={self.crate.program}" if self.crate.program else "--lib"
        # Without a target the flags would reach build scripts and proc macros too.
        yield from (f"--profile={self.settings.profile}", f"--target={self.tools.toolchain.host}")
        yield from self.crate.cargo_arguments
        yield from self.settings.cargo_args


def unsupported(settings: Settings) -> list[str]:
    """Warnings of settings that cuda-oxide has nothing for."""
    asked = [name for name in ("prec_div", "prec_sqrt") if not getattr(settings, name)]
    return [
        f"{settings.where(name)}: cuda-oxide has no such choice, f32 stays IEEE-rounded" for name in asked
    ]


def _sha256(path: Path) -> str:
    status = path.stat()
    return _sha256_of(path, status.st_size, status.st_mtime_ns)


@functools.cache  # every pass asks, and the library can be large
def _sha256_of(path: Path, _size: int, _time: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _ptx_folder(build_pass: Pass) -> Path:
    """Where cuda-oxide writes; nothing stays there."""
    return build_pass.directory / ".rustcuda-ptx"


def _kept(build_pass: Pass, crate: str) -> Path:
    """Where the PTX of a crate stays."""
    return build_pass.directory / f"{crate}.oxide.ptx"


def _name(artifact: Message) -> str:
    """The crate name of what cargo has made."""
    return str(artifact["target"]["name"]).replace("-", "_")


def _stamp_file(kept: Path) -> Path:
    return kept.with_name(f"{kept.name}-of")


def _stamp(library: Message) -> str:
    """What identifies one compilation of a crate, also as a dependency, which has another file name.

    cargo links and copies with the file's time.
    """
    files = [process.path(name) for name in library["filenames"]]
    made = [path for path in files if path.suffix != ".rmeta"]
    return "\n".join(f"{path.suffix} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in made)


def _belongs(kept: Path, library: Message) -> bool:
    """Whether kept PTX is of the compilation that cargo has found fresh."""
    stamp = _stamp_file(kept)
    return kept.is_file() and stamp.is_file() and stamp.read_text(encoding="utf-8") == _stamp(library)


def _is_count(message: Message) -> bool:
    """Whether a message only counts what every pass says again."""
    text: str = message["message"]
    return message["level"] == "warning" and text.endswith(" emitted")
