"""`inspect`: list the images and kernels in a wheel, fatbin, cubin or ELF file."""

from __future__ import annotations

import argparse

NAME = "inspect"
SUMMARY = "list the images and kernels in a wheel, fatbin, cubin or ELF file"
DESCRIPTION = SUMMARY


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `Command`."""


def run(arguments: argparse.Namespace) -> int:
    """See `Command`."""
    return 0
