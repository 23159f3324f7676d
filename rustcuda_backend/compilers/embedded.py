"""Not a compiler: takes the PTX that cuda-oxide embedded when it built a file of the host."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rustcuda_backend import oxide_kernels, ptx
from rustcuda_backend.artefact import Embedded
from rustcuda_backend.capability import Capability
from rustcuda_backend.compilers import Pass
from rustcuda_backend.errors import CompileError, FormatError, SignatureError
from rustcuda_backend.ptx import PtxModule
from rustcuda_backend.report import Report

# The PTX ISA that first knew a GPU; all from 10.0 on have `a` since then. Source: PTX ISA, "Release Notes".
_FIRST_ISA = {
    (7, 0): "6.0",
    (7, 2): "6.1",
    (7, 5): "6.3",
    (8, 0): "7.0",
    (8, 6): "7.1",
    (8, 7): "7.4",
    (8, 8): "9.0",
    (8, 9): "7.8",
    (9, 0): "7.8",
    (10, 0): "8.6",
    (10, 1): "8.6",
    (10, 3): "8.8",
    (11, 0): "9.0",
    (12, 0): "8.7",
    (12, 1): "8.8",
}
_FIRST_ISA_OF_90A = "8.0"
_FIRST_ISA_OF_FAMILIES = "8.8"

# What ptxas is told for what cuda-oxide was asked for.
_ARGUMENTS = {"no FMA": "-fmad=false", "line tables": "-lineinfo", "full debug": "-g"}


@dataclass(frozen=True)
class EmbeddedCompiler:
    """Hands out what is already compiled.

    Attributes:
        embedded: The PTX.
        report: Where warnings go.
    """

    embedded: Embedded
    report: Report

    def used(self) -> Sequence[str]:
        """See `Compiler.used`."""
        known = ", ".join(each.capability.name for each in self.embedded.found)
        return (f"PTX for {known} ({self.embedded.path}, package {self.embedded.package})",)

    def worth_sharing(self, passes: Sequence[Pass]) -> bool:  # noqa: ARG002 (the protocol's)
        """See `Compiler.worth_sharing`."""
        return False

    def share(self, first: Pass, others: Sequence[Pass]) -> None:
        """See `Compiler.share`."""

    def sources(self, build_pass: Pass) -> frozenset[Path]:  # noqa: ARG002 (the protocol's)
        """See `Compiler.sources`."""
        return frozenset((self.embedded.path,))

    def compile(self, build_pass: Pass) -> PtxModule:
        """Chooses the PTX for the pass; see `Compiler.compile`."""
        build_pass.directory.mkdir(parents=True, exist_ok=True)
        found = self.embedded.best_for(build_pass.capability)
        text = _retargeted(found.text, build_pass.capability)
        try:
            named = oxide_kernels.with_stable_names(text)
            module = oxide_kernels.finish(named.text, build_pass.capability, {})
        except (FormatError, SignatureError) as error:
            error.where = ", ".join(place for place in (str(self.embedded.path), error.where) if place)
            raise
        if named.warning:
            self.report.warn(named.warning)
        if not module.signatures:
            raise CompileError(
                "there are no kernels in the PTX that Python could launch",
                where=f"{self.embedded.path}, package {self.embedded.package}",
                hint="`inspect` shows what is in the file",
            )
        odd = [name for name in module.unlaunchable if not oxide_kernels.is_instance(name)]
        if odd:
            names = ", ".join(odd)
            self.report.warn(f"kernels that Python cannot launch, for the types of their parameters: {names}")
        arguments = tuple(_ARGUMENTS[option] for option in found.options)
        return dataclasses.replace(module, ptxas_arguments=arguments)


def _retargeted(text: str, capability: Capability) -> str:
    """The PTX as it would be written for a capability; what an older GPU has, newer ones have too."""
    written, _ = ptx.header(text)
    needed = [written, _FIRST_ISA.get(capability.base, written)]
    if capability.name == "9.0a":
        needed.append(_FIRST_ISA_OF_90A)
    if capability.suffix == "f":
        needed.append(_FIRST_ISA_OF_FAMILIES)
    version = max(needed, key=lambda name: tuple(map(int, name.split("."))))
    return ptx.with_header(text, version, capability.sm)
