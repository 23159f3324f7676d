"""Kernels as custom operators of torch."""

from __future__ import annotations

from rustcuda_backend.loader.runtime.errors import KernelError
from rustcuda_backend.loader.runtime.scalars import _FLOAT_LIMITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from rustcuda_backend.loader.runtime.kernel import _Kernel


def _schema(parameters: Sequence[tuple[str, str, str, str, bool, str]]) -> tuple[str, tuple[str, ...]]:
    """The operator's schema, and the names of what it writes to."""
    takes: list[str] = []
    written: list[str] = []
    for _, name, kind, dtype, mutable, _ in parameters:
        if kind == "struct":
            raise KernelError(f"operators of torch take no structs, as the argument '{name}' is one")
        if kind in ("scalar", "array"):
            number = "bool" if dtype == "bool" else "float" if dtype in _FLOAT_LIMITS else "SymInt"
            takes.append(f"{number}[] {name}" if kind == "array" else f"{number} {name}")
        else:
            takes.append(f"Tensor(a{len(written)}!) {name}" if mutable else f"Tensor {name}")
            if mutable:
                written.append(name)
    return f"({', '.join(takes)}) -> ()", tuple(written)


def _torch_op(
    kernel: _Kernel,
    parameters: Sequence[tuple[str, str, str, str, bool, str]],
    name: str,
    grid: Any,
    block: Any,
    shared: Any,
) -> Callable[..., None]:
    """Registers an operator that launches a kernel."""
    from importlib import import_module

    library: Any = import_module("torch.library")
    if not hasattr(library, "custom_op"):
        raise KernelError(f"kernel '{kernel.__name__}': custom operators need torch 2.4 or newer")
    schema, written = _schema(parameters)

    def launch(*arguments: Any) -> None:
        extent = grid(*arguments) if callable(grid) else grid
        # Nothing to do for empty tensors, and no launch that the driver would take.
        if extent == 0 or (isinstance(extent, tuple) and 0 in extent):
            return
        threads = block(*arguments) if callable(block) else block
        memory = shared(*arguments) if callable(shared) else shared
        kernel[extent, threads, memory](*arguments)

    operator: Any = library.custom_op(name, launch, mutates_args=written, device_types="cuda", schema=schema)
    # It returns nothing, so that there is nothing to make up when it is traced.
    operator.register_fake(lambda *_: None)
    made: Callable[..., None] = operator
    return made
