"""The device crate, compiled once for each capability on a machine, as `core` is once for all.

Compiling it takes longer than the kernels of most crates. What is kept is its library without its
attributes, which run on the host; under `cfg(rustcuda_prebuilt)` the crate that cargo compiles hands it on.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rustcuda_backend import cache, device_crates, process
from rustcuda_backend.device_crates import DEVICE_CRATE
from rustcuda_backend.errors import ToolError
from rustcuda_backend.rust import TARGET, RustToolchain
from rustcuda_backend.sysroot import clean_environment

_CRATE = "rustcuda_device"
# Different from what cargo appends to the name of the crate that hands it on.
_SUFFIX = "-prebuilt"
_LIBRARY = f"lib{_CRATE}{_SUFFIX}.rlib"

# Where cargo finds the crate in a workspace, so that a panic names the same files.
_PLACE = Path("target", "rustcuda", "device")

# Raised when what this module makes changes, so that old libraries are left aside.
_RECIPE = "2"

# What of cargo's profile decides the code; rustc has the same names.
_PROFILE = ("opt_level", "debug_assertions", "overflow_checks")


@dataclass(frozen=True)
class DeviceLibrary:
    """How a build compiles the device crate, whatever the capability.

    Attributes:
        toolchain: The compiler.
        features: The crate's features that are on.
        profile: Those of its settings in cargo's profile that decide the code.
    """

    toolchain: RustToolchain
    features: tuple[str, ...]
    profile: Mapping[str, Any]

    def flags(self, code_flags: Sequence[str]) -> tuple[str, ...]:
        """The flags by which a pass takes the library from the cache, where it is made if it is missing.

        There are none where it does not compile: cargo will then say why.

        Args:
            code_flags: The pass's flags that decide the code. They name nothing of the project.
        """
        argv = self._command(code_flags)
        sources = device_crates.sources((DEVICE_CRATE,))
        parts = (part for path, data in sources.items() for part in (path.as_posix(), data))
        key = cache.digest(_RECIPE, self.toolchain.verbose_version, "\0".join(argv), *parts)
        try:
            folder = cache.folder("device", key, lambda folder: self._make(argv, folder))
        except ToolError:
            return ()
        return (
            "--cfg=rustcuda_prebuilt",
            # No crate but the one that asks for it is to see it, or to be told that it does not use it.
            "-Zunstable-options",
            f"--extern=noprelude,nounused:rustcuda_prebuilt={folder / _LIBRARY}",
            f"-Ldependency={folder}",
        )

    def was_right(self, artifact: Mapping[str, Any]) -> bool:
        """Whether cargo has compiled a crate as was thought here; any but the device crate it has.

        Args:
            artifact: One of cargo's messages `compiler-artifact`.
        """
        return artifact["target"]["name"] != _CRATE or (
            tuple(artifact["features"]) == self.features
            and all(artifact["profile"][name] == value for name, value in self.profile.items())
        )

    def _command(self, code_flags: Sequence[str]) -> tuple[str, ...]:
        given = {name: str(value).lower() for name, value in self.profile.items()}
        return (
            *(str(self.toolchain.rustc), "--crate-type=lib", f"--crate-name={_CRATE}", "--edition=2024"),
            *(f"--target={TARGET}", f"--emit=link={_LIBRARY}"),
            *(f"-Cextra-filename={_SUFFIX}", f"-Cmetadata={_CRATE}{_SUFFIX}", "--cfg=rustcuda_library"),
            *("-Cpanic=abort", "-Clinker-plugin-lto", "-Ccodegen-units=1", "--cap-lints=allow"),
            *(f"-C{name.replace('_', '-')}={value}" for name, value in given.items()),
            *(f'--cfg=feature="{feature}"' for feature in self.features),
            *code_flags,
        )

    def _make(self, argv: Sequence[str], folder: Path) -> None:
        device_crates.copy(folder / _PLACE, (DEVICE_CRATE,))
        source = _PLACE / DEVICE_CRATE / "src" / "lib.rs"
        # Where it is made must not get into it; rustc knows that place without links.
        hidden = f"--remap-path-prefix={folder.resolve()}=."
        environ = clean_environment() | {"RUSTC_BOOTSTRAP": "1"}
        finished = process.run([*argv, hidden, source.as_posix()], cwd=folder, env=environ)
        if not finished.ok:
            raise ToolError(finished.stderr)
        shutil.rmtree(folder / _PLACE.parts[0])


def find(
    toolchain: RustToolchain, directory: Path, arguments: Sequence[str | Path], environ: Mapping[str, str]
) -> DeviceLibrary | None:
    """The library that a build can take; None where it must compile the device crate as cargo does.

    That is where the crate is not ours as it stands, or is to have information for debuggers, which names
    the project's own folders.

    Args:
        toolchain: The compiler.
        directory: The kernel crate's folder.
        arguments: cargo's arguments that say what a pass compiles.
        environ: The environment for cargo.
    """
    argv = [toolchain.cargo, "build", "--unit-graph", "-Zunstable-options", *arguments]
    finished = process.run(argv, cwd=directory, env={**environ, "RUSTC_BOOTSTRAP": "1"})
    try:
        return _library(toolchain, json.loads(finished.stdout)["units"])
    except (ValueError, TypeError, KeyError):
        return None  # the form is unstable, so that another cargo may say something else


def _library(toolchain: RustToolchain, units: Sequence[Mapping[str, Any]]) -> DeviceLibrary | None:
    """The library, by all that cargo would compile."""
    found = [unit for unit in units if unit["target"]["name"] == _CRATE and unit["platform"] == TARGET]
    if len(found) != 1:
        return None
    (unit,) = found
    profile = unit["profile"]
    folder = process.path(unit["target"]["src_path"]).parents[1]
    if profile["debuginfo"] != 0 or profile.get("rustflags") or not device_crates.is_ours(folder):
        return None
    return DeviceLibrary(toolchain, tuple(unit["features"]), {name: profile[name] for name in _PROFILE})
