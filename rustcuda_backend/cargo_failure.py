"""What to say where cargo builds no kernels: who is to blame, and the way out."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from rustcuda_backend import machine
from rustcuda_backend.capability import Capability
from rustcuda_backend.crate import Crate
from rustcuda_backend.errors import CompileError, SettingsError
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


# What the compilers say where the way out is not to be seen from it.
_REMEDIES = (
    (
        "symbol `__rustcuda_kernel_",
        "give every kernel a name of its own, also in other modules and crates: Python calls them by name",
    ),
    (
        "unsupported library call operation",
        "convert between 128-bit integers and floats by hand: LLVM cannot for this target",
    ),
    (
        "symbol `__rustcuda_constant_",
        "give every #[constant] a name of its own, also in other modules and crates: Python fills it by name",
    ),
    (
        "`_` is not a valid name for this `const` item",
        "move the kernel out of the impl or trait: it is a free function, whose name Python calls",
    ),
    (
        "failed to load bitcode of module",
        "rename functions with #[no_mangle] that are called memcmp, bcmp or __nv_*: the GPU's code has these",
    ),
    (
        'the extern "ptx-kernel" ABI is experimental',
        "begin the dependency that has kernels with\n#![no_std]\n#![feature(abi_ptx, asm_experimental_arch)]",
    ),
    (
        "SIGSEGV",
        "LLVM has crashed, as it does where core reads an atomic through a parameter `&[T]`; take `*const T`",
    ),
    ("can't find crate for `std`", "begin the dependency with #![no_std], or turn off its feature for std"),
)


def of_profile(said: str, crate: Crate, settings: Settings) -> SettingsError | None:
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


def of_pass(said: str, capability: Capability, crate: Crate, settings: Settings) -> CompileError:
    """The failure of one pass, to be told after cargo's own words.

    Args:
        said: What cargo printed.
        capability: What the pass was for.
        crate: The kernel crate.
        settings: The project's settings.
    """
    tried = "could not compile" in said
    what = "the kernel crate does not compile" if tried else "cargo has not compiled the kernel crate"
    known = next((remedy for text, remedy in _REMEDIES if text in said.replace('\\"', '"')), "")
    hint = machine.hint_if_full(said, crate.target_directory) or known
    if not (tried or hint) and settings.cargo_args:
        arguments = shlex.join(settings.cargo_args)
        hint = f"cargo also gets cargo-args, from {settings.where('cargo_args')}: {arguments}"
    return CompileError(
        f"{what} for capability {capability.name}", where=str(crate.directory / "Cargo.toml"), hint=hint
    )


def no_kernels(crate: Crate, capability: Capability, unlaunchable: Sequence[str] = ()) -> CompileError:
    """What to say of a crate that compiles to none, or to none that Python can launch."""
    if unlaunchable:
        return CompileError(
            f"the crate '{crate.package}' has no kernels that Python could launch, "
            f"for the types of their parameters: {', '.join(unlaunchable)} (capability {capability.name})",
            where=str(crate.directory / "Cargo.toml"),
            hint="take numbers, arrays of numbers, pointers, and slices of numbers",
        )
    return CompileError(
        f"the crate '{crate.package}' has no kernels (capability {capability.name})",
        where=str(crate.directory / "Cargo.toml"),
        hint="mark functions with #[kernel] of rustcuda-device,\n"
        'or write #[unsafe(no_mangle)] pub unsafe extern "ptx-kernel" fn …;\n'
        "kernels of a dependency come along only if the crate names it: use dependency as _;",
    )
