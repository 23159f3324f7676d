"""Launches in C, by the package rustcuda-launch where that is installed."""

from __future__ import annotations

import os as _os

from rustcuda_backend.loader.runtime.errors import KernelError
from rustcuda_backend.loader.runtime.torch_state import _torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rustcuda_backend.loader.runtime.seam import _Driver

# What `rustcuda_launch.INTERFACE` must be: its functions take what is passed to them here.
_C_INTERFACE = 1


class _LaunchesInC:
    """The module rustcuda_launch, looked for at the first launch; RUSTCUDA_LAUNCHER forces c or python."""

    __slots__ = ("_driver", "_module")

    def __init__(self) -> None:
        self._module: Any = None
        self._driver: _Driver | None = None

    @property
    def module(self) -> Any:
        """The module; False where there is none."""
        if self._module is None:
            self._module = self._find()
        return self._module

    def _find(self) -> Any:
        forced = _os.environ.get("RUSTCUDA_LAUNCHER", "")
        if forced not in ("", "c", "python"):
            raise KernelError(f"RUSTCUDA_LAUNCHER is '{forced}': set it to c or python, or unset it")
        if forced == "python":
            return False
        try:
            import rustcuda_launch  # type: ignore[import-not-found]
        # An installation may be broken in any way; Python then still serves.
        except Exception as error:
            if forced:
                raise KernelError(f"rustcuda_launch cannot be imported: {error}") from error
            return False
        # Left-over folders can be imported, too, and have nothing in them.
        if getattr(rustcuda_launch, "INTERFACE", None) == _C_INTERFACE:
            return rustcuda_launch
        if forced:
            raise KernelError("rustcuda_launch is not of the version that this loader wants: upgrade both")
        return False

    def use(self, driver: _Driver) -> bool:
        """Whether launches can go this way: torch is there, and its tensors must describe themselves to C."""
        if self._driver is not driver:
            torch = _torch.module
            table = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
            of_torch = (torch.Tensor, torch.nn.Parameter, torch.is_grad_enabled)
            if table and self.module.use(driver.launch_address(), table, *of_torch):
                self._driver = driver
        return self._driver is driver

    def forget(self) -> None:
        """Makes each launch come to Python once more: what it was made with may be there no longer."""
        if self._module:
            self._module.forget()


_in_c = _LaunchesInC()
