"""The code that every generated loader carries: it checks arguments and launches kernels.

`carried` joins these files into each `kernels_cuda.py`, in the order of `SECTIONS`, where kernels become
module attributes. Hence some rules: only the errors have names without a leading underscore; no builtins are
used that make good kernel names (`max`, `sum`, `abs`, `round`, …); imports at the top of a file are of
modules that every Python has loaded anyway, or of a file here, which joining drops, as it does with blocks
of `if TYPE_CHECKING`. Importing touches neither the driver nor torch; the work starts at the first launch or
at `load`.
"""

SECTIONS = (
    "errors", "seam", "through_ctypes", "through_bindings", "opening", "images", "torch_state", "in_c",
    "library", "arguments", "scalars", "structs", "exported", "arrays", "marshaller", "configuration",
    "launch", "extended", "attributes", "torch_op", "kernel", "constant",
)  # fmt: skip
