"""The kernel crate as cargo sees it: its workspace, its graph, and the device crate lent to it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rustcuda_backend import compatible, process, session
from rustcuda_backend.cargo_files import read_toml
from rustcuda_backend.device_crates import DEVICE_CRATE, lend, lend_device_crate, make_ignored
from rustcuda_backend.errors import CompileError, SettingsError
from rustcuda_backend.rust import TARGET, RustToolchain
from rustcuda_backend.settings import Settings


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
        device_only: Names of the packages written for cuda-oxide, whose host part is cut away: this one
            first, then those that it names by path; empty where it is written for us.
        linked: Crate names of those but the first.
        program: The program that holds the kernels, where the package has no library; else empty.
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
    device_only: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()
    program: str = ""

    @property
    def passes_directory(self) -> Path:
        """Where the passes put their target directories and PTX."""
        return self.target_directory / "rustcuda"


def crate_directory(project: Path, settings: Settings) -> Path:
    """The kernel crate's folder.

    Raises:
        SettingsError: It is outside the project, or holds no Cargo.toml.
    """
    # Path.resolve raises where links lead in a circle.
    directory = Path(os.path.realpath(project / settings.crate))
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
    package = _package_at(outline, directory)
    find = _finder(outline, common, toolchain, environ)
    if compatible.applies(package, find):
        return _load_staged(package, find, outline, settings, toolchain, environ)
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


def load_crate_as_it_stands(
    directory: Path, settings: Settings, toolchain: RustToolchain, environ: Mapping[str, str]
) -> Crate:
    """Asks cargo about a crate that is compiled for the host, with all that it names itself.

    Also settles Cargo.lock, so that the passes can run side by side.

    Raises:
        CompileError: cargo refuses the crate; its own message whole.
        SettingsError: It cannot be told what in it holds the kernels.
    """
    features = ("--features", ",".join(settings.features)) if settings.features else ()
    arguments = (*_common_arguments(settings), *features)
    metadata = _metadata(toolchain, directory, (*arguments, "--filter-platform", toolchain.host), environ)
    workspace = Path(metadata["workspace_root"])
    _check_lock(workspace)
    package = _package_at(metadata, directory)
    target = compatible.kernel_target(package)
    name = str(target["name"]).replace("-", "_")
    return Crate(
        directory=directory,
        package=package["name"],
        name=name,
        workspace=workspace,
        target_directory=Path(metadata["target_directory"]),
        graph=tuple(sorted({name, *_graph(metadata)})),
        declares_no_std=_declares_no_std(Path(target["src_path"])),
        has_host_part=_has_host_part(metadata),
        cargo_arguments=arguments,
        outside=_outside(metadata, workspace),
        program=target["name"] if "bin" in target["kind"] else "",
    )


def _finder(
    outline: dict[str, Any], common: Sequence[str], toolchain: RustToolchain, environ: Mapping[str, str]
) -> Callable[[Path], dict[str, Any]]:
    """What reads the package in a folder, which may be outside the workspace."""
    known: dict[Path, dict[str, Any]] = {
        Path(package["manifest_path"]).parent: package for package in outline["packages"]
    }

    def find(folder: Path) -> dict[str, Any]:
        if folder in known:
            return known[folder]
        return _package_at(_metadata(toolchain, folder, (*common, "--no-deps"), environ), folder)

    return find


def _load_staged(
    package: dict[str, Any],
    find: Callable[[Path], dict[str, Any]],
    outline: dict[str, Any],
    settings: Settings,
    toolchain: RustToolchain,
    environ: Mapping[str, str],
) -> Crate:
    """A crate written for cuda-oxide, by the workspace that is written for it."""
    directory = Path(package["manifest_path"]).parent
    workspace = Path(outline["workspace_root"])
    folder = workspace / "target" / "rustcuda" / "cuda-device" / package["name"]
    make_ignored(workspace / "target" / "rustcuda")
    folder.mkdir(parents=True, exist_ok=True)
    lend(folder / "device", compatible.DEVICE_CRATES)
    features = ("--features", ",".join(settings.features)) if settings.features else ()
    offline = ("--offline",) if settings.offline else ()

    def describe(manifest: Path) -> dict[str, Any]:
        asked = ("--manifest-path", str(manifest), *features, *offline, "--filter-platform", TARGET)
        return _metadata(toolchain, directory, asked, environ)

    staged = compatible.stage(package, find, workspace, folder, describe)
    metadata = describe(staged.manifest)
    if settings.locked and (missing := compatible.unlocked(metadata, read_toml(workspace / "Cargo.lock"))):
        raise CompileError(
            f"Cargo.lock does not have {', '.join(missing)}, and 'locked' forbids to add what it lacks",
            where=str(workspace / "Cargo.lock"),
            hint="run cargo update --workspace, or unset 'locked'",
        )
    source = Path(staged.target["src_path"])
    return Crate(
        directory=directory,
        package=package["name"],
        name=str(staged.target["name"]).replace("-", "_"),
        workspace=workspace,
        target_directory=Path(outline["target_directory"]),
        graph=_graph(metadata),
        declares_no_std=_declares_no_std(source),
        has_host_part=_has_host_part(metadata),
        # The lock that goes with it was settled just now.
        cargo_arguments=("--manifest-path", str(staged.manifest), *features, *offline, "--locked"),
        device_only=staged.device_only,
        linked=staged.linked,
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
