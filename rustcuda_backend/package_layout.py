"""The package of a project that kernels go into: one that is there, or a new one where setuptools looks."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rustcuda_backend.errors import SettingsError
from rustcuda_backend.package_names import package_name
from rustcuda_backend.package_search import Search, read_search

_NOT_PACKAGES = ("tests", "test", "docs")


@dataclass(frozen=True)
class Layout:
    """The package that kernels go into.

    Attributes:
        package: Its import name.
        source: Its folder, relative to the project.
        several: Whether setuptools finds others beside it.
        unsaid: Whether it lies beside the crate, and nothing says which of the two is a package.
        swept_by: The table by which setuptools takes the crate's folder for a package as well.
    """

    package: str
    source: Path
    several: bool = False
    unsaid: bool = False
    swept_by: str = ""


def find_layout(folder: Path, content: Mapping[str, Any], name: str, crate: str) -> Layout:
    """Where the kernels of a project go.

    Args:
        folder: The project's.
        content: What is in its pyproject.toml.
        name: The distribution's name.
        crate: The folder that the kernel crate gets.

    Raises:
        SettingsError: It is not clear, or setuptools would not find the package.
    """
    search = read_search(folder, content)
    named = search.packages is not None or (bool(set(search.places) - {""}) and search.folders is None)
    layout = _listed(search, name) if named else _looked_for(folder, search, name, crate)
    if not Path(os.path.normpath(folder / layout.source)).is_relative_to(folder):
        raise SettingsError(f"the packages are outside the project, in '{layout.source}'", where=search.where)
    return layout


def _wanted(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).lower()


def _listed(search: Search, name: str) -> Layout:
    """The one of the packages that are listed."""
    listed = search.packages if search.packages is not None else [key for key in search.places if key]
    top = [each for each in listed if "." not in each]
    package = _chosen(top, name, search.where)
    if not package:
        raise SettingsError(
            "setuptools is told of no package that kernels could go into",
            where=search.where,
            hint=f'add "{package_name(name)}" to packages',
        )
    place = search.places.get(package) or os.path.join(search.places.get("", ""), package)  # noqa: PTH118
    return Layout(package, Path(place), several=len(top) > 1)


def _looked_for(folder: Path, search: Search, name: str, crate: str) -> Layout:
    """The one that setuptools finds, or will find once it is written."""
    if search.modules and search.folders is None:
        raise SettingsError(
            "setuptools packs only the modules that py-modules lists, and would leave out a package",
            where=search.where,
            hint=f'name the package as well: packages = ["{package_name(name)}"]',
        )
    for root in _roots(search):
        found = [each for each in _packages(folder / root) if search.takes(each)]
        package = _chosen(found, name, str(folder / root))
        if package:
            return _at(root, package, search, crate, several=len(found) > 1)
    package, root = package_name(name), _roots(search)[0]
    if not search.takes(package):
        raise SettingsError(
            f"setuptools would leave out a package '{package}'",
            where=search.where,
            hint=f'add "{package}*" to include, and see that exclude does not match it',
        )
    if search.automatic and not (folder / "src").is_dir():
        _check_no_modules(folder)
    return _at(root, package, search, crate)


def _roots(search: Search) -> list[str]:
    if search.folders is not None:
        return list(search.folders) or ["."]
    return [search.places[""]] if "" in search.places else ["src", "."]


def _at(root: str, package: str, search: Search, crate: str, *, several: bool = False) -> Layout:
    beside_crate = os.path.normpath(root) == "."
    swept = beside_crate and search.folders is not None and search.takes(crate)
    return Layout(
        package,
        Path(root, package),
        several=several or swept,
        unsaid=beside_crate and search.automatic,
        swept_by=search.where if swept else "",
    )


def _packages(root: Path) -> list[str]:
    folders = sorted(root.iterdir()) if root.is_dir() else []
    found = [path.name for path in folders if (path / "__init__.py").is_file()]
    return [name for name in found if name.isidentifier() and name not in _NOT_PACKAGES]


def _chosen(packages: list[str], name: str, where: str) -> str:
    """The package that is named as the project, or the only one; '' if there is none."""
    wanted = _wanted(name)
    if wanted in packages:
        return wanted
    if len(packages) > 1:
        raise SettingsError(
            f"it is not clear into which package the kernels go: {', '.join(packages)}",
            where=where,
            hint=f"name one of them '{wanted}', as the project",
        )
    return packages[0] if packages else ""


def _check_no_modules(folder: Path) -> None:
    """Modules beside pyproject.toml are packed only where there is no folder `src`."""
    from setuptools.discovery import FlatLayoutModuleFinder

    modules = FlatLayoutModuleFinder.find(str(folder))
    if modules:
        raise SettingsError(
            f"with a package in src, setuptools would no longer pack the module '{modules[0]}'",
            where=str(folder / f"{modules[0]}.py"),
            hint=f"move it into a package, src/{modules[0]}/__init__.py",
        )
