"""Every PEP 517 and PEP 660 hook, called as front ends call them; and the setuptools plugin alone."""

from __future__ import annotations

import contextlib
import errno
import importlib.metadata
import os
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import setuptools.build_meta
from disks import read_only, small
from projects import MANIFEST, MakeProject
from setuptools import Distribution

import rustcuda_backend as backend
from rustcuda_backend import cache, process, session
from rustcuda_backend.errors import SettingsError
from rustcuda_backend.session import ConfigSettings
from rustcuda_backend.setuptools_command import COMMAND, BuildRustcuda

WHEELS_12_9 = ["nvidia-cuda-nvcc-cu12==12.9.86", "nvidia-nvfatbin-cu12==12.9.82"]
WHEELS_13_0 = ["nvidia-cuda-nvcc==13.0.88", "nvidia-nvfatbin==13.0.85", "nvidia-nvvm==13.0.88"]
ONE = {"capabilities": "8.0"}


@pytest.fixture
def project(make_project: MakeProject, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with kernels, in whose folder the hooks run."""
    project = make_project()
    monkeypatch.chdir(project)
    return project


def set_table(project: Path, text: str, packages: str = 'packages = ["some_package"]') -> None:
    """Rewrites `[tool.rustcuda]` and what setuptools packs."""
    (project / "pyproject.toml").write_text(
        f'[project]\nname = "some-package"\nversion = "1.0"\n[tool.setuptools]\n{packages}\n{text}\n',
        encoding="utf-8",
    )


KERNELS = '[tool.rustcuda]\ncrate = "kernels"\n'


def call(hook: str, folder: Path, settings: ConfigSettings | None) -> object:
    function = getattr(backend, hook)
    return function(settings) if hook.startswith("get_requires") else function(str(folder), settings)


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def wheel_names(folder: Path) -> list[str]:
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return sorted(name for name in archive.namelist() if ".dist-info/" not in name)


def sdist_names(folder: Path) -> set[str]:
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        return {member.name.partition("/")[2] for member in archive if member.isfile()}


def message_of(capfd: pytest.CaptureFixture[str], status: object) -> str:
    """What a hook printed that ended with an error the user can mend."""
    assert status == 1
    printed = capfd.readouterr().err
    lines = [line for line in printed.splitlines() if line.startswith("rustcuda: ")]
    assert lines[0].startswith("rustcuda: error: ")
    assert "Traceback" not in printed
    return "\n".join(lines)


# --- requirements and metadata ---------------------------------------------------------------------------


@pytest.mark.parametrize("hook", ["get_requires_for_build_wheel", "get_requires_for_build_editable"])
def test_requirements_are_nvidias_wheels_of_the_cuda_version(
    project: Path, monkeypatch: pytest.MonkeyPatch, hook: str
) -> None:
    before = files(project)
    ask = getattr(backend, hook)
    assert ask() == WHEELS_12_9
    assert ask({"cuda-version": "13.0"}) == WHEELS_13_0
    monkeypatch.setenv("RUSTCUDA_CUDA_VERSION", "13.0")
    assert ask({"cuda-version": "12.9"}) == WHEELS_13_0, "the environment wins"
    monkeypatch.setenv("CUDA_HOME", "/opt/cuda")
    assert ask() == []
    assert files(project) == before


def test_an_sdist_requires_nothing(project: Path) -> None:
    before = files(project)
    assert backend.get_requires_for_build_sdist() == []
    assert files(project) == before


def test_a_setup_py_is_asked_for_its_requirements(project: Path) -> None:
    (project / "setup.py").write_text(
        "import setuptools\nsetuptools.setup(setup_requires=['some-plugin'])\n", encoding="utf-8"
    )
    assert backend.get_requires_for_build_wheel() == ["some-plugin", *WHEELS_12_9]
    assert backend.get_requires_for_build_sdist() == ["some-plugin"]


@pytest.mark.parametrize("kind", ["wheel", "editable"])
def test_metadata_needs_neither_rust_nor_cuda(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    def started(argv: object, **_options: object) -> None:
        pytest.fail(f"a program was started: {argv}")

    monkeypatch.setattr(process, "run", started)
    monkeypatch.setenv("PATH", "")
    (project / "kernels/Cargo.toml").write_text("no TOML", encoding="utf-8")
    name = getattr(backend, f"prepare_metadata_for_build_{kind}")(str(tmp_path))
    assert name == "some_package-1.0.dist-info"
    assert "Name: some-package\n" in (tmp_path / name / "METADATA").read_text(encoding="utf-8")


# --- config settings -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("hook", backend.__all__)
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"capabilites": "8.0"}, "error: unknown setting 'capabilites'"),
        ({"rustcuda.jobs": "many"}, "error: 'jobs' must be a whole number, not 'many'"),
    ],
)
def test_every_hook_checks_the_settings_before_it_writes_anything(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    hook: str,
    settings: dict[str, str],
    message: str,
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    before = files(tmp_path)
    with pytest.raises(SystemExit) as raised:
        call(hook, out, settings)
    said = message_of(capfd, raised.value.code)
    assert message in said
    assert f"where: config setting -C {next(iter(settings))}" in said
    assert ("did you mean 'capabilities'?" in said) == ("capabilites" in settings)
    assert files(tmp_path) == before


@pytest.mark.parametrize("hook", backend.__all__)
def test_every_hook_misses_the_crate(
    project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], hook: str
) -> None:
    set_table(project, "")
    with pytest.raises(SystemExit) as raised:
        call(hook, tmp_path, None)
    assert "the setting 'crate' is missing" in message_of(capfd, raised.value.code)


@pytest.mark.usefixtures("project")
def test_setuptools_own_settings_reach_it(tmp_path: Path) -> None:
    backend.build_wheel(
        str(tmp_path), {"--build-option": ["--build-number=7"], "rustcuda.capabilities": "8.0"}
    )
    assert [path.name for path in tmp_path.glob("*.whl")] == ["some_package-1.0-7-py3-none-any.whl"]
    opened = session.Session({**ONE, "editable_mode": "strict", "--global-option": ["-q"]}, tmp_path)
    assert opened.for_setuptools() == {"editable_mode": "strict", "--global-option": ["-q"]}


@pytest.mark.parametrize("hook", ["build_wheel", "build_editable", "build_sdist"])
@pytest.mark.usefixtures("project")
def test_a_backend_that_is_only_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], hook: str
) -> None:
    # As with `backend-path`: nothing tells setuptools of its plugin.
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **_: importlib.metadata.EntryPoints())
    with pytest.raises(SystemExit) as raised:
        call(hook, tmp_path, ONE)
    assert "would leave out the kernels" in message_of(capfd, raised.value.code)
    assert not list(tmp_path.glob("*.whl")) + list(tmp_path.glob("*.tar.gz"))


# --- wheels and editable installs ------------------------------------------------------------------------


def test_a_wheel_and_its_metadata_directory(project: Path, tmp_path: Path) -> None:
    prepared = backend.prepare_metadata_for_build_wheel(str(tmp_path), ONE)
    name = backend.build_wheel(str(tmp_path), ONE, str(tmp_path / prepared))
    assert name == "some_package-1.0-py3-none-any.whl"
    assert wheel_names(tmp_path) == [
        "some_package/__init__.py",
        "some_package/kernels_cuda.fatbin",
        "some_package/kernels_cuda.py",
        "some_package/kernels_cuda.pyi",
        "some_package/py.typed",
    ]
    assert not (project / "build").exists()
    assert not list((project / "some_package").glob("kernels_cuda*"))
    assert session.current() is None


@pytest.mark.filterwarnings("ignore:Editable installation")
@pytest.mark.parametrize("mode", [{}, {"editable_mode": "strict"}])
def test_an_editable_install_writes_beside_the_source(
    project: Path, tmp_path: Path, mode: dict[str, str]
) -> None:
    source = project / "src/deep"
    source.mkdir(parents=True)
    (source / "__init__.py").touch()
    (source / "py.typed").write_text("partial\n", encoding="utf-8")
    set_table(project, KERNELS, 'package-dir = {"" = "src"}\npackages = ["deep"]')
    backend.build_editable(str(tmp_path), {**ONE, **mode})
    written = {"kernels_cuda.py", "kernels_cuda.pyi", "kernels_cuda.fatbin"}
    assert {path.name for path in source.iterdir()} == {"__init__.py", "py.typed", *written}
    assert (source / "py.typed").read_text(encoding="utf-8") == "partial\n"
    assert not {f"deep/{name}" for name in written} & set(wheel_names(tmp_path))


@pytest.mark.filterwarnings("ignore:Editable installation")
def test_what_an_editable_install_wrote_gets_into_nothing_else(project: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    backend.build_editable(str(tmp_path / "out"), ONE)
    assert (project / "some_package/kernels_cuda.py").is_file()
    (project / "some_package/mine.fatbin").touch()
    data = 'packages = ["some_package"]\npackage-data = { some_package = ["*.fatbin"] }'
    set_table(project, KERNELS, data)
    backend.build_sdist(str(tmp_path))
    assert not [name for name in sdist_names(tmp_path) if "kernels_cuda" in name]
    set_table(project, KERNELS + 'module = "some_package.other"', data)
    backend.build_wheel(str(tmp_path), ONE)
    written = [f"some_package/{name}" for name in ("other.fatbin", "other.py", "other.pyi", "py.typed")]
    assert wheel_names(tmp_path) == ["some_package/__init__.py", "some_package/mine.fatbin", *written]


def test_a_module_that_somebody_wrote_is_not_overwritten(
    project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    mine = project / "some_package/mine.py"
    mine.write_text("x = 1\n", encoding="utf-8")
    set_table(project, f'{KERNELS}module = "some_package.mine"')
    for build in (backend.build_wheel, backend.build_editable):
        with pytest.raises(SystemExit) as raised:
            build(str(tmp_path), ONE)
        said = message_of(capfd, raised.value.code)
        assert "the module 'some_package.mine' is already there" in said
    assert mine.read_text(encoding="utf-8") == "x = 1\n"
    assert not (project / "kernels/target").exists()


@pytest.mark.parametrize(
    ("taken", "packages", "where"),
    [
        *(
            (name, "", f"some_package/{name}")
            for name in (
                "kernels_cuda.pyi",
                # By hand, without a loader beside them.
                "kernels_cuda.fatbin",
                # Python imports them in place of the generated module.
                "kernels_cuda.so",
                "kernels_cuda.abi3.so",
                "kernels_cuda.cpython-312-x86_64-linux-gnu.so",
                "kernels_cuda.cp312-win_amd64.pyd",
                # On Windows and macOS it is the same name.
                "Kernels_CUDA.py",
            )
        ),
        ("kernels_cuda/__init__.py", "", "some_package/kernels_cuda"),
        (
            "kernels_cuda/x.py",
            ', "some_package.kernels_cuda"',
            "the project's packages and extension modules",
        ),
    ],
)
def test_a_name_that_something_else_has(
    project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], taken: str, packages: str, where: str
) -> None:
    path = project / "some_package" / taken
    path.parent.mkdir(exist_ok=True)
    path.write_text("x: int\n", encoding="utf-8")
    set_table(project, KERNELS, f'packages = ["some_package"{packages}]')
    for build in (backend.build_wheel, backend.build_editable):
        with pytest.raises(SystemExit) as raised:
            build(str(tmp_path), ONE)
        said = message_of(capfd, raised.value.code)
        assert "the module 'some_package.kernels_cuda' is already there" in said
        assert f"where: {where}\n" in said
    assert not (project / "kernels/target").exists()


def test_what_is_no_module_takes_no_name(project: Path, tmp_path: Path) -> None:
    (project / "some_package/kernels_cuda").mkdir()
    for name in ("kernels_cuda.txt", "kernels_cuda_more.py", "kernels.py", "kernels_cuda.more.py"):
        (project / "some_package" / name).touch()
    backend.build_wheel(str(tmp_path), ONE)
    assert "some_package/kernels_cuda.fatbin" in wheel_names(tmp_path)


def test_a_wheel_with_an_object_file(project: Path, tmp_path: Path) -> None:
    set_table(project, KERNELS + 'container = "elf"')
    backend.build_wheel(str(tmp_path), ONE)
    written = [f"some_package/{name}" for name in ("kernels_cuda.o", "kernels_cuda.py", "kernels_cuda.pyi")]
    assert wheel_names(tmp_path) == ["some_package/__init__.py", *written, "some_package/py.typed"]
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as archive:
        assert archive.read("some_package/kernels_cuda.o").startswith(b"\x7fELF")


@pytest.mark.parametrize("hook", [hook for hook in backend.__all__ if "requires" not in hook])
@pytest.mark.parametrize(
    ("crate", "message"),
    [
        ("..", "the crate '..' is outside the project"),
        ("kernels/../../elsewhere", "the crate 'kernels/../../elsewhere' is outside the project"),
        ("/", "the crate '/' is outside the project"),
        ("link", "the crate 'link' is outside the project"),
        ("nowhere", "there is no crate in 'nowhere'"),
        ("some_package", "there is no crate in 'some_package'"),
        ("pyproject.toml", "there is no crate in 'pyproject.toml'"),
        ("a\\u0000b", "'crate' has a NUL character in it"),
    ],
)
def test_a_crate_that_cannot_be(
    project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], hook: str, crate: str, message: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "Cargo.toml").write_text(MANIFEST, encoding="utf-8")
    (project / "link").symlink_to(elsewhere, target_is_directory=True)
    set_table(project, f'[tool.rustcuda]\ncrate = "{crate}"\n')
    with pytest.raises(SystemExit) as raised:
        call(hook, tmp_path, None)
    said = message_of(capfd, raised.value.code)
    assert f"rustcuda: error: {message}" in said
    assert "where: [tool.rustcuda] crate" in said


def test_a_package_that_is_not_there(
    project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    set_table(project, KERNELS, 'packages = ["missing"]')
    for build in (backend.build_wheel, backend.build_editable):
        with pytest.raises(SystemExit) as raised:
            build(str(tmp_path), ONE)
        said = f"{raised.value.code}{capfd.readouterr().err}"
        assert "package directory 'missing' does not exist" in said
        assert "Traceback" not in said


# --- the module ------------------------------------------------------------------------------------------


def command(project: Path, packages: str, table: str = KERNELS) -> BuildRustcuda:
    """Our command as setuptools sets it up in this project, before it runs."""
    set_table(project, table, packages)
    distribution = Distribution()
    distribution.script_name = "setup.py"
    distribution.parse_config_files()
    found = distribution.get_command_obj(COMMAND)
    assert isinstance(found, BuildRustcuda)
    found.ensure_finalized()
    return found


NAMES = ("kernels_cuda.py", "kernels_cuda.pyi", "kernels_cuda.fatbin", "py.typed")


@pytest.mark.parametrize(
    ("packages", "module", "folder", "source"),
    [
        ('packages = ["one"]', "", "one", "one"),
        ('packages = ["one", "one.two"]', "", "one", "one"),
        ('packages = ["namespace.one"]', "", "namespace/one", "namespace/one"),
        ('packages = ["one", "two"]', 'module = "two.kernels_cuda"', "two", "two"),
        ('packages = ["one", "one.two"]', 'module = "one.two.kernels_cuda"', "one/two", "one/two"),
        ('package-dir = {"" = "src"}\npackages = ["one"]', "", "one", "src/one"),
        ('package-dir = {"one" = "a/b"}\npackages = ["one"]', "", "one", "a/b"),
    ],
)
def test_outputs_are_known_before_anything_runs(
    project: Path, packages: str, module: str, folder: str, source: str
) -> None:
    found = command(project, packages, KERNELS + module)
    in_build_tree = [str(Path(str(found.build_lib), folder, name)) for name in NAMES]
    assert found.get_outputs() == in_build_tree
    expected = dict(zip(in_build_tree, [str(Path(source, name)) for name in NAMES], strict=True))
    assert found.get_output_mapping() == expected
    found.editable_mode = True
    assert found.get_outputs() == in_build_tree
    assert found.get_output_mapping() == expected


@pytest.mark.parametrize(
    ("packages", "module", "what", "hint"),
    [
        (
            'packages = ["one", "two"]',
            "",
            "the project has the packages one, two",
            'module = "mypackage.kernels_cuda"',
        ),
        ('py-modules = ["single"]', "", "the project has no package", 'module = "mypackage.kernels_cuda"'),
        ('packages = ["one"]', "kernels_cuda", "'kernels_cuda' is no module inside a package", "mypackage."),
        (
            'packages = ["one"]',
            "one.not-a-name",
            "'one.not-a-name' is no name of a Python module",
            "mypackage.",
        ),
        ('packages = ["one"]', "one.class", "'one.class' is no name of a Python module", "mypackage."),
        (
            'packages = ["one"]',
            "one.__init__",
            "'one.__init__' is no name of a Python module",
            "mypackage.",
        ),
        ('packages = ["one"]', "one.", "'one.' is no name of a Python module", "mypackage."),
        (
            'packages = ["one"]',
            "two.kernels_cuda",
            "'two' of module 'two.kernels_cuda' is not in",
            "are: one",
        ),
        (
            'py-modules = ["x"]',
            "two.kernels_cuda",
            "'two' of module 'two.kernels_cuda' is not in",
            "are: none",
        ),
    ],
)
def test_a_module_that_cannot_be(
    project: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    packages: str,
    module: str,
    what: str,
    hint: str,
) -> None:
    table = KERNELS + (f'module = "{module}"' if module else "")
    for name in ("one", "two"):
        (project / name).mkdir()
        (project / name / "__init__.py").touch()
    for name in ("single.py", "x.py"):
        (project / name).touch()
    with pytest.raises(SettingsError) as raised:
        command(project, packages, table).get_outputs()
    assert what in raised.value.what
    assert hint in raised.value.hint
    with pytest.raises(SystemExit) as ended:
        backend.build_wheel(str(tmp_path), ONE)
    assert what in message_of(capfd, ended.value.code)
    assert not (project / "kernels/target").exists()


# --- the plugin alone ------------------------------------------------------------------------------------


def test_a_project_without_our_table_is_left_alone(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUSTCUDA_NONSENSE", "1")
    set_table(project, "")
    setuptools.build_meta.build_wheel(str(tmp_path))
    assert wheel_names(tmp_path) == ["some_package/__init__.py"]
    distribution = Distribution()
    assert COMMAND not in distribution.cmdclass
    assert "build" not in distribution.cmdclass
    (project / "pyproject.toml").unlink()
    assert COMMAND not in Distribution().cmdclass


def test_setuptools_backend_with_us_as_its_plugin(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RUSTCUDA_CAPABILITIES", "8.0")
    name = setuptools.build_meta.build_wheel(str(tmp_path))
    assert name == "some_package-1.0-py3-none-any.whl"
    assert "some_package/kernels_cuda.fatbin" in wheel_names(tmp_path)
    assert "environment variable RUSTCUDA_CAPABILITIES" in capfd.readouterr().err
    set_table(project, '[tool.rustcuda]\ncrat = "kernels"')
    for build in (setuptools.build_meta.build_wheel, setuptools.build_meta.build_sdist):
        with pytest.raises(SystemExit) as raised:
            build(str(tmp_path))
        assert "unknown setting 'crat'" in message_of(capfd, raised.value.code)
    (project / "pyproject.toml").write_text("[tool]\nrustcuda = 7\n", encoding="utf-8")
    with pytest.raises(SystemExit) as raised:
        setuptools.build_meta.build_sdist(str(tmp_path))
    assert "tool.rustcuda must be a table" in message_of(capfd, raised.value.code)


# --- sdists ----------------------------------------------------------------------------------------------

CRATE = {"kernels/Cargo.toml", "kernels/src/lib.rs"}


def test_an_sdist_has_the_crates_sources_and_cargos_files(project: Path, tmp_path: Path) -> None:
    others = {
        "kernels/Cargo.lock": "",
        "kernels/build.rs": "",
        "kernels/src/table.bin": "",
        "kernels/.cargo/config.toml": "",
        "rust-toolchain.toml": "",
        ".cargo/config.toml": "",
    }
    unwanted = {
        "kernels/target/debug/x.rs": "",
        "kernels/other-target/CACHEDIR.TAG": "",
        "kernels/other-target/x.rs": "",
        "kernels/.git/config": "",
        "kernels/.env": "",
        "kernels/venv/pyvenv.cfg": "",
        "unrelated/Cargo.toml": "",
    }
    for name, text in {**others, **unwanted}.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text, encoding="utf-8")
    name = backend.build_sdist(str(tmp_path))
    assert name == "some_package-1.0.tar.gz"
    ours = {name for name in sdist_names(tmp_path) if not name.startswith(("some_package", "PKG", "setup."))}
    assert ours == {*CRATE, *others, "pyproject.toml"}


def test_an_sdist_of_a_crate_beside_pyproject(project: Path, tmp_path: Path) -> None:
    set_table(project, '[tool.rustcuda]\ncrate = "."')
    for name in ("Cargo.toml", "src/lib.rs", "src/build/mod.rs", "build/lib/x.py", "dist/old.whl", ".env"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).touch()
    backend.build_sdist(str(tmp_path))
    names = sdist_names(tmp_path)
    assert names >= {"Cargo.toml", "src/lib.rs", "src/build/mod.rs", *CRATE}
    assert not [name for name in names if name.startswith(("build/", "dist/", ".env"))]


WORKSPACE = '[workspace]\nmembers = ["crates/*"]\n[workspace.dependencies]\ndeep = { path = "deep/er" }\n'


def workspace(project: Path) -> None:
    member = MANIFEST.replace("[workspace]\n", "")
    content = {
        "Cargo.toml": WORKSPACE + "[patch.crates-io]\npatched = { path = 'patched' }\n",
        "Cargo.lock": "",
        "crates/kernels/Cargo.toml": member + '[dependencies]\nbeside = { path = "../../beside" }\n'
        "[target.'cfg(unix)'.build-dependencies]\n"
        "for-builds = { path = '../../for-builds', version = '1' }\n",
        "crates/kernels/src/lib.rs": "",
        "crates/host/Cargo.toml": member.replace("some-kernels", "host"),
        "crates/no-crate/README": "",
        "beside/Cargo.toml": '[package]\nname = "beside"\n'
        '[dependencies]\nonce-more = { path = "../crates/host" }\n',
        "for-builds/Cargo.toml": "",
        "patched/Cargo.toml": "",
        "deep/er/Cargo.toml": "",
    }
    for name, text in content.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text, encoding="utf-8")
    set_table(project, '[tool.rustcuda]\ncrate = "crates/kernels"')


def test_an_sdist_has_the_workspace_and_the_crates_named_by_path(project: Path, tmp_path: Path) -> None:
    workspace(project)
    backend.build_sdist(str(tmp_path))
    manifests = {name for name in sdist_names(tmp_path) if Path(name).name.startswith("Cargo")}
    folders = ("", "crates/kernels/", "crates/host/", "beside/", "for-builds/", "patched/", "deep/er/")
    assert manifests == {*(f"{folder}Cargo.toml" for folder in folders), "Cargo.lock"}


def test_an_sdist_that_would_lack_a_crate(
    project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with (project / "kernels/Cargo.toml").open("a", encoding="utf-8") as stream:
        stream.write('[dependencies]\nelsewhere = { path = "../../elsewhere" }\n')
    backend.prepare_metadata_for_build_wheel(str(tmp_path))
    capfd.readouterr()
    with pytest.raises(SystemExit) as raised:
        backend.build_sdist(str(tmp_path))
    said = message_of(capfd, raised.value.code)
    assert f"the crate in '{tmp_path / 'elsewhere'}' is outside the project" in said
    assert str(project / "kernels/Cargo.toml") in said


# --- errors ----------------------------------------------------------------------------------------------


def test_ctrl_c_has_its_own_status(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised, session.user_errors():
        raise KeyboardInterrupt
    assert raised.value.code == 130
    assert capfd.readouterr().err == "rustcuda: interrupted\n"


def test_a_fault_of_ours_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError), session.user_errors():
        _ = 1 / 0


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.ENOTDIR])
def test_what_the_machine_lacks_is_no_traceback(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised, session.user_errors():
        raise OSError(number, os.strerror(number), "/some/file")
    assert raised.value.code == 1
    first, second, *_ = capsys.readouterr().err.splitlines()
    assert first == f"rustcuda: error: {os.strerror(number).lower()}"
    assert second == "rustcuda:   where: /some/file"


@pytest.mark.parametrize("fault", [OSError(errno.ENOENT, "x", "/some/file"), OSError(errno.EACCES, "x")])
def test_other_faults_keep_their_traceback(fault: OSError) -> None:
    with pytest.raises(OSError, match="x") as raised, session.user_errors():
        raise fault
    assert raised.value is fault


def without_room(project: Path, hook: str, out: Path, **variables: str) -> tuple[str, str]:
    """What a front end hears of a hook that fails for the machine: where, and what to do."""
    code = f"import rustcuda_backend as b; b.{hook}({str(out)!r}, {ONE!r})"
    finished = process.run([sys.executable, "-c", code], cwd=project, env={**os.environ, **variables})
    assert finished.returncode == 1
    assert "Traceback" not in finished.stderr
    lines = [line.removeprefix("rustcuda: ") for line in finished.stderr.splitlines()]
    start = next(number for number, line in enumerate(lines) if line.startswith("  where: "))
    hint = "\n".join(line.strip() for line in lines[start + 1 :])
    return lines[start].removeprefix("  where: "), hint.removeprefix("what to do: ")


HOOKS = ("build_wheel", "build_sdist")


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("size", [4096, 12288])
def test_a_disk_without_room_for_what_is_built(
    make_project: MakeProject, tmp_path: Path, hook: str, size: int
) -> None:
    project, out = (
        make_project(files={"some_package/large.py": f"x = {os.urandom(9000)!r}\n"}),
        tmp_path / "out",
    )
    with small(out, size):
        where, hint = without_room(project, hook, out)
        assert list(out.iterdir()) == []
    assert Path(where).is_relative_to(out)
    assert hint == f"make room on the disk that is mounted at {out}"


@pytest.mark.parametrize("size", [4096, 32768])
def test_a_disk_without_room_for_temporary_files(
    make_project: MakeProject, tmp_path: Path, size: int
) -> None:
    project = make_project(files={"some_package/large.py": "x = 1\n" * 10000})
    folder = tmp_path / "temporary"
    with small(folder, size):
        where, hint = without_room(project, "build_wheel", tmp_path, TMPDIR=str(folder))
    assert Path(where).is_relative_to(folder)
    expected = (
        f"make room on the disk that is mounted at {folder},\nor set TMPDIR to a folder on another disk"
    )
    assert hint == expected


@pytest.mark.parametrize("hook", HOOKS)
def test_a_project_on_a_full_disk(make_project: MakeProject, tmp_path: Path, hook: str) -> None:
    (tmp_path / "x").mkdir()
    project = tmp_path / "project"
    with small(project, 1 << 17):
        make_project()
        (project / "x").write_bytes(b"")
        with contextlib.suppress(OSError), (project / "full").open("wb", buffering=0) as stream:
            while stream.write(bytes(512)):
                pass
        where, hint = without_room(project, hook, tmp_path / "x")
    assert Path(where).is_relative_to(project)
    assert hint == f"make room on the disk that is mounted at {project}"


@pytest.mark.parametrize("hook", HOOKS)
def test_a_folder_that_cannot_be_written(make_project: MakeProject, tmp_path: Path, hook: str) -> None:
    project = make_project()
    (tmp_path / "out").mkdir()
    with read_only(tmp_path / "out"):
        where, hint = without_room(project, hook, tmp_path / "out")
    assert Path(where).is_relative_to(tmp_path / "out")
    assert hint == f"make {tmp_path / 'out'} writable, or name another folder"


def test_a_cache_on_a_full_disk(make_project: MakeProject, tmp_path: Path) -> None:
    with small(tmp_path / "cache", 1 << 16):
        variables = {cache.DIRECTORY_VARIABLE: str(tmp_path / "cache")}
        _, hint = without_room(make_project(), "build_wheel", tmp_path, **variables)
    first, second = hint.splitlines()
    assert first == f"make room on the disk that is mounted at {tmp_path / 'cache'},"
    assert second == "or set RUSTCUDA_CACHE_DIR to a folder on another disk"


@pytest.mark.parametrize("size", [4096, 1 << 15, 1 << 17])
def test_a_target_folder_on_a_full_disk(make_project: MakeProject, tmp_path: Path, size: int) -> None:
    project = make_project()
    target = project / "kernels/target"
    with small(target, size):
        _, hint = without_room(project, "build_wheel", tmp_path)
    assert hint == f"make room on the disk that is mounted at {target}"
