"""`init`: starts a project, or adds kernels to one; shows first what changes in a file that is there."""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path

from rustcuda_backend import scaffold
from rustcuda_backend.errors import SettingsError
from rustcuda_backend.scaffold import Scaffold

NAME = "init"
SUMMARY = "start a project with kernels, or add kernels to one"
DESCRIPTION = """\
Start a project that builds, tests and imports at once: a kernel crate, a package with a function for torch
tensors, tests that skip what needs a GPU, a workflow for CI, and what cargo, editors and uv need.

init NAME writes into a new folder. init --here adds to the project in this folder: of the files there only
pyproject.toml changes, and the change is shown first."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `Command`."""
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("name", metavar="NAME", nargs="?", help="the distribution's name, e.g. my-kernels")
    where.add_argument("--here", action="store_true", help="add to the project in this folder")
    parser.add_argument("--yes", action="store_true", help="change pyproject.toml without asking")


def run(arguments: argparse.Namespace) -> int:
    """See `Command`."""
    folder = Path.cwd()
    plan = scaffold.here(folder) if arguments.here else scaffold.new(arguments.name, folder)
    if plan.pyproject_before is not None and not _agreed(plan, plan.pyproject_before, arguments.yes):
        print("nothing has been written")
        return 1
    for name in scaffold.write(plan):
        print(f"wrote {name}")
    for name in plan.kept:
        print(f"left {name} as it is")
    if ".gitignore" in plan.kept:
        print("add to .gitignore: kernels_cuda.* and target/")
    for note in plan.notes:
        print(f"note: {note}")
    place = "" if arguments.here else f"cd {arguments.name} && "
    print(f"next: {place}pip install -e .")
    return 0


def _agreed(plan: Scaffold, before: str, yes: bool) -> bool:
    """Shows what would change, and asks where somebody can answer."""
    after = plan.files["pyproject.toml"]
    lines = difflib.unified_diff(
        *(before.splitlines(keepends=True), after.splitlines(keepends=True)),
        *("pyproject.toml", "pyproject.toml (new)"),
    )
    for line in lines:
        print(line.rstrip("\n"))
    if yes:
        return True
    if not sys.stdin.isatty():
        raise SettingsError(
            "pyproject.toml would change as shown, and nobody can be asked",
            where=str(plan.folder / "pyproject.toml"),
            hint="add --yes",
        )
    print(f"change pyproject.toml so, and add {len(plan.files) - 1} files? [y/N] ", end="", flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
