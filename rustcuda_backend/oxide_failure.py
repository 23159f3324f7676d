"""What to say where cuda-oxide makes no PTX of a crate, or PTX for another GPU, and the way out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from rustcuda_backend import cargo_failure
from rustcuda_backend.capability import Capability
from rustcuda_backend.crate import Crate
from rustcuda_backend.errors import CompileError, RustcudaError, ToolError
from rustcuda_backend.oxide_tools import Backend
from rustcuda_backend.settings import Settings

# The code needs a GPU that the pass is not for; the backend says which would do.
_FLOOR = re.compile(
    r"CUDA target \w+ cannot lower (?:detected feature (?P<feature>[^;]+);|"
    r"generated intrinsic `(?P<intrinsic>[^`]+)`)"
    r".*?(?:compatible with|requires) sm_(?P<number>\d{2,3}[af]?)",
    re.DOTALL,
)
_NEWER_LLVM = re.compile(r"requires LLVM (\d+) or newer")

# The library is a part of one compiler, and goes with the device crate of one commit.
_MISMATCHES = (
    "couldn't load codegen backend",
    "cannot open shared object file",
    "undefined symbol",
    "predates the scoped Cargo cache protocol",
)
_MATCH_HINT = """\
the backend library, its Rust toolchain and the crate's cuda-device must be of one cuda-oxide commit:
write rev = "…" to the dependency, and build the library of that commit (cargo oxide setup)"""


def of_pass(
    said: str, capability: Capability, crate: Crate, backend: Backend, settings: Settings
) -> RustcudaError:
    """The failure of a pass, to be told after cargo's own words.

    Args:
        said: What cargo printed.
        capability: What the pass was for.
        crate: The kernel crate.
        backend: The backend library.
        settings: The project's settings.
    """
    said = said.replace('\\"', '"')
    if floor := _FLOOR.search(said):
        what = floor["intrinsic"] or (floor["feature"] or "").strip()
        return of_floor(floor["number"], capability, crate, what)
    if any(text in said for text in _MISMATCHES):
        return ToolError(
            "cuda-oxide's backend library does not go with this rustc or with the crate's cuda-device",
            where=f"{backend.library} ({backend.source})",
            hint=_MATCH_HINT,
        )
    if newer := _NEWER_LLVM.search(said):
        return ToolError(
            f"capability {capability.name} needs llc of LLVM {newer[1]} or later",
            where=str(crate.directory / "Cargo.toml"),
            hint=f"apt-get install llvm-{newer[1]}, or name it: CUDA_OXIDE_LLC",
        )
    return cargo_failure.of_pass(said, capability, crate, settings)


def of_floor(needed: str, capability: Capability, crate: Crate, what: str = "") -> CompileError:
    """The code needs another GPU than the pass is for.

    Args:
        needed: The least target that would do, as in `cfg(cuda_arch)`: `"90a"`.
        capability: What the pass was for.
        crate: The kernel crate.
        what: What needs it, in cuda-oxide's words, if these are known.
    """
    digits = needed.rstrip("af")
    name = f"{digits[:-1]}.{digits[-1]}{needed[len(digits) :]}"
    because = f" ({what})" if what else ""
    return CompileError(
        f"the code needs capability {name}{because}, but the pass is for {capability.name}",
        where=str(crate.directory / "Cargo.toml"),
        hint=f'put the kernel that needs it under #[cfg(cuda_arch = "{needed}")];\n'
        "an `if` does not help: cuda-oxide counts also what never runs",
    )


def of_target(target: str, capability: Capability, crate: Crate) -> CompileError:
    """PTX for another GPU than the pass is for: one that the code needs, or one that somebody else asked for.

    Args:
        target: What the PTX is for: `"sm_90a"`.
        capability: What the pass was for.
        crate: The kernel crate.
    """
    needed = re.fullmatch(r"sm_(\d+)(\d)([af]?)", target)
    if needed:
        base = (int(needed[1]), int(needed[2]))
        if base > capability.base or (base == capability.base and needed[3] and not capability.suffix):
            return of_floor(target.removeprefix("sm_"), capability, crate)
    return CompileError(
        f"cuda-oxide has written PTX for {target}, but was asked for {capability.sm}",
        where=str(crate.directory / "Cargo.toml"),
        hint="see what else tells rustc CUDA_OXIDE_TARGET, as a build script can by cargo::rustc-env",
    )


def without_ptx(
    folder: Path, crate: Crate, capability: Capability, tools: Mapping[str, Path]
) -> CompileError:
    """The pass has succeeded, and there is no PTX of the crate.

    Args:
        folder: Where cuda-oxide was to put it.
        crate: The kernel crate.
        capability: What the pass was for.
        tools: What cuda-oxide was given for libdevice's functions, by the variable that names it.
    """
    ir = folder / f"{crate.name}.ll"
    if not ir.is_file():
        return CompileError(
            f"cuda-oxide has found no kernels in the crate '{crate.package}' (capability {capability.name})",
            where=str(crate.directory / "Cargo.toml"),
            hint="mark functions with #[kernel] of cuda-device; kernels of a dependency are in that crate's\n"
            "PTX, and generic kernels are compiled only where the crate itself launches them",
        )
    text = ir.read_text(encoding="utf-8", errors="replace")
    called = sorted(set(re.findall(r"@(__nv_\w+)", text)))
    because = f", since the kernels call {', '.join(called[:3])}" if called else ""
    missing = [f"{name}={path}" for name, path in tools.items() if not path.is_file()]
    return CompileError(
        f"cuda-oxide has written NVVM IR in place of PTX for capability {capability.name}{because}: "
        + (f"{', '.join(missing)} is missing" if missing else "it could not use libdevice and llvm-link"),
        where="; ".join(f"{name}={path}" for name, path in tools.items()),
        hint="put back what is missing, or leave these variables unset, so that they are found anew"
        if missing
        else "check that llvm-link runs and is of llc's LLVM version,\n"
        "and that no build script sets CUDA_OXIDE_EMIT_NVVM_IR by cargo::rustc-env",
    )


def kernels_missing(names: Sequence[str], crate: Crate, capability: Capability) -> CompileError:
    """The crate has kernels that are not in its PTX."""
    return CompileError(
        f"the PTX of capability {capability.name} lacks kernels that the crate has: {', '.join(names)}",
        where=str(crate.directory / "Cargo.toml"),
        hint="give every kernel a name of its own, also in other modules;\n"
        f"if they have, remove {crate.target_directory} and build again",
    )
