"""Which module the kernels of each crate go into, and whether they can."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rustcuda_backend.errors import SettingsError
from rustcuda_backend.generated import is_generated
from rustcuda_backend.pyproject import TABLE
from rustcuda_backend.settings import CONTAINERS, CRATES, Settings


def modules(settings: Settings, packages: Sequence[str]) -> list[tuple[str, Settings]]:
    """The dotted name of each crate's module, with the crate's settings.

    Args:
        settings: The project's.
        packages: The packages that setuptools packs.

    Raises:
        SettingsError: A module is none, or in no package, or two crates go into one.
    """
    found: dict[str, tuple[str, Settings]] = {}
    for each in settings.of_each_crate():
        name = _module(each, packages)
        # On some file systems `a.Kernels` and `a.kernels` are one file.
        same = found.setdefault(name.casefold(), (name, each))
        if same[1] is not each:
            first, second = same[1].source, each.source
            both = f"of '{first}' and of '{second}'" if first != second else f"of '{first}', listed twice,"
            raise SettingsError(
                f"the kernels {both} go into one module, '{name}'",
                where=place_of_module(each),
                hint=f'give each {CRATES} a module of its own, e.g. module = "{name}_{len(found) + 1}"',
            )
    return list(found.values())


def place_of_module(settings: Settings) -> str:
    """Where a crate's module is set, or where it could be."""
    keys = ("module", "crate", "kernels")
    return settings.where(next((key for key in keys if key in settings.origins), "crate"))


def _module(settings: Settings, packages: Sequence[str]) -> str:
    if settings.module:
        return checked_module(settings.module, packages, settings.where("module"))
    top = sorted({name for name in packages if name.rpartition(".")[0] not in packages})
    if len(top) == 1:
        return f"{top[0]}.kernels_cuda"
    found = f"the packages {', '.join(top)}" if top else "no package"
    raise SettingsError(
        f"it is not clear into which package the kernels go: the project has {found}",
        where=f"{TABLE} in pyproject.toml",
        hint='set module, e.g. module = "mypackage.kernels_cuda"',
    )


def checked_module(module: str, packages: Sequence[str], where: str) -> str:
    """The setting `module`, if kernels can be generated there.

    Raises:
        SettingsError: It has no package, or one that is not part of the project.
    """
    package, _, _ = module.rpartition(".")
    if not package:
        raise SettingsError(
            f"'{module}' is no module inside a package",
            where=where,
            hint='name package and module, e.g. "mypackage.kernels_cuda"',
        )
    if package not in packages:
        raise SettingsError(
            f"the package '{package}' of module '{module}' is not in this project",
            where=where,
            hint=f"its packages are: {', '.join(packages) or 'none'}",
        )
    return module


def check_free(module: str, folder: Path, others: Sequence[str]) -> None:
    """Keeps what somebody wrote from being overwritten or hidden, and the module from being hidden by it.

    Args:
        module: The module to generate.
        folder: Its package's source.
        others: The project's packages and extension modules.

    Raises:
        SettingsError: There is a module, stub, package, extension module or file of kernels of that name.
    """
    name = module.rpartition(".")[2]
    taken = next((path for path in _entries(folder) if _takes(path, name)), None)
    if not taken and module not in others:
        return
    raise SettingsError(
        f"the module '{module}' is already there, and no build has made it",
        where=str(taken) if taken else "the project's packages and extension modules",
        hint=f"set module in {TABLE} to a name that is free"
        + (f",\nor delete {taken} if a build left it behind" if taken and _is_kernels(taken) else ""),
    )


def _is_kernels(path: Path) -> bool:
    return path.suffix in CONTAINERS.values()


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _takes(path: Path, name: str) -> bool:
    """Whether a file or folder of a package leaves no room for a generated module of a name."""
    # A wheel serves all systems; some of them do not tell `Kernels.py` from `kernels.py`.
    stem, _, rest = path.name.casefold().partition(".")
    if stem != name.casefold():
        return False
    if path.is_dir():
        return not rest and (path / "__init__.py").exists()
    suffix = path.suffix.casefold()
    # Python looks for extension modules first: `kernels.abi3.so`, `kernels.cp312-win_amd64.pyd`.
    if suffix in (".so", ".pyd"):
        return True
    ours = (".py", ".pyi", *CONTAINERS.values())
    return rest in {each.removeprefix(".") for each in ours} and not is_generated(path)
