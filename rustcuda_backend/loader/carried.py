"""Joins the files of `runtime` into the text that every generated module carries."""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rustcuda_backend.loader import editable, runtime

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType


@dataclass(frozen=True)
class Section:
    """One file of `runtime`.

    Attributes:
        title: The first line of its docstring.
        path: The file.
        source: Its text.
        dropped: Numbers of the lines that are not carried, from 1.
        imports: The imports of Python's own modules, e.g. `"import os as _os"`.
    """

    title: str
    path: Path
    source: str
    dropped: frozenset[int]
    imports: tuple[str, ...]

    @property
    def code(self) -> str:
        """What is carried of it, but for the imports."""
        lines = self.source.splitlines(keepends=True)
        return "".join(line for number, line in enumerate(lines, 1) if number not in self.dropped).strip()


@functools.cache
def sections() -> tuple[Section, ...]:
    """The files of `runtime` in the order in which they are carried."""
    folder = Path(str(runtime.__file__)).parent
    return tuple(_section(folder / f"{name}.py") for name in runtime.SECTIONS)


def _section(path: Path) -> Section:
    source = path.read_text(encoding="utf-8")
    body = ast.parse(source).body
    (docstring, *_), dropped, imports = body, [body[0]], []
    for node in body:
        if isinstance(node, ast.ImportFrom) and node.module in ("__future__", *_own_modules()):
            dropped.append(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            dropped.append(node)
            imports.append(ast.unparse(node))
        elif "TYPE_CHECKING" in _names(node):
            dropped.append(node)
    lines = {line for node in dropped for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    assert isinstance(docstring, ast.Expr)  # noqa: S101
    title = str(ast.literal_eval(docstring.value)).partition("\n")[0]
    return Section(title, path, source, frozenset(lines), tuple(imports))


def _own_modules() -> Iterator[str]:
    return (f"{runtime.__name__}.{name}" for name in runtime.SECTIONS)


def _names(node: ast.stmt) -> tuple[str, ...]:
    """What `TYPE_CHECKING = False` and `if TYPE_CHECKING:` are about."""
    if isinstance(node, ast.Assign):
        return tuple(target.id for target in node.targets if isinstance(target, ast.Name))
    return (node.test.id,) if isinstance(node, ast.If) and isinstance(node.test, ast.Name) else ()


@functools.cache
def runtime_code() -> str:
    """The joined text, imports first."""
    imports = dict.fromkeys(line for section in sections() for line in section.imports)
    parts = ["\n".join(imports)]
    parts += [f"# ---- {section.title} ----\n\n\n{section.code}" for section in sections()]
    return "\n\n\n".join(parts) + "\n"


@functools.cache
def editable_code() -> str:
    """What ends the module of an editable install, but for its record."""
    return _below_future(editable)


def _below_future(module: ModuleType) -> str:
    """A module's source below its docstring and `from __future__` import."""
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    future = next(node for node in ast.parse(source).body if isinstance(node, ast.ImportFrom))
    return "".join(source.splitlines(keepends=True)[future.lineno :]).strip() + "\n"
