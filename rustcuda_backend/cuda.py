"""NVIDIA's tools at work: ptxas and the packer, on what the compilers write."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from rustcuda_backend import cache, machine, packer, process
from rustcuda_backend.capability import KNOWN
from rustcuda_backend.cubin import Cubin, kernel_names, parse_ptxas_report, read_capability, report_messages
from rustcuda_backend.cuda_versions import CUDA_VERSIONS, CudaVersion
from rustcuda_backend.errors import AssembleError, CapabilityError
from rustcuda_backend.toolkit import CudaTools, find_tools, required_wheels

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rustcuda_backend.capability import Capability
    from rustcuda_backend.ptx import PtxModule

__all__ = ["CudaTools", "assemble", "check_capabilities", "find_tools", "pack", "required_wheels"]


def check_capabilities(tools: CudaTools, capabilities: Iterable[Capability], where: str) -> None:
    """Makes sure that this ptxas knows all capabilities, by the list that it prints itself.

    Args:
        tools: The tools.
        capabilities: What is to be built.
        where: Where the list stands, for messages.

    Raises:
        CapabilityError: It does not know one.
    """
    known = re.findall(r"'sm_(\d+[af]?)'", process.run([tools.ptxas, "--help"]).stdout)
    for capability in capabilities:
        if capability.number not in known:
            raise CapabilityError(
                f"ptxas {tools.ptxas_version} does not know capability {capability.name}",
                where=where,
                hint=_capability_hint(capability, tools.version, known),
            )


def _capability_hint(capability: Capability, used: CudaVersion, known: Sequence[str]) -> str:
    others = [version for version in CUDA_VERSIONS.values() if version != used]
    knowing = [version.name for version in others if capability.base in version.capabilities]
    mend = f'set cuda-version = "{knowing[0]}", whose ptxas knows it, or ' if knowing else ""
    names = " ".join(f"{major}.{minor}" for major, minor in KNOWN if f"{major}{minor}" in known)
    return f"{mend}leave it out\nthis ptxas knows {names}, 'a' from 9.0 on and 'f' from 10.0 on"


def assemble(tools: CudaTools, module: PtxModule, *, arguments: Sequence[str], keep: Path) -> Cubin:
    """Assembles one capability's PTX.

    Args:
        tools: The tools.
        module: The PTX.
        arguments: More arguments for ptxas.
        keep: File for a copy of the PTX, which stays there for the reader of error messages.

    Raises:
        AssembleError: ptxas refuses the PTX, or writes something else than was asked for.
    """
    keep.parent.mkdir(parents=True, exist_ok=True)
    cache.write_atomically(keep, module.text.encode())
    with tempfile.TemporaryDirectory(prefix="rustcuda-") as folder:
        # Not the copy: another build of the same crate may replace that meanwhile.
        source, output = Path(folder, keep.name), Path(folder, "cubin")
        source.write_bytes(module.text.encode())
        finished = process.run(
            [tools.ptxas, f"-arch={module.capability.sm}", "-v", *arguments, source.name, "-o", output],
            cwd=Path(folder),
        )
        said = finished.stdout + finished.stderr
        if not finished.ok or not output.is_file():
            raise _refused(tools, module, arguments, said or f"exit status {finished.returncode}", keep)
        data = output.read_bytes()
    order = [*(signature.name for signature in module.signatures), *module.unlaunchable]
    kernels = {kernel.name: kernel for kernel in parse_ptxas_report(said)}
    if set(kernels) != set(order) or set(kernel_names(data)) != set(order):
        raise AssembleError(
            f"ptxas wrote the kernels {' '.join(kernel_names(data)) or '(none)'} for {module.capability.sm}, "
            f"but the PTX defines {' '.join(order) or '(none)'}",
            where=str(keep),
            hint="remove what selects kernels from ptxas-args",
        )
    _check_capability(data, module.capability, keep)
    return Cubin(module.capability, data, tuple(kernels[name] for name in order), report_messages(said))


def _check_capability(data: bytes, asked: Capability, keep: Path) -> None:
    found = read_capability(data)
    # No flag tells a family's cubin from the plain one; a ptxas that leaves the note out is no mistake.
    if found.base != asked.base or found.suffix not in (asked.suffix, asked.suffix.replace("f", "")):
        raise AssembleError(
            f"ptxas wrote a cubin for {found.sm}, not {asked.sm}",
            where=str(keep),
            hint="remove -arch from ptxas-args; capabilities come from the settings",
        )


_NAMED_KERNEL = re.compile(r"[Ee]ntry function '([^']+)'")
_NAMED_LINE = re.compile(r"^ptxas .*, line (\d+);", re.MULTILINE)
# Of ptxas' words, what an error repeats.
_FIRST_LINES, _LAST_LINES = 20, 5
_DEFINITION = re.compile(r"\.entry\s+([\w$%]+)|\.func\b")


def _refused(
    tools: CudaTools, module: PtxModule, arguments: Sequence[str], said: str, keep: Path
) -> AssembleError:
    message = "\n".join(_bounded(report_messages(said))) or said
    if arguments and "Unknown option" in message:
        return AssembleError(
            f"ptxas {tools.ptxas_version} does not take its arguments:\n{message.strip()}",
            where=f"ptxas-args: {' '.join(arguments)}",
        )
    kernels = _NAMED_KERNEL.findall(message)
    kernels += _enclosing_kernels(module.text, [int(line) for line in _NAMED_LINE.findall(message)])
    named = " and ".join(f"'{name}'" for name in dict.fromkeys(kernels) if name)
    return AssembleError(
        f"ptxas {tools.ptxas_version} refused the PTX for {module.capability.sm}"
        + (f", kernel {named}" if named else "")
        + f":\n{message.strip()}",
        where=str(keep),
        hint=machine.hint_if_full(said),
    )


def _bounded(lines: Sequence[str]) -> Sequence[str]:
    """Lines as far as somebody reads them; one mistake in a macro can be thousands."""
    left_out = len(lines) - _FIRST_LINES - _LAST_LINES
    if left_out < 2:
        return lines
    said = f"... {left_out} more lines; ptxas on the file below says them all ..."
    return (*lines[:_FIRST_LINES], said, *lines[-_LAST_LINES:])


def _enclosing_kernels(text: str, lines: Sequence[int]) -> list[str]:
    """The kernels that lines of PTX belong to, counted from 1; "" outside kernels. There may be thousands."""
    kernel, kernels = "", [""]
    for written in text.split("\n"):
        definition = _DEFINITION.search(written)
        if definition:
            kernel = definition[1] or ""
        kernels.append(kernel)
        # Braces within a function are indented.
        if written.startswith("}"):
            kernel = ""
    return [kernels[line] for line in lines if line < len(kernels)]


def pack(tools: CudaTools, cubins: Sequence[Cubin], ptx: Sequence[PtxModule]) -> bytes:
    """Packs cubins, in the order given, and after them PTX into one uncompressed fatbin.

    Raises:
        AssembleError: The packer refuses an image, or writes something else than was asked for.
        ToolError: The packer does not start.
    """
    return packer.pack(tools.packer, cubins, ptx)
