"""rustcuda_launch itself: what it refuses, and how it is built."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import in_c
import pytest


@pytest.mark.parametrize(
    "arguments",
    [
        (print, print, b"u\x20\0", (1, 1, 1), (1, 1, 1), 0, None),
        (print, print, b"s\x20\0\0" * 33, (1, 1, 1), (1, 1, 1), 0, None),
        (print, print, b"x\x20\0\0", (1, 1, 1), (1, 1, 1), 0, None),
        (print, print, b"i\0\0\0", (1, 1, 1), (1, 1, 1), 0, None),
        (print, print, b"u\x41\0\0", (1, 1, 1), (1, 1, 1), 0, None),
        (print, print, b"", (1, 1), (1, 1, 1), 0, None),
        (print, print, b"", (1, 1, 1), (1, 1, 1), 0, -1),
        (print, print, b"", (1, 1, 1), (1, 1, 1), 0, 2**64),
    ],
)
def test_the_module_refuses_what_a_loader_does_not_pass(launches_in_c: Any, arguments: Any) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError)):
        launches_in_c.Launch(*arguments)


def test_pip_builds_it(tmp_path: Path, launch_library: Path) -> None:
    del launch_library  # skips where nothing can be compiled
    source = tmp_path / "launcher"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "rustcuda_launch.c"):
        (source / name).write_bytes((in_c.SOURCE.parent / name).read_bytes())
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "."]
    subprocess.run([*command, "--wheel-dir", str(tmp_path)], cwd=source, check=True)
    (wheel,) = tmp_path.glob("rustcuda_launch-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert [name for name in names if "dist-info" not in name] == [
        name for name in names if name.startswith("rustcuda_launch.") and name.endswith((".so", ".pyd"))
    ]
