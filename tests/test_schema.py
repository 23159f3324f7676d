"""The JSON schema of the settings: fresh, shipped, and what validate-pyproject makes of it."""

from __future__ import annotations

import runpy
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from projects import REPOSITORY

from rustcuda_backend import process, settings_schema
from rustcuda_backend.errors import SettingsError
from rustcuda_backend.settings import SETTING_FIELDS, read_settings

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SAMPLE = (REPOSITORY / "sample_ext/pyproject.toml").read_text(encoding="utf-8")
CRATES = [{"crate": "a", "module": "p.a"}, {"crate": "b", "features": ["x"], "capabilities": "8.0"}]


def test_the_file_is_fresh() -> None:
    shipped = settings_schema.FILE.read_text(encoding="utf-8")
    fresh = settings_schema.text(settings_schema.make_schema())
    assert shipped == fresh, "run: python -m rustcuda_backend.settings_schema"
    assert settings_schema.tool_schema("rustcuda") == settings_schema.make_schema()


def test_the_module_writes_the_file() -> None:
    before = settings_schema.FILE.read_bytes()
    with pytest.warns(RuntimeWarning, match="found in sys.modules"):
        runpy.run_module("rustcuda_backend.settings_schema", run_name="__main__")
    assert settings_schema.FILE.read_bytes() == before


def test_every_setting_is_in_it() -> None:
    properties = settings_schema.make_schema()["properties"]
    assert len(properties) == len(SETTING_FIELDS) + 1
    assert all(item["description"] for item in properties.values() if "properties" not in item)
    assert properties["fmad"]["default"] is True
    assert "default" not in properties["jobs"], "0 cannot be set"
    of_crate = {"crate", "kernels", "module", "capabilities", "features"}
    assert set(properties["crates"]["items"]["properties"]) == of_crate


def test_it_is_registered() -> None:
    (found,) = entry_points(group="validate_pyproject.tool_schema", name="rustcuda")
    assert found.load() is settings_schema.tool_schema


# Tables without one crate's `crate`, which every one gets.
TABLES: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"capabilities": "9.0", "features": ["a"], "jobs": 2, "container": "elf"}, True),
    ({"capabilities": ["8.0", "9.0+PTX"], "cuda-version": "13.0", "fmad": False}, True),
    ({"editable": {"rebuild": True}}, True),
    ({"crat": "k"}, False),
    ({"cuda_version": "13.0"}, False),
    ({"cuda-version": "11.8"}, False),
    ({"cuda-version": 12.9}, False),
    ({"container": "so"}, False),
    ({"crate": 1}, False),
    ({"crate": ""}, False),
    ({"locked": "yes"}, False),
    ({"jobs": 0}, False),
    ({"jobs": True}, False),
    ({"jobs": "2"}, False),
    ({"verbose": -1}, False),
    ({"features": [1]}, False),
    ({"capabilities": []}, False),
    ({"capabilities": ""}, False),
    ({"capabilities": " ; ,"}, False),
    ({"capabilities": ["", ";"]}, False),
    ({"capabilities": ["", "8.0"]}, True),
    *(({"profile": name}, True) for name in ("release", "my-profile", "tests", "a_1")),
    *(({"profile": name}, False) for name in ("", "test", "bench", "a b", "a.b", "ä")),
    *(
        ({"module": name}, True)
        for name in ("", "a", "a.b", "_a.b1", "ä.ö", "classes.k", "a.__b", "a.init__")
    ),
    *(({"module": name}, False) for name in ("a..b", ".a", "a.", "a-b", "a.1b", "a b", "a.class", "None.a")),
    *(({"module": name}, False) for name in ("__init__", "a.__init__", "__main__.a", "a/b", "a[0]", "`")),
    ({"editable": {"rebuilds": True}}, False),
    ({"editable": True}, False),
]
SEVERAL: list[tuple[dict[str, Any], bool]] = [
    ({"crates": CRATES}, True),
    ({"crates": CRATES, "locked": True, "features": ["all"]}, True),
    ({"crates": []}, False),
    ({"crates": "kernels"}, False),
    ({"crates": ["kernels"]}, False),
    ({"crates": [{"module": "p.a"}]}, False),
    ({"crates": [{"crate": "a", "jobs": 1}]}, False),
    ({"crates": [{"crate": "a", "modul": "p.a"}]}, False),
    ({"crates": CRATES, "crate": "k"}, False),
    ({"crates": CRATES, "module": "p.k"}, False),
    ({"crates": CRATES, "kernels": "a.so"}, False),
    ({"crates": [*CRATES, {"kernels": "a.so#b", "module": "p.c"}]}, True),
    ({"crates": [{"crate": "a", "kernels": "a.so"}]}, False),
    ({"kernels": "a.so", "capabilities": "9.0"}, True),
    ({"kernels": "a.so", "crate": "k"}, False),
    ({"kernels": ""}, False),
]


@pytest.mark.parametrize(
    ("table", "right"), [({"crate": "k"} | table, right) for table, right in TABLES] + SEVERAL
)
def test_the_schema_takes_what_the_backend_takes(table: dict[str, Any], right: bool) -> None:
    fastjsonschema = pytest.importorskip("fastjsonschema")
    check = fastjsonschema.compile(settings_schema.make_schema())
    if right:
        check(table)
        read_settings(table, {}, {})
        return
    with pytest.raises(fastjsonschema.JsonSchemaException):
        check(table)
    with pytest.raises(SettingsError):
        read_settings(table, {}, {})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("", ""),
        ("jobs = 0\n", "`tool.rustcuda.jobs` must be bigger than or equal to 1"),
        ('capabilites = "9.0"\n', "`tool.rustcuda` must not contain {'capabilites'} properties"),
        ('[[tool.rustcuda.crates]]\ncrate = "b"\n', "`tool.rustcuda.crate`"),
    ],
)
def test_validate_pyproject(tmp_path: Path, change: str, message: str) -> None:
    pytest.importorskip("validate_pyproject")
    path = tmp_path / "pyproject.toml"
    path.write_text(SAMPLE + change, encoding="utf-8")
    assert "rustcuda" in tomllib.loads(SAMPLE)["tool"]
    finished = process.run([sys.executable, "-m", "validate_pyproject", path])
    assert finished.ok == (not message), finished.stdout + finished.stderr
    assert message in finished.stdout + finished.stderr
