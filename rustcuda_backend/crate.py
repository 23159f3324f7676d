"""The kernel crate as cargo sees it: its workspace, its graph, and the device crate lent to it."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock

from rustcuda_backend import cache, process, session
from rustcuda_backend.cargo_files import LENT
from rustcuda_backend.errors import CompileError, SettingsError
from rustcuda_backend.rust import TARGET, RustToolchain
from rustcuda_backend.settings import Settings

DEVICE_CRATE = "rustcuda-device"
_DEVICE_SOURCES = Path(__file__).parent / "device"
_DEVICE_CRATES = ("rustcuda-device", "rustcuda-macros")


@dataclass(frozen=True)
class Crate:
    """A kernel crate, ready to be compiled.

    Attributes:
        directory: Its folder, in which every cargo call runs: cargo and rustup look for their
            configuration from there.
        package: Its package name.
        name: Its crate name, in which `-` has become `_`.
        workspace: The workspace's root, in which cargo runs rustc for it.
        target_directory: Where cargo puts what it builds.
        graph: Crate names of all packages that are compiled for the GPU.
        declares_no_std: Whether its source begins with `#![no_std]`.
        has_host_part: Whether proc macros or build scripts are compiled for the host as well.
        cargo_arguments: What every cargo call for it gets: features, locked, offline, the patch.
        outside: Names of the crates named by path that are outside the workspace. cargo writes where
            they are into their symbols, so that other folders make other code.
    """

    directory: Path
    package: str
    name: str
    workspace: Path
    target_directory: Path
    graph: tuple[str, ...]
    declares_no_std: bool
    has_host_part: bool
    cargo_arguments: tuple[str, ...]
    outside: tuple[str, ...] = ()

    @property
    def passes_directory(self) -> Path:
        """Where the passes put their target directories and PTX."""
        return self.target_directory / "rustcuda"


def crate_directory(project: Path, settings: Settings) -> Path:
    """The kernel crate's folder.

    Raises:
        SettingsError: It is outside the project, or holds no Cargo.toml.
    """
    directory = (project / settings.crate).resolve()
    where = settings.where("crate")
    if not directory.is_relative_to(project.resolve()):
        raise SettingsError(
            f"the crate '{settings.crate}' is outside the project", where=where, hint="move it inside"
        )
    if not (directory / "Cargo.toml").is_file():
        raise SettingsError(
            f"there is no crate in '{settings.crate}': {directory / 'Cargo.toml'} does not exist",
            where=where,
            hint="name the folder that holds the kernel crate's Cargo.toml, relative to pyproject.toml",
        )
    return directory


def load_crate(
    directory: Path, settings: Settings, toolchain: RustToolchain, environ: Mapping[str, str]
) -> Crate:
    """Asks cargo about the crate; lends it the device crate if it depends on it.

    Also settles Cargo.lock, so that the passes can run side by side.

    Raises:
        CompileError: cargo refuses the crate; its own message whole.
        SettingsError: The crate has no library.
    """
    common = _common_arguments(settings)
    outline = _metadata(toolchain, directory, (*common, "--no-deps"), environ)
    workspace = Path(outline["workspace_root"])
    _check_lock(workspace)
    if _depends_on_device(outline):
        common += lend_device_crate(workspace, directory)
    features = ("--features", ",".join(settings.features)) if settings.features else ()
    arguments = (*common, *features)
    metadata = _metadata(toolchain, directory, (*arguments, "--filter-platform", TARGET), environ)
    package = _package_at(metadata, directory)
    library = _library(package, directory)
    return Crate(
        directory=directory,
        package=package["name"],
        name=str(library["name"]).replace("-", "_"),
        workspace=workspace,
        target_directory=Path(metadata["target_directory"]),
        graph=_graph(metadata),
        declares_no_std=_declares_no_std(Path(library["src_path"])),
        has_host_part=_has_host_part(metadata),
        cargo_arguments=arguments,
        outside=_outside(metadata, workspace),
    )


def _outside(metadata: dict[str, Any], workspace: Path) -> tuple[str, ...]:
    packages = [package for package in metadata["packages"] if package["source"] is None]
    manifests = {package["name"]: Path(package["manifest_path"]) for package in packages}
    return tuple(sorted(name for name, path in manifests.items() if not path.is_relative_to(workspace)))


def _check_lock(workspace: Path) -> None:
    """A build that cannot keep the Cargo.lock it makes would take other versions each time."""
    opened = session.current()
    if opened and opened.read_only and not (workspace / "Cargo.lock").is_file():
        raise SettingsError(
            "Cargo.lock is missing, and the source tree cannot be written",
            where=str(opened.read_only),
            hint="build once where it can be written, and keep the Cargo.lock that cargo then writes",
        )


def _common_arguments(settings: Settings) -> tuple[str, ...]:
    return (
        *(("--locked",) if settings.locked else ()),
        *(("--offline",) if settings.offline else ()),
    )


def _metadata(
    toolchain: RustToolchain, directory: Path, arguments: Sequence[str], environ: Mapping[str, str]
) -> dict[str, Any]:
    argv = [str(toolchain.cargo), "metadata", "--format-version=1", *arguments]
    finished = process.run(argv, cwd=directory, env=environ)
    if not finished.ok:
        raise CompileError(
            f"cargo cannot read the kernel crate:\n{finished.stderr.rstrip()}",
            where=str(directory / "Cargo.toml"),
        )
    # cargo writes UTF-8 in any locale; paths then are strings that the file functions here take.
    content: dict[str, Any] = json.loads(os.fsdecode(finished.stdout.encode()))
    return content


def _depends_on_device(outline: dict[str, Any]) -> bool:
    """Whether a member asks a registry for the device crate, rather than naming a path itself.

    An unasked patch would make cargo warn and write it into Cargo.lock.
    """
    return any(
        dependency["name"] == DEVICE_CRATE and not dependency.get("path")
        for package in outline["packages"]
        for dependency in package["dependencies"]
    )


def device_version() -> str:
    """The version of the device crates, which is one for both."""
    manifest = (_DEVICE_SOURCES / DEVICE_CRATE / "Cargo.toml").read_text(encoding="utf-8")
    return next(line.split('"')[1] for line in manifest.splitlines() if line.startswith("version = "))


def lend_device_crate(workspace: Path, directory: Path) -> tuple[str, ...]:
    """Copies the device crates into the workspace; returns the arguments that patch them in.

    Cargo writes the place of a crate outside the workspace into symbol names, so wheels would differ
    from machine to machine; a relative place inside is the same everywhere.
    """
    lent = workspace.joinpath(*LENT)
    put_device_crate(lent.parent)
    patch = Path(os.path.relpath(lent, directory)).as_posix()
    return ("--config", f"patch.crates-io.{DEVICE_CRATE}.path='{patch}'")


def put_device_crate(folder: Path) -> None:
    """Makes a folder in a target directory hold the device crates, unless it does, beside other builds."""
    make_ignored(folder.parent)
    with filelock.FileLock(folder.with_name(".device.lock")):
        if _files_in(folder) != _device_sources():
            copy_device_crate(folder)


def copy_device_crate(folder: Path) -> None:
    """Makes a folder hold the device crates and nothing else."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    _copy_whole(_device_sources(), folder)


def _device_sources() -> dict[Path, bytes]:
    return {
        path.relative_to(_DEVICE_SOURCES): path.read_bytes()
        for name in _DEVICE_CRATES
        for path in sorted((_DEVICE_SOURCES / name).rglob("*"))
        if path.suffix in (".rs", ".toml") and "target" not in path.parts[len(_DEVICE_SOURCES.parts) :]
    }


def make_ignored(folder: Path) -> None:
    """Makes a folder for what builds leave, which git is to ignore whatever the project's .gitignore says."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / ".gitignore").exists():
        cache.write_atomically(folder / ".gitignore", b"*\n")


def _files_in(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _copy_whole(sources: Mapping[Path, bytes], target: Path) -> None:
    """Puts all of the sources in place at once: another build may be reading the old ones."""
    scratch = Path(tempfile.mkdtemp(dir=target.parent, prefix=".device."))
    try:
        for path, data in sources.items():
            (scratch / path).parent.mkdir(parents=True, exist_ok=True)
            (scratch / path).write_bytes(data)
        scratch.chmod(0o755)
        if target.exists():
            old = Path(tempfile.mkdtemp(dir=target.parent, prefix=".old."))
            target.replace(old / "device")
            shutil.rmtree(old, ignore_errors=True)
        scratch.replace(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _package_at(metadata: dict[str, Any], directory: Path) -> dict[str, Any]:
    manifest = directory / "Cargo.toml"
    for package in metadata["packages"]:
        if Path(package["manifest_path"]).resolve() == manifest.resolve():
            found: dict[str, Any] = package
            return found
    raise SettingsError(
        "the folder holds a workspace, not a crate",
        where=str(manifest),
        hint="name the folder of the kernel crate itself",
    )


def _library(package: dict[str, Any], directory: Path) -> dict[str, Any]:
    kinds = {"lib", "rlib", "dylib", "cdylib", "staticlib"}
    for target in package["targets"]:
        if kinds.intersection(target["kind"]):
            found: dict[str, Any] = target
            return found
    raise SettingsError(
        f"the crate '{package['name']}' has no library",
        where=str(directory / "Cargo.toml"),
        hint="put the kernels into src/lib.rs",
    )


def _declares_no_std(source: Path) -> bool:
    text = source.read_text(encoding="utf-8", errors="replace") if source.is_file() else ""
    return re.search(r"^\s*#!\[\s*no_std\s*\]", text, re.MULTILINE) is not None


def _graph(metadata: dict[str, Any]) -> tuple[str, ...]:
    """Crate names of every library in the graph; the build scripts' own crates are no part of it."""
    kinds = {"lib", "rlib", "dylib", "cdylib", "staticlib", "proc-macro"}
    return tuple(
        sorted(
            target["name"].replace("-", "_")
            for package in metadata["packages"]
            for target in package["targets"]
            if kinds.intersection(target["kind"])
        )
    )


def _has_host_part(metadata: dict[str, Any]) -> bool:
    kinds = {"proc-macro", "custom-build"}
    targets = (target for package in metadata["packages"] for target in package["targets"])
    return any(kinds.intersection(target["kind"]) for target in targets)
