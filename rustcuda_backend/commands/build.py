"""`build`: build the kernels alone into a folder, to package them otherwise."""

from __future__ import annotations

import argparse

NAME = "build"
SUMMARY = "build the kernels alone into a folder, to package them otherwise"
DESCRIPTION = SUMMARY


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `Command`."""


def run(arguments: argparse.Namespace) -> int:
    """See `Command`."""
    return 0
