"""Structs by value: what their names may be, and what the stub says of them."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

import pytest
from loaders import content, signature, write

from rustcuda_backend import process
from rustcuda_backend.errors import SignatureError
from rustcuda_backend.loader.generate import generate

INNER = "Inner{a: u8, type: f64}"
PARAMS = f"Params{{scale: f32, weights: [f16; 3], inner: {INNER}, flag: bool, b: bf16}}"
TAKES = signature("takes", f"p: {PARAMS}", "n: u32", "x: *const f32", f"q: {INNER}")

RIGHT = """\
from pkg import kernels_cuda as k
inner = k.Inner(3, type=2.5)
params = k.Params(1, weights=[1, 2.0, 0.5], inner=inner, flag=True, b=1.0)
k.takes[1, 32](params, 7, 4096, inner)
k.takes[1, 32](p=params, n=7, x=None, q=params.inner)
real: float = params.scale * params.weights[0] + params.b
whole: int = inner.a + 1
"""
WRONG = """\
k.Inner(1)
k.Inner(1.5, 2.0)
k.Params(1, 2.0, inner, True, 1.0)
k.Params(1, [1, 2, 3], (3, 2.5), True, 1.0)
k.takes[1, 32](params, 7, None, (3, 2.5))
k.takes[1, 32](inner, 7, None, inner)
inner.a = 4
text: str = params.weights[0]
"""


def test_the_stub_holds_with_fields_that_are_called_like_what_it_needs(tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api")
    names = [
        "property",
        "bool",
        "int",
        "float",
        "tuple",
        "Sequence",
        "_FloatLike",
        "_IntLike",
        "Inner",
        "str",
    ]
    called = "".join(f", {name}: f32" for name in names)
    fields = f"a: bool, b: [u8; 2], c: f64, d: i32, e: [f32; 2], f: Inner{{g: f32{called}}}{called}"
    write(tmp_path, generate(content(signature("takes", f"p: P{{{fields}}}", "q: Q{bool: bool, h: bool}"))))
    uses = f"""\
from pkg import kernels_cuda as k
flag: bool = k.Q(bool=True, h=False).h
def total(p: k.P) -> float:
    return {" + ".join(f"p.{name} + p.f.{name}" for name in names)} + p.b[0] + p.c + p.d + p.e[1] + p.f.g
"""
    (tmp_path / "uses.py").write_text(uses, encoding="utf-8")
    said, _, code = api.run(["--strict", "--cache-dir", str(tmp_path), str(tmp_path / "uses.py")])
    assert code == 0, said


def test_the_stub_knows_right_structs_from_wrong_ones(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    write(tmp_path, generate(content(TAKES)))
    (tmp_path / "uses.py").write_text(RIGHT + WRONG, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "uses.py"]
    done = process.run(command, cwd=tmp_path)
    lines = {line.split(": error")[0] for line in done.stdout.splitlines() if ": error:" in line}
    right = len(RIGHT.splitlines())
    assert lines == {f"uses.py:{right + wrong + 1}" for wrong in range(len(WRONG.splitlines()))}, done.stdout
    done = process.run([sys.executable, "-m", "mypy.stubtest", "pkg.kernels_cuda"], cwd=tmp_path)
    assert done.ok, done.stdout


def test_no_struct_has_a_name_that_the_stub_needs() -> None:
    stub = ast.parse(generate(content(signature("k", "n: u32"))).stub)
    own = {each.id for each in ast.walk(stub) if isinstance(each, ast.Name)} - {"k", "_Launch_k", "__all__"}
    own |= {name.name for each in ast.walk(stub) if isinstance(each, ast.ImportFrom) for name in each.names}
    fields = {each.target for each in ast.walk(stub) if isinstance(each, ast.AnnAssign)}
    own -= {each.id for each in fields if isinstance(each, ast.Name)}
    for name in sorted(own):
        with pytest.raises(SignatureError, match=f"struct '{name}' cannot be reached from Python"):
            generate(content(signature("k", f"a: {name}{{x: f32}}")))


@pytest.mark.parametrize(
    ("signatures", "message"),
    [
        (("k", "a: P{x: f32}", "b: P{x: f64}"), "two structs of different fields are called 'P'"),
        (("k", "a: \N{MICRO SIGN}{x: f32}"), "cannot be reached from Python: .* is no Python name"),
        (("k", "a: load{x: f32}"), "struct 'load' cannot be reached from Python"),
        (("k", "a: f32{x: u8}"), "'f32' is a number's name"),
    ],
)
def test_names_that_structs_cannot_have(signatures: Any, message: str) -> None:
    with pytest.raises(SignatureError, match=message):
        generate(content(signature(*signatures)))
