"""Writes each kernel's own launcher: what most launches need, in one function without a call too many.

The driver takes 4 microseconds for a launch, so what Python does before must take well under one. The
launcher therefore asks of its arguments only whether they are the most usual ones, and all right: ints
and floats, and torch tensors of the right dtype on one GPU. Everything else, every error included, it leaves
to `_Launch.start`, which looks at the same arguments again and takes its time. A launcher may thus refuse
what is right, but must never take what is wrong. It tells a GPU by its index alone: a torch that has CUDA has
no other accelerators, and tensors of the host and meta tensors have the index -1, which is no GPU's.
"""

from __future__ import annotations

import keyword
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rustcuda_backend.signature import KernelSignature, Parameter

# Names that begin so are the launchers'.
PREFIX = "_launch_"

_DTYPES = {"isize": "i64", "usize": "u64"}
_OWN_NAMES = (
    "self",
    "more",
    "named",
    "held",
    "device",
    "config",
    "entry",
    "function",
    "stream",
    "result",
    "type",
    "int",
    "float",
    "bool",
)


def launcher_name(signature: KernelSignature) -> str:
    """The name of a kernel's launcher in the generated module; that of the general one where it has none."""
    return PREFIX + (signature.name if _has_own(signature) else "any")


def launcher(signature: KernelSignature) -> str:
    """The text of a kernel's launcher; `""` where it has none of its own."""
    if not _has_own(signature):
        return ""
    names = _local_names(signature.parameters)
    takes = "".join(f"{name}=_MISSING, " for name in names)
    pairs = list(zip(names, signature.parameters, strict=True))
    first = next(name for name, parameter in pairs if parameter.kind != "scalar")
    conditions = [
        *(condition for name, parameter in pairs for condition in _conditions(name, parameter, first)),
        "not (more or named)",
    ]
    offset = 8 * len(signature.abi_bytes)
    values = ", ".join(value for name, parameter in pairs for value in _values(name, parameter))
    joined = "\n            and ".join(conditions)
    return f"""\
def {PREFIX}{signature.name}(self, {takes}/, *more, **named):
    held = None
    try:
        device = {first}.get_device()
        if (
            {joined}
        ):
            stream = self.stream
            if stream is None:
                stream = _torch.raw_stream(device)
            config, entry = self.ready[device][stream]
            function = entry.function
            held = self.free.pop()
            self.pack_into(held[0], {offset}, {values})
    except Exception:
        held = None
    if held is None:
        return self.start(({"".join(f"{name}, " for name in names)}), more, named)
    result = _library.launch_kernel(config, function, held[1], _library.no_extra)
    if result != _library.success:
        self.mend(result, config, entry, held[1])
    self.free.append(held)


"""


def _has_own(signature: KernelSignature) -> bool:
    """Whether an argument tells the GPU, without which there is more to find out, and all are simple."""
    kinds = {parameter.kind for parameter in signature.parameters}
    return bool(kinds - {"scalar"}) and not kinds & {"array", "struct"}


def _local_names(parameters: Sequence[Parameter]) -> list[str]:
    """The parameters' names where they are free; nobody passes arguments by them."""
    names: list[str] = []
    for parameter in parameters:
        name = unicodedata.normalize("NFKC", parameter.name.removeprefix("r#")).strip("_") or "value"
        while name in (*_OWN_NAMES, *names) or keyword.iskeyword(name):
            name += "_"
        names.append(name)
    return names


def _conditions(name: str, parameter: Parameter, first: str) -> Iterator[str]:
    """What must hold for an argument to be packed as it is; its range is seen when that is done."""
    if parameter.kind == "scalar":
        if parameter.dtype == "bool":
            yield f"type({name}) is bool"
        elif parameter.dtype in ("f16", "bf16", "f32", "f64"):
            yield f"(type({name}) is float or type({name}) is int)"
        else:
            yield f"type({name}) is int"
        return
    if parameter.dtype:
        yield f"{name}.dtype is _torch.{_DTYPES.get(parameter.dtype, parameter.dtype)}"
    if name != first:
        yield f"{name}.get_device() == device"
    if parameter.kind != "pointer":
        yield f"{name}.is_contiguous()"
    if parameter.mutable:
        yield f"not ({name}.requires_grad and _torch.grad_enabled())"


def _values(name: str, parameter: Parameter) -> Iterator[str]:
    """What is packed for an argument."""
    if parameter.kind == "scalar":
        yield f"_bf16_bits({name})" if parameter.dtype == "bf16" else name
    elif parameter.kind == "pointer":
        yield f"{name}.data_ptr() or _null()"
    else:
        yield f"{name}.data_ptr() or _null()"
        yield f"{name}.numel()"
        if parameter.kind == "rows":
            yield f"{name}.size(-1)"
