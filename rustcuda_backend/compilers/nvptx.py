"""Stock rustc as compiler: its NVPTX target, with one cargo call for each pass."""

from __future__ import annotations

import dataclasses
import filecmp
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rustcuda_backend import (
    cargo_failure,
    compatible,
    dep_info,
    device_library,
    finishing,
    process,
    ptx,
    rustdoc,
)
from rustcuda_backend.capability import Capability
from rustcuda_backend.compilers import Pass, cargo_pass, copy_host_part, lacks_host_part
from rustcuda_backend.compilers.cargo_pass import CargoPass, Message
from rustcuda_backend.crate import Crate
from rustcuda_backend.device_crates import make_ignored
from rustcuda_backend.device_library import DeviceLibrary
from rustcuda_backend.errors import CompileError
from rustcuda_backend.ptx import PtxModule
from rustcuda_backend.report import Report
from rustcuda_backend.rust import CRATE_FEATURES, TARGET, RustToolchain
from rustcuda_backend.settings import Settings
from rustcuda_backend.signature import KernelSignature

# rustc warns of this in every crate; the flag is ours, so the warning is nobody's business.
_OWN_WARNINGS = ("unstable feature specified for `-Ctarget-feature`",)


@dataclass(frozen=True)
class NvptxCompiler:
    """Runs passes with stock rustc.

    Attributes:
        toolchain: rustc and cargo.
        sysroot: Our sysroot for it.
        crate: The kernel crate.
        settings: The project's settings.
        rustflags: The user's own flags, which come before ours.
        environ: The environment for cargo.
        cargo_jobs: How many rustc's each pass may run at once.
        report: Where messages go.
        library: The device crate in the cache; None where cargo compiles it.
    """

    toolchain: RustToolchain
    sysroot: Path
    crate: Crate
    settings: Settings
    rustflags: tuple[str, ...]
    environ: Mapping[str, str]
    cargo_jobs: int
    report: Report
    library: DeviceLibrary | None = None

    def with_library(self) -> NvptxCompiler:
        """The same, which takes the device crate from the cache if it can."""
        # Flags of the user's may mean anything to it.
        if "rustcuda_device" not in self.crate.graph or self.rustflags:
            return self
        arguments = (*self._what(), f"--target-dir={self.crate.passes_directory}")
        environ = {**self.environ, "RUSTC": str(self.toolchain.rustc)}
        library = device_library.find(self.toolchain, self.crate.directory, arguments, environ)
        return dataclasses.replace(self, library=library)

    def used(self) -> Sequence[str]:
        """See `Compiler.used`."""
        return (f"rustc {self.toolchain.version} ({self.toolchain.rustc}; {self.toolchain.source})",)

    def worth_sharing(self, passes: Sequence[Pass]) -> bool:
        """See `Compiler.worth_sharing`."""
        return self.crate.has_host_part and lacks_host_part(passes)

    def share(self, first: Pass, others: Sequence[Pass]) -> None:
        """See `Compiler.share`."""
        copy_host_part(first, others, TARGET)

    def compile(self, build_pass: Pass) -> PtxModule:
        """Runs one pass; see `Compiler.compile`."""
        make_ignored(self.crate.passes_directory)
        artifacts = self._run_cargo(build_pass)
        if self.library and not all(map(self.library.was_right, artifacts)):
            return dataclasses.replace(self, library=None).compile(build_pass)
        compiled = _emitted(artifacts, self.crate.name)
        raw = _whole_text(compiled)
        if raw is None:
            # cargo does not know of the PTX, so it misses neither a lost one nor the rest of one.
            shutil.rmtree(build_pass.directory / TARGET)
            artifacts = self._run_cargo(build_pass)
            compiled = _emitted(artifacts, self.crate.name)
            raw = _whole_text(compiled)
        if raw is None:
            raise _no_ptx(compiled)
        self._warn_of_left_out_kernels(artifacts, raw)
        described = self._describe(build_pass, compiled) if finishing.has_plain_kernels(raw) else {}
        module = finishing.finish(raw, build_pass.capability, described)
        if module.unlaunchable:
            names = ", ".join(module.unlaunchable)
            self.report.warn(f"kernels that Python cannot launch, for the types of their parameters: {names}")
        if not module.signatures:
            raise cargo_failure.no_kernels(self.crate, build_pass.capability, module.unlaunchable)
        return dataclasses.replace(module, ptxas_arguments=cargo_pass.ptxas_arguments(self.settings))

    def sources(self, build_pass: Pass) -> frozenset[Path]:
        """See `Compiler.sources`."""
        found = dep_info.of_build(build_pass.directory / TARGET, self.settings.profile, self.crate.name)
        made = (self.crate.passes_directory, self.crate.workspace / "target" / "rustcuda")
        return dep_info.without(found, made)

    def _run_cargo(self, build_pass: Pass) -> list[Message]:
        """Compiles where anything has changed; returns what cargo made or found fresh."""
        return self._cargo(build_pass).compile(
            self._command(build_pass),
            is_own=_is_library,
            is_noise=_is_noise,
            failure=lambda said: cargo_failure.of_pass(
                said, build_pass.capability, self.crate, self.settings
            ),
        )

    def _cargo(self, build_pass: Pass) -> CargoPass:
        variables = self._variables(build_pass)
        return CargoPass(self.toolchain, self.crate, self.settings, self.environ, variables, self.report)

    def _warn_of_left_out_kernels(self, artifacts: Sequence[Message], raw: str) -> None:
        """Warns of kernels in dependencies that are not in the PTX: rustc links only named crates."""
        for artifact in artifacts:
            left_out = [name for name in _recorded_kernels(artifact) if f".entry {name}(" not in raw]
            if left_out and not cargo_pass.is_beside(artifact, self.crate, self.settings):
                crate = artifact["target"]["name"].replace("-", "_")
                self.report.warn(
                    f"the dependency '{crate}' has kernels that are not in the wheel: {', '.join(left_out)}; "
                    f"to have them, name it in {self.crate.name}: use {crate} as _;"
                )

    def _describe(self, build_pass: Pass, compiled: Path) -> dict[str, KernelSignature]:
        """What rustdoc knows of the kernels, called with the pass's own flags."""
        return self._cargo(build_pass).describe(
            (*self._cargo_arguments(build_pass), "--", *self._crate_flags()),
            (*rustdoc.cfg_flags(self.rustflags), *self._rustc_flags(build_pass.capability)),
            compiled,
            build_pass.directory / TARGET,
        )

    def _variables(self, build_pass: Pass) -> dict[str, str]:
        bootstrap = self.toolchain.bootstrap(self.crate.graph)
        if self.crate.linked:
            bootstrap = {"RUSTC_BOOTSTRAP": "1"}  # nothing less lets cargo take flags for single crates
        flags = (*self.rustflags, *self._rustc_flags(build_pass.capability))
        return cargo_pass.variables(self.toolchain, bootstrap, self.environ, flags, build_pass)

    def _rustc_flags(self, capability: Capability) -> Iterator[str]:
        code_flags = tuple(self._code_flags(capability))
        yield from code_flags
        if self.library:
            yield from self.library.flags(code_flags)
        for path, shown in self._private_paths():
            yield f"--remap-path-prefix={path}={shown}"

    def _code_flags(self, capability: Capability) -> Iterator[str]:
        """The flags that decide the code; they name nothing of the project."""
        yield f"--sysroot={self.sysroot}"
        yield f"-Ctarget-cpu={capability.sm}"
        if feature := _ptx_feature(capability):
            yield f"-Ctarget-feature={feature}"
        yield from cargo_pass.cfg_flags(capability)
        given = " ".join(self.rustflags)
        for option, setting in self._llvm_options():
            # LLVM takes each option once; the user's own comes first.
            if option not in given:
                yield f"-Cllvm-args={option}={setting}"
        if self.toolchain.numbers >= (1, 99):
            # The sysroot's core is compiled for another target-cpu. As bitcode it takes on the kernels' own,
            # but rustc from 1.99 on compares the two.
            yield "-Cunsafe-allow-abi-mismatch=target-cpu"
        # This pass duplicates barriers into both arms of a branch.
        yield "-Zmir-enable-passes=-JumpThreading"
        for path, shown in self._places_of_core():
            yield f"--remap-path-prefix={path}={shown}"

    def _llvm_options(self) -> Iterator[tuple[str, int]]:
        # rustc writes mul.rn and add.rn, which ptxas may not contract; level 2 is nvcc's default.
        yield "-nvptx-fma-level", 2 if self.settings.fmad else 0
        if not self.settings.prec_div:
            yield "-nvptx-prec-divf32", 1
        if not self.settings.prec_sqrt:
            yield "-nvptx-prec-sqrtf32", 0
        # An array that a loop indexes is in registers only once the loop is unrolled. LLVM's own limit of
        # 300 instructions is too small for a matrix product's tile; CUDA C++ has `#pragma unroll` for it.
        yield "-unroll-threshold", 4000

    def _private_paths(self) -> Iterator[tuple[Path | str, str]]:
        """Folders whose names must not get into a wheel, and what stands for them there."""
        for package in self.crate.device_only:
            yield f"{package}/{compatible.TO_WORKSPACE}", "."
        yield from cargo_pass.private_paths(self.crate, self.environ)

    def _places_of_core(self) -> Iterator[tuple[Path, str]]:
        yield self.sysroot, "sysroot"
        yield self.toolchain.sysroot / "lib" / "rustlib" / "src" / "rust", "rust"

    def _command(self, build_pass: Pass) -> tuple[str | Path, ...]:
        return (
            *(self.toolchain.cargo, "rustc", "--crate-type=staticlib"),
            cargo_pass.message_format(self.report),
            *self._cargo_arguments(build_pass),
            *("--", "--emit=asm", *self._crate_flags()),
        )

    def _cargo_arguments(self, build_pass: Pass) -> Iterator[str | Path]:
        yield from ("--target-dir", build_pass.directory, f"--jobs={self.cargo_jobs}")
        yield from self._what()

    def _what(self) -> Iterator[str]:
        """cargo's arguments that say what is compiled."""
        profile = self.settings.profile
        debug = '"line-directives-only"' if self.settings.lineinfo else "false"
        yield from ("--lib", f"--profile={profile}", f"--target={TARGET}")
        yield from self.crate.cargo_arguments
        for package in self.crate.device_only[1:]:
            flags = json.dumps([*_crate_attributes(declares_no_std=False), *_device_only()])
            yield from ("-Zprofile-rustflags", "--config")
            yield f"profile.{profile}.package.{json.dumps(package)}.rustflags={flags}"
        for override in ('lto="fat"', "codegen-units=1", 'panic="abort"', f"debug={debug}"):
            yield from ("--config", f"profile.{profile}.{override}")
        yield from self.settings.cargo_args

    def _crate_flags(self) -> tuple[str, ...]:
        """Flags for the kernel crate alone, not for its dependencies."""
        return (
            *_crate_attributes(self.crate.declares_no_std),
            *(_device_only(self.crate.linked) if self.crate.device_only else ()),
        )


def _crate_attributes(declares_no_std: bool) -> Iterator[str]:
    yield f"-Zcrate-attr=feature({','.join(CRATE_FEATURES)})"
    if not declares_no_std:
        # Twice it would be an unused attribute, which the crate may deny.
        yield "-Zcrate-attr=no_std"
    yield from ("-Aduplicate_features", "-Aunused_features", "-Ainternal_features")


def _device_only(linked: Sequence[str] = ()) -> Iterator[str]:
    """What cuts the host part out of a crate written for cuda-oxide.

    Args:
        linked: Crates to be linked although perhaps only the host part names them.
    """
    yield "-Zcrate-attr=feature(custom_inner_attributes,prelude_import,proc_macro_hygiene)"
    yield f"-Zcrate-attr=cuda_device::device_only({','.join(linked)})"
    # Much is unused without the host part.
    yield "-Aunused"


def _ptx_feature(capability: Capability) -> str:
    """The PTX version that kernels need where LLVM's choice for the capability is lower; "" where it is not.

    Cache hints need 7.4, bulk copies 8.0, and floats of 8 bits 8.1 on 8.9.
    """
    if capability.base in ((7, 0), (7, 2), (7, 5), (8, 0), (8, 6)):
        return "+ptx74"
    return {(8, 9): "+ptx81", (9, 0): "+ptx80"}.get(capability.base, "")


def _is_library(artifact: Message) -> bool:
    """Whether it is the kernel crate's, which passes make a static library of."""
    return "staticlib" in artifact["target"]["kind"]


def _emitted(artifacts: Sequence[Message], name: str) -> Path:
    """Where rustc has put the PTX of the crate that cargo has just compiled, or found fresh.

    cargo reports the library `release/libNAME.a`. That is a link to `release/deps/libNAME-HASH.a`, where
    the hash stands for flags, features and profile, and beside it lies the `NAME-HASH.s` of that very
    compilation: a file of a fixed name would be the one of whatever was compiled last.
    """
    made = [artifact for artifact in artifacts if _is_library(artifact)]
    (library,) = _files(made[-1])
    candidates = sorted((library.parent / "deps").glob(f"lib{name}-*{library.suffix}"))
    # Where the file system has no links, cargo copies.
    same = [file for file in candidates if file.samefile(library)] or [
        file for file in candidates if filecmp.cmp(file, library, shallow=False)
    ]
    if not same:
        return library.with_suffix(".s")
    return same[0].with_name(same[0].name.removeprefix("lib")).with_suffix(".s")


def _whole_text(compiled: Path) -> str | None:
    """The PTX that rustc has written; None where it is not there or is cut off."""
    try:
        raw = compiled.read_text(encoding="utf-8")
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    return raw if ptx.is_whole(raw) else None


def _no_ptx(compiled: Path) -> CompileError:
    if not compiled.is_file():
        return CompileError(
            "rustc has left no PTX where it was looked for",
            where=str(compiled),
            hint="if RUSTC_WRAPPER or cargo's configuration puts a cache before rustc, build without it",
        )
    return CompileError(
        f"the PTX that rustc has written is cut off after {compiled.stat().st_size} bytes",
        where=str(compiled),
        hint="make room on this disk (df -h), then build again",
    )


def _files(artifact: Message) -> list[Path]:
    return [process.path(file) for file in artifact["filenames"]]


def _recorded_kernels(artifact: Message) -> list[str]:
    """The kernels that `#[kernel]` has recorded in a dependency, whose metadata holds their names."""
    metadata = (file for file in _files(artifact) if file.suffix == ".rmeta")
    pattern = rf"{finishing.RECORD_PREFIX}(\w+)".encode("ascii")
    found = (match.decode() for file in metadata for match in re.findall(pattern, file.read_bytes()))
    return list(dict.fromkeys(found))


def _is_noise(message: Message) -> bool:
    """Whether a message is about our own flags, or only counts what every pass says again."""
    text: str = message["message"]
    ours = any(span["file_name"] == "<crate attribute>" for span in message["spans"])
    return message["level"] == "warning" and (
        ours or text.startswith(_OWN_WARNINGS) or text.endswith(" emitted")
    )
