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


# Strings in PTX know no escapes; a comment that does not end goes on to the end of the text.
_COMMENT = re.compile(r'("[^"\n]*")|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_VERSION = re.compile(r"^[ \t]*\.version\s+([0-9]{1,3}\.[0-9]{1,3})\b", re.MULTILINE)
_TARGET = re.compile(r"^[ \t]*\.target\s+sm_([0-9]{2,3})([af]?)\b", re.MULTILINE)
# A kernel's name, and what ends the head of a definition or a mere declaration.
_HEAD = re.compile(r"\.entry\s+(?P<name>[\w$%]+)|[;{]")


def read(data: bytes) -> PtxOutline:
    """Reads the outline.

    Raises:
        FormatError: There is no version or no target.
    """
    text = without_comments(data.rstrip(b"\0").decode("utf-8", "replace"))
    version, target = _VERSION.search(text), _TARGET.search(text)
    if not version or not target:
        raise FormatError("the PTX names no version or no target")
    number = int(target[1])
    return PtxOutline(version[1], Capability(number // 10, number % 10, target[2]), _defined(text))


def kernels(text: str) -> tuple[str, ...]:
    """Names of the kernels that a PTX text defines, in order."""
    return _defined(without_comments(text))


def without_comments(text: str) -> str:
    """PTX with a space in place of each comment."""
    return _COMMENT.sub(lambda match: match[1] or " ", text)


def _defined(text: str) -> tuple[str, ...]:
    """The kernels that have a body, by one look at each character."""
    name, found = "", dict[str, None]()
    for match in _HEAD.finditer(text):
        if name and match[0] == "{":
            found[name] = None
        name = match["name"] or ""
    return tuple(found)
