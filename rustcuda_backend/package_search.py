"""What a project tells setuptools about where its packages are, in pyproject.toml and setup.cfg."""

from __future__ import annotations

import configparser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from rustcuda_backend.errors import SettingsError

_FIND = ("find:", "find_namespace:")


@dataclass(frozen=True)
class Search:
    """Where setuptools looks for packages.

    Attributes:
        where: The file, and table, that says so.
        packages: The packages, if they are listed.
        folders: The folders to look in, if they are named.
        include: Patterns that packages must match.
        exclude: Patterns that they must not match.
        places: `package-dir`: the folder of a package; of '', that of all others.
        modules: Whether single modules are listed, so that nothing is looked for.
        scripted: Whether a setup.py may say more.
    """

    where: str
    packages: Sequence[str] | None = None
    folders: Sequence[str] | None = None
    include: Sequence[str] = ("*",)
    exclude: Sequence[str] = ()
    places: Mapping[str, str] = field(default_factory=dict)
    modules: bool = False
    scripted: bool = False

    @property
    def automatic(self) -> bool:
        """Whether nothing is said, and setuptools goes by its own rules."""
        said = (self.packages, self.folders, self.places or None, self.modules or None)
        return not self.scripted and all(each is None for each in said)

    def takes(self, package: str) -> bool:
        """Whether a top-level package in one of the folders is found."""
        matches = [any(fnmatchcase(package, each) for each in some) for some in (self.include, self.exclude)]
        return matches == [True, False]


def read_search(folder: Path, content: Mapping[str, Any]) -> Search:
    """What a project says.

    Args:
        folder: The project's.
        content: What is in its pyproject.toml.

    Raises:
        SettingsError: It is nothing that setuptools takes.
    """
    path = folder / "pyproject.toml"
    scripted = (folder / "setup.py").exists()
    table = content.get("tool", {}).get("setuptools", {})
    where = f"[tool.setuptools] in {path}"
    if not {"packages", "package-dir", "py-modules"}.intersection(table):
        table, where = _from_cfg(folder / "setup.cfg"), f"[options] in {folder / 'setup.cfg'}"
    packages = table.get("packages")
    find = packages.get("find", {}) if isinstance(packages, dict) else None
    places, modules = table.get("package-dir", {}), "py-modules" in table
    if isinstance(packages, list) and _are_texts(packages) and _are_texts_of(places):
        return Search(where, packages=packages, places=places, modules=modules, scripted=scripted)
    patterns = {key: (find or {}).get(key, default) for key, default in _DEFAULTS.items()}
    good = (packages is None or isinstance(find, dict)) and _are_texts_of(places)
    if not good or not all(_are_texts(each) for each in patterns.values()):
        raise SettingsError("setuptools does not take what stands there on packages", where=where)
    return Search(
        where,
        folders=None if packages is None else patterns["where"],
        include=patterns["include"],
        exclude=patterns["exclude"],
        places=places,
        modules=modules,
        scripted=scripted,
    )


_DEFAULTS: dict[str, list[str]] = {"where": ["."], "include": ["*"], "exclude": []}


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _are_texts_of(value: object) -> bool:
    return isinstance(value, dict) and _are_texts(list(value.values()))


# --- setup.cfg -------------------------------------------------------------------------------------------


def metadata_name(folder: Path) -> str:
    """The project's name in setup.cfg; '' if there is none."""
    return _parsed(folder / "setup.cfg").get("metadata", "name", fallback="")


def _from_cfg(path: Path) -> dict[str, Any]:
    """The options of a setup.cfg, as pyproject.toml would have them."""
    parser = _parsed(path)
    options = dict(parser["options"]) if parser.has_section("options") else {}
    found: dict[str, Any] = {}
    if options.get("packages", "").strip() in _FIND:
        find = dict(parser["options.packages.find"]) if parser.has_section("options.packages.find") else {}
        found["packages"] = {"find": {key: _items(text) for key, text in find.items() if key in _DEFAULTS}}
    elif "packages" in options:
        found["packages"] = _items(options["packages"])
    if "package_dir" in options:
        pairs = (item.partition("=") for item in _items(options["package_dir"]))
        found["package-dir"] = {key.strip(): value.strip() for key, _, value in pairs}
    if "py_modules" in options:
        found["py-modules"] = _items(options["py_modules"])
    return found


def _parsed(path: Path) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser()
    try:
        parser.read(path, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError) as error:
        raise SettingsError(f"setup.cfg cannot be read: {error}", where=str(path)) from None
    return parser


def _items(text: str) -> list[str]:
    """A list in setup.cfg: one a line, or by commas."""
    parts = text.splitlines() if "\n" in text else text.split(",")
    return [part.strip() for part in parts if part.strip()]
