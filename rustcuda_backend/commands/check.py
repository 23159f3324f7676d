"""`check`: hold a wheel's kernels against their loader."""

from __future__ import annotations

import argparse

NAME = "check"
SUMMARY = "hold a wheel's kernels against their loader"
DESCRIPTION = SUMMARY


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `Command`."""


def run(arguments: argparse.Namespace) -> int:
    """See `Command`."""
    return 0
