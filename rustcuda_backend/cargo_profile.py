"""The setting `profile`: what cargo says where it cannot take it, in words that say what to mend."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from rustcuda_backend.crate import Crate
from rustcuda_backend.errors import SettingsError
from rustcuda_backend.settings import Settings

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_BUILT_IN = ("release", "dev")
# Passes set some of the profile's keys, so an unknown one looks to cargo like one that inherits from none.
_REFUSED = re.compile(
    r"^error: profile (?:name )?`(?P<name>[\w-]+)` is "
    r"(?:not defined|missing an `inherits` directive|reserved)",
    re.MULTILINE,
)


def refusal(said: str, crate: Crate, settings: Settings) -> SettingsError | None:
    """The user's mistake, if cargo has refused the profile that the setting names.

    Args:
        said: What cargo printed.
        crate: The kernel crate, whose workspace can have profiles of its own.
        settings: The project's settings.
    """
    refused = _REFUSED.search(said)
    manifest = crate.workspace / "Cargo.toml"
    own = _profiles(manifest)
    if not refused or refused["name"] != settings.profile or settings.profile in own:
        return None
    known = ", ".join(dict.fromkeys((*_BUILT_IN, *own)))
    return SettingsError(
        f"cargo has no profile '{settings.profile}' for kernels",
        where=settings.where("profile"),
        hint=f'name one of {known},\nor add to {manifest}: [profile.NAME] with inherits = "release"',
    )


def _profiles(manifest: Path) -> list[str]:
    """The profiles that a manifest defines; cargo has read it by now."""
    table = tomllib.loads(manifest.read_text(encoding="utf-8")).get("profile", {})
    return [name for name in table if name not in ("test", "bench")]
