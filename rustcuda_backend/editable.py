"""Editable installs: kernels beside their package's source, which know what they were built from."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock

from rustcuda_backend import cache, machine, pipeline, process
from rustcuda_backend.artefact import artefact_source
from rustcuda_backend.crate_sources import source_files
from rustcuda_backend.errors import RustcudaError, SettingsError
from rustcuda_backend.generated import MARK, is_generated, write
from rustcuda_backend.loader.editable import _Editable
from rustcuda_backend.loader.generate import editable_end
from rustcuda_backend.pipeline import Kernels
from rustcuda_backend.plan import TORCH_VARIABLE
from rustcuda_backend.pyproject import read_table
from rustcuda_backend.report import Report
from rustcuda_backend.settings import SETTING_FIELDS, Settings, read_settings
from rustcuda_backend.settings_values import spelled

# Marks the `py.typed` of an editable install, which in a wheel is empty.
_TYPED = MARK + b"for an editable install.\n"

_GIVEN = ("config setting ", "environment variable ")
_NOT_COMPILED = (".md",)


@dataclass(frozen=True)
class Place:
    """Where the kernels of one crate go.

    Attributes:
        module: The dotted name of the module to generate.
        settings: The crate's settings.
        folder: The source of the module's package.
    """

    module: str
    settings: Settings
    folder: Path


def build(project: Path, places: Sequence[Place], report: Report) -> None:
    """Builds the kernels and writes them beside their packages' sources.

    Raises:
        RustcudaError: Whatever the user has to mend.
    """
    # What changes while the build runs may or may not be in it.
    before = [_sources(project, place.settings) for place in places]
    crates = [(place.module, place.settings) for place in places]
    built = pipeline.build_all(project, crates, report, editable=True)
    for place, sources, kernels in zip(places, before, built, strict=True):
        # cargo itself may have written Cargo.lock, and only it knows of sources elsewhere.
        new = {name for name in _sources(project, place.settings) if name.endswith("Cargo.lock")}
        # What this build is about to write, a build script may watch.
        read = {_name(project, path) for path in kernels.sources if not is_generated(path)}
        new |= read - set(sources)
        _write(project, place, kernels, sources | {name: _stamp(project, name) for name in new})
        _say_what_git_sees(place, report)


def _sources(project: Path, settings: Settings) -> dict[str, tuple[int, int, str]]:
    """All that can be told without cargo to be a source: name, to size, time and digest.

    That is also more than rustc reads: what else is in a crate's folder a build script may read.
    """
    if settings.kernels:
        names = [artefact_source(project, settings).as_posix()]
    else:
        paths = source_files(project, settings.crate, complete=False)
        names = [path.as_posix() for path in paths if path.suffix not in _NOT_COMPILED]
    return {name: _stamp(project, name) for name in ("pyproject.toml", *names)}


def _name(project: Path, path: Path) -> str:
    """A file's name relative to the project; one that is elsewhere is named as it is."""
    root = project.resolve()
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()


def _stamp(project: Path, name: str) -> tuple[int, int, str]:
    path = project / name
    status = path.stat()
    return status.st_size, status.st_mtime_ns, _Editable.digest(str(path))


def _write(
    project: Path, place: Place, kernels: Kernels, sources: Mapping[str, tuple[int, int, str]]
) -> None:
    record = _Editable(
        str(project),
        str(place.folder.absolute()),
        place.module,
        given(place.settings, os.environ),
        place.settings.editable_rebuild,
        tuple((name, *stamp) for name, stamp in sorted(sources.items())),
    )
    python = kernels.loader.python + editable_end(record)
    loader = dataclasses.replace(kernels.loader, python=python)
    write(place.folder, place.module, dataclasses.replace(kernels, loader=loader), typed=_TYPED)
    # Python takes a compiled file for current whose source has the same size and was written in that second.
    for compiled in (place.folder / "__pycache__").glob(f"{place.module.rpartition('.')[2]}.*.pyc"):
        compiled.unlink(missing_ok=True)


def given(settings: Settings, environ: Mapping[str, str]) -> dict[str, str]:
    """The settings that did not come from pyproject.toml, as config settings for a later build."""
    found = {
        spelled(name): _as_text(name, getattr(settings, name))
        for name, where in settings.origins.items()
        if where.startswith(_GIVEN)
    }
    if not settings.capabilities and environ.get(TORCH_VARIABLE, "").strip():
        found["capabilities"] = environ[TORCH_VARIABLE]
    return found


def _as_text(name: str, value: Any) -> str:
    if isinstance(value, tuple):
        return shlex.join(value) if SETTING_FIELDS[name].metadata["arguments"] else ";".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _say_what_git_sees(place: Place, report: Report) -> None:
    """Says which of the written files git would commit."""
    git = shutil.which("git")
    name = place.module.rpartition(".")[2]
    written = [path for path in sorted(place.folder.glob(f"{name}.*")) if is_generated(path)]
    written += [path for path in [place.folder / "py.typed"] if is_generated(path)]
    if not git:
        return
    argv = [git, "-c", "core.quotePath=off", "check-ignore", "--", *(path.name for path in written)]
    finished = process.run(argv, cwd=place.folder)
    if finished.returncode not in (0, 1):
        return  # no repository
    ignored = finished.stdout.splitlines()
    seen = [path.name for path in written if path.name not in ignored]
    if seen:
        report.note(f"git does not ignore what was written into {place.folder}; to .gitignore add:")
        report.note("\n".join(f"  {line}" for line in seen))


# --- rebuilding on import ---------------------------------------------------------------------------------


class _Kept(Report):
    """Keeps what it is told."""

    def __init__(self) -> None:
        super().__init__(colour=False)
        self.lines: list[str] = []

    def _print(self, text: str) -> None:
        self.lines.append(text)


def rebuild(record: _Editable, named: str) -> None:
    """Builds a module anew; of several processes that find it stale, one builds and the others wait.

    Args:
        record: What the stale module knows.
        named: The changed sources, for messages.

    Raises:
        ImportError: The build failed; with all that the compiler said.
    """
    project, module = Path(record.project), record.module
    key = cache.digest(record.project, module)
    report: Report = _Kept()
    try:
        with _alone(key):
            if _is_fresh(Path(record.folder, f"{module.rpartition('.')[2]}.py")):
                return
            place = _place(record, project)
            Report().note(f"{named} changed, so {module} is built again")
            if place.settings.verbose:
                report = Report(place.settings.verbose)
            build(project, [place], report)
    except (RustcudaError, OSError) as error:
        told = machine.told(error, project) if isinstance(error, OSError) else error
        if told is None:
            raise
        said = report.lines if isinstance(report, _Kept) else []
        text = "\n".join([f"{module} could not be built after a change of {named}", *said, str(told)])
        raise ImportError(text, name=module) from None


@contextlib.contextmanager
def _alone(key: str) -> Iterator[None]:
    folder = cache.kind_directory("editable")
    with filelock.FileLock(folder / f"{key}.lock"):
        os.environ[_Editable.guard] = key
        try:
            yield
        finally:
            del os.environ[_Editable.guard]


def _is_fresh(path: Path) -> bool:
    """Whether the module on disk, which another process may just have written, is that of the sources."""
    for node in ast.parse(path.read_bytes()).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="_editable")], value=ast.Call(args=arguments)):
                return not _Editable(*map(ast.literal_eval, arguments)).changed()
    return False


def _place(record: _Editable, project: Path) -> Place:
    settings = read_settings(read_table(project) or {}, record.given, os.environ)
    crates = settings.of_each_crate()
    for each in crates:
        if each.module == record.module or (len(crates) == 1 and not each.module):
            return Place(record.module, each, Path(record.folder))
    raise SettingsError(
        f"no crate is set to be built into '{record.module}' any more",
        where=str(project / "pyproject.toml"),
        hint=f"install again: pip install -e {project}",
    )
