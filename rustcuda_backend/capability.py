"""CUDA compute capabilities: their spellings, order, families and `cfg(cuda_arch)` values."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from rustcuda_backend.errors import CapabilityError

# Every plain capability there is to compile for, in numeric order (rustc 1.96, CUDA 12.9 and 13.0).
KNOWN = (
    (7, 0), (7, 2), (7, 5), (8, 0), (8, 6), (8, 7), (8, 8), (8, 9), (9, 0),
    (10, 0), (10, 1), (10, 3), (11, 0), (12, 0), (12, 1),
)  # fmt: skip

# Architecture-specific code (`a`) exists from 9.0 on, family-specific code (`f`) from 10.0 on.
_FIRST_WITH_A = (9, 0)
_FIRST_WITH_F = (10, 0)

# torch.utils.cpp_extension's names for TORCH_CUDA_ARCH_LIST.
_TORCH_NAMES = {
    "kepler+tesla": "3.7",
    "kepler": "3.5+PTX",
    "maxwell+tegra": "5.3",
    "maxwell": "5.0;5.2+PTX",
    "pascal": "6.0;6.1+PTX",
    "volta+tegra": "7.2",
    "volta": "7.0+PTX",
    "turing": "7.5+PTX",
    "ampere+tegra": "8.7",
    "ampere": "8.0;8.6+PTX",
    "ada": "8.9+PTX",
    "hopper": "9.0+PTX",
    "blackwell+tegra": "11.0",
    "blackwell": "10.0;10.3;12.0;12.1+PTX",
}

_TOKEN = re.compile(r"(?:(\d+)\.(\d)|(?:sm_?)?(\d+)(\d))([af]?)(\+ptx)?")
_SEPARATORS = re.compile(r"[;,\s]+")


@dataclass(frozen=True, order=True)
class Capability:
    """One compute capability to build for, e.g. `9.0a+PTX`.

    Attributes:
        major, minor: The numbers of `9.0`.
        suffix: `""`, `"a"` (this architecture only) or `"f"` (this family only).
        ptx: Whether this capability's PTX is shipped beside its SASS.
    """

    major: int
    minor: int
    suffix: str = ""
    ptx: bool = False

    def __str__(self) -> str:
        """The spelling of kernel-builder and torch: `9.0a+PTX`."""
        return f"{self.name}+PTX" if self.ptx else self.name

    @property
    def name(self) -> str:
        """`9.0a`: the capability without its `+PTX`."""
        return f"{self.major}.{self.minor}{self.suffix}"

    @property
    def number(self) -> str:
        """`90a`: the value of `cfg(cuda_arch = …)`."""
        return f"{self.major}{self.minor}{self.suffix}"

    @property
    def sm(self) -> str:
        """`sm_90a`: what rustc and ptxas call the target."""
        return f"sm_{self.number}"

    @property
    def plain(self) -> Capability:
        """This capability without suffix and PTX."""
        return Capability(self.major, self.minor)

    @property
    def base(self) -> tuple[int, int]:
        """`(9, 0)`."""
        return (self.major, self.minor)

    def cfg_values(self) -> tuple[str, ...]:
        """The values of `cuda_arch` set in this capability's pass, in numeric order.

        `cfg(cuda_arch = "80")` then reads as `__CUDA_ARCH__ >= 800`. Suffixed values are set for the
        capability itself, and for `f` also for the earlier members of its family.
        """
        values = [f"{major}{minor}" for major, minor in KNOWN if (major, minor) <= self.base]
        if self.suffix:
            if self.base >= _FIRST_WITH_F:
                values += [f"{major}{minor}f" for major, minor in family(self.base)]
            if self.suffix == "a":
                values.append(f"{self.major}{self.minor}a")
        return tuple(sorted(values, key=_cfg_order))


def family(base: tuple[int, int]) -> list[tuple[int, int]]:
    """The members of a capability's family up to itself, whose `f` features it has.

    Source: CUDA C++ programming guide, "Family-Specific Features" (10.0 and 10.3; 11.0, once called
    10.1; 12.0 and 12.1).
    """
    if base == (10, 1):
        return [base]
    return [known for known in KNOWN if known[0] == base[0] and known <= base and known != (10, 1)]


def _cfg_order(value: str) -> tuple[int, str]:
    digits = value.rstrip("af")
    return int(digits), value[len(digits) :]


def all_cfg_values() -> tuple[str, ...]:
    """Every value that `cuda_arch` can have, for `--check-cfg`."""
    values = []
    for major, minor in KNOWN:
        values.append(f"{major}{minor}")
        values += [f"{major}{minor}{suffix}" for suffix in _suffixes((major, minor))]
    return tuple(values)


def _suffixes(base: tuple[int, int]) -> str:
    return ("a" if base >= _FIRST_WITH_A else "") + ("f" if base >= _FIRST_WITH_F else "")


def parse_list(text: str | Iterable[str], *, where: str = "") -> tuple[Capability, ...]:
    """Reads a capability list in any of the spellings that torch, nvcc and kernel-builder use.

    Args:
        text: `"8.0;9.0+PTX"`, `"sm_90 Hopper"`, or a list of such texts.
        where: Where the list stands, for messages.

    Returns:
        The capabilities in numeric order, duplicates merged (`9.0` and `9.0+PTX` give `9.0+PTX`).

    Raises:
        CapabilityError: A token that is none, or an empty list.
    """
    pieces = [text] if isinstance(text, str) else list(text)
    # "8.0 +PTX" means "8.0+PTX".
    joined = re.sub(r"\s+\+\s*ptx", "+PTX", " ; ".join(pieces), flags=re.IGNORECASE)
    tokens = [token for token in _SEPARATORS.split(joined) if token]
    found: dict[str, Capability] = {}
    for token in tokens:
        for capability in _parse_token(token, where):
            earlier = found.get(capability.name)
            merged = replace(capability, ptx=capability.ptx or bool(earlier and earlier.ptx))
            found[capability.name] = merged
    if not found:
        raise CapabilityError(
            "the capability list is empty", where=where, hint='name at least one, e.g. "8.0;9.0+PTX"'
        )
    return tuple(sorted(found.values()))


def _parse_token(token: str, where: str) -> tuple[Capability, ...]:
    lower = token.lower()
    if lower in _TORCH_NAMES:
        return parse_list(_TORCH_NAMES[lower], where=f"{where}: {token}" if where else token)
    # torch lets "+PTX" follow a name as well; every plain name already carries it.
    if lower.endswith("+ptx") and lower.removesuffix("+ptx") in _TORCH_NAMES:
        listed = _parse_token(lower.removesuffix("+ptx"), where)
        return (*listed[:-1], replace(listed[-1], ptx=True))
    match = _TOKEN.fullmatch(lower)
    if match:
        major, minor = int(match[1] or match[3]), int(match[2] or match[4])
        if (major, minor) in KNOWN and (not match[5] or match[5] in _suffixes((major, minor))):
            return (Capability(major, minor, match[5], ptx=bool(match[6])),)
    raise CapabilityError(f"'{token}' is not a capability", where=where, hint=_known_tokens(lower))


def _known_tokens(token: str) -> str:
    if token.startswith("native"):
        return "'native' must stand alone, without other capabilities"
    known = " ".join(f"{major}.{minor}" for major, minor in KNOWN)
    names = " ".join(name.title().replace("+Ptx", "+PTX") for name in _TORCH_NAMES)
    return (
        f"use one of {known},\n"
        f"with 'a' from 9.0 on, 'f' from 10.0 on and '+PTX' where wanted (9.0a, 10.0f, 12.0+PTX);\n"
        f"sm_90 and 90 are read as 9.0, and torch's names as torch reads them: {names}"
    )
