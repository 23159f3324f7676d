"""The GPUs of the machine that builds, for `native` and editable installs."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from rustcuda_backend import process


def present_capabilities(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The capabilities of the GPUs here, e.g. `("9.0",)`; empty without GPU or driver.

    Asks nvidia-smi, which comes with every driver and, unlike the driver library, cannot hang on to a GPU.
    """
    nvidia_smi = shutil.which("nvidia-smi", path=environ.get("PATH", ""))
    if not nvidia_smi:
        return ()
    try:
        finished = process.run([nvidia_smi, "--query-gpu=compute_cap", "--format=csv,noheader"], env=environ)
    except OSError:  # what is left of a driver, or one for another machine
        return ()
    return tuple(dict.fromkeys(re.findall(r"^\s*(\d+\.\d)\s*$", finished.stdout, re.MULTILINE)))


@dataclass(frozen=True)
class Gpu:
    """A GPU of this machine.

    Attributes:
        name: E.g. `"NVIDIA H200"`.
        capability: E.g. `"9.0"`.
        driver: The driver's version, e.g. `"580.65.06"`.
    """

    name: str
    capability: str
    driver: str


def present_gpus(environ: Mapping[str, str]) -> tuple[tuple[Gpu, ...], str]:
    """The GPUs here, and where there are none, why that is so as far as nvidia-smi tells."""
    nvidia_smi = shutil.which("nvidia-smi", path=environ.get("PATH", ""))
    if not nvidia_smi:
        return (), "there is no nvidia-smi on PATH, so no driver"
    asked = [nvidia_smi, "--query-gpu=name,compute_cap,driver_version", "--format=csv,noheader"]
    try:
        finished = process.run(asked, env=environ)
    except OSError as error:
        return (), f"{nvidia_smi} does not start: {error.strerror}"
    found = re.findall(r"^\s*(\S.*?), (\d+\.\d), (\d+(?:\.\d+)+)\s*$", finished.stdout, re.MULTILINE)
    said = (finished.stdout + finished.stderr).strip() or f"exit status {finished.returncode}"
    return tuple(Gpu(*fields) for fields in found), "" if found else f"{nvidia_smi} finds no GPU: {said}"
