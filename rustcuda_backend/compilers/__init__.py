"""Compilers of kernel crates, behind one small protocol: a pass goes in, its PTX comes out."""

from __future__ import annotations

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

    def sources(self, build_pass: Pass) -> frozenset[Path]:
        """The files that a finished pass was compiled from, of all crates named by path.

        Without what builds have made, and without Cargo's own files.
        """
