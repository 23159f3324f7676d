"""A project that builds, tests and imports at once: what `init` writes, and where."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
from typing import Any

from rustcuda_backend import project_files
from rustcuda_backend.capability import all_cfg_values
from rustcuda_backend.device_crates import DEVICE_CRATE, device_version, lend_device_crate
from rustcuda_backend.errors import SettingsError
from rustcuda_backend.package_layout import Layout, find_layout
from rustcuda_backend.package_names import package_name
from rustcuda_backend.package_search import metadata_name
from rustcuda_backend.pyproject import parse_pyproject
from rustcuda_backend.pyproject_edit import table_of, with_kernels

_TEMPLATES = Path(__file__).parent / "templates"
_CRATE = "kernels"
_MODULE = "kernels_cuda"


@dataclass(frozen=True)
class Scaffold:
    """What is to be written.

    Attributes:
        folder: The project's.
        files: Contents by path relative to it.
        pyproject_before: What stands in pyproject.toml, if there is one.
        kept: Files that would have been written, but are there.
        notes: What else there is to do.
    """

    folder: Path
    files: Mapping[str, str]
    pyproject_before: str | None = None
    kept: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


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
    files = _whole_project(name, package)
    project_files.check(folder, files)
    return Scaffold(folder, files)


def here(folder: Path) -> Scaffold:
    """Kernels for the project in a folder; of the files there, only pyproject.toml changes.

    Raises:
        SettingsError: The project has kernels already, or cannot have them.
    """
    path = folder / "pyproject.toml"
    if not any((folder / name).is_file() for name in ("pyproject.toml", "setup.cfg", "setup.py")):
        name = folder.name
        layout = Layout(package_name(name), Path("src", package_name(name)))
        return _beside_what_is_there(folder, _whole_project(name, layout.package), layout, None)
    before = _text_of(path) if path.is_file() else ""
    known = parse_pyproject(before, path)
    name = _name_of(folder, known, path)
    layout = find_layout(folder, known, name, _CRATE)
    content = _whole_project(name, layout.package, source=layout.source)
    settings = _filled("tables.toml", {})
    if layout.several:
        settings += f'module = "{layout.package}.{_MODULE}"\n'
    if layout.unsaid:
        # Otherwise setuptools takes the crate's folder for another package, and refuses to choose.
        include = f'["{layout.package}", "{layout.package}.*"]'
        settings += f"\n[tool.setuptools.packages.find]\ninclude = {include}\n"
    content["pyproject.toml"] = _edited(before, path, settings)
    plan = _beside_what_is_there(folder, content, layout, before)
    return replace(plan, notes=tuple(_notes(folder, known, name, layout)))


def write(scaffold: Scaffold) -> list[str]:
    """Writes the files, and lends the crate its device crate, so that cargo and editors find that at once.

    Returns:
        What has been written, relative to the project.

    Raises:
        SettingsError: The machine does not let it write all; nothing is left then.
    """
    crate = scaffold.folder / _CRATE
    # A project names its kernels only once they are there.
    project_files.write(
        scaffold.folder,
        scaffold.files,
        last="pyproject.toml",
        before_last=lambda: lend_device_crate(crate, crate),
    )
    return sorted(scaffold.files)


def _whole_project(name: str, package: str, source: Path | None = None) -> dict[str, str]:
    crate = f"{package.strip('_').replace('_', '-')}-{_CRATE}"
    values = {
        "name": name,
        "package": package,
        "crate": crate,
        "device_version": device_version().rpartition(".")[0],
        "packages": _lock_packages(crate),
        "cuda_arch_values": ", ".join(f'"{value}"' for value in all_cfg_values()),
    }
    pyproject = "\n".join(_filled(f"{part}.toml", values) for part in ("pyproject", "tables", "uv"))
    code = (source or Path("src", package)).as_posix()
    templates = {
        "README.md": "README.md",
        ".gitignore": "gitignore",
        ".github/workflows/ci.yml": "ci.yml",
        f"{code}/__init__.py": "init.py",
        f"{code}/ops.py": "ops.py",
        "tests/test_ops.py": "test_ops.py",
        f"{_CRATE}/Cargo.toml": "Cargo.toml",
        f"{_CRATE}/Cargo.lock": "Cargo.lock",
        f"{_CRATE}/src/lib.rs": "lib.rs",
        f"{_CRATE}/.cargo/config.toml": "cargo-config.toml",
    }
    filled = {path: _filled(template, values) for path, template in templates.items()}
    return {"pyproject.toml": pyproject, f"{code}/py.typed": "", **filled}


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


def _name_of(folder: Path, content: dict[str, Any], path: Path) -> str:
    """The distribution's name; the folder's where the project says none."""
    name = table_of(content, "project", path).get("name", "")
    if not isinstance(name, str):
        raise SettingsError(f"'name' must be a text, not {name!r}", where=f"[project] in {path}")
    table_of(table_of(content, "tool", path), "setuptools", path)
    return name or metadata_name(folder) or folder.name


def _edited(before: str, path: Path, settings: str) -> str:
    """The text of pyproject.toml with our tables; line ends stay as they are."""
    windows = "\r\n" in before and before.count("\r\n") == before.count("\n")
    text = before.replace("\r\n", "\n") if windows else before
    edited = with_kernels(text, path, settings, _filled("uv.toml", {}))
    return edited.replace("\n", "\r\n") if windows else edited


def _notes(folder: Path, content: dict[str, Any], name: str, layout: Layout) -> Iterator[str]:
    """What an edit of our own tables cannot do for the project."""
    project = content.get("project", {})
    if project or not ((folder / "setup.py").exists() or metadata_name(folder)):
        dynamic = project.get("dynamic", [])
        said = [*project, *(dynamic if isinstance(dynamic, list) else ())]
        lacking = {"name": name, "version": "0.1.0"}
        lines = [f'{key} = "{value}"' for key, value in lacking.items() if key not in said]
        if lines:
            yield "pyproject.toml does not say what is installed; write\n" + "\n".join(("[project]", *lines))
    if layout.swept_by:
        yield (
            f"setuptools takes the folder '{_CRATE}' for a package, by {layout.swept_by}; add there\n"
            f'exclude = ["{_CRATE}*"]'
        )


def _beside_what_is_there(
    folder: Path, files: dict[str, str], layout: Layout, before: str | None
) -> Scaffold:
    source = folder / layout.source
    module_files = [source.with_name(f"{layout.package}.py"), source / f"{_MODULE}.py", source / _MODULE]
    clash = next((path for path in module_files if os.path.lexists(path)), None)
    if clash:
        raise SettingsError(
            f"'{clash.name}' is where the package '{layout.package}' or its module '{_MODULE}' would go",
            where=str(clash),
            hint="rename it first",
        )
    if os.path.lexists(folder / _CRATE):
        raise SettingsError(
            f"there is a folder or file '{_CRATE}' already",
            where=str(folder / _CRATE),
            hint="rename it, or, if it is the kernel crate, write into pyproject.toml\n"
            f'[tool.rustcuda]\ncrate = "{_CRATE}"',
        )
    if source.is_dir():
        # Whether a package of somebody's own is typed, they know best.
        files = {name: text for name, text in files.items() if not name.endswith("py.typed")}
    kept = [name for name in files if name != "pyproject.toml" and os.path.lexists(folder / name)]
    project_files.check(folder, files)
    if (folder / "pyproject.toml").exists():
        project_files.check_edit(folder / "pyproject.toml")
    wanted = {name: text for name, text in files.items() if name not in kept}
    return Scaffold(folder, wanted, before, tuple(sorted(kept)))
