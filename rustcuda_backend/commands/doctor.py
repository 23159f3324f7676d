"""`doctor`: prints what a build would use here and what is missing."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os

from rustcuda_backend import doctor
from rustcuda_backend.commands import add_project
from rustcuda_backend.diagnosis import Line

NAME = "doctor"
SUMMARY = "say what a build would use here, what is missing, and the line that mends it"
DESCRIPTION = """\
Look at everything that a build needs, with the settings of the project in this folder or with the defaults:
Rust, cargo, NVIDIA's tools, the cache, and for running kernels the GPU and its driver. Each line says what
was looked at and what became of it; a line with -> mends it. Exits with 1 where a build would fail."""

_STATES = {"ok": "ok", "note": "note", "passed over": "-", "warning": "WARNING", "missing": "MISSING"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `Command`."""
    add_project(parser)
    parser.add_argument(
        "--no-isolation",
        action="store_true",
        help="for builds in this environment, as with pip's --no-build-isolation, and for the command build",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """See `Command`."""
    lines = doctor.examine(
        arguments.project.resolve(), arguments.config, os.environ, isolated=not arguments.no_isolation
    )
    if arguments.json:
        print(json.dumps([dataclasses.asdict(line) for line in lines], indent=2))
    else:
        _print(lines)
    return 1 if any(line.state == "missing" for line in lines) else 0


def _print(lines: list[Line]) -> None:
    topics = max(len(line.topic) for line in lines)
    states = max(len(state) for state in _STATES.values())
    for line in lines:
        first, *rest = line.text.splitlines()
        print(f"{line.topic:<{topics}}  {_STATES[line.state]:<{states}}  {first}")
        indent = " " * (topics + states + 4)
        for more in rest:
            print(indent + more)
        for fix in line.fix.splitlines():
            print(f"{indent}-> {fix}")
    missing = [line.topic for line in lines if line.state == "missing"]
    print()
    print(f"a build would fail: {', '.join(dict.fromkeys(missing))}" if missing else "a build can start")
