"""Writes each command's help into docs/commands.md, as the command itself prints it.

usage: python tools/command_help.py [--check]
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path

from rustcuda_backend.cli import COMMANDS, make_parser
from rustcuda_backend.commands import PROGRAM

PAGE = Path(__file__).resolve().parents[1] / "docs" / "commands.md"
COLUMNS = "100"


def help_of(name: str) -> str:
    """What `NAME --help` prints, in a terminal of a hundred columns; the whole program's for `""`."""
    os.environ["COLUMNS"] = COLUMNS
    parser = make_parser()
    if not name:
        return parser.format_help()
    (commands,) = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    text: str = commands.choices[name].format_help()
    return text


def with_help(page: str) -> str:
    """The page with every block of help as it should be.

    Raises:
        ValueError: A command has no block.
    """
    for name in ("", *(command.NAME for command in COMMANDS)):
        line = f"$ {PROGRAM} {name} --help".replace("  ", " ")
        block = re.compile(rf"^```text\n{re.escape(line)}\n.*?^```$", re.MULTILINE | re.DOTALL)
        if not block.search(page):
            raise ValueError(f"{PAGE} lacks a block that begins with '{line}'")
        text = f"```text\n{line}\n{help_of(name)}```"
        page = block.sub(lambda _, text=text: text, page)
    return page


def main() -> int:
    """Writes the help, or says whether it is up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a block is stale")
    arguments = parser.parse_args()
    old = PAGE.read_text(encoding="utf-8")
    new = with_help(old)
    if arguments.check:
        return int(new != old)
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
