"""What Cargo.toml and `.cargo/config.toml` files name by path, read without cargo."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CONFIGS = (".cargo/config.toml", ".cargo/config")
# Where builds put the device crate, below the folder of the workspace.
LENT = ("target", "rustcuda", "device", "rustcuda-device")

_DEPENDENCIES = ("dependencies", "dev-dependencies", "build-dependencies")


@dataclass(frozen=True)
class Config:
    """A file of cargo's configuration.

    Attributes:
        path: Where it is.
        content: What it says; empty where it is missing or broken.
        includer: The file that includes it, or itself.
    """

    path: Path
    content: dict[str, Any]
    includer: Path


def named_folders(root: Path, crate: Path) -> Iterator[tuple[Path, Path]]:
    """The folders of crates that a crate's build reads, each with the file that names it.

    Args:
        root: The project; files above it are not read.
        crate: The crate's folder, in the project or not.
    """
    for place in (crate, *above(root, crate), *named_root(crate)):
        manifest = place / "Cargo.toml"
        content = read_toml(manifest)
        if place == crate or "workspace" in content:
            yield from ((_joined(place, path), manifest) for path in _in_manifest(content))
            yield from ((_joined(place, path), manifest) for path in _members(content, place))
        for config in configs(place):
            # Paths in an included file are relative in the same way: from the folder above its own.
            start = config.path.parent.parent
            yield from ((_joined(start, path), config.path) for path in _in_config(config.content))


def configs(place: Path) -> Iterator[Config]:
    """cargo's configuration in a folder, with all that it includes."""
    waiting = [(place / name, place / name) for name in CONFIGS]
    seen = set()
    while waiting:
        path, includer = waiting.pop()
        if path not in seen:
            seen.add(path)
            content = read_toml(path)
            yield Config(path, content, includer)
            waiting += [(_joined(path.parent, name), path) for name in _included(content)]


def named_root(crate: Path) -> list[Path]:
    """The folder of the workspace that a crate's manifest names, if it does."""
    named = _table(read_toml(crate / "Cargo.toml"), "package").get("workspace")
    return [_joined(crate, path) for path in _texts([named])]


def workspace_root(crate: Path) -> Path | None:
    """The folder of the workspace that cargo counts a crate to; None where the crate is its own.

    As in cargo, whether that workspace lists the crate among its members does not matter.
    """
    for place in (crate, *crate.parents):
        content = read_toml(place / "Cargo.toml")
        if "workspace" in content:
            if not _excludes(_table(content, "workspace"), place, crate):
                return None if place == crate else place
        elif named := named_root(place):
            return named[0]
    return None


def inherits(crate: Path) -> bool:
    """Whether a crate's manifest takes something over from its workspace, which then must be there."""
    content = read_toml(crate / "Cargo.toml")
    waiting: list[Any] = [content]
    while waiting:
        table = waiting.pop()
        if table.get("workspace") is True:
            return True
        waiting += _tables(table)
    return False


def named_sources(crate: Path) -> Iterator[Path]:
    """Sources elsewhere than in the crate's folder that its manifest names; modules may lie beside them."""
    return (source for source in entry_sources(crate) if not source.is_relative_to(crate))


def entry_sources(crate: Path) -> Iterator[Path]:
    """The library's source and the build script, where its manifest names them."""
    content = read_toml(crate / "Cargo.toml")
    for path in _texts([_table(content, "lib").get("path"), _table(content, "package").get("build")]):
        yield _joined(crate, path)


def target_directory(crate: Path, workspace: Path, environ: Mapping[str, str]) -> Path:
    """Where cargo puts what it builds, by its variables and by its configuration from the crate upwards."""
    for variable in ("CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR"):
        if environ.get(variable):
            return _joined(crate, environ[variable])
    for place in (crate, *crate.parents):
        for config in configs(place):
            for path in _texts([_table(config.content, "build").get("target-dir")]):
                return _joined(config.path.parent.parent, path)
    return workspace / "target"


def is_lent(folder: Path) -> bool:
    """Whether a folder is one that builds fill with the device crate."""
    return folder.parts[-len(LENT) :] == LENT


def above(root: Path, folder: Path) -> list[Path]:
    """The folders above one, up to the project."""
    return [place for place in folder.parents if place.is_relative_to(root)]


def _joined(place: Path, path: str) -> Path:
    """A path as cargo reads it, which goes by names, whatever is a link."""
    return Path(os.path.normpath(place / path))


def read_toml(path: Path) -> dict[str, Any]:
    """A file's content; one that is missing or broken is for cargo to complain about."""
    try:
        content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content


def _in_manifest(content: Mapping[str, Any]) -> Iterator[str]:
    """Every `path` of dependencies and patches."""
    holders = [content, _table(content, "workspace"), *_tables(_table(content, "target"))]
    dependencies = [_table(holder, kind) for holder in holders for kind in _DEPENDENCIES]
    for table in (*dependencies, *_tables(_table(content, "patch"))):
        yield from _texts(item.get("path") for item in _tables(table))


def _members(content: Mapping[str, Any], place: Path) -> Iterator[str]:
    for pattern in _texts(_table(content, "workspace").get("members", [])):
        for member in glob.glob(pattern, root_dir=place):  # noqa: PTH207 (Path's takes no absolute one)
            if (place / member / "Cargo.toml").is_file():
                yield member


def _in_config(content: Mapping[str, Any]) -> Iterator[str]:
    """Every `path` of patches, overrides, and folders of vendored crates."""
    for table in _tables(_table(content, "patch")):
        yield from _texts(item.get("path") for item in _tables(table))
    yield from _texts(content.get("paths", []))
    yield from _texts(source.get("directory") for source in _tables(_table(content, "source")))


def _included(content: Mapping[str, Any]) -> list[str]:
    """The files that a configuration includes: names, or tables with a `path`."""
    listed = content.get("include", [])
    entries = listed if isinstance(listed, list) else []
    return _texts([entry.get("path") if isinstance(entry, dict) else entry for entry in entries])


def _excludes(workspace: Mapping[str, Any], place: Path, crate: Path) -> bool:
    def names(key: str) -> bool:
        return any(crate.is_relative_to(_joined(place, path)) for path in _texts(workspace.get(key, [])))

    return names("exclude") and not names("members")


def _texts(values: object) -> list[str]:
    return (
        [value for value in values if isinstance(value, str)] if isinstance(values, Iterator | list) else []
    )


def _table(content: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = content.get(key)
    return value if isinstance(value, dict) else {}


def _tables(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [value for value in content.values() if isinstance(value, dict)]
