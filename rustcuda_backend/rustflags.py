"""The user's own rustc flags for the target of a pass, found as cargo finds them.

Passes set CARGO_ENCODED_RUSTFLAGS, which makes cargo ignore every other source, so we read these first.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rustcuda_backend import process
from rustcuda_backend.rust import TARGET, RustToolchain


def user_rustflags(
    toolchain: RustToolchain,
    directory: Path,
    environ: Mapping[str, str],
    cargo_args: Sequence[str] = (),
    *,
    target: str = TARGET,
) -> tuple[str, ...]:
    """The flags that cargo itself would give to rustc for this crate.

    Order, as in cargo: CARGO_ENCODED_RUSTFLAGS; RUSTFLAGS, also an empty one; `target.<triple>` joined
    with every matching `target.'cfg(…)'`; `build.rustflags`. Either of the last two comes from files, then
    the variable, then `--config` among cargo's arguments.
    """
    if "CARGO_ENCODED_RUSTFLAGS" in environ:
        encoded = environ["CARGO_ENCODED_RUSTFLAGS"]
        return tuple(encoded.split("\x1f")) if encoded else ()
    if "RUSTFLAGS" in environ:
        return tuple(flag.strip() for flag in environ["RUSTFLAGS"].split(" ") if flag.strip())
    files = _cargo_config(toolchain, directory, environ)
    overrides = config_arguments(cargo_args)
    merged = _cargo_config(toolchain, directory, environ, overrides) if overrides else files
    config = _Config(files, merged, environ, target)
    flags = config.flags(frozenset())
    if not any(_is_conditional(condition) for condition in merged.get("target", {})):
        return flags
    # Flags may set cfgs, which decide about flags: cargo goes round twice at most, and so do we.
    for _ in range(2):
        previous, flags = flags, config.flags(_target_cfg(toolchain, flags, target))
        if flags == previous:
            break
    return previous


@dataclass(frozen=True)
class _Config:
    """cargo's configuration: its files, these with `--config` merged in, and the environment."""

    files: Mapping[str, Any]
    merged: Mapping[str, Any]
    environ: Mapping[str, str]
    target: str

    def flags(self, facts: frozenset[str]) -> tuple[str, ...]:
        """What it says where these cfgs are set; without any, no condition holds."""
        of_files, tables = self.files.get("target", {}), self.merged.get("target", {})
        variable = f"CARGO_TARGET_{self.target.upper().replace('-', '_')}_RUSTFLAGS"
        flags = self._around_variable(of_files.get(self.target, {}), tables.get(self.target, {}), variable)
        for condition, table in sorted(tables.items()):
            if facts and _is_conditional(condition) and _holds(condition, facts):
                flags += _flags(table)
        return tuple(
            flags
            or self._around_variable(
                self.files.get("build", {}), self.merged.get("build", {}), "CARGO_BUILD_RUSTFLAGS"
            )
        )

    def _around_variable(self, files: Mapping[str, Any], merged: Mapping[str, Any], name: str) -> list[str]:
        """A table's flags, with a variable's between those of files and those of `--config`."""
        flags, count = _flags(merged), len(_flags(files))
        return [*flags[:count], *self.environ.get(name, "").split(), *flags[count:]]


def config_arguments(cargo_args: Sequence[str]) -> list[str]:
    """Those of cargo's arguments that change its configuration, as `--config=…`."""
    found = [argument for argument in cargo_args if argument.startswith("--config=")]
    pairs = itertools.pairwise(cargo_args)
    return found + [f"--config={value}" for option, value in pairs if option == "--config"]


def _is_conditional(condition: str) -> bool:
    return condition.startswith("cfg(")


def _cargo_config(
    toolchain: RustToolchain, directory: Path, environ: Mapping[str, str], overrides: Sequence[str] = ()
) -> dict[str, Any]:
    """The merged configuration; `cargo config` still counts as unstable."""
    options = ["-Zunstable-options", *overrides, "config", "get", "--format=json", "--merged=yes"]
    argv: list[str | Path] = [toolchain.cargo, *options]
    finished = process.run(argv, cwd=directory, env={**environ, "RUSTC_BOOTSTRAP": "1"})
    start = finished.stdout.find("{")
    content: dict[str, Any] = json.loads(finished.stdout[start:]) if finished.ok and start >= 0 else {}
    return content


def _flags(table: Mapping[str, Any]) -> list[str]:
    flags = table.get("rustflags", [])
    return flags.split() if isinstance(flags, str) else list(flags)


def _target_cfg(toolchain: RustToolchain, flags: Sequence[str], target: str) -> frozenset[str]:
    """What is set for the target under these flags, as `rustc --print cfg` says it; `true` always is."""
    asked = ("--crate-name=___", "--print=cfg", f"--target={target}")
    finished = process.run(
        [str(toolchain.rustc), *asked, *flags], env={**os.environ, **toolchain.bootstrap(["___"])}
    )
    return frozenset(("true", *finished.stdout.splitlines()))


_CFG_TOKEN = re.compile(
    r'\s*(?:(?P<call>\w+)\s*\(|(?P<close>\))|(?P<comma>,)|(?P<pair>\w+(?:\s*=\s*"[^"]*")?))'
)


def _holds(condition: str, facts: frozenset[str]) -> bool:
    """Evaluates `cfg(all(unix, not(target_os = "linux")))` against `rustc --print cfg`."""
    start = _CFG_TOKEN.match(condition)
    return start is not None and _evaluate(condition, start, facts)[0]


def _evaluate(text: str, start: re.Match[str], facts: frozenset[str]) -> tuple[bool, int]:
    """The value of the expression that a token starts, and where it ends."""
    if start["pair"]:
        return re.sub(r"\s*=\s*", "=", start["pair"]) in facts, start.end()
    values = []
    position = start.end()
    while (token := _CFG_TOKEN.match(text, position)) and not token["close"]:
        if token["comma"]:
            position = token.end()
            continue
        value, position = _evaluate(text, token, facts)
        values.append(value)
    end = token.end() if token else len(text)
    if start["call"] == "not":
        return not any(values), end
    return (all(values) if start["call"] == "all" else any(values)), end
