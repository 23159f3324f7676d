"""The import package of a distribution, and names that a package with kernels cannot have."""

from __future__ import annotations

import re
import sys
from keyword import iskeyword

from rustcuda_backend.errors import SettingsError

# PEP 508's.
_NAME = re.compile(r"[A-Z0-9]|[A-Z0-9][A-Z0-9._-]*[A-Z0-9]", re.IGNORECASE | re.ASCII)
_HINT = 'use letters, digits and single "-" between them, e.g. my-kernels'

# Packages that would be hidden where the new one is on the path, and what would miss them.
_TAKEN = {
    **dict.fromkeys(("torch", "numpy", "cuda", "nvidia"), "which its own functions need"),
    **dict.fromkeys(("pytest", "pluggy", "iniconfig"), "which its tests need"),
    **dict.fromkeys(("pip", "uv", "build", "setuptools", "wheel", "pkg_resources"), "which installs it"),
    **dict.fromkeys(
        ("rustcuda_backend", "packaging", "tomli", "elftools", "filelock", "platformdirs", "distutils"),
        "which builds it",
    ),
}
# Folders that are something else: in the project, and to git and cargo.
_FOLDERS = ("kernels", "tests", "docs", "src", "target")


def package_name(name: str) -> str:
    """The import package of a distribution.

    Raises:
        SettingsError: The name is none for a distribution, or gives no package that can be imported.
    """
    if not _NAME.fullmatch(name):
        raise SettingsError(f"'{name}' is no name for a distribution", where="PEP 508", hint=_HINT)
    package = re.sub(r"[-_.]+", "_", name).lower()
    reason = _why_not(package)
    if reason:
        raise SettingsError(
            f"the name '{name}' does not suit a package of kernels: {reason}", where="PEP 8", hint=_HINT
        )
    return package


def _why_not(package: str) -> str:
    if package[0].isdigit():
        return f"Python cannot import '{package}', which begins with a digit"
    if iskeyword(package):
        return f"'{package}' is a word of Python's own"
    if package in sys.stdlib_module_names or package == "test":
        return f"it would hide '{package}' of Python's standard library"
    if package in _TAKEN:
        return f"it would hide '{package}', {_TAKEN[package]}"
    if package in _FOLDERS:
        return f"'{package}' is another folder of the project"
    return ""
