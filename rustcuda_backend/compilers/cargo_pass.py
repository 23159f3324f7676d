"""What both compilers have cargo do in a pass: compile the crate, and describe it with the same flags."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from rustcuda_backend import cargo_failure, dep_info, process, rustdoc
from rustcuda_backend.capability import Capability, all_cfg_values
from rustcuda_backend.compilers import Pass
from rustcuda_backend.crate import Crate
from rustcuda_backend.errors import RustcudaError
from rustcuda_backend.report import Report
from rustcuda_backend.rust import RustToolchain
from rustcuda_backend.rustdoc import Finder, RustdocCall
from rustcuda_backend.settings import Settings
from rustcuda_backend.signature import KernelSignature

# One of cargo's messages, most often a `compiler-artifact`.
Message: TypeAlias = "Mapping[str, Any]"

# How the lines begin that cargo writes for programs, among what build scripts and macros may print.
_MESSAGE = '{"reason":'


@dataclass(frozen=True)
class CargoPass:
    """What every call of cargo in one pass has in common.

    Attributes:
        toolchain: rustc and cargo.
        crate: The kernel crate.
        settings: The project's settings.
        environ: The environment for cargo.
        variables: What is set beyond it for this pass.
        report: Where messages go.
    """

    toolchain: RustToolchain
    crate: Crate
    settings: Settings
    environ: Mapping[str, str]
    variables: Mapping[str, str]
    report: Report

    def compile(
        self,
        argv: Sequence[str | Path],
        *,
        is_own: Callable[[Message], bool],
        is_noise: Callable[[Message], bool],
        failure: Callable[[str], RustcudaError],
    ) -> list[Message]:
        """Compiles where anything has changed, and says what the compiler has said.

        Args:
            argv: The command.
            is_own: Whether an artifact is the kernel crate's.
            is_noise: Whether something that the compiler says is nobody's business.
            failure: The error, by what cargo has printed.

        Returns:
            The artifacts that cargo has made or found fresh, at least one of them the crate's own.
        """
        self.report.command(argv, self.variables)
        finished = process.run(argv, cwd=self.crate.directory, env={**self.environ, **self.variables})
        lines = finished.stdout.splitlines()
        messages = [json.loads(line) for line in lines if line.startswith(_MESSAGE)]
        for message in messages:
            if message["reason"] == "compiler-message" and not is_noise(message["message"]):
                self.report.once(message["message"]["rendered"])
        if not finished.ok:
            if refused := cargo_failure.of_profile(finished.stderr, self.crate, self.settings):
                raise refused
            self.report.once(finished.stderr)
            raise failure(finished.stderr + finished.stdout)
        self.report.said(finished.stderr)
        artifacts = [message for message in messages if message["reason"] == "compiler-artifact"]
        if not any(map(is_own, artifacts)):
            # As with --help among the arguments, which cargo answers there.
            plain = [line for line in lines if not line.startswith(_MESSAGE)]
            self.report.once("\n".join(plain) or finished.stderr)
            raise failure("")
        return artifacts

    def describe(
        self,
        arguments: Sequence[str | Path],
        flags: Sequence[str],
        compiled: Path,
        folder: Path,
        find: Finder | None = None,
    ) -> dict[str, KernelSignature]:
        """What rustdoc knows of the kernels.

        Args:
            arguments: cargo's, and behind `--` the crate's own.
            flags: rustdoc's flags for all crates.
            compiled: The PTX of this pass.
            folder: Where cargo puts what is for the target of the pass.
            find: Finds the kernels in rustdoc's JSON; those of stock rustc by default.
        """
        rustc = self.toolchain.rustc
        program = rustc.with_name(f"rustdoc{rustc.suffix}")
        variables = {
            **self.variables,
            "RUSTDOC": str(program),
            "CARGO_ENCODED_RUSTDOCFLAGS": "\x1f".join(flags),
        }
        call = RustdocCall(
            rustdoc=program,
            argv=(self.toolchain.cargo, "rustdoc", *arguments, *rustdoc.FLAGS),
            directory=self.crate.directory,
            environ={**self.environ, **variables},
            variables=variables,
            output=folder / "doc" / f"{self.crate.name}.json",
            compiled=compiled,
        )
        return rustdoc.describe(call, self.report, find)


def variables(
    toolchain: RustToolchain,
    bootstrap: Mapping[str, str],
    environ: Mapping[str, str],
    flags: Sequence[str],
    build_pass: Pass,
) -> dict[str, str]:
    """What is set for cargo in a pass, whatever the compiler.

    Args:
        toolchain: The compiler.
        bootstrap: What allows it its unstable features.
        environ: The user's environment.
        flags: rustc's flags for all crates.
        build_pass: The pass.
    """
    return {
        "RUSTC": str(toolchain.rustc),
        **_bootstrap(bootstrap, environ.get("RUSTC_BOOTSTRAP", "")),
        # Only flags given this way reach the dependencies too; those after `--` do not.
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(flags),
        "CARGO_INCREMENTAL": "0",
        **dep_info.ABSOLUTE,
        # All passes would share a build directory of the user's, and wait for each other.
        "CARGO_BUILD_BUILD_DIR": str(build_pass.directory),
    }


def _bootstrap(ours: Mapping[str, str], given: str) -> Mapping[str, str]:
    """What allows unstable features, to the crates that the user names as well; he may allow all already."""
    if given == "1":
        return {}
    named = {name for name in given.split(",") if name.isidentifier()}
    return {name: ",".join((value, *sorted(named - {*value.split(",")}))) for name, value in ours.items()}


def ptxas_arguments(settings: Settings) -> tuple[str, ...]:
    """What ptxas must be told so that it keeps to the settings that the compilers keep to."""
    # ptxas contracts instructions that name no rounding: in `asm!`, those of bf16 and of pairs of halves.
    return () if settings.fmad else ("-fmad=false",)


def message_format(report: Report) -> str:
    """cargo's argument by which it writes messages for programs."""
    return f"--message-format={'json-diagnostic-rendered-ansi' if report.colour else 'json'}"


def cfg_flags(capability: Capability) -> Iterator[str]:
    """`cfg(cuda_arch)` for a capability and all lower ones."""
    for value in capability.cfg_values():
        yield f'--cfg=cuda_arch="{value}"'
    quoted = ", ".join(f'"{value}"' for value in all_cfg_values())
    yield f"--check-cfg=cfg(cuda_arch, values({quoted}))"


def is_beside(artifact: Message, crate: Crate, settings: Settings) -> bool:
    """Whether an artifact is of another kernel crate of the wheel, which has a module of its own."""
    folder = process.path(artifact["manifest_path"]).parent.resolve()
    ways = (os.path.relpath(other, settings.crate) for other in settings.others)
    return folder in [(crate.directory / way).resolve() for way in ways]


def private_paths(crate: Crate, environ: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    """Folders whose names must not get into a wheel, and what stands for them there."""
    yield crate.workspace, "."
    yield crate.target_directory, "target"
    home = environ.get("CARGO_HOME")
    yield (Path(home) if home else Path.home() / ".cargo"), "cargo"
