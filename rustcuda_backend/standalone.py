"""Builds a project's kernels alone, into a folder: for people who package them in another way."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rustcuda_backend import cache, pipeline
from rustcuda_backend.errors import RustcudaError, SettingsError
from rustcuda_backend.generated import is_generated
from rustcuda_backend.modules import place_of_module
from rustcuda_backend.report import Report
from rustcuda_backend.settings import CONTAINERS, CRATES, Settings, check_module_name

_DEFAULT_MODULE = "kernels_cuda"


def build(project: Path, settings: Settings, output: Path, module: str = "") -> list[Path]:
    """Builds all kernels, then writes the files: half a build leaves nothing.

    Args:
        project: The folder of pyproject.toml.
        settings: Its settings.
        output: The folder for the files; made where it is missing.
        module: Name of the module to generate, plain or dotted; else the setting, else `kernels_cuda`.

    Returns:
        The files that have been written.

    Raises:
        RustcudaError: Whatever the user has to mend.
    """
    crates = _modules(settings, module)
    for name, _ in crates:
        _check_free(output, name)
    built = pipeline.build_all(project, crates, Report(settings.verbose))
    written = []
    try:
        output.mkdir(parents=True, exist_ok=True)
        for (name, _), kernels in zip(crates, built, strict=True):
            files = kernels.files(_file_name(name))
            _remove_other_container(output, _file_name(name), files)
            for file, data in files.items():
                cache.write_atomically(output / file, data)
                written.append(output / file)
    except OSError as error:
        raise RustcudaError(
            f"the kernels cannot be written: {error.strerror}",
            where=str(output),
            hint="name a folder that can be written: --output DIR",
        ) from None
    return written


def _remove_other_container(output: Path, name: str, files: Iterable[str]) -> None:
    """Takes away the file of an earlier build that was told to write another kind."""
    for path in (output / f"{name}{suffix}" for suffix in CONTAINERS.values()):
        if path.name not in files and is_generated(path):
            path.unlink(missing_ok=True)


def _modules(settings: Settings, module: str) -> list[tuple[str, Settings]]:
    """The name of each crate's module, with the crate's settings."""
    if module and settings.crates:
        raise SettingsError(
            "--module cannot be given for several crates at once",
            where="--module",
            hint=f"set module in each {CRATES}",
        )
    found: dict[str, tuple[str, Settings]] = {}
    for each in settings.of_each_crate():
        name = module or each.module or _DEFAULT_MODULE
        where = "--module" if module else place_of_module(each)
        check_module_name(name, where)
        # All files go into one folder, and some file systems do not tell upper from lower case.
        other, _ = found.setdefault(_file_name(name).casefold(), (name, each))
        if found[_file_name(name).casefold()][1] is not each:
            both = f"the modules '{other}' and '{name}'" if other != name else f"two modules '{name}'"
            raise SettingsError(
                f"{both} would be written to the same files",
                where=where,
                hint=f"set module in each {CRATES} so that the last parts differ",
            )
    return list(found.values())


def _file_name(module: str) -> str:
    return module.rpartition(".")[2]


def _check_free(output: Path, module: str) -> None:
    """Keeps a module that somebody wrote from being overwritten."""
    for suffix in (".py", ".pyi"):
        path = output / f"{_file_name(module)}{suffix}"
        if path.exists() and not is_generated(path):
            raise SettingsError(
                f"the module '{module}' is already there, and no build has made it",
                where=str(path),
                hint="give another name by --module, or another folder by --output",
            )
