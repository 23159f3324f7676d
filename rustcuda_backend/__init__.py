"""PEP 517 build backend for CUDA kernels written in Rust: setuptools' hooks, with kernels.

Only the hooks are here. They import what they need when they run, since front ends import this module
also to ask for metadata alone.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from rustcuda_backend.session import ConfigSettings, Session, open_session, setuptools_errors, user_errors

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]


def get_requires_for_build_wheel(config_settings: ConfigSettings | None = None) -> list[str]:
    """PEP 517. NVIDIA's wheels with ptxas, packer and libdevice, unless a toolkit has been named."""
    from rustcuda_backend import requirements

    with user_errors():
        return requirements.for_wheel(Path.cwd(), config_settings or {}, os.environ)


def get_requires_for_build_editable(config_settings: ConfigSettings | None = None) -> list[str]:
    """PEP 660. The same as for a wheel."""
    return get_requires_for_build_wheel(config_settings)


def get_requires_for_build_sdist(config_settings: ConfigSettings | None = None) -> list[str]:
    """PEP 517. Nothing: an sdist is made without Rust and CUDA."""
    from rustcuda_backend import requirements

    with user_errors():
        return requirements.for_sdist(Path.cwd(), config_settings or {}, os.environ)


def prepare_metadata_for_build_wheel(
    metadata_directory: str, config_settings: ConfigSettings | None = None
) -> str:
    """PEP 517. setuptools' metadata; touches neither cargo nor CUDA."""
    folder = _absolute(metadata_directory)
    with _checked_session(config_settings, folder) as opened:
        from setuptools import build_meta

        return build_meta.prepare_metadata_for_build_wheel(folder, opened.for_setuptools())


def prepare_metadata_for_build_editable(
    metadata_directory: str, config_settings: ConfigSettings | None = None
) -> str:
    """PEP 660. setuptools' metadata; touches neither cargo nor CUDA."""
    folder = _absolute(metadata_directory)
    with _checked_session(config_settings, folder) as opened:
        from setuptools import build_meta

        return build_meta.prepare_metadata_for_build_editable(folder, opened.for_setuptools())


def build_wheel(
    wheel_directory: str,
    config_settings: ConfigSettings | None = None,
    metadata_directory: str | None = None,
) -> str:
    """PEP 517. setuptools' wheel, with the kernels and their loader in it."""
    out, metadata = _absolute(wheel_directory), metadata_directory and _absolute(metadata_directory)
    with _checked_session(config_settings, out) as opened:
        from setuptools import build_meta

        return build_meta.build_wheel(out, opened.for_setuptools(), metadata)


def build_editable(
    wheel_directory: str,
    config_settings: ConfigSettings | None = None,
    metadata_directory: str | None = None,
) -> str:
    """PEP 660. setuptools' editable wheel; the kernels are written beside the package's source."""
    out, metadata = _absolute(wheel_directory), metadata_directory and _absolute(metadata_directory)
    with _checked_session(config_settings, out) as opened:
        from setuptools import build_meta

        opened.check_editable()
        return build_meta.build_editable(out, opened.for_setuptools(), metadata)


def build_sdist(sdist_directory: str, config_settings: ConfigSettings | None = None) -> str:
    """PEP 517. setuptools' sdist, with the kernel crate's sources in it."""
    from rustcuda_backend.reproducible import normalise_sdist, source_date_epoch

    out = _absolute(sdist_directory)
    with _checked_session(config_settings, out) as opened:
        from setuptools import build_meta

        name = build_meta.build_sdist(out, opened.for_setuptools())
        normalise_sdist(Path(out, name), source_date_epoch(os.environ))
        return name


def _absolute(folder: str) -> str:
    """For a session that works elsewhere, in a copy of the project."""
    return str(Path(folder).absolute())


@contextlib.contextmanager
def _checked_session(config_settings: ConfigSettings | None, folder: str) -> Iterator[Session]:
    """The session of a hook that writes to a folder; settings are checked first, in every hook alike."""
    from rustcuda_backend import metadata_files
    from rustcuda_backend.pyproject import read_pyproject, read_table
    from rustcuda_backend.reproducible import source_date_epoch
    from rustcuda_backend.settings import read_settings
    from rustcuda_backend.setuptools_command import check_plugged_in

    with user_errors():
        source_date_epoch(os.environ)
        read_settings(read_table(Path.cwd()) or {}, config_settings or {}, os.environ)
        metadata_files.check(Path.cwd(), read_pyproject(Path.cwd()))
        check_plugged_in()
        with (
            open_session(config_settings) as opened,
            setuptools_errors(Path(folder), opened.build_base.parent, Path.cwd()),
        ):
            yield opened
