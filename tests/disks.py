"""Disks that take nothing, or no more: for tests of what is said then."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from rustcuda_backend import process


@contextlib.contextmanager
def read_only(tree: Path) -> Iterator[None]:
    """Takes away the permission to write, from root by a read-only mount."""
    if os.name != "posix":
        pytest.skip("Windows has no folders that cannot be written")
    if os.geteuid() != 0:
        folders = [tree, *(path for path in tree.rglob("*") if path.is_dir())]
        for folder in folders:
            folder.chmod(0o555)
        try:
            yield
        finally:
            for folder in folders:
                folder.chmod(0o755)
        return
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if not (mount and umount and process.run([mount, "-o", "ro,bind", tree, tree]).ok):
        pytest.skip("root cannot mount here")
    try:
        yield
    finally:
        assert process.run([umount, tree]).ok


@contextlib.contextmanager
def small(folder: Path, size: int) -> Iterator[None]:
    """Puts a disk of so many bytes in the place of a folder, for root."""
    mount, umount = shutil.which("mount"), shutil.which("umount")
    folder.mkdir(parents=True, exist_ok=True)
    options = f"size={size}"
    if not (mount and umount and process.run([mount, "-t", "tmpfs", "-o", options, "none", folder]).ok):
        pytest.skip("nobody but root can mount, and not everywhere")
    try:
        yield
    finally:
        assert process.run([umount, folder]).ok
