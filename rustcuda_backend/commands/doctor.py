"""`doctor`: say what a build would use here, what is missing, and the line that mends it."""

from __future__ import annotations

import argparse

NAME = "doctor"
SUMMARY = "say what a build would use here, what is missing, and the line that mends it"
DESCRIPTION = SUMMARY


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `Command`."""


def run(arguments: argparse.Namespace) -> int:
    """See `Command`."""
    return 0
