"""The GPUs of this machine, as nvidia-smi tells them; the programs here only print what it would."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rustcuda_backend.errors import CapabilityError
from rustcuda_backend.gpu import present_capabilities
from rustcuda_backend.plan import choose_capabilities
from rustcuda_backend.settings import read_settings

pytestmark = pytest.mark.skipif(os.name != "posix", reason="its nvidia-smi is a shell script")


def machine(folder: Path, script: str) -> dict[str, str]:
    """The environment of a machine with this nvidia-smi."""
    program = folder / "nvidia-smi"
    program.write_text(script, encoding="utf-8")
    program.chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("9.0\\n", ("9.0",)),
        ("12.0\\n9.0\\n12.0\\n", ("12.0", "9.0")),
        ("compute_cap\\n8.6\\n[N/A]\\n", ("8.6",)),
        (" 8.9 \\r\\n", ("8.9",)),
        ("No devices were found\\n", ()),
        ("NVIDIA-SMI 535.104 has failed: version 12.2\\n", ()),
        ("", ()),
    ],
)
def test_what_nvidia_smi_says(tmp_path: Path, output: str, expected: tuple[str, ...]) -> None:
    asked = '[ "$*" = "--query-gpu=compute_cap --format=csv,noheader" ] || exit 9'
    environ = machine(tmp_path, f"#!/bin/sh\n{asked}\nprintf '{output}'\n")
    assert present_capabilities(environ) == expected


def test_a_machine_without_a_driver(tmp_path: Path) -> None:
    assert present_capabilities({"PATH": str(tmp_path)}) == ()
    assert present_capabilities({"PATH": ""}) == ()
    assert present_capabilities({}) == ()


def test_an_nvidia_smi_that_fails_or_does_not_start(tmp_path: Path) -> None:
    assert (
        present_capabilities(machine(tmp_path, "#!/bin/sh\necho 'Failed to initialize NVML' >&2; exit 9"))
        == ()
    )
    assert present_capabilities(machine(tmp_path, "\x7fELF of another machine")) == ()


@pytest.mark.parametrize(("capabilities", "editable"), [("native", False), ("", True)])
def test_a_gpu_that_is_too_old(tmp_path: Path, capabilities: str, editable: bool) -> None:
    table = {"crate": "kernels", **({"capabilities": capabilities} if capabilities else {})}
    environ = machine(tmp_path, "#!/bin/sh\necho 6.1\n")
    with pytest.raises(CapabilityError) as raised:
        choose_capabilities(read_settings(table, {}, {}), environ, editable=editable)
    assert "6.1" in raised.value.what
    assert "the GPU of this machine" in raised.value.where
