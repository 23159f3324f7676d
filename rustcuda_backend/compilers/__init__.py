"""Compilers of kernel crates, behind one small protocol: a pass goes in, its PTX comes out."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rustcuda_backend.capability import Capability
from rustcuda_backend.ptx import PtxModule


@dataclass(frozen=True)
class Pass:
    """One compilation of the kernel crate, for one capability.

    Attributes:
        capability: What it compiles for.
        directory: Its own folder: cargo's target directory and the PTX. Passes that shared one would
            wait for each other.
    """

    capability: Capability
    directory: Path


class Compiler(Protocol):
    """A compiler that can run passes, several at once."""

    def used(self) -> Sequence[str]:
        """What it is made of, a line each, for the end of a build."""

    def worth_sharing(self, passes: Sequence[Pass]) -> bool:
        """Whether the first pass would make things for the host that the others can take over."""

    def share(self, first: Pass, others: Sequence[Pass]) -> None:
        """Hands what a finished pass has made for the host (proc macros, build scripts) to the others."""

    def compile(self, build_pass: Pass) -> PtxModule:
        """Compiles the crate for the pass's capability.

        Raises:
            CompileError: The crate does not compile, or has no kernels.
            SignatureError: A kernel cannot be launched from Python.
        """


def lacks_host_part(passes: Sequence[Pass]) -> bool:
    """Whether none of the passes has ever run, so that what each makes for the host is not there."""
    return not any(item.directory.is_dir() for item in passes)


def copy_host_part(first: Pass, others: Sequence[Pass], target: str) -> None:
    """Copies what a finished pass has made for the host into the folders of others.

    cargo finds the copies fresh: times are kept, and nothing made for the host depends on the
    capability. Copies, not links: cargo writes into the files it finds.

    Args:
        first: The finished pass.
        others: Passes that have not run.
        target: The target triple of the passes, whose part of the folder is the pass's own.
    """
    ignored = shutil.ignore_patterns(target, "*.ptx", "*.ptx-of", ".rustcuda-ptx")
    for other in others:
        shutil.copytree(first.directory, other.directory, symlinks=True, ignore=ignored)
