"""The commands of `python -m rustcuda_backend`: what each takes and prints; the work is done elsewhere."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Protocol

PROGRAM = "python -m rustcuda_backend"


class Command(Protocol):
    """What a module in this folder defines."""

    NAME: str
    SUMMARY: str
    DESCRIPTION: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declares the command's own arguments."""

    def run(self, arguments: argparse.Namespace) -> int:
        """Does it, prints the outcome to stdout, and returns the exit status."""


def path_argument(text: str) -> Path:
    """The file or folder that an argument names.

    Raises:
        argparse.ArgumentTypeError: It is empty, as an unset variable is; a Path would be the folder here.
    """
    if not text:
        raise argparse.ArgumentTypeError("it is empty")
    return Path(text)


def add_project(parser: argparse.ArgumentParser) -> None:
    """The arguments that say which project and settings are meant."""
    parser.add_argument(
        "--project",
        metavar="DIR",
        type=path_argument,
        default=Path(),
        help="folder of pyproject.toml; default: .",
    )
    parser.add_argument(
        "-C",
        metavar="KEY=VALUE",
        dest="config",
        action="append",
        default=[],
        help="a setting, as front ends take it; may be repeated",
    )
