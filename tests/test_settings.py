"""Settings: three sources over one dataclass, and every mistake in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rustcuda_backend.errors import SettingsError
from rustcuda_backend.pyproject import read_table
from rustcuda_backend.session import ConfigSettings
from rustcuda_backend.settings import SETTING_FIELDS, Settings, read_settings, spelled


def read(
    table: dict[str, Any] | None = None,
    config: ConfigSettings | None = None,
    environ: dict[str, str] | None = None,
) -> Settings:
    return read_settings({"crate": "k", **(table or {})}, config or {}, environ or {})


def test_defaults() -> None:
    settings = read()
    assert (settings.crate, settings.cuda_version, settings.profile) == ("k", "12.9", "release")
    assert settings.fmad
    assert settings.prec_div
    assert settings.prec_sqrt
    assert settings.capabilities == ()
    assert settings.where("jobs") == "default of 'jobs'"


def test_the_environment_wins_over_config_settings_and_these_over_the_table() -> None:
    table = {"profile": "a", "features": ["a"], "jobs": 1}
    config: ConfigSettings = {"profile": "b", "rustcuda.features": "b;c"}
    settings = read(table, config, {"RUSTCUDA_PROFILE": "c"})
    assert (settings.profile, settings.features, settings.jobs) == ("c", ("b", "c"), 1)
    assert settings.where("profile") == "environment variable RUSTCUDA_PROFILE"
    assert settings.where("features") == "config setting -C rustcuda.features"
    assert settings.where("jobs") == "[tool.rustcuda] jobs"


@pytest.mark.parametrize("name", [name for name, item in SETTING_FIELDS.items() if item.default is False])
def test_every_flag_is_read_from_text(name: str) -> None:
    variable = "RUSTCUDA_" + name.upper()
    for text in ("1", "true", "Yes", "on"):
        assert getattr(read(environ={variable: text}), name) is True
    for text in ("0", "false", "No", "off"):
        assert getattr(read({spelled(name): True}, environ={variable: text}), name) is False
    assert getattr(read(config={spelled(name): ""}), name) is True


def test_lists_and_arguments_are_split_each_in_its_way() -> None:
    config: ConfigSettings = {"cargo-args": "--config 'a = \"b c\"' -v", "features": ["x;y", "z"]}
    settings = read({"ptxas-args": ["-O3", "--warn on"], "capabilities": "8.0 9.0"}, config)
    assert settings.cargo_args == ("--config", 'a = "b c"', "-v")
    assert settings.ptxas_args == ("-O3", "--warn on")
    assert settings.features == ("x", "y", "z")
    assert settings.capabilities == ("8.0 9.0",)


def test_variables_of_ours_that_are_no_settings_are_left_alone() -> None:
    environ = {"RUSTCUDA_CACHE_DIR": "x", "RUSTCUDA_DRIVER": "ctypes", "RUSTCUDA_TEST_X": "1", "PATH": ""}
    assert read(environ=environ) == read()


@pytest.mark.parametrize("key", ["--global-option", "--build-option", "editable_mode", "editable-mode"])
def test_setuptools_own_config_settings_pass(key: str) -> None:
    assert read(config={key: "x"}) == read()


@pytest.mark.parametrize(
    ("table", "config", "environ", "where", "meant"),
    [
        ({"capabilites": "9.0"}, {}, {}, "[tool.rustcuda] in pyproject.toml", "capabilities"),
        ({}, {"capabilites": "9.0"}, {}, "config setting -C capabilites", "capabilities"),
        ({}, {"rustcuda.capabilites": "9.0"}, {}, "config setting -C rustcuda.capabilites", "capabilities"),
        *(
            ({}, {}, {variable: "1"}, f"environment variable {variable}", meant)
            for variable, meant in (
                ("RUSTCUDA_CAPABILITES", "RUSTCUDA_CAPABILITIES"),
                ("RUSTCUDA_CUDA-VERSION", "RUSTCUDA_CUDA_VERSION"),
                ("RUSTCUDA_EDITABLE_REBUILT", "RUSTCUDA_EDITABLE_REBUILD"),
                ("RUSTCUDA_editable.rebuild", "RUSTCUDA_EDITABLE_REBUILD"),
                ("RUSTCUDA_CHACHE_DIR", "RUSTCUDA_CACHE_DIR"),
                ("RUSTCUDA_DRIVERS", "RUSTCUDA_DRIVER"),
            )
        ),
    ],
)
def test_an_unknown_key_is_an_error_with_its_place_and_the_one_meant(
    table: dict[str, Any], config: ConfigSettings, environ: dict[str, str], where: str, meant: str
) -> None:
    with pytest.raises(SettingsError) as raised:
        read(table, config, environ)
    assert "unknown setting" in raised.value.what
    assert raised.value.where == where
    assert raised.value.hint == f"did you mean '{meant}'?"


@pytest.mark.parametrize("name", SETTING_FIELDS)
def test_every_setting_has_a_variable_that_a_slip_is_close_to(name: str) -> None:
    variable = f"RUSTCUDA_{name.upper()}"
    with pytest.raises(SettingsError) as raised:
        read(environ={f"{variable}X": "1"})
    assert raised.value.hint == f"did you mean '{variable}'?"


def test_an_unknown_key_unlike_all_others_gets_the_list() -> None:
    with pytest.raises(SettingsError) as raised:
        read({"zzzzz": 1})
    assert "crate, kernels, module, capabilities, cuda-version" in raised.value.hint
    with pytest.raises(SettingsError) as raised:
        read(environ={"RUSTCUDA_ZZZZZ": "1"})
    assert "the variables are: RUSTCUDA_CRATE, RUSTCUDA_KERNELS, " in raised.value.hint


def test_a_key_spelled_as_in_python_is_an_error_too() -> None:
    with pytest.raises(SettingsError) as raised:
        read({"cuda_version": "13.0"})
    assert raised.value.hint == "did you mean 'cuda-version'?"


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        ("crate", 1, "a string"),
        ("locked", "yes", "true or false"),
        ("jobs", "2", "a whole number"),
        ("jobs", True, "a whole number"),
        ("features", [1], "a list of strings"),
        ("features", {"a": 1}, "a list of strings"),
    ],
)
def test_a_value_of_the_wrong_type_in_the_table(key: str, value: object, wanted: str) -> None:
    with pytest.raises(SettingsError) as raised:
        read({key: value})
    assert raised.value.what == f"'{key}' must be {wanted}, not {value!r}"
    assert raised.value.where == f"[tool.rustcuda] {key} in pyproject.toml"


@pytest.mark.parametrize(
    ("key", "text", "wanted"), [("locked", "maybe", "true or false"), ("jobs", "many", "a whole number")]
)
def test_a_text_that_cannot_be_read(key: str, text: str, wanted: str) -> None:
    with pytest.raises(SettingsError, match=f"'{key}' must be {wanted}, not '{text}'"):
        read(config={key: text})


def test_arguments_with_an_open_quote() -> None:
    with pytest.raises(SettingsError, match="cannot be split into arguments"):
        read(config={"cargo-args": "'a"})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"compiler": "nvcc"}, "'compiler' cannot be 'nvcc'"),
        ({"cuda-version": "11.8"}, "'cuda-version' cannot be '11.8'"),
        ({"jobs": 0}, "'jobs' must be at least 1, not 0"),
        ({"jobs": -1}, "'jobs' must be at least 1, not -1"),
        ({"capabilities": []}, "the capability list is empty"),
        ({"capabilities": " ; "}, "the capability list is empty"),
        ({"capabilities": ["", " , "]}, "the capability list is empty"),
        ({"container": "so"}, "'container' cannot be 'so'"),
        ({"verbose": -1}, "'verbose' must be at least 0, not -1"),
        ({"crate": "a\0b"}, "'crate' has a NUL character in it"),
        ({"cargo-args": ["-v", "\0"]}, "'cargo-args' has a NUL character in it"),
        ({"crate": ""}, "the setting 'crate' is missing"),
        ({"profile": ""}, "'' is no cargo profile that kernels can be built with"),
        ({"profile": "test"}, "'test' is no cargo profile that kernels can be built with"),
        ({"profile": "a.b"}, "'a.b' is no cargo profile that kernels can be built with"),
        ({"profile": "a\nb"}, "'a\nb' is no cargo profile that kernels can be built with"),
    ],
)
def test_values_out_of_range(table: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError) as raised:
        read(table)
    assert raised.value.what == message
    assert f"[tool.rustcuda] {next(iter(table))}" in raised.value.where


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("jobs", "0", "'jobs' must be at least 1, not 0"),
        ("jobs", "", "'jobs' must be a whole number, not ''"),
        ("jobs", "1.5", "'jobs' must be a whole number, not '1.5'"),
        ("capabilities", "", "the capability list is empty"),
        ("capabilities", ";,", "the capability list is empty"),
        ("container", "", "'container' cannot be ''"),
        ("crate", "", "the setting 'crate' is missing"),
    ],
)
def test_texts_out_of_range_with_their_place(key: str, text: str, message: str) -> None:
    variable = f"RUSTCUDA_{key.upper()}"
    for config, environ, where in (
        ({key: text}, {}, f"config setting -C {key}"),
        ({f"rustcuda.{key}": [text]}, {}, f"config setting -C rustcuda.{key}"),
        ({}, {variable: text}, f"environment variable {variable}"),
    ):
        with pytest.raises(SettingsError) as raised:
            read(config=config, environ=environ)
        assert raised.value.what == message
        assert raised.value.where == where


def test_a_config_setting_without_a_value() -> None:
    assert read(config={"locked": None, "offline": []}) == read({"locked": True, "offline": True})


def test_the_table_is_read_from_pyproject(tmp_path: Path) -> None:
    assert read_table(tmp_path) is None
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n", encoding="utf-8")
    assert read_table(tmp_path) is None
    (tmp_path / "pyproject.toml").write_text("[tool.rustcuda]\ncrate = 'ü'\n", encoding="utf-8")
    assert read_table(tmp_path) == {"crate": "ü"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool", "not valid TOML"),
        ("tool.rustcuda = 1", "must be a table"),
        ("tool.rustcuda = []", "must be a table"),
        ("tool = 1", "must be a table"),
    ],
)
def test_a_pyproject_that_cannot_be_read(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match=message) as raised:
        read_table(tmp_path)
    assert raised.value.where == str(tmp_path / "pyproject.toml")


def test_every_setting_has_a_help_text() -> None:
    assert all(item.metadata["help"] for item in SETTING_FIELDS.values())
