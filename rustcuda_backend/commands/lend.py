"""`lend`: puts the device crate where cargo and editors look for it."""

from __future__ import annotations

import argparse

from rustcuda_backend import lending
from rustcuda_backend.commands import add_project
from rustcuda_backend.project import no_project, read_project

NAME = "lend"
SUMMARY = "put the crate rustcuda-device where cargo and editors look for it"
DESCRIPTION = """\
Copy the crate rustcuda-device, which is part of the backend, to where the project's .cargo/config.toml says
that it is. cargo and rust-analyzer then work without a build: in a new clone, or after cargo clean. A build
does the same. Neither Rust nor CUDA is needed. Prints the folders."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `Command`."""
    add_project(parser)


def run(arguments: argparse.Namespace) -> int:
    """See `Command`."""
    project = arguments.project.resolve()
    settings = read_project(project, arguments.config)
    if settings is None:
        raise no_project(project)
    for folder in lending.lend(project, settings):
        print(folder)
    return 0
