"""Where kernels join what setuptools makes: wheel, sdist and editable install."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from setuptools import Command, Distribution
from setuptools.command.build_py import build_py as BuildPy  # noqa: N812
from setuptools.command.egg_info import egg_info as EggInfo  # noqa: N812
from setuptools.command.sdist import sdist as Sdist  # noqa: N812

from rustcuda_backend import session
from rustcuda_backend.crate_sources import device_folders, source_files
from rustcuda_backend.errors import ToolError
from rustcuda_backend.generated import file_names, is_generated, remove_generated, write
from rustcuda_backend.modules import check_free, modules
from rustcuda_backend.pyproject import read_table
from rustcuda_backend.settings import Settings, read_settings

if TYPE_CHECKING:
    from rustcuda_backend.report import Report

COMMAND = "build_rustcuda"

# Where setuptools builds, only the project itself can ask for wheels in an isolated build's environment.
_PLUGIN_HINT = "\nfor isolated builds: name these wheels in requires of [build-system] in pyproject.toml"


def check_plugged_in() -> None:
    """Makes sure that setuptools will call `finalize_distribution`; else wheels would lack their kernels.

    Raises:
        ToolError: The package can be imported, but is not installed.
    """
    if not importlib.metadata.entry_points(group="setuptools.finalize_distribution_options", name="rustcuda"):
        raise ToolError(
            "setuptools does not find its plugin rustcuda-backend, and would leave out the kernels",
            where=str(Path(__file__).parent),
            hint="pip install rustcuda-backend (to have its folder on the path is not enough)",
        )


def finalize_distribution(distribution: Distribution) -> None:
    """setuptools' hook for plugins: adds our command to `build` in projects that have our table."""
    with session.user_errors():
        if read_table(Path.cwd()) is None:
            return
    build = distribution.get_command_class("build")
    with_kernels = type("build", (build,), {"sub_commands": [*build.sub_commands, (COMMAND, None)]})
    distribution.cmdclass.update(
        {
            "build": with_kernels,
            "build_py": _without_generated(distribution.get_command_class("build_py")),
            "egg_info": _with_fresh_list(distribution.get_command_class("egg_info")),
            "sdist": _with_device_crate(distribution.get_command_class("sdist")),
            COMMAND: BuildRustcuda,
        }
    )
    if opened := session.current():
        options = distribution.get_option_dict("build")
        options["build_base"] = ("rustcuda-backend", str(opened.build_base))


def _without_generated(build_py: type[BuildPy]) -> type[Command]:
    """The command that collects a package's files, without those an editable install has written there."""

    def find_package_modules(self: BuildPy, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        found = build_py.find_package_modules(self, package, package_dir)  # type: ignore[no-untyped-call]
        return [entry for entry in found if not is_generated(Path(entry[2]))]

    def find_data_files(self: BuildPy, package: str, source_folder: str) -> list[str]:
        found = build_py.find_data_files(self, package, source_folder)
        return [path for path in found if not is_generated(Path(path))]

    methods = {"find_package_modules": find_package_modules, "find_data_files": find_data_files}
    return type("build_py", (build_py,), methods)


def _with_fresh_list(egg_info: type[EggInfo]) -> type[Command]:
    """The command that lists an sdist's files, without what an editable install has written.

    setuptools takes over an earlier build's list, so that one has to go first.
    """

    def find_sources(self: EggInfo) -> None:
        manifest = Path(self.egg_info, "SOURCES.txt")
        manifest.unlink(missing_ok=True)
        egg_info.find_sources(self)
        self.filelist.files = [name for name in self.filelist.files if not is_generated(Path(name))]
        lines = "\n".join(name.replace(os.sep, "/") for name in self.filelist.files)
        manifest.write_text(lines, encoding="utf-8", newline="\n")

    return type("egg_info", (egg_info,), {"find_sources": find_sources})


def _with_device_crate(sdist: type[Sdist]) -> type[Command]:
    """The command that makes an sdist, with the device crate where a patch of the project looks for it.

    In the tree a build has put it there, so plain cargo would work there and fail in the sdist.
    """

    def make_release_tree(self: Sdist, base_dir: str, files: list[str]) -> None:
        from rustcuda_backend import device_crates

        sdist.make_release_tree(self, base_dir, files)
        command = self.get_finalized_command(COMMAND)
        assert isinstance(command, BuildRustcuda)  # noqa: S101 (our own name)
        for folder in command.device_folders():
            device_crates.copy(Path(base_dir, folder))
        command.warn_of_unpacked(files)

    return type("sdist", (sdist,), {"make_release_tree": make_release_tree})


class BuildRustcuda(Command):
    """Builds the kernels into the build tree, or beside their package's source for an editable install."""

    description = "build CUDA kernels written in Rust"
    user_options: ClassVar[list[tuple[str, str | None, str]]] = []
    editable_mode = False
    build_lib: str | None

    def initialize_options(self) -> None:
        """Part of setuptools' protocol."""
        from rustcuda_backend.report import Report

        self.build_lib = None
        # Of what is said for an sdist, for which setuptools asks more than once.
        self.report = Report()

    def finalize_options(self) -> None:
        """Part of setuptools' protocol."""
        self.set_undefined_options("build_py", ("build_lib", "build_lib"))

    def run(self) -> None:
        """Builds all kernels, then writes the files: half a build leaves nothing."""
        with session.user_errors():
            try:
                self._build()
            except ToolError as error:
                if session.current() is None and "nvidia-" in error.hint:
                    error.hint += _PLUGIN_HINT
                raise

    def _build(self) -> None:
        from rustcuda_backend import dependencies, editable, pipeline
        from rustcuda_backend.report import Report

        crates = self._modules()
        for module, _ in crates:
            self._check_free(module)
        report = Report(crates[0][1].verbose)
        for warning in dependencies.warnings(Path.cwd()):
            report.warn(warning)
        if self.editable_mode:
            places = [
                editable.Place(module, settings, self._source_folder(module)) for module, settings in crates
            ]
            editable.build(Path.cwd(), places, report)
            return
        built = pipeline.build_all(Path.cwd(), crates, report)
        remove_generated(Path(str(self.build_lib)))
        for (module, _), kernels in zip(crates, built, strict=True):
            write(self._build_folder(module), module, kernels)
        self._strip([settings for _, settings in crates if settings.kernels], report)

    def _strip(self, artefacts: Sequence[Settings], report: Report) -> None:
        """Takes kernels out of the libraries that they come from, where those go into the wheel.

        The fatbin has them, and nothing is to be compiled when the library is loaded.
        """
        from rustcuda_backend import artefact
        from rustcuda_backend.stripping import strip

        taken: dict[Path, set[str]] = {}
        for settings in artefacts:
            found = artefact.read_artefact(Path.cwd(), settings)
            taken.setdefault(found.path, set()).add(found.package)
        for copy, original in self.get_finalized_command("build_py").get_output_mapping().items():
            source = Path(original).resolve()
            if source not in taken:
                continue
            left = {bundle.name for bundle in artefact.read_bundles(source)} - taken[source]
            if left:
                report.warn(
                    f"{original} keeps its kernels in the wheel, since nothing takes those of the packages "
                    f"{', '.join(sorted(left))}"
                )
            elif count := strip(Path(copy)):
                report.note(f"{original} goes into the wheel without its {count} bytes of kernels")

    def get_source_files(self) -> list[str]:
        """What an sdist needs for building the kernels, relative to the project."""
        from rustcuda_backend.artefact import artefact_source
        from rustcuda_backend.crate import crate_directory

        with session.user_errors():
            # setuptools asks when it makes metadata, too, and only an sdist must hold all of it.
            complete = "sdist" in self.distribution.commands
            files = set()
            for each in self._settings().of_each_crate():
                if each.kernels:
                    files.add(artefact_source(Path.cwd(), each))
                    continue
                crate_directory(Path.cwd(), each)
                files.update(source_files(Path.cwd(), each.crate, complete=complete))
                if complete:
                    self._warn_of_outer_files(each)
            return sorted(path.as_posix() for path in files)

    def _warn_of_outer_files(self, settings: Settings) -> None:
        from rustcuda_backend import outer_files

        for text in outer_files.warnings(Path.cwd(), settings.crate, settings.toolchain, os.environ):
            self.report.warn(text)

    def warn_of_unpacked(self, packed: Sequence[str]) -> None:
        """Says what builds need and an sdist of these files lacks."""
        from rustcuda_backend import packed_sources

        for each in self._settings().of_each_crate():
            if each.kernels:
                continue
            sources = [path.as_posix() for path in source_files(Path.cwd(), each.crate)]
            for text in packed_sources.warnings(Path.cwd(), each.crate, sources, packed):
                self.report.warn(text)

    def device_folders(self) -> list[Path]:
        """Where cargo looks for the device crates in the project, relative to it."""
        crates = [each for each in self._settings().of_each_crate() if each.crate]
        return sorted({folder for each in crates for folder in device_folders(Path.cwd(), each.crate)})

    def get_outputs(self) -> list[str]:
        """The files this command writes into the build tree."""
        return list(self.get_output_mapping()) if self.editable_mode else self._outputs()

    def get_output_mapping(self) -> dict[str, str]:
        """Build tree to source tree, for editable installs."""
        return {
            output: str(self._source_folder(module) / Path(output).name)
            for module, settings in self._modules()
            for output in self._outputs_of(module, settings)
        }

    def _outputs(self) -> list[str]:
        found = [self._outputs_of(module, settings) for module, settings in self._modules()]
        return list(dict.fromkeys(path for paths in found for path in paths))

    def _outputs_of(self, module: str, settings: Settings) -> list[str]:
        folder = self._build_folder(module)
        return [str(folder / name) for name in file_names(module, settings.container)]

    def _settings(self) -> Settings:
        opened = session.current()
        return read_settings(
            read_table(Path.cwd()) or {}, opened.config_settings if opened else {}, os.environ
        )

    def _modules(self) -> list[tuple[str, Settings]]:
        """The dotted name of each crate's module, with the crate's settings."""
        return modules(self._settings(), self.distribution.packages or [])

    def _check_free(self, module: str) -> None:
        extensions = [extension.name for extension in self.distribution.ext_modules or []]
        check_free(module, self._source_folder(module), [*(self.distribution.packages or []), *extensions])

    def _build_folder(self, module: str) -> Path:
        assert self.build_lib is not None  # noqa: S101 (finalize_options has run)
        return Path(self.build_lib, *module.split(".")[:-1])

    def _source_folder(self, module: str) -> Path:
        package_dir: str = self.get_finalized_command("build_py").get_package_dir(module.rpartition(".")[0])
        return Path(package_dir)
