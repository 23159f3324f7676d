"""The GPUs of the machine that builds, for `native` and editable installs."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping

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
