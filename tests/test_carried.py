"""The runtime's files: each a module of its own, and all of them joined into every loader."""

from __future__ import annotations

import importlib

import pytest

from rustcuda_backend.loader import carried, runtime


@pytest.mark.parametrize("name", runtime.SECTIONS)
def test_each_file_is_a_module(name: str) -> None:
    module = importlib.import_module(f"{runtime.__name__}.{name}")
    assert module.__doc__
    assert module.__doc__.startswith(next(s.title for s in carried.sections() if s.path.stem == name))


def test_no_file_is_forgotten() -> None:
    folder = carried.sections()[0].path.parent
    assert sorted(runtime.SECTIONS) == sorted(
        path.stem for path in folder.glob("*.py") if path.stem != "__init__"
    )


def test_the_joined_text_stands_alone() -> None:
    text = carried.runtime_code()
    assert "rustcuda_backend" not in text
    assert "TYPE_CHECKING" not in text
    imports = [line for line in text.splitlines() if line.startswith(("import ", "from "))]
    assert imports == [
        "import sys as _sys", "import os as _os", "from _thread import RLock as _RLock",
        "from _weakref import ref as _ref",
    ]  # fmt: skip
    assert text.startswith("\n".join(imports))
