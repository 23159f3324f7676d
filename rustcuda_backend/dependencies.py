"""Looks at the dependencies that a project with kernels declares; it never changes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from rustcuda_backend.pyproject import read_pyproject

# The releases of cuda-bindings (and of cuda-python, which brings it) that the loader has been run with.
_MINORS = ("12.9", *(f"13.{minor}" for minor in range(10)))
_SUPPORTED = [f"{minor}.{patch}" for minor in _MINORS for patch in range(10)]

_BINDINGS = ("cuda-bindings", "cuda-python")
_UPPER = ("<", "<=", "==", "===", "~=")


def warnings(project: Path) -> list[str]:
    """What is doubtful in `[project] dependencies`; dependencies that are dynamic are not looked at.

    Args:
        project: The folder of pyproject.toml.
    """
    metadata = read_pyproject(project).get("project", {})
    listed = metadata.get("dependencies", [])
    return [warning for requirement in _requirements(listed) for warning in _doubts(requirement)]


def _requirements(listed: Sequence[str]) -> Iterator[Requirement]:
    # setuptools has checked the list, but takes requirements that are not to today's rules.
    for text in listed:
        try:
            yield Requirement(text)
        except InvalidRequirement:  # noqa: PERF203
            continue


def _doubts(requirement: Requirement) -> Iterator[str]:
    name = canonicalize_name(requirement.name)
    place = f"'{requirement}' in [project] dependencies"
    if name in _BINDINGS and not any(requirement.specifier.contains(each) for each in _SUPPORTED):
        yield (
            f"{place} allows no version that the loader has been tried with, which are 12.9 and later "
            f"12.x, and 13.x: write {name}>=12.9, or leave it out (the loader then calls the driver itself)"
        )
    elif name in (*_BINDINGS, "torch") and any(each.operator in _UPPER for each in requirement.specifier):
        yield (
            f"{place} has an upper bound, so installing this package can replace the {name} that fits "
            f"somebody's machine; the kernels do not need one: leave the bound out, or make {name} an extra"
        )
