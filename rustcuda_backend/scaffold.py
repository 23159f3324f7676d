"""A project that builds, tests and imports at once: what `init` writes, and where."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from keyword import iskeyword
from pathlib import Path
from string import Template
from typing import Any

from rustcuda_backend import cache
from rustcuda_backend.capability import all_cfg_values
from rustcuda_backend.device_crates import DEVICE_CRATE, device_version, lend_device_crate
from rustcuda_backend.errors import SettingsError
from rustcuda_backend.pyproject_edit import parsed, with_kernels

_TEMPLATES = Path(__file__).parent / "templates"
_CRATE = "kernels"
_MODULE = "kernels_cuda"

# PEP 508's.
_NAME = re.compile(r"[A-Z0-9]|[A-Z0-9][A-Z0-9._-]*[A-Z0-9]", re.IGNORECASE)
# Where a wrapper of kernels would hide something else that it needs.
_TAKEN = ("torch", "rustcuda_backend", "cuda", "tests", _CRATE)


@dataclass(frozen=True)
class Scaffold:
    """What is to be written.

    Attributes:
        folder: The project's.
        files: Contents by path relative to it.
        pyproject_before: What stands in pyproject.toml, if there is one.
        kept: Files that would have been written, but are there.
    """

    folder: Path
    files: Mapping[str, str]
    pyproject_before: str | None = None
    kept: tuple[str, ...] = ()


def new(name: str, parent: Path) -> Scaffold:
    """A project in a folder of its own.

    Raises:
        SettingsError: The name does not suit a package, or the folder holds something.
    """
    package = package_name(name)
    folder = parent / name
    if folder.is_dir() and any(folder.iterdir()):
        raise SettingsError(
            f"the folder '{name}' is not empty",
            where=str(folder),
            hint="choose another name, or add kernels to a project that is there: in its folder, init --here",
        )
    if folder.exists() and not folder.is_dir():
        raise SettingsError(f"'{name}' is there already, and is no folder", where=str(folder))
    if (parent / f"{package}.py").exists():
        raise SettingsError(
            f"the module file '{package}.py' would hide the package '{package}'",
            where=str(parent / f"{package}.py"),
            hint="choose another name",
        )
    return Scaffold(folder, _whole_project(name, package))


def here(folder: Path) -> Scaffold:
    """Kernels for the project in a folder; of the files there, only pyproject.toml changes.

    Raises:
        SettingsError: The project has kernels already, or cannot have them.
    """
    path = folder / "pyproject.toml"
    if not path.is_file():
        name = folder.name
        files = _whole_project(name, package_name(name))
        return _beside_what_is_there(folder, files, package_name(name), None)
    before = _text_of(path)
    known = parsed(before, path)
    name = known.get("project", {}).get("name", folder.name)
    root, package = _package_of(folder, name)
    content = _whole_project(name, package, root=root)
    settings = _filled("tables.toml", {})
    if _several_packages(folder / root):
        settings += f'module = "{package}.{_MODULE}"\n'
    if not root and not _says_which_packages(folder, known):
        # Otherwise setuptools takes the crate's folder for another package, and refuses to choose.
        settings += f'\n[tool.setuptools.packages.find]\ninclude = ["{package}", "{package}.*"]\n'
    edited = with_kernels(before.replace("\r\n", "\n"), path, settings, _filled("uv.toml", {}))
    content["pyproject.toml"] = edited.replace("\n", "\r\n") if "\r\n" in before else edited
    return _beside_what_is_there(folder, content, package, before, root)


def write(scaffold: Scaffold) -> list[str]:
    """Writes the files, and lends the crate its device crate, so that cargo and editors find that at once.

    Returns:
        What has been written, relative to the project.
    """
    for name, text in scaffold.files.items():
        path = scaffold.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        cache.write_atomically(path, text.encode())
    crate = scaffold.folder / _CRATE
    lend_device_crate(crate, crate)
    return sorted(scaffold.files)


def package_name(name: str) -> str:
    """The import package of a distribution.

    Raises:
        SettingsError: The name is none for a distribution, or gives no package that can be imported.
    """
    hint = 'use letters, digits and single "-" between them, e.g. my-kernels'
    if not _NAME.fullmatch(name):
        raise SettingsError(f"'{name}' is no name for a distribution", where="PEP 508", hint=hint)
    package = re.sub(r"[-_.]+", "_", name).lower()
    if not package.isidentifier() or iskeyword(package):
        raise SettingsError(f"'{package}', of '{name}', is no name for a package", where="PEP 8", hint=hint)
    if package in _TAKEN or package in sys.stdlib_module_names:
        raise SettingsError(f"a package '{package}' would hide another of that name", where=name, hint=hint)
    return package


def _whole_project(name: str, package: str, root: str = "src") -> dict[str, str]:
    crate = re.sub(r"[-_.]+", "-", name).lower() + f"-{_CRATE}"
    values = {
        "name": name,
        "package": package,
        "crate": crate,
        "device_version": device_version().rpartition(".")[0],
        "packages": _lock_packages(crate),
        "cuda_arch_values": ", ".join(f'"{value}"' for value in all_cfg_values()),
    }
    pyproject = "\n".join(_filled(f"{part}.toml", values) for part in ("pyproject", "tables", "uv"))
    source = Path(root, package).as_posix()
    templates = {
        "README.md": "README.md",
        ".gitignore": "gitignore",
        ".github/workflows/ci.yml": "ci.yml",
        f"{source}/__init__.py": "init.py",
        f"{source}/ops.py": "ops.py",
        "tests/test_ops.py": "test_ops.py",
        f"{_CRATE}/Cargo.toml": "Cargo.toml",
        f"{_CRATE}/Cargo.lock": "Cargo.lock",
        f"{_CRATE}/src/lib.rs": "lib.rs",
        f"{_CRATE}/.cargo/config.toml": "cargo-config.toml",
    }
    filled = {path: _filled(template, values) for path, template in templates.items()}
    return {"pyproject.toml": pyproject, f"{source}/py.typed": "", **filled}


def _filled(template: str, values: Mapping[str, str]) -> str:
    text = (_TEMPLATES / f"{template}.in").read_text(encoding="utf-8")
    return Template(text).substitute(values)


def _lock_packages(crate: str) -> str:
    """The packages of Cargo.lock in cargo's order, with which `--locked` compares it."""
    version = device_version()
    dependencies = {
        crate: ("0.1.0", [DEVICE_CRATE]),
        DEVICE_CRATE: (version, ["rustcuda-macros"]),
        "rustcuda-macros": (version, []),
    }
    blocks = []
    for package, (its_version, needed) in sorted(dependencies.items()):
        block = f'[[package]]\nname = "{package}"\nversion = "{its_version}"\n'
        if needed:
            block += "dependencies = [\n" + "".join(f' "{each}",\n' for each in needed) + "]\n"
        blocks.append(block)
    return "\n".join(blocks).rstrip("\n")


# --- a project that is there ------------------------------------------------------------------------------


def _text_of(path: Path) -> str:
    """A file's text, with its line ends as they are."""
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path.name} is not UTF-8: {error}", where=str(path)) from None


def _package_of(folder: Path, name: str) -> tuple[str, str]:
    """Where the packages are, relative to the project, and the one that the kernels go into."""
    wanted = re.sub(r"[-_.]+", "_", name).lower()
    for root in ("src", ""):
        found = _packages(folder / root)
        if wanted in found or len(found) == 1:
            return root, wanted if wanted in found else found[0]
        if found:
            raise SettingsError(
                f"it is not clear into which package the kernels go: {', '.join(found)}",
                where=str(folder / root),
                hint=f"name one of them '{wanted}', as the project",
            )
    return "src", package_name(name)


def _packages(root: Path) -> list[str]:
    folders = sorted(root.iterdir()) if root.is_dir() else []
    found = [path.name for path in folders if (path / "__init__.py").is_file()]
    return [name for name in found if name not in ("tests", "test", "docs")]


def _several_packages(root: Path) -> bool:
    return len(_packages(root)) > 1


def _says_which_packages(folder: Path, pyproject: dict[str, Any]) -> bool:
    if (folder / "setup.py").exists() or (folder / "setup.cfg").exists():
        return True
    return "packages" in pyproject.get("tool", {}).get("setuptools", {})


def _beside_what_is_there(
    folder: Path, files: dict[str, str], package: str, before: str | None, root: str = "src"
) -> Scaffold:
    source = folder / root / package
    module_files = [folder / root / f"{package}.py", source / f"{_MODULE}.py", source / _MODULE]
    clash = next((path for path in module_files if path.exists()), None)
    if clash:
        raise SettingsError(
            f"'{clash.name}' is where the package '{package}' or its module '{_MODULE}' would go",
            where=str(clash),
            hint="rename it first",
        )
    if (folder / _CRATE).exists():
        raise SettingsError(
            f"there is a folder '{_CRATE}' already",
            where=str(folder / _CRATE),
            hint="rename it, or, if it is the kernel crate, write into pyproject.toml\n"
            f'[tool.rustcuda]\ncrate = "{_CRATE}"',
        )
    if source.is_dir():
        # Whether a package of somebody's own is typed, they know best.
        files = {name: text for name, text in files.items() if not name.endswith("py.typed")}
    kept = [name for name in files if name != "pyproject.toml" and os.path.lexists(folder / name)]
    wanted = {name: text for name, text in files.items() if name not in kept}
    return Scaffold(folder, wanted, before, tuple(sorted(kept)))
