"""What a front end must install into the build environment, beyond what pyproject.toml requires."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rustcuda_backend.cuda_versions import cuda_version
from rustcuda_backend.pyproject import read_table
from rustcuda_backend.session import ConfigSettings, open_session
from rustcuda_backend.settings import Settings, read_settings
from rustcuda_backend.toolkit import required_wheels


def for_wheel(project: Path, config_settings: ConfigSettings, environ: Mapping[str, str]) -> list[str]:
    """setuptools' own requirements, and NVIDIA's wheels unless a toolkit has been named."""
    settings = _settings(project, config_settings, environ)
    version = cuda_version(settings.cuda_version, where=settings.where("cuda_version"))
    wheels = required_wheels(version, ptxas=settings.ptxas, environ=environ)
    return [*_setuptools("get_requires_for_build_wheel", project, config_settings), *wheels]


def for_sdist(project: Path, config_settings: ConfigSettings, environ: Mapping[str, str]) -> list[str]:
    """setuptools' own requirements."""
    _settings(project, config_settings, environ)
    return _setuptools("get_requires_for_build_sdist", project, config_settings)


def _settings(project: Path, config_settings: ConfigSettings, environ: Mapping[str, str]) -> Settings:
    return read_settings(read_table(project) or {}, config_settings, environ)


def _setuptools(hook: str, project: Path, config_settings: ConfigSettings) -> list[str]:
    """Asks setuptools only where a setup.py could name requirements: asking writes an egg-info."""
    if not (project / "setup.py").is_file():
        return []
    from setuptools import build_meta

    with open_session(config_settings) as opened:
        found: list[str] = getattr(build_meta, hook)(opened.for_setuptools())
    return found
