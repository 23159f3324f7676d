"""Kernel crates written for cuda-oxide, made ready for stock rustc without a change to their files.

Beside such a crate a workspace of its own is written: for the crate and each crate that it names by path
one manifest, whose library is the author's own source. It names our `cuda-device` in place of NVIDIA's,
wherever that was to come from, and leaves out what needs `std`, which only the host part can use. So
neither the author's manifest nor his Cargo.lock is touched, no git repository is asked, and a program
(`src/main.rs`) can be compiled as a library.
"""

from __future__ import annotations

import json
import os
import re
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from rustcuda_backend import cache
from rustcuda_backend.cargo_files import read_toml
from rustcuda_backend.errors import SettingsError

# cargo's JSON about a package or a dependency.
Package: TypeAlias = "dict[str, Any]"

DEVICE = "cuda-device"
# What we bring for a crate that is compiled with stock rustc, and what is host code altogether.
_OURS = (DEVICE, "cuda-macros", "cuda-core", "cuda-host")
_HOST_CRATES = ("cuda-async", "cuda-bindings")
# The folders of the device crates that they are made of.
DEVICE_CRATES = (*_OURS, "rustcuda-device", "rustcuda-macros")
# From a manifest that was written to the author's workspace: out of target/rustcuda/cuda-device/NAME/NAME.
TO_WORKSPACE = "/".join([".."] * 5)
_LIBRARIES = frozenset(("lib", "rlib", "dylib", "cdylib", "staticlib"))


@dataclass(frozen=True)
class Staged:
    """The workspace that was written.

    Attributes:
        manifest: The kernel crate's manifest in it.
        target: cargo's description of the target that holds the kernels.
        device_only: Names of the packages whose host part is to be cut away, the kernel crate's first.
        linked: Crate names of those but the first: their kernels belong to the module too.
    """

    manifest: Path
    target: dict[str, Any]
    device_only: tuple[str, ...]
    linked: tuple[str, ...]


def applies(package: Package, find: Callable[[Path], Package]) -> bool:
    """Whether a crate, or one that it names by path, depends on cuda-oxide's device crate.

    Args:
        package: The crate.
        find: Reads the package in a folder.
    """
    return any(map(_names_device, _with_path_dependencies(package, find)))


def stage(
    package: Package,
    find: Callable[[Path], Package],
    workspace: Path,
    folder: Path,
    describe: Callable[[Path], dict[str, Any]],
) -> Staged:
    """Writes the workspace.

    Args:
        package: The kernel crate.
        find: Reads the package in a folder.
        workspace: The root of the author's workspace, whose Cargo.lock and profiles hold.
        folder: Where to write; the device crates are in its folder `device`.
        describe: Asks cargo for all that it knows of a manifest's crate.

    Raises:
        SettingsError: It cannot be told which of several programs holds the kernels.
    """
    packages = _with_path_dependencies(package, find)
    targets = {item["name"]: kernel_target(item) for item in packages}
    lock = workspace / "Cargo.lock"
    if lock.is_file():
        _write(folder / "Cargo.lock", lock.read_bytes())
    profiles = _profiles(workspace / "Cargo.toml")
    members = [item["name"] for item in packages]
    root = {"workspace": {"members": members, "resolver": "2"}, "profile": profiles}
    _write(folder / "Cargo.toml", _toml(root).encode())
    manifest = folder / package["name"] / "Cargo.toml"
    device_only = [item["name"] for item in packages if _names_device(item)]
    left_out: frozenset[str] = frozenset()
    # Only cargo knows which features, hence which crates, need std: it reads all of them first.
    while True:
        for item in packages:
            content = _manifest(item, targets[item["name"]], folder / item["name"], folder, left_out)
            _write(folder / item["name"] / "Cargo.toml", _toml(content).encode())
        needing = _needing_std(describe(manifest), members, device_only)
        if not needing:
            break
        left_out |= needing
    linked = [_crate_name(targets[name]) for name in device_only if name != package["name"]]
    return Staged(manifest, targets[package["name"]], tuple(device_only), tuple(linked))


def unlocked(staged: Mapping[str, Any], lock: Mapping[str, Any]) -> list[str]:
    """Packages from registries and git that a build takes, but the author's Cargo.lock does not have.

    Args:
        staged: cargo's description of the workspace that was written.
        lock: The content of the author's Cargo.lock.
    """
    locked = {(package["name"], package["version"]) for package in lock.get("package", [])}
    taken = {(item["name"], item["version"]) for item in staged["packages"] if item["source"]}
    return [f"{name} {version}" for name, version in sorted(taken - locked)]


def _names_device(package: Package) -> bool:
    return any(dependency["name"] == DEVICE for dependency in _dependencies(package))


def _dependencies(package: Package) -> Iterator[Package]:
    """Its dependencies; those of tests are no part of a build."""
    return (item for item in package["dependencies"] if item["kind"] != "dev")


def _with_path_dependencies(package: Package, find: Callable[[Path], Package]) -> list[Package]:
    """The crate and all that it names by path, directly or not; not cuda-oxide's own."""
    found = {package["name"]: package}
    waiting = [package]
    while waiting:
        for dependency in _dependencies(waiting.pop()):
            name = dependency["name"]
            if dependency.get("path") and name not in (*_OURS, *_HOST_CRATES, *found):
                found[name] = find(Path(dependency["path"]))
                waiting.append(found[name])
    return list(found.values())


def kernel_target(package: Package) -> dict[str, Any]:
    """Where the kernels are: the library if there is one, else the program.

    Args:
        package: cargo's description of the package.

    Raises:
        SettingsError: There is no library, and it cannot be told which of several programs it is.
    """
    targets: list[dict[str, Any]] = package["targets"]
    for target in targets:
        if (_LIBRARIES | {"proc-macro"}).intersection(target["kind"]):
            return target
    programs = [target for target in targets if "bin" in target["kind"]]
    preferred = package.get("default_run") or package["name"]
    chosen = [target for target in programs if target["name"] == preferred] or programs
    if len(chosen) != 1:
        names = ", ".join(target["name"] for target in chosen) or "nothing"
        raise SettingsError(
            f"the crate '{package['name']}' has no library, and of its programs ({names}) none is the one",
            where=package["manifest_path"],
            hint="put the kernels into src/lib.rs, or name the program with default-run under [package]",
        )
    return chosen[0]


def _crate_name(target: Mapping[str, Any]) -> str:
    return str(target["name"]).replace("-", "_")


def _manifest(
    package: Package, target: Mapping[str, Any], place: Path, folder: Path, left_out: frozenset[str]
) -> dict[str, Any]:
    """The manifest that stands for an author's package."""
    kind = {"proc-macro": True} if "proc-macro" in target["kind"] else {}
    library = {"name": _crate_name(target), "path": _relative(Path(target["src_path"]), place), **kind}
    content: dict[str, Any] = {
        "package": {
            **{key: package[key] for key in ("name", "version", "edition")},
            **_build_script(package, place),
            # Found by their places in the folder, which the author's own source is not in.
            **dict.fromkeys(("autobins", "autoexamples", "autotests", "autobenches"), False),
        },
        "lib": library,
        "features": package["features"],
    }
    for dependency in _dependencies(package):
        name = dependency["name"]
        if name in _HOST_CRATES or (name in left_out and not dependency["optional"]):
            continue
        holder = content
        if dependency["target"]:
            holder = content.setdefault("target", {}).setdefault(dependency["target"], {})
        table = "build-dependencies" if dependency["kind"] == "build" else "dependencies"
        entry = _dependency(dependency, place, folder)
        holder.setdefault(table, {})[dependency["rename"] or name] = entry
    return content


def _build_script(package: Package, place: Path) -> dict[str, Any]:
    scripts = [target for target in package["targets"] if "custom-build" in target["kind"]]
    return {"build": _relative(Path(scripts[0]["src_path"]), place) if scripts else False}


def _dependency(dependency: Package, place: Path, folder: Path) -> dict[str, Any]:
    name = dependency["name"]
    entry: dict[str, Any] = {"package": name}
    if name in _OURS:
        return {**entry, "path": _relative(folder / "device" / name, place)}
    entry["default-features"] = dependency["uses_default_features"]
    entry["features"] = dependency["features"]
    entry["optional"] = dependency["optional"]
    if dependency.get("path"):
        return {**entry, "path": _relative(folder / name, place)}
    if str(dependency["source"]).startswith("git+"):
        url = urllib.parse.urlsplit(dependency["source"].removeprefix("git+"))
        git = urllib.parse.urlunsplit(url._replace(query="", fragment=""))
        return {**entry, "git": git, **dict(urllib.parse.parse_qsl(url.query))}
    registry = {"registry-index": dependency["registry"]} if dependency.get("registry") else {}
    return {**entry, "version": dependency["req"], **registry}


def _needing_std(
    metadata: Mapping[str, Any], members: Sequence[str], device_only: Sequence[str]
) -> frozenset[str]:
    """The members' dependencies that cannot be compiled for a GPU, for want of std in them or below."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    without = (*device_only, *DEVICE_CRATES)
    needing = {
        key
        for key in nodes
        if packages[key]["name"] not in without and _needs_std(packages[key], nodes[key]["features"])
    }
    while True:
        more = {key for key in nodes if needing.intersection(_below(nodes[key]))} - needing
        if not more:
            break
        needing |= more
    own = [key for key, package in packages.items() if package["name"] in members and not package["source"]]
    return frozenset(packages[key]["name"] for mine in own for key in _below(nodes[mine]) if key in needing)


def _below(node: Mapping[str, Any]) -> set[str]:
    """What a package is compiled with for the GPU; build scripts run on the host."""
    return {item["pkg"] for item in node["deps"] if any(kind["kind"] is None for kind in item["dep_kinds"])}


def _needs_std(package: Package, features: Sequence[str]) -> bool:
    """Whether a package leaves std in place with these features; no proc macro, which the host runs."""
    libraries = [target for target in package["targets"] if _LIBRARIES.intersection(target["kind"])]
    if not libraries:
        return False
    text = Path(libraries[0]["src_path"]).read_text(encoding="utf-8", errors="replace")
    if re.search(r"^\s*#!\[\s*no_std\s*\]", text, re.MULTILINE):
        return False
    unless = re.search(r'#!\[cfg_attr\(\s*not\(\s*feature\s*=\s*"(\w+)"\s*\)\s*,\s*no_std', text)
    return not unless or unless[1] in features


def _profiles(manifest: Path) -> dict[str, Any]:
    """The author's profiles; one that names packages is kept without that."""
    profiles = read_toml(manifest).get("profile", {})
    return {
        name: {key: value for key, value in profile.items() if key not in ("package", "build-override")}
        for name, profile in profiles.items()
    }


def _relative(path: Path, start: Path) -> str:
    """Relative: cargo writes absolute places into symbols, and wheels would differ between folders."""
    return Path(os.path.relpath(path, start)).as_posix()


def _write(path: Path, data: bytes) -> None:
    """Leaves a file alone that is as it should be: cargo compiles anew what it finds changed."""
    if not path.is_file() or path.read_bytes() != data:
        path.parent.mkdir(parents=True, exist_ok=True)
        cache.write_atomically(path, data)


def _toml(content: Mapping[str, Any]) -> str:
    """A manifest in TOML, each of its tables in one line; for what JSON can say."""
    return "".join(f"{_key(key)} = {_value(value)}\n" for key, value in content.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value)


def _key(key: str) -> str:
    return json.dumps(key)
