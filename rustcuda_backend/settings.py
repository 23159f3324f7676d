"""The settings: one dataclass, read from three sources.

The environment (`RUSTCUDA_<KEY>`) wins over config settings (`-C key=value`), and these over
`[tool.rustcuda]` in pyproject.toml. Where there are several crates, `[[tool.rustcuda.crates]]` wins over
`[tool.rustcuda]`.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from keyword import kwlist
from typing import Any, TypeAlias

from rustcuda_backend import cache
from rustcuda_backend.cuda_versions import CUDA_VERSIONS, DEFAULT_CUDA_VERSION
from rustcuda_backend.errors import SettingsError
from rustcuda_backend.pyproject import TABLE
from rustcuda_backend.session import SETUPTOOLS_KEYS, ConfigSettings
from rustcuda_backend.settings_values import GROUPS, parsed, setting, spelled, typed

ENVIRONMENT_PREFIX = "RUSTCUDA_"
CRATES = "[[tool.rustcuda.crates]]"

# Variables with our prefix that are no settings: the store's folder, and the loader's; then those that
# nobody sets by hand.
_OTHER_VARIABLES = (cache.DIRECTORY_VARIABLE, "RUSTCUDA_DRIVER", "RUSTCUDA_LAUNCHER")
_INNER_VARIABLES = ("RUSTCUDA_REBUILDING", "RUSTCUDA_TEST_")

# cargo's own rule. With the two that are left out it builds a crate's tests.
_PROFILE = r"(?!(?:test|bench)$)[A-Za-z0-9_-]+"

# Dotted identifiers, without words that Python gives a meaning, as `class` and `__init__`. Of letters beyond
# ASCII `str.isidentifier` knows more.
_IDENTIFIER = r"[^\x00-@\[-^`{-\x7f][^\x00-/:-@\[-^`{-\x7f]*"
_TAKEN = rf"(?:.*\.)?(?:{'|'.join(kwlist)}|__[^.]*__)(?:\.|$)"
_MODULE = rf"(?!{_TAKEN}){_IDENTIFIER}(?:\.{_IDENTIFIER})*"

# The kinds of file that carry the kernels, and what their names end in.
CONTAINERS = {"fatbin": ".fatbin", "elf": ".o"}


@dataclass(frozen=True)
class Settings:
    """What a project can set. Keys are spelled with `-` outside Python."""

    crate: str = setting(
        "",
        "folder of the kernel crate, relative to pyproject.toml; it or `kernels` is all that is needed",
        of_crate=True,
    )
    kernels: str = setting(
        "",
        "in place of `crate`: a file in which cuda-oxide embedded kernels, or `FILE#PACKAGE` where it holds "
        "those of several packages",
        of_crate=True,
    )
    module: str = setting(
        "",
        "dotted name of the generated module; `<package>.kernels_cuda` by default",
        pattern=f"(?:{_MODULE})?",
        of_crate=True,
    )
    capabilities: tuple[str, ...] = setting(
        (),
        "capabilities to build for, e.g. `8.0;9.0a;12.0+PTX`, or `native`; else `TORCH_CUDA_ARCH_LIST`",
        of_crate=True,
    )
    cuda_version: str = setting(
        DEFAULT_CUDA_VERSION, "CUDA release of ptxas and the packer", choices=tuple(CUDA_VERSIONS)
    )
    compiler: str = setting(
        "auto",
        "compiler of the crate; `auto`: cuda-oxide where the crate depends on `cuda-device` and its backend "
        "library is found, else stock rustc (`nvptx`)",
        choices=("auto", "nvptx", "cuda-oxide"),
    )
    cuda_oxide_backend: str = setting(
        "",
        "cuda-oxide's `librustc_codegen_cuda.so`; else `CUDA_OXIDE_BACKEND`, then where cargo-oxide has it",
    )
    toolchain: str = setting("", "Rust toolchain: a rustc, a toolchain's folder, or rustup's name for one")
    ptxas: str = setting("", "the ptxas to use; its toolkit gives the packer and libdevice as well")
    profile: str = setting("release", "cargo profile", pattern=_PROFILE)
    features: tuple[str, ...] = setting((), "cargo features", of_crate=True)
    locked: bool = setting(False, "Cargo.lock must be there and up to date (`cargo --locked`)")
    offline: bool = setting(False, "cargo does not use the network (`cargo --offline`)")
    cargo_args: tuple[str, ...] = setting((), "more arguments for cargo", arguments=True)
    ptxas_args: tuple[str, ...] = setting((), "more arguments for ptxas", arguments=True)
    fmad: bool = setting(True, "contract multiply and add into FMA, as nvcc does")
    prec_div: bool = setting(True, "f32 division is IEEE-rounded; false: approximate")
    prec_sqrt: bool = setting(True, "f32 square root is IEEE-rounded; false: approximate")
    lineinfo: bool = setting(False, "line numbers for profilers")
    container: str = setting(
        "fatbin", "file that carries the kernels; `elf`: an object file `.o`", choices=tuple(CONTAINERS)
    )
    jobs: int = setting(
        0, "passes at once; by default by cores, memory, `MAX_JOBS` and `CARGO_BUILD_JOBS`", least=1
    )
    editable_rebuild: bool = setting(
        False, "importing an editable install rebuilds kernels whose sources have changed"
    )
    verbose: int = setting(0, "1: print every command; 2: and what cargo and ptxas say")

    # Where each key that was set stands, for messages.
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)
    # With several crates, the settings of each: its own and all those shared.
    crates: tuple[Settings, ...] = ()
    # For each of them, the folders of the others.
    others: tuple[str, ...] = field(default=(), compare=False)

    @property
    def source(self) -> str:
        """What the kernels are made from, as it is set: the crate's folder, or the file that has them."""
        return self.crate or self.kernels

    def where(self, key: str) -> str:
        """The place a setting comes from, e.g. `environment variable RUSTCUDA_JOBS`."""
        return self.origins.get(key, f"default of '{spelled(key)}'")

    def of_each_crate(self) -> tuple[Settings, ...]:
        """The settings of every kernel crate."""
        return self.crates or (self,)


SETTING_FIELDS = {item.name: item for item in dataclasses.fields(Settings) if "help" in item.metadata}
CRATE_FIELDS = {name: item for name, item in SETTING_FIELDS.items() if item.metadata["of_crate"]}

# What a source sets: values by name, and where each stands.
_Found: TypeAlias = "dict[str, tuple[Any, str]]"


def read_settings(
    table: Mapping[str, Any],
    config_settings: ConfigSettings,
    environ: Mapping[str, str],
) -> Settings:
    """Merges the three sources.

    Raises:
        SettingsError: An unknown key, a value of the wrong type or out of range, no `crate`, or a
            `crate` or `module` that is set for several crates at once.
    """
    shared, tables = _from_table(table, TABLE, SETTING_FIELDS), _crate_tables(table)
    text = {**_from_config_settings(config_settings), **_from_environment(environ)}
    if not tables:
        settings = _merged(shared, text)
        _check(settings, TABLE)
        return settings
    for name, (_, where) in {**shared, **text}.items():
        if name in ("crate", "kernels", "module"):
            raise SettingsError(
                f"'{name}' cannot be set for several crates at once",
                where=where,
                hint=f"set it in each {CRATES}",
            )
    crates = []
    for number, own in enumerate(tables, 1):
        place = f"{CRATES} number {number}"
        crates.append(_merged(shared, _from_table(own, place, CRATE_FIELDS), text))
        _check(crates[-1], place)
    folders = [each.crate for each in crates if each.crate]
    beside = [tuple(folder for folder in folders if folder != each.crate) for each in crates]
    crates = [dataclasses.replace(each, others=others) for each, others in zip(crates, beside, strict=True)]
    return dataclasses.replace(_merged(shared, text), crates=tuple(crates))


def _merged(*sources: _Found) -> Settings:
    """The later sources win."""
    found = {name: entry for source in sources for name, entry in source.items()}
    values = {name: value for name, (value, _) in found.items()}
    return Settings(**values, origins={name: where for name, (_, where) in found.items()})


def _crate_tables(table: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if "crates" not in table:
        return []
    tables = table["crates"]
    if not (isinstance(tables, list) and tables and all(isinstance(item, dict) for item in tables)):
        raise SettingsError(
            "'crates' must be a list of tables, at least one",
            where=f"{TABLE} crates in pyproject.toml",
            hint=f'write {CRATES}, or crate = "…" where there is one crate',
        )
    return tables


def _from_table(table: Mapping[str, Any], place: str, known: Mapping[str, dataclasses.Field[Any]]) -> _Found:
    found = {}
    for key, value in _ungrouped(table, place):
        if key == "crates" and known is SETTING_FIELDS:
            continue
        name = _known(key, key, f"{place} in pyproject.toml", known)
        found[name] = (typed(known[name], value, f"{place} {key} in pyproject.toml"), f"{place} {key}")
    return found


def _ungrouped(table: Mapping[str, Any], place: str) -> Iterator[tuple[str, Any]]:
    """All keys and values; those of a table in the table as `editable.rebuild`."""
    for key, value in table.items():
        if key not in GROUPS:
            yield key, value
        elif isinstance(value, dict):
            yield from ((f"{key}.{inner}", entry) for inner, entry in value.items())
        else:
            where = f"{place} {key} in pyproject.toml"
            raise SettingsError(f"'{key}' must be a table, not {value!r}", where=where)


def _from_config_settings(config_settings: ConfigSettings) -> _Found:
    found = {}
    for key, value in config_settings.items():
        short = key.removeprefix("rustcuda.")
        if key in SETUPTOOLS_KEYS:
            continue
        where = f"config setting -C {key}"
        name = _known(short, key, where)
        texts = value if isinstance(value, list) and value else [value or ""]
        found[name] = (parsed(SETTING_FIELDS[name], [str(text) for text in texts], where), where)
    return found


def _from_environment(environ: Mapping[str, str]) -> _Found:
    found = {}
    for variable, text in environ.items():
        ours = variable.startswith(ENVIRONMENT_PREFIX) and not variable.startswith(_INNER_VARIABLES)
        if not ours or variable in _OTHER_VARIABLES:
            continue
        where = f"environment variable {variable}"
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
        if name not in SETTING_FIELDS:
            variables = [*(ENVIRONMENT_PREFIX + each.upper() for each in SETTING_FIELDS), *_OTHER_VARIABLES]
            raise _unknown(variable, where, variable.upper(), variables, "variables")
        found[name] = (parsed(SETTING_FIELDS[name], [text], where), where)
    return found


def _known(
    key: str, shown: str, where: str, known: Mapping[str, dataclasses.Field[Any]] = SETTING_FIELDS
) -> str:
    name = key.replace("-", "_").replace(".", "_")
    if name in known and key == spelled(name):
        return name
    keys = [spelled(each) for each in known]
    if name in SETTING_FIELDS and key == spelled(name):
        raise SettingsError(
            f"'{key}' cannot be set for one crate, it is the same for all",
            where=where,
            hint=f"set it in {TABLE}; a crate can have its own {', '.join(keys)}",
        )
    raise _unknown(shown, where, spelled(name), keys, "settings")


def _unknown(shown: str, where: str, key: str, known: Sequence[str], noun: str) -> SettingsError:
    # Without the prefix, by which every variable would be close to every other.
    names = {each.removeprefix(ENVIRONMENT_PREFIX): each for each in known}
    close = difflib.get_close_matches(key.removeprefix(ENVIRONMENT_PREFIX), names, n=1)
    hint = f"did you mean '{names[close[0]]}'?" if close else f"the {noun} are: {', '.join(known)}"
    return SettingsError(f"unknown setting '{shown}'", where=where, hint=hint)


def _check(settings: Settings, place: str) -> None:
    if settings.crate and settings.kernels:
        raise SettingsError(
            "kernels come from a 'crate' or from a file, 'kernels', not from both",
            where=f"{settings.where('crate')}; {settings.where('kernels')}",
            hint=f"remove one of them, or give each a table {CRATES} of its own",
        )
    if not settings.source:
        raise SettingsError(
            "the setting 'crate' is missing",
            where=settings.origins.get("crate", f"{place} in pyproject.toml"),
            hint='name the folder of the kernel crate, e.g. crate = "kernels"',
        )
    if not re.fullmatch(_PROFILE, settings.profile):
        raise SettingsError(
            f"'{settings.profile}' is no cargo profile that kernels can be built with",
            where=settings.where("profile"),
            hint="name one that cargo has, e.g. release",
        )
    if settings.module:
        check_module_name(settings.module, settings.where("module"))
    if "capabilities" in settings.origins and not "".join(settings.capabilities).strip(" ;,"):
        raise SettingsError(
            "the capability list is empty",
            where=settings.where("capabilities"),
            hint='name at least one, e.g. "8.0;9.0+PTX", or leave the setting out',
        )


def check_module_name(name: str, where: str) -> None:
    """Checks that Python can import a module of a name.

    Raises:
        SettingsError: It is no dotted name, or has a part that Python gives a meaning, as `__init__`.
    """
    if not re.fullmatch(_MODULE, name) or not all(part.isidentifier() for part in name.split(".")):
        raise SettingsError(
            f"'{name}' is no name of a Python module",
            where=where,
            hint='name package and module, e.g. "mypackage.kernels_cuda"',
        )
