"""What any PTX says of itself, whoever wrote it: version, target and kernels."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rustcuda_backend.capability import Capability
from rustcuda_backend.errors import FormatError


@dataclass(frozen=True)
class PtxOutline:
    """The outline of a PTX text.

    Attributes:
        version: Of its ISA, e.g. `"8.7"`.
        capability: Its target.
        kernels: Names of the kernels that it defines, in order.
    """

    version: str
    capability: Capability
    kernels: tuple[str, ...]


_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_VERSION = re.compile(r"^\s*\.version\s+(\d{1,3}\.\d{1,3})\b", re.MULTILINE)
_TARGET = re.compile(r"^\s*\.target\s+sm_(\d{2,3})([af]?)\b", re.MULTILINE)
# What follows the name and its parameters; a `;` ends a mere declaration.
_ENTRY = re.compile(r"\.entry\s+([\w$%]+)\s*(?:\([^)]*\))?[^;{]*([;{])")


def read(data: bytes) -> PtxOutline:
    """Reads the outline.

    Raises:
        FormatError: There is no version or no target.
    """
    text = _COMMENT.sub(" ", data.rstrip(b"\0").decode("utf-8", "replace"))
    version, target = _VERSION.search(text), _TARGET.search(text)
    if not version or not target:
        raise FormatError("the PTX names no version or no target")
    number = int(target[1])
    kernels = dict.fromkeys(name for name, end in _ENTRY.findall(text) if end == "{")
    return PtxOutline(version[1], Capability(number // 10, number % 10, target[2]), tuple(kernels))
