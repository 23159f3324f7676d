"""cuda-oxide's variables: which of a user's are passed on, and which of them decide the code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rustcuda_backend import process
from rustcuda_backend.errors import ToolError
from rustcuda_backend.llvm_tools import LLVM_VARIABLES
from rustcuda_backend.rust import RustToolchain
from rustcuda_backend.rustflags import config_arguments

PREFIX = "CUDA_OXIDE_"
BACKEND_VARIABLE = "CUDA_OXIDE_BACKEND"
LIBDEVICE_VARIABLE = "CUDA_OXIDE_LIBDEVICE"

# Of cuda-oxide's variables, what a user may set: what is printed, two that decide the code, and where things
# are. Of many others the mere presence counts, and each has a setting here.
PRINTING = tuple(f"{PREFIX}{name}" for name in ("VERBOSE", "SHOW_RUSTC_MIR", "DUMP_MIR", "DUMP_LLVM"))
DECIDING = ("CUDA_OXIDE_MIR_PASSES", "CUDA_OXIDE_UNCHECKED_INDEXING")
FINDING = (BACKEND_VARIABLE, LIBDEVICE_VARIABLE, *LLVM_VARIABLES)

_OF_CARGO = re.compile(
    rf"^env\.(?P<name>{PREFIX}\w+)(?:\.value)? = .* # (?P<file>[^#\n]+)$",
    re.MULTILINE,
)


def ignored(environ: Mapping[str, str]) -> list[str]:
    """The variables that would steer cuda-oxide beside the settings, and are not passed on."""
    passed = (*PRINTING, *DECIDING, *FINDING)
    return [name for name in sorted(environ) if name.startswith(PREFIX) and name not in passed]


def deciding(environ: Mapping[str, str]) -> Iterator[str]:
    """What of the environment decides the code, `NAME=value` each."""
    return (f"{name}={environ[name]}" for name in DECIDING if name in environ)


def check_cargo(
    toolchain: RustToolchain, directory: Path, environ: Mapping[str, str], cargo_args: Sequence[str]
) -> None:
    """Makes sure that `[env]` of cargo's configuration sets nothing that steers cuda-oxide.

    cargo would hand it to rustc behind our back: nothing can unset it, and builds would not notice a change.

    Args:
        toolchain: cargo.
        directory: The crate's folder.
        environ: The environment for cargo.
        cargo_args: The user's arguments for cargo, of which `--config` counts.

    Raises:
        ToolError: It does.
    """
    options = ["-Zunstable-options", *config_arguments(cargo_args), "config", "get", "env", "--show-origin"]
    argv: list[str | Path] = [toolchain.cargo, *options]
    said = process.run(argv, cwd=directory, env={**environ, "RUSTC_BOOTSTRAP": "1"}).stdout
    found = {match["name"]: match["file"] for match in _OF_CARGO.finditer(said)}
    steering = {name: file for name, file in found.items() if name not in PRINTING}
    if steering:
        raise ToolError(
            f"[env] of cargo's configuration sets what steers cuda-oxide: {', '.join(steering)}",
            where=", ".join(dict.fromkeys(steering.values())),
            hint="take it out there; set it in the environment, or under [env] in .cargo/cuda-oxide.toml",
        )
