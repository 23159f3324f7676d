"""The user's own rustc flags for the GPU's target, found as cargo finds them.

Passes set CARGO_ENCODED_RUSTFLAGS, which makes cargo ignore every other source, so we read these first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rustcuda_backend import process
from rustcuda_backend.rust import TARGET, RustToolchain

_VARIABLE = f"CARGO_TARGET_{TARGET.upper().replace('-', '_')}_RUSTFLAGS"


def user_rustflags(toolchain: RustToolchain, directory: Path, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The flags that cargo itself would give to rustc for this crate.

    Order, as in cargo: CARGO_ENCODED_RUSTFLAGS; RUSTFLAGS, also an empty one; `target.<triple>` joined
    with every matching `target.'cfg(…)'`; `build.rustflags`.
    """
    if "CARGO_ENCODED_RUSTFLAGS" in environ:
        return tuple(flag for flag in environ["CARGO_ENCODED_RUSTFLAGS"].split("\x1f") if flag)
    if "RUSTFLAGS" in environ:
        return tuple(environ["RUSTFLAGS"].split())
    config = _cargo_config(toolchain, directory, environ)
    tables = config.get("target", {})
    flags = [*_flags(tables.get(TARGET, {})), *environ.get(_VARIABLE, "").split()]
    for condition, table in sorted(tables.items()):
        conditional = condition.startswith("cfg(") and _flags(table)
        if conditional and _holds(condition, _target_cfg(toolchain)):
            flags += _flags(table)
    return tuple(flags) or (
        *_flags(config.get("build", {})),
        *environ.get("CARGO_BUILD_RUSTFLAGS", "").split(),
    )


def _cargo_config(toolchain: RustToolchain, directory: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    """The merged configuration files; `cargo config` still counts as unstable."""
    argv = (toolchain.cargo, "-Zunstable-options", "config", "get", "--format=json", "--merged=yes")
    finished = process.run(argv, cwd=directory, env={**environ, "RUSTC_BOOTSTRAP": "1"})
    start = finished.stdout.find("{")
    content: dict[str, Any] = json.loads(finished.stdout[start:]) if finished.ok and start >= 0 else {}
    return content


def _flags(table: Mapping[str, Any]) -> list[str]:
    flags = table.get("rustflags", [])
    return flags.split() if isinstance(flags, str) else list(flags)


def _target_cfg(toolchain: RustToolchain) -> frozenset[str]:
    finished = process.run([toolchain.rustc, "--print=cfg", f"--target={TARGET}"])
    return frozenset(finished.stdout.split("\n"))


_CFG_TOKEN = re.compile(
    r'\s*(?:(?P<call>\w+)\s*\(|(?P<close>\))|(?P<comma>,)|(?P<pair>\w+(?:\s*=\s*"[^"]*")?))'
)


def _holds(condition: str, facts: frozenset[str]) -> bool:
    """Evaluates `cfg(all(unix, not(target_os = "linux")))` against `rustc --print cfg`."""
    value, _ = _evaluate(condition, 0, facts)
    return value


def _evaluate(text: str, position: int, facts: frozenset[str]) -> tuple[bool, int]:
    match = _CFG_TOKEN.match(text, position)
    if not match:
        return False, len(text)
    if match["pair"]:
        return re.sub(r"\s*=\s*", "=", match["pair"]) in facts, match.end()
    values = []
    name, position = match["call"], match.end()
    while (token := _CFG_TOKEN.match(text, position)) and not token["close"]:
        if token["comma"]:
            position = token.end()
            continue
        value, position = _evaluate(text, position, facts)
        values.append(value)
    end = token.end() if token else len(text)
    if name == "not":
        return not any(values), end
    return (any(values) if name == "any" else all(values)), end
