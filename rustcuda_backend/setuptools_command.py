"""Where kernels join what setuptools makes: wheel, sdist and editable install."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from setuptools import Command, Distribution

from rustcuda_backend import cache, session
from rustcuda_backend.errors import SettingsError
from rustcuda_backend.settings import TABLE, Settings, read_settings, read_table

COMMAND = "build_rustcuda"

# Files above the crate that its build reads, up to the project's folder.
_CARGO_FILES = ("Cargo.toml", "Cargo.lock", "rust-toolchain", "rust-toolchain.toml", ".cargo/config.toml")
_SKIPPED_FOLDERS = {"target", ".git", "__pycache__", ".venv"}


def finalize_distribution(distribution: Distribution) -> None:
    """setuptools' hook for plugins: adds our command to `build` in projects that have our table."""
    with session.user_errors():
        if read_table(Path.cwd()) is None:
            return
    build = distribution.get_command_class("build")
    with_kernels = type("build", (build,), {"sub_commands": [*build.sub_commands, (COMMAND, None)]})
    distribution.cmdclass.update({"build": with_kernels, COMMAND: BuildRustcuda})
    if opened := session.current():
        options = distribution.get_option_dict("build")
        options["build_base"] = ("rustcuda-backend", str(opened.build_base))


class BuildRustcuda(Command):
    """Builds the kernels into the build tree, or beside their package's source for an editable install."""

    description = "build CUDA kernels written in Rust"
    user_options: ClassVar[list[tuple[str, str | None, str]]] = []
    editable_mode = False
    build_lib: str | None

    def initialize_options(self) -> None:
        """Part of setuptools' protocol."""
        self.build_lib = None

    def finalize_options(self) -> None:
        """Part of setuptools' protocol."""
        self.set_undefined_options("build_py", ("build_lib", "build_lib"))

    def run(self) -> None:
        """Builds all kernels, then writes the files: half a build leaves nothing."""
        from rustcuda_backend import pipeline
        from rustcuda_backend.report import Report

        with session.user_errors():
            settings = self._settings()
            module = self._module(settings)
            kernels = pipeline.build(
                Path.cwd(),
                module,
                settings,
                Report(settings.verbose),
                editable=self.editable_mode,
            )
            folder = self._source_folder(module) if self.editable_mode else self._build_folder(module)
            folder.mkdir(parents=True, exist_ok=True)
            for name, data in kernels.files(module.rpartition(".")[2]).items():
                cache.write_atomically(folder / name, data)
            if not (folder / "py.typed").exists():
                cache.write_atomically(folder / "py.typed", b"")

    def get_source_files(self) -> list[str]:
        """What an sdist needs for building the kernels, relative to the project."""
        with session.user_errors():
            crate = self._settings().crate
        return sorted(path.as_posix() for path in _source_files(Path(crate)))

    def get_outputs(self) -> list[str]:
        """The files this command writes into the build tree."""
        return list(self.get_output_mapping()) if self.editable_mode else self._outputs()

    def get_output_mapping(self) -> dict[str, str]:
        """Build tree to source tree, for editable installs."""
        module = self._module(self._settings())
        source = self._source_folder(module)
        return {output: str(source / Path(output).name) for output in self._outputs()}

    def _outputs(self) -> list[str]:
        module = self._module(self._settings())
        name = module.rpartition(".")[2]
        folder = self._build_folder(module)
        return [str(folder / file) for file in (f"{name}.py", f"{name}.pyi", f"{name}.fatbin", "py.typed")]

    def _settings(self) -> Settings:
        opened = session.current()
        return read_settings(
            read_table(Path.cwd()) or {}, opened.config_settings if opened else {}, os.environ
        )

    def _module(self, settings: Settings) -> str:
        """The generated module's dotted name."""
        packages = self.distribution.packages or []
        if not settings.module:
            top = sorted({package for package in packages if "." not in package})
            if len(top) == 1:
                return f"{top[0]}.kernels_cuda"
            found = f"the packages {', '.join(top)}" if top else "no package"
            raise SettingsError(
                f"it is not clear into which package the kernels go: there is {found}",
                where=f"{TABLE} in pyproject.toml",
                hint='set module, e.g. module = "mypackage.kernels_cuda"',
            )
        return checked_module(settings.module, packages, settings.where("module"))

    def _build_folder(self, module: str) -> Path:
        assert self.build_lib is not None  # noqa: S101 (finalize_options has run)
        return Path(self.build_lib, *module.split(".")[:-1])

    def _source_folder(self, module: str) -> Path:
        package_dir: str = self.get_finalized_command("build_py").get_package_dir(module.rpartition(".")[0])
        return Path(package_dir)


def checked_module(module: str, packages: list[str], where: str) -> str:
    """The setting `module`, if kernels can be generated there.

    Raises:
        SettingsError: It is no dotted name, or its package is not part of the project.
    """
    package, _, _ = module.rpartition(".")
    if not package or not all(part.isidentifier() for part in module.split(".")):
        raise SettingsError(
            f"'{module}' is no module inside a package",
            where=where,
            hint='name package and module, e.g. "mypackage.kernels_cuda"',
        )
    if package not in packages:
        raise SettingsError(
            f"the package '{package}' of module '{module}' is not in this project",
            where=where,
            hint=f"its packages are: {', '.join(packages) or 'none'}",
        )
    return module


def _source_files(crate: Path) -> Iterator[Path]:
    """The crate's files, and cargo's in the folders above it inside the project."""
    for folder, folders, names in os.walk(crate):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED_FOLDERS)
        yield from (Path(folder, name) for name in sorted(names))
    for above in crate.parents:
        yield from (above / name for name in _CARGO_FILES if (above / name).is_file())
