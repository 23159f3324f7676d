"""Whether a crate is written for cuda-oxide, read without cargo.

cargo itself could tell only once it has fetched every dependency, also those of features that are off.
Kernels name `cuda_device` in what their macros leave, so that the crates named by path are enough; what
Cargo.lock says of the others does not count, which is there after the first build and not before it.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rustcuda_backend.cargo_files import read_toml
from rustcuda_backend.settings import Settings

DEVICE = "cuda-device"

# cargo's option with its value in the same argument.
_FEATURES = re.compile(r"(?:--features=|-F=?)(?P<names>.+)", re.DOTALL)


@dataclass(frozen=True)
class _Dependency:
    """A dependency as a manifest writes it.

    Attributes:
        key: What features call it.
        package: The package's name.
        folder: Where it is, if it is named by path.
        optional: Whether a feature must switch it on.
        features: Those of its features that are asked for here.
    """

    key: str
    package: str
    folder: Path | None
    optional: bool
    features: frozenset[str]


def depends_on_device(directory: Path, settings: Settings) -> bool:
    """Whether cuda-oxide's device crate is a dependency of a crate, or of one that it names by path.

    Dependencies of tests and build scripts do not count, and optional ones where a feature that is on asks
    for them.

    Args:
        directory: The crate's folder.
        settings: For the features.
    """
    known: dict[Path, frozenset[str]] = {}
    waiting = [(directory, _chosen_features(directory, settings))]
    while waiting:
        folder, asked = waiting.pop()
        features = known.get(folder, frozenset()) | asked
        if known.get(folder) == features:
            continue
        known[folder] = features
        for dependency, wanted in _switched_on(folder, features):
            if dependency.package == DEVICE:
                return True
            if dependency.folder:
                waiting.append((dependency.folder, wanted))
    return False


def _chosen_features(directory: Path, settings: Settings) -> frozenset[str]:
    """The features that a build asks the crate for, by the setting and by cargo's arguments."""
    arguments = settings.cargo_args
    if "--all-features" in arguments:
        table = _table(read_toml(directory / "Cargo.toml"), "features")
        return frozenset((*table, *(item.key for item in _dependencies(directory) if item.optional)))
    texts = [value for option, value in itertools.pairwise(arguments) if option in ("-F", "--features")]
    joined = (_FEATURES.fullmatch(option) for option in arguments)
    texts += [match["names"] for match in joined if match]
    named = {name for text in texts for name in text.replace(",", " ").split()}
    return frozenset(
        (*settings.features, *named, *(() if "--no-default-features" in arguments else ("default",)))
    )


def _switched_on(folder: Path, features: Iterable[str]) -> Iterator[tuple[_Dependency, frozenset[str]]]:
    """The dependencies that a crate has with these features, and the features that it asks of each."""
    table = _table(read_toml(folder / "Cargo.toml"), "features")
    on: set[str] = set()
    waiting = [*features]
    while waiting:
        item = waiting.pop()
        if item in on:
            continue
        on.add(item)
        below = table.get(item, [])
        waiting += [each for each in below if isinstance(each, str)] if isinstance(below, list) else []
        # `key/feature` switches the dependency on as well, `key?/feature` does not.
        key, slash, _ = item.partition("/")
        if slash and not key.endswith("?"):
            waiting += [key, f"dep:{key}"]
    pairs = [item.partition("/") for item in on]
    for dependency in _dependencies(folder):
        key = dependency.key
        # Where no feature has its name, an optional dependency is one itself.
        if not dependency.optional or f"dep:{key}" in on or (key in on and key not in table):
            passed = (feature for name, slash, feature in pairs if slash and name.rstrip("?") == key)
            yield dependency, dependency.features | frozenset(passed)


def _dependencies(folder: Path) -> Iterator[_Dependency]:
    """What a crate depends on, on any system."""
    manifest = read_toml(folder / "Cargo.toml")
    shared, root = _shared(folder)
    for holder in (manifest, *_table(manifest, "target").values()):
        table = _table(holder, "dependencies") if isinstance(holder, dict) else {}
        for key, written in table.items():
            entry, place = written if isinstance(written, dict) else {}, folder
            if entry.get("workspace") is True:
                inherited, place = _table(shared, key), root
                entry = {**inherited, **entry, "features": [*_features(inherited), *_features(entry)]}
            yield _dependency(key, entry, place)


def _dependency(key: str, entry: Mapping[str, Any], place: Path) -> _Dependency:
    path = entry.get("path")
    default = entry.get("default-features", entry.get("default_features", True))
    return _Dependency(
        key,
        str(entry.get("package", key)),
        # As cargo reads it, which goes by names, whatever is a link.
        Path(os.path.normpath(place / path)) if isinstance(path, str) else None,
        entry.get("optional") is True,
        frozenset((*_features(entry), *(("default",) if default else ()))),
    )


def _features(entry: Mapping[str, Any]) -> list[str]:
    listed = entry.get("features")
    return [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []


def _shared(folder: Path) -> tuple[Mapping[str, Any], Path]:
    """The dependencies that the workspace around a crate keeps for its members, and its folder."""
    for place in (folder, *folder.parents):
        workspace = read_toml(place / "Cargo.toml").get("workspace")
        if isinstance(workspace, dict):
            return _table(workspace, "dependencies"), place
    return {}, folder


def _table(holder: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = holder.get(key)
    return value if isinstance(value, dict) else {}
