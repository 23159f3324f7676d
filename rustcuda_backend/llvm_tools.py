"""Finding LLVM's programs that cuda-oxide starts: llc, opt and llvm-link."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rustcuda_backend import process
from rustcuda_backend.capability import Capability
from rustcuda_backend.errors import CapabilityError, ToolError
from rustcuda_backend.rust import RustToolchain

# Each LLVM program that the backend library starts, by the variable that names it.
LLVM_VARIABLES = {"CUDA_OXIDE_LLC": "llc", "CUDA_OXIDE_OPT": "opt", "CUDA_OXIDE_LLVM_LINK": "llvm-link"}
_MINIMUM_LLVM = 21
_LLC_NAMES = ("llc-22", "llc-21", "llc")

# Only LLVM 22 writes PTX for these.
_NEED_LLVM_22 = ((8, 8), (11, 0))


@dataclass(frozen=True)
class LlvmTools:
    """LLVM's programs, all of one major version.

    Attributes:
        llc, opt, llvm_link: The programs.
        versions: What each says of its version, in this order, e.g. `"22.1.2-rust-1.96.0-nightly"`.
        source: Why these were taken, for messages.
    """

    llc: Path
    opt: Path
    llvm_link: Path
    versions: tuple[str, str, str]
    source: str

    @property
    def version(self) -> str:
        """That of llc."""
        return self.versions[0]

    @property
    def major(self) -> int:
        """22 of 22.1.2."""
        return _major(self.version)


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
            name = f"CUDA_OXIDE_LLC={llc}" if environ.get("CUDA_OXIDE_LLC") else str(llc)
            problems.append(f"{name}: {f'LLVM {version}' if version else 'it does not say its version'}")
            continue
        found = {
            name: _matching(variable, name, llc, _major(version), folder, environ)
            for variable, name in LLVM_VARIABLES.items()
            if name != "llc"
        }
        opt, link = found["opt"], found["llvm-link"]
        if opt and link:
            return LlvmTools(llc, opt, link, (version, _version(opt), _version(link)), source)
        missing = [
            f"{variable}={environ[variable]} is none" if environ.get(variable) else f"there is no {name}"
            for variable, name in LLVM_VARIABLES.items()
            if name != "llc" and not found[name]
        ]
        problems.append(f"{llc} is of LLVM {version}, but {' and '.join(missing)} of LLVM {_major(version)}")
    name = toolchain.rustup_name
    raise ToolError(
        "cuda-oxide needs llc, opt and llvm-link of one LLVM version, "
        f"{_MINIMUM_LLVM} or later, and they were not found",
        where="; ".join(problems) or f"no llc in {folder}, and none on PATH",
        hint=f"rustup component add llvm-tools{f' --toolchain {name}' if name else ''},\n"
        "or apt-get install llvm-22, or name all three: " + ", ".join(LLVM_VARIABLES),
    )


def check_capabilities(llvm: LlvmTools, capabilities: Sequence[Capability], where: str) -> None:
    """Makes sure that LLVM writes PTX for every capability, before the first pass.

    Raises:
        CapabilityError: It does not for one.
    """
    for item in capabilities:
        if item.base in _NEED_LLVM_22 and llvm.major < 22:
            raise CapabilityError(
                f"LLVM {llvm.version} writes no PTX for capability {item.name}",
                where=f"{where}; {llvm.llc}",
                hint="leave it out, or use LLVM 22 (apt-get install llvm-22)",
            )


def _llcs(folder: Path, environ: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    named = environ.get("CUDA_OXIDE_LLC")
    if named:
        yield named_program(named, environ), "environment variable CUDA_OXIDE_LLC"
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
        candidates = [named_program(environ[variable], environ)]
    else:
        beside = (llc.with_name(llc.name.replace("llc", name, 1)), llc.with_name(name))
        on_path = (shutil.which(each, path=environ.get("PATH", "")) for each in (f"{name}-{major}", name))
        candidates = [*beside, folder / name, *(Path(path) for path in on_path if path)]
    return next((path for path in candidates if _major(_version(path)) == major), None)


def named_program(written: str, environ: Mapping[str, str]) -> Path:
    """A program that somebody names: by a path, made absolute as rustc runs elsewhere, or as PATH has it."""
    on_path = None if os.sep in written else shutil.which(written, path=environ.get("PATH", ""))
    return Path(on_path or written).absolute()


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
