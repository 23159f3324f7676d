"""Nothing that reads a file takes time that grows with the square of its length."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("resource", reason="Windows has no limit on a program's processor time")

from hostile import READERS

from rustcuda_backend import process


@pytest.mark.parametrize("reader", READERS)
def test_long_inputs_are_read_in_time_and_memory_that_their_length_bounds(reader: str) -> None:
    finished = process.run([sys.executable, Path(__file__).with_name("hostile.py"), reader])
    assert finished.ok, f"input {finished.stdout.split()[-1:]}: {finished.stderr}"
