"""Shared memory in PTX: kernels name the variables they want, and here they are declared.

Rust cannot declare them. `rustcuda-device` writes each static's size and alignment into the name of a
variable that the code takes the address of: `__shared_<name>__<size>_<alignment>_<identity>`.
"""

from __future__ import annotations

import re
from collections import Counter

_STATIC = re.compile(r"\b__shared_(?P<name>\w+?)__(?P<size>\d{1,9})_(?P<alignment>\d{1,9})_\d+\b")
_DYNAMIC = "__rustcuda_dynamic_shared"
_DYNAMIC_USE = re.compile(rf"\b{_DYNAMIC}__(?P<alignment>\d{{1,9}})\b")
_ADDRESS_SIZE = re.compile(r"^\.address_size\s+\d+[^\n]*\n", re.MULTILINE)


def declared(text: str) -> str:
    """PTX with its shared variables declared, under names that can be read."""
    declarations: dict[str, str] = {}
    names: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for match in _STATIC.finditer(text):
        if match[0] not in names:
            counts[match["name"]] += 1
            name = _name(match["name"], counts[match["name"]])
            names[match[0]] = name
            declarations[name] = f".shared .align {match['alignment']} .b8 {name}[{match['size']}];\n"
    alignments = [int(match["alignment"]) for match in _DYNAMIC_USE.finditer(text)]
    if alignments:
        declarations[_DYNAMIC] = f".extern .shared .align {max(alignments)} .b8 {_DYNAMIC}[];\n"
    if not declarations:
        return text
    text = _STATIC.sub(lambda match: names[match[0]], text)
    text = _DYNAMIC_USE.sub(_DYNAMIC, text)
    return _ADDRESS_SIZE.sub(lambda match: match[0] + "\n" + "".join(declarations.values()), text, count=1)


def _name(name: str, number: int) -> str:
    """A name for a variable: inner blocks and generic functions may have several statics of one."""
    return f"__shared_{name}" if number == 1 else f"__shared_{name}${number}"  # `$` is in no Rust name
