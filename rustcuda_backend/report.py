"""What a build says while it runs: a line per finished step, warnings once, and the closing table."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from rustcuda_backend.errors import PREFIX


def wants_colour(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether to colour: NO_COLOR and FORCE_COLOR decide, else whether a terminal reads along."""
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and environ.get("TERM") != "dumb"


def _stderr() -> TextIO:
    return sys.stderr


@dataclass
class Report:
    """Prints to stderr, from any thread.

    Attributes:
        verbose: 1 prints commands, 2 also what they say.
        colour: Whether to ask compilers for coloured messages.
    """

    verbose: int = 0
    colour: bool = field(default_factory=lambda: wants_colour(_stderr(), os.environ))
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _said: set[str] = field(default_factory=set, repr=False)
    _total: int = 0
    _done: int = 0

    def expect(self, steps: int) -> None:
        """Sets how many steps the counter counts to."""
        self._total, self._done = steps, 0

    def step(self, text: str) -> None:
        """One step has been finished."""
        with self._lock:
            self._done += 1
            self._print(f"{PREFIX}[{self._done}/{self._total}] {text}")

    def note(self, text: str) -> None:
        """A fact that users want to know."""
        with self._lock:
            self._print("\n".join(PREFIX + line for line in text.splitlines()))

    def warn(self, text: str) -> None:
        """A warning, printed once however often it is given."""
        self.once("\n".join(PREFIX + line for line in f"warning: {text}".splitlines()))

    def once(self, text: str) -> None:
        """A compiler's message as it is; every pass gives the same, so each is printed once."""
        with self._lock:
            if text not in self._said:
                self._said.add(text)
                self._print(text.rstrip("\n"))

    def command(self, argv: Sequence[str | Path], environ: Mapping[str, str]) -> None:
        """A command that is about to run, with the variables that matter to it."""
        if self.verbose:
            shown = [f"{name}={value!r}" for name, value in environ.items()]
            self.note("running: " + " ".join([*shown, *(_quoted(str(argument)) for argument in argv)]))

    def said(self, text: str) -> None:
        """What a program that succeeded had to say."""
        if self.verbose > 1 and text.strip():
            self.once(text)

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A plain table, the first columns left-aligned and numbers right-aligned."""
        for line in table_lines(header, rows):
            self.note("  " + line)

    def _print(self, text: str) -> None:
        stream = _stderr()
        encoding = stream.encoding or "utf-8"
        # A C locale must not turn a message into a UnicodeEncodeError.
        print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream, flush=True)


def table_lines(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a plain table, columns of numbers aligned to the right."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    lines = []
    for row in (header, *rows):
        cells = [
            cell.rjust(width) if _is_number(rows, column) else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def _is_number(rows: Sequence[Sequence[str]], column: int) -> bool:
    return all(row[column].replace("-", "0").isdigit() for row in rows)


def _quoted(argument: str) -> str:
    return repr(argument) if not argument or any(char in argument for char in " '\"()\x1f") else argument
