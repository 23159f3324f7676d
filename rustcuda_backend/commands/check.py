"""`check`: prints what is wrong with a wheel's kernels, or that nothing is."""

from __future__ import annotations

import argparse

from rustcuda_backend.check import check_wheel
from rustcuda_backend.commands import path_argument

NAME = "check"
SUMMARY = "hold a wheel's kernels against their loader"
DESCRIPTION = """\
Check a wheel before it is published: its kernels are those that its loader launches, for the capabilities
that it lists, with the same kernels and parameters for each; there is no PTX that was not asked for and no
path of the building machine; sizes, SHA-256 and RECORD are right; no member leads out of the wheel. The
loader is read, not run. Prints each finding on a line of its own and exits with 1, or says that all is
well."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `Command`."""
    parser.add_argument("file", metavar="FILE.whl", type=path_argument, help="the wheel")


def run(arguments: argparse.Namespace) -> int:
    """See `Command`."""
    outcome = check_wheel(arguments.file)
    name = arguments.file.name
    for note in outcome.notes:
        print(f"note: {note}")
    for finding in outcome.findings:
        print(f"{name}: {finding}")
    if outcome.findings:
        return 1
    counts = (("module", outcome.modules), ("kernel", outcome.kernels), ("image", outcome.images))
    print(f"{name}: all is well: " + ", ".join(f"{n} {what}{'s' * (n != 1)}" for what, n in counts))
    return 0
