"""`build`: builds the kernels of a project into a folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from rustcuda_backend import standalone
from rustcuda_backend.commands import add_project, path_argument
from rustcuda_backend.project import no_project, read_project

NAME = "build"
SUMMARY = "build the kernels alone into a folder, to package them otherwise"
DESCRIPTION = """\
Build a project's kernels without a wheel: writes the generated module, its stub and the file with the kernels
into a folder. The tools of CUDA must be installed here (see doctor). Prints the files that it has written."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `Command`."""
    add_project(parser)
    parser.add_argument(
        "--output",
        metavar="DIR",
        type=path_argument,
        default=Path("build/kernels"),
        help="default: build/kernels",
    )
    parser.add_argument(
        "--module", metavar="NAME", default="", help="name of the module; default: the setting, kernels_cuda"
    )


def run(arguments: argparse.Namespace) -> int:
    """See `Command`."""
    project = arguments.project.resolve()
    settings = read_project(project, arguments.config)
    if settings is None:
        raise no_project(project)
    for path in standalone.build(project, settings, arguments.output, arguments.module):
        print(path)
    return 0
