"""The settings: one dataclass, read from three sources.

The environment (`RUSTCUDA_<KEY>`) wins over config settings (`-C key=value`), and these over
`[tool.rustcuda]` in pyproject.toml.
"""

from __future__ import annotations

import dataclasses
import difflib
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rustcuda_backend import cache
from rustcuda_backend.cuda_versions import CUDA_VERSIONS, DEFAULT_CUDA_VERSION
from rustcuda_backend.errors import SettingsError
from rustcuda_backend.session import SETUPTOOLS_KEYS, ConfigSettings

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ENVIRONMENT_PREFIX = "RUSTCUDA_"
TABLE = "[tool.rustcuda]"

# Variables with our prefix that are no settings: the store's folder and the loader's driver seam.
_OTHER_VARIABLES = (cache.DIRECTORY_VARIABLE, "RUSTCUDA_DRIVER")
_TEST_VARIABLES = "RUSTCUDA_TEST_"

_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off")


def _setting(default: Any, help_text: str, *, choices: Sequence[str] = (), arguments: bool = False) -> Any:
    metadata = {"help": help_text, "choices": tuple(choices), "arguments": arguments}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Settings:
    """What a project can set. Keys are spelled with `-` outside Python."""

    crate: str = _setting("", "folder of the kernel crate, relative to pyproject.toml; the only one needed")
    module: str = _setting("", "dotted name of the generated module; `<package>.kernels_cuda` by default")
    capabilities: tuple[str, ...] = _setting(
        (), "capabilities to build for, e.g. `8.0;9.0a;12.0+PTX`, or `native`; else `TORCH_CUDA_ARCH_LIST`"
    )
    cuda_version: str = _setting(
        DEFAULT_CUDA_VERSION, "CUDA release of ptxas and the packer", choices=tuple(CUDA_VERSIONS)
    )
    compiler: str = _setting("auto", "compiler of the crate", choices=("auto", "nvptx"))
    toolchain: str = _setting("", "Rust toolchain: a rustc, a toolchain's folder, or rustup's name for one")
    ptxas: str = _setting("", "the ptxas to use; its toolkit gives the packer and libdevice as well")
    profile: str = _setting("release", "cargo profile")
    features: tuple[str, ...] = _setting((), "cargo features")
    locked: bool = _setting(False, "Cargo.lock must be there and up to date (`cargo --locked`)")
    offline: bool = _setting(False, "cargo does not use the network (`cargo --offline`)")
    cargo_args: tuple[str, ...] = _setting((), "more arguments for cargo", arguments=True)
    ptxas_args: tuple[str, ...] = _setting((), "more arguments for ptxas", arguments=True)
    fmad: bool = _setting(True, "contract multiply and add into FMA, as nvcc does")
    prec_div: bool = _setting(True, "f32 division is IEEE-rounded; false: approximate")
    prec_sqrt: bool = _setting(True, "f32 square root is IEEE-rounded; false: approximate")
    lineinfo: bool = _setting(False, "line numbers for profilers")
    jobs: int = _setting(0, "passes at once; 0: by cores, memory, `MAX_JOBS` and `CARGO_BUILD_JOBS`")
    verbose: int = _setting(0, "1: print every command; 2: and what cargo and ptxas say")

    # Where each key that was set stands, for messages.
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)

    def where(self, key: str) -> str:
        """The place a setting comes from, e.g. `environment variable RUSTCUDA_JOBS`."""
        return self.origins.get(key, f"default of '{spelled(key)}'")


SETTING_FIELDS = {item.name: item for item in dataclasses.fields(Settings) if item.name != "origins"}


def spelled(name: str) -> str:
    """A setting's name as users write it: `cuda-version`."""
    return name.replace("_", "-")


def read_table(project: Path) -> dict[str, Any] | None:
    """The table `[tool.rustcuda]` of a project, or None where there is none.

    Raises:
        SettingsError: pyproject.toml is no TOML, or `tool.rustcuda` is no table.
    """
    path = project / "pyproject.toml"
    if not path.is_file():
        return None
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"pyproject.toml is not valid TOML: {error}", where=str(path)) from None
    table = content.get("tool", {}).get("rustcuda")
    if table is not None and not isinstance(table, dict):
        raise SettingsError("tool.rustcuda must be a table", where=str(path), hint=f"write {TABLE}")
    return table


def read_settings(
    table: Mapping[str, Any],
    config_settings: ConfigSettings,
    environ: Mapping[str, str],
) -> Settings:
    """Merges the three sources.

    Raises:
        SettingsError: An unknown key, a value of the wrong type or out of range, or no `crate`.
    """
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    sources = (
        _from_table(table),
        _from_config_settings(config_settings),
        _from_environment(environ),
    )
    for source in sources:
        for name, (value, where) in source.items():
            values[name] = value
            origins[name] = where
    settings = Settings(**values, origins=origins)
    _check(settings)
    return settings


def _from_table(table: Mapping[str, Any]) -> dict[str, tuple[Any, str]]:
    found = {}
    for key, value in table.items():
        where = f"{TABLE} in pyproject.toml"
        name = _known(key, key, where)
        found[name] = (_typed(name, value, f"{TABLE} {key} in pyproject.toml"), f"{TABLE} {key}")
    return found


def _from_config_settings(
    config_settings: ConfigSettings,
) -> dict[str, tuple[Any, str]]:
    found = {}
    for key, value in config_settings.items():
        short = key.removeprefix("rustcuda.")
        if key in SETUPTOOLS_KEYS:
            continue
        where = f"config setting -C {key}"
        name = _known(short, key, where)
        texts = value if isinstance(value, list) else [value or ""]
        found[name] = (_parsed(name, texts, where), where)
    return found


def _from_environment(environ: Mapping[str, str]) -> dict[str, tuple[Any, str]]:
    found = {}
    for variable, text in environ.items():
        ours = variable.startswith(ENVIRONMENT_PREFIX) and not variable.startswith(_TEST_VARIABLES)
        if not ours or variable in _OTHER_VARIABLES:
            continue
        where = f"environment variable {variable}"
        key = variable.removeprefix(ENVIRONMENT_PREFIX).lower().replace("_", "-")
        name = _known(key, variable, where)
        found[name] = (_parsed(name, [text], where), where)
    return found


def _known(key: str, shown: str, where: str) -> str:
    name = key.replace("-", "_")
    if name in SETTING_FIELDS and "_" not in key:
        return name
    close = difflib.get_close_matches(spelled(name), [spelled(known) for known in SETTING_FIELDS], n=1)
    settings = ", ".join(spelled(known) for known in SETTING_FIELDS)
    hint = f"did you mean '{close[0]}'?" if close else f"the settings are: {settings}"
    raise SettingsError(f"unknown setting '{shown}'", where=where, hint=hint)


def _typed(name: str, value: Any, where: str) -> Any:
    """Checks a value that has a type of its own, as TOML's have."""
    default = SETTING_FIELDS[name].default
    if isinstance(default, tuple):
        if isinstance(value, str):
            return _parsed(name, [value], where)
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        raise _wrong_type(name, value, "a list of strings", where)
    wanted = type(default)
    if isinstance(value, wanted) and not (wanted is int and isinstance(value, bool)):
        return value
    names = {str: "a string", bool: "true or false", int: "a whole number"}
    raise _wrong_type(name, value, names[wanted], where)


def _parsed(name: str, texts: list[str], where: str) -> Any:
    """Reads a value from text, as the environment and config settings give it."""
    setting = SETTING_FIELDS[name]
    default = setting.default
    if isinstance(default, tuple):
        return tuple(item for text in texts for item in _split(setting, text, where))
    text = texts[-1].strip()
    if isinstance(default, bool):
        if text.lower() in (*_TRUE, ""):
            return True  # a bare `-C locked`
        if text.lower() in _FALSE:
            return False
        raise _wrong_type(name, text, "true or false", where)
    if isinstance(default, int):
        try:
            return int(text)
        except ValueError:
            raise _wrong_type(name, text, "a whole number", where) from None
    return text


def _split(setting: dataclasses.Field[Any], text: str, where: str) -> list[str]:
    if not setting.metadata["arguments"]:
        return [item.strip() for item in text.split(";") if item.strip()]
    try:
        return shlex.split(text)
    except ValueError as error:
        raise SettingsError(f"'{text}' cannot be split into arguments: {error}", where=where) from None


def _wrong_type(name: str, value: Any, wanted: str, where: str) -> SettingsError:
    return SettingsError(f"'{spelled(name)}' must be {wanted}, not {value!r}", where=where)


def _check(settings: Settings) -> None:
    for name, item in SETTING_FIELDS.items():
        choices = item.metadata["choices"]
        value = getattr(settings, name)
        if choices and value not in choices:
            raise SettingsError(
                f"'{spelled(name)}' cannot be '{value}'",
                where=settings.where(name),
                hint=f"use one of {', '.join(choices)}",
            )
    if not settings.crate:
        raise SettingsError(
            "the setting 'crate' is missing",
            where=f"{TABLE} in pyproject.toml",
            hint='name the folder of the kernel crate, e.g. crate = "kernels"',
        )
    if settings.jobs < 0 or ("jobs" in settings.origins and settings.jobs == 0):
        raise SettingsError(f"'jobs' must be at least 1, not {settings.jobs}", where=settings.where("jobs"))
    if "capabilities" in settings.origins and not settings.capabilities:
        raise SettingsError(
            "the capability list is empty",
            where=settings.where("capabilities"),
            hint='name at least one, e.g. "8.0;9.0+PTX", or leave the setting out',
        )
