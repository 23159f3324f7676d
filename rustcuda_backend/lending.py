"""Puts the device crate where a project's own configuration of cargo looks for it."""

from __future__ import annotations

from pathlib import Path

from rustcuda_backend import device_crates
from rustcuda_backend.cargo_files import LENT
from rustcuda_backend.crate import crate_directory
from rustcuda_backend.crate_sources import device_folders
from rustcuda_backend.device_crates import DEVICE_CRATE
from rustcuda_backend.errors import SettingsError
from rustcuda_backend.settings import Settings

PATCH = f'[patch.crates-io]\n{DEVICE_CRATE} = {{ path = "{"/".join(LENT)}" }}'


def lend(project: Path, settings: Settings) -> list[Path]:
    """Makes the folders that the project's patches name hold the device crates.

    Returns:
        The folders of the device crate.

    Raises:
        SettingsError: There is no such crate, or no patch names a folder that builds lend to.
    """
    crates = {crate_directory(project, each): each.crate for each in settings.of_each_crate() if each.crate}
    folders = sorted({folder for crate in crates.values() for folder in device_folders(project, crate)})
    if not crates:
        raise SettingsError(
            "the project has no kernel crate that a device crate could be lent to",
            where=settings.where("kernels"),
        )
    if not folders:
        directory = next(iter(crates))
        raise SettingsError(
            f"nothing says where cargo is to look for {DEVICE_CRATE}",
            where=str(directory),
            hint=f"write into {directory / '.cargo' / 'config.toml'}\n{PATCH}",
        )
    for folder in folders:
        device_crates.lend(project / folder)
    return [project / folder / DEVICE_CRATE for folder in folders]
