"""Which way to the driver is taken."""

from __future__ import annotations

import os as _os

from rustcuda_backend.loader.runtime.errors import KernelError, NoDriver
from rustcuda_backend.loader.runtime.through_bindings import _BindingsDriver
from rustcuda_backend.loader.runtime.through_ctypes import _CtypesDriver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rustcuda_backend.loader.runtime.seam import _Driver


def _open_driver() -> _Driver:
    """cuda.bindings where it is installed, else ctypes; RUSTCUDA_DRIVER forces one."""
    forced = _os.environ.get("RUSTCUDA_DRIVER", "")
    if forced not in ("", "ctypes", "cuda-bindings"):
        raise KernelError(f"RUSTCUDA_DRIVER is '{forced}': set it to ctypes or cuda-bindings, or unset it")
    if forced == "ctypes":
        return _CtypesDriver()
    try:
        return _BindingsDriver()
    # An installation may be broken in any way; the driver library itself then still serves.
    except Exception as error:
        if forced:
            raise NoDriver(f"cuda.bindings cannot be imported: {error}") from error
        return _CtypesDriver()
