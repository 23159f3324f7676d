"""rustcuda-device offers what libdevice has: by its functions, or under another's name."""

from __future__ import annotations

import re

import pytest
from projects import REPOSITORY

from rustcuda_backend.cuda import CudaTools

SOURCES = REPOSITORY / "rustcuda_backend" / "device" / "rustcuda-device" / "src"

# What `core` or one instruction does as well.
OF_CORE = """
    abs llabs fabs fabsf copysign copysignf fmax fmaxf fmin fminf max min umax umin llmax llmin ullmax ullmin
    isfinited finitef isinfd isinff isnand isnanf signbitd signbitf nan nanf
    sqrt sqrtf fma fmaf brev brevll clz clzll popc popcll ffs ffsll byte_perm
    double2hiint double2loint hiloint2double double_as_longlong longlong_as_double
    float_as_int float_as_uint int_as_float uint_as_float
    int2double_rn uint2double_rn float2half_rn half2float
"""
# What another function does, or, as `rcp64h`, a part of one.
OTHER_NAMES = """
    nearbyint nearbyintf scalbn scalbnf fast_tanhf rcp64h
    fmaf_ieee_rd fmaf_ieee_rn fmaf_ieee_ru fmaf_ieee_rz
"""


@pytest.mark.parametrize("version", ["tools", "tools13"])
def test_every_function_of_libdevice_is_offered(version: str, request: pytest.FixtureRequest) -> None:
    binding = pytest.importorskip(
        "llvmlite.binding", reason="llvmlite, which reads LLVM bitcode, is not there"
    )
    tools: CudaTools = request.getfixturevalue(version)
    module = binding.parse_bitcode(tools.libdevice.read_bytes())
    names = {function.name.removeprefix("__nv_") for function in module.functions if "__nv_" in function.name}
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(SOURCES.rglob("*.rs")))
    used = set(re.findall(r"\b__nv_(\w+)", text))
    assert used == names - {*OF_CORE.split(), *OTHER_NAMES.split()}


def test_each_function_is_used_beside_its_declaration() -> None:
    declared = (SOURCES / "math" / "libdevice.rs").read_text(encoding="utf-8")
    rest = "".join(
        path.read_text(encoding="utf-8")
        for path in sorted((SOURCES / "math").glob("*.rs"))
        if path.name != "libdevice.rs"
    )
    assert set(re.findall(r"__nv_\w+", declared)) == set(re.findall(r"__nv_\w+", rest))
