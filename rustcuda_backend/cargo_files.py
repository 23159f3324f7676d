"""What Cargo.toml and `.cargo/config.toml` files name by path, read without cargo."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterator, Mapping
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


def named_folders(root: Path, crate: Path) -> Iterator[tuple[Path, Path]]:
    """The folders of crates that a crate's build reads, each with the file that names it.

    Args:
        root: The project; files above it are not read.
        crate: The crate's folder, in the project or not.
    """
    for place in (crate, *above(root, crate)):
        manifest = place / "Cargo.toml"
        content = read_toml(manifest)
        if place == crate or "workspace" in content:
            yield from ((_joined(place, path), manifest) for path in _in_manifest(content))
            yield from ((_joined(place, path), manifest) for path in _members(content, place))
        for name in CONFIGS:
            config = place / name
            yield from ((_joined(place, path), config) for path in _in_config(read_toml(config)))


def named_sources(crate: Path) -> Iterator[Path]:
    """Sources elsewhere than in the crate's folder that its manifest names; modules may lie beside them."""
    content = read_toml(crate / "Cargo.toml")
    for path in _texts([_table(content, "lib").get("path"), _table(content, "package").get("build")]):
        source = _joined(crate, path)
        if not source.is_relative_to(crate):
            yield source


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


def _texts(values: object) -> list[str]:
    return (
        [value for value in values if isinstance(value, str)] if isinstance(values, Iterator | list) else []
    )


def _table(content: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = content.get(key)
    return value if isinstance(value, dict) else {}


def _tables(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [value for value in content.values() if isinstance(value, dict)]
