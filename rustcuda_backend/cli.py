"""The command line: `python -m rustcuda_backend COMMAND`; each command is a module in `commands/`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rustcuda_backend import session, standard_output
from rustcuda_backend.commands import PROGRAM, Command, build, check, doctor, init, inspect, lend
from rustcuda_backend.version import VERSION

COMMANDS: tuple[Command, ...] = (doctor, init, lend, inspect, build, check)


def make_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="What goes with building CUDA kernels written in Rust into Python wheels.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"rustcuda-backend {VERSION}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        subparser = commands.add_parser(
            command.NAME,
            help=command.SUMMARY,
            description=command.DESCRIPTION,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        argv: The arguments; None for this process's own.

    Returns:
        The exit status: 0 if all is well, 1 for what the user has to mend. Wrong arguments exit with 2.
    """
    with session.user_errors(), standard_output.arriving():
        arguments = make_parser().parse_args(argv)
        status: int = arguments.run(arguments)
    return status
