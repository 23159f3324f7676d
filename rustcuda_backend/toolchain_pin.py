"""The rust-toolchain file: whether the toolchain in use is the one that it asks for."""

from __future__ import annotations

import sys
from pathlib import Path

from rustcuda_backend.rust import RustToolchain, toolchain_file

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# Channels without a version: which compiler they mean changes with time.
_CHANNELS = ("stable", "beta", "nightly")


def overruled(toolchain: RustToolchain, directory: Path) -> str:
    """A warning if a crate's rust-toolchain file asks for another toolchain; empty if it does not.

    Args:
        toolchain: The one in use.
        directory: The crate's folder, from which rustup looks for the file.
    """
    file = toolchain_file(directory)
    if file is None:
        return ""
    wanted = _channel(file)
    if not wanted or _is(toolchain, wanted) or toolchain.source.startswith(str(file)):
        return ""
    asked = f"{file} asks for Rust {wanted}, but {toolchain.version} is used"
    if toolchain.source == "PATH":
        return f"{asked}: there is no rustup on PATH, which would obey the file"
    return f"{asked}, by {toolchain.source}"


def _channel(file: Path) -> str:
    """The toolchain that the file names; empty where it is only a path, or nothing that rustup reads."""
    text = file.read_text(encoding="utf-8", errors="replace").strip()
    try:
        table = tomllib.loads(text).get("toolchain")
    except tomllib.TOMLDecodeError:
        # The older form: nothing but the name.
        return text if len(text.splitlines()) == 1 and file.suffix == "" else ""
    channel = table.get("channel") if isinstance(table, dict) else None
    return channel if isinstance(channel, str) else ""


def _is(toolchain: RustToolchain, wanted: str) -> bool:
    name, version = toolchain.rustup_name, toolchain.version
    if name == wanted or name.startswith(f"{wanted}-"):
        return True
    if wanted in _CHANNELS:
        return (version.partition("-")[2].partition(".")[0] or "stable") == wanted
    return version == wanted or version.startswith(f"{wanted}.")
