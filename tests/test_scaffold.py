"""`init`: the project it writes builds, tests and imports at once, and what is there stays as it is."""

from __future__ import annotations

import os
import pty
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import rustcuda_backend as backend
from rustcuda_backend import cli, process, pyproject_edit
from rustcuda_backend.capability import all_cfg_values
from rustcuda_backend.errors import SettingsError
from rustcuda_backend.rust import RustToolchain
from rustcuda_backend.settings import read_settings, read_table
from rustcuda_backend.source_tree import _ignored

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ONE = {"capabilities": "8.0"}
PYPROJECT = '[project]\nname = "mine"\nversion = "1"\n'
WRITTEN = {
    *(".github/workflows/ci.yml", ".gitignore", "README.md", "pyproject.toml", "tests/test_ops.py"),
    *("kernels/.cargo/config.toml", "kernels/Cargo.lock", "kernels/Cargo.toml", "kernels/src/lib.rs"),
}


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


def init(*arguments: str) -> int:
    return cli.main(["init", *arguments])


def refused(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What `init` says that refuses; it then has written nothing."""
    before = sorted(Path().rglob("*"))
    with pytest.raises(SystemExit) as raised:
        init(*arguments)
    assert raised.value.code == 1
    assert sorted(Path().rglob("*")) == before
    said = capfd.readouterr().err
    assert said.startswith("rustcuda: error: ")
    assert "Traceback" not in said
    return said


def files(folder: Path) -> dict[str, str]:
    """All files but those that builds leave."""
    found = {}
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _ignored(place, folders)]
        paths = (Path(place, name) for name in names)
        found.update(
            {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in paths}
        )
    return found


# --- a new project ---------------------------------------------------------------------------------------


def test_a_new_project(capfd: pytest.CaptureFixture[str]) -> None:
    assert init("My-Kernels") == 0
    written = files(Path("My-Kernels"))
    package = {f"src/my_kernels/{name}" for name in ("__init__.py", "ops.py", "py.typed")}
    assert set(written) == WRITTEN | package
    assert capfd.readouterr().out.splitlines() == [
        *(f"wrote {name}" for name in sorted(written)),
        "next: cd My-Kernels && pip install -e .",
    ]
    pyproject = tomllib.loads(written["pyproject.toml"])
    assert pyproject["project"]["name"] == "My-Kernels"
    assert read_settings(pyproject["tool"]["rustcuda"], {}, {}).crate == "kernels"
    keys = pyproject["tool"]["uv"]["cache-keys"]
    assert {"file": "kernels/src/**/*.rs"} in keys
    assert {"env": "RUSTCUDA_CAPABILITIES"} in keys
    config = tomllib.loads(written["kernels/.cargo/config.toml"])
    (flag,) = config["target"]['cfg(not(target_arch = "nvptx64"))']["rustflags"]
    assert all(f'"{value}"' in flag for value in all_cfg_values())
    assert not [text for text in written.values() if "$" in text]
    assert "kernels_cuda.py" in written[".gitignore"]


def test_cargo_and_editors_work_before_the_first_build(toolchain: RustToolchain) -> None:
    init("fresh")
    crate = Path("fresh/kernels")
    source = crate / "src/lib.rs"
    source.write_text(
        source.read_text(encoding="utf-8") + '\n#[cfg(cuda_arch = "9O")]\nfn typo() {}\n'
        '#[cfg(cuda_arch = "90")]\nfn right() {}\n',
        encoding="utf-8",
    )
    argv = [toolchain.cargo, "check", "--locked", "--offline"]
    finished = process.run(argv, cwd=crate, env={**os.environ, "RUSTC": str(toolchain.rustc)})
    assert finished.ok, finished.stderr
    assert finished.stderr.count("warning: unexpected `cfg` condition value: `9O`") == 1
    assert finished.stderr.count("unexpected `cfg`") == 1


@pytest.mark.filterwarnings("ignore:Editable installation")
def test_it_builds_tests_and_imports_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    init("fresh")
    lock = Path("fresh/kernels/Cargo.lock").read_bytes()
    monkeypatch.chdir("fresh")
    backend.build_editable(str(tmp_path), ONE)
    environ = {**os.environ, "PYTHONPATH": str(Path("src").absolute()), "CUDA_VISIBLE_DEVICES": ""}
    argv = [sys.executable, "-m", "pytest", "-q", "-Werror", "-p", "no:cacheprovider"]
    finished = process.run(argv, env=environ)
    assert finished.ok, finished.stdout + finished.stderr
    assert "1 passed, 6 skipped" in finished.stdout
    finished = process.run([sys.executable, "-c", "import fresh; print(fresh.saxpy)"], env=environ)
    assert "function saxpy" in finished.stdout, finished.stderr
    if shutil.which("git"):
        for arguments in (["init", "--quiet"], ["add", "."]):
            assert process.run(["git", *arguments]).ok
        listed = process.run(["git", "ls-files"]).stdout.splitlines()
        assert set(listed) == WRITTEN | {
            f"src/fresh/{name}" for name in ("__init__.py", "ops.py", "py.typed")
        }
    wheel = tmp_path / backend.build_wheel(str(tmp_path), ONE | {"locked": "true", "offline": "true"})
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    generated = {f"kernels_cuda.{suffix}" for suffix in ("py", "pyi", "fatbin")}
    assert names == {f"fresh/{name}" for name in ("__init__.py", "ops.py", "py.typed", *generated)}
    with tarfile.open(tmp_path / backend.build_sdist(str(tmp_path))) as sdist:
        in_sdist = {name.partition("/")[2] for name in sdist.getnames()}
    assert {name for name in WRITTEN if name.startswith("kernels/")} < in_sdist
    assert Path("kernels/Cargo.lock").read_bytes() == lock


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "'' is no name for a distribution"),
        ("-x", "'-x' is no name for a distribution"),
        ("a b", "'a b' is no name for a distribution"),
        ("größe", "'größe' is no name for a distribution"),
        ("a/b", "'a/b' is no name for a distribution"),
        ("..", "'..' is no name for a distribution"),
        ("9lives", "'9lives', of '9lives', is no name for a package"),
        ("class", "'class', of 'class', is no name for a package"),
        ("json", "a package 'json' would hide another of that name"),
        ("Torch", "a package 'torch' would hide another of that name"),
    ],
)
def test_names_that_cannot_be(capfd: pytest.CaptureFixture[str], name: str, message: str) -> None:
    said = refused(capfd, "--", name)
    assert message in said
    assert "my-kernels" in said


def test_places_that_are_taken(capfd: pytest.CaptureFixture[str]) -> None:
    Path("full").mkdir()
    Path("full/file").touch()
    assert "the folder 'full' is not empty" in refused(capfd, "full")
    Path("a-file").touch()
    assert "'a-file' is there already, and is no folder" in refused(capfd, "a-file")
    Path("my_module.py").touch()
    assert "the module file 'my_module.py' would hide the package 'my_module'" in refused(capfd, "my-module")
    Path("empty").mkdir()
    assert init("empty") == 0


def test_one_of_name_and_here_is_needed(capfd: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["name", "--here"]):
        with pytest.raises(SystemExit) as raised:
            init(*arguments)
        assert raised.value.code == 2
    assert "usage:" in capfd.readouterr().err


# --- a project that is there -----------------------------------------------------------------------------


def existing(content: dict[str, str]) -> dict[str, str]:
    for name, text in content.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
    return content


def test_adding_to_a_project(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = existing(
        {
            "pyproject.toml": '[build-system]\nrequires = ["setuptools"]\n'
            f'build-backend = "setuptools.build_meta"\n\n{PYPROJECT}# mine\n',
            "mine/__init__.py": "x = 1\n",
            "README.md": "mine\n",
            ".gitignore": "*.pyc\n",
        }
    )
    assert init("--here", "--yes") == 0
    said = capfd.readouterr().out
    changed = files(Path())
    assert set(changed) == WRITTEN | {"mine/__init__.py", "mine/ops.py"}
    assert {name for name, text in before.items() if changed[name] != text} == {"pyproject.toml"}
    for line in (
        "--- pyproject.toml",
        '-build-backend = "setuptools.build_meta"',
        '+crate = "kernels"',
        " # mine",
    ):
        assert f"{line}\n" in said
    assert '+requires = ["rustcuda-backend", "setuptools"]\n' in said
    assert "left README.md as it is\n" in said
    assert "add to .gitignore: kernels_cuda.* and target/\n" in said
    assert said.endswith("next: pip install -e .\n")
    monkeypatch.chdir(Path.cwd())
    backend.build_wheel(str(tmp_path), ONE)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names >= {"mine/__init__.py", "mine/ops.py", "mine/kernels_cuda.fatbin"}
    assert {name.partition("/")[0] for name in names} == {"mine"}


def test_without_an_answer_nothing_changes(capfd: pytest.CaptureFixture[str]) -> None:
    existing({"pyproject.toml": PYPROJECT})
    said = refused(capfd, "--here")
    assert "pyproject.toml would change as shown, and nobody can be asked" in said
    assert "add --yes" in said


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("Yes\n", 0), ("\n", 1), ("no\n", 1)])
def test_a_terminal_is_asked(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, answer: str, status: int
) -> None:
    existing({"pyproject.toml": PYPROJECT})
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, encoding="utf-8") as terminal, os.fdopen(ours, "wb", buffering=0) as keyboard:
        monkeypatch.setattr(sys, "stdin", terminal)
        keyboard.write(answer.encode())
        assert init("--here") == status
    said = capfd.readouterr().out
    assert "change pyproject.toml so, and add 11 files? [y/N] " in said
    assert ("nothing has been written" in said) == bool(status)
    assert Path("kernels").exists() == (not status)
    assert (Path("pyproject.toml").read_text(encoding="utf-8") == PYPROJECT) == bool(status)


def test_here_without_a_pyproject(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    Path("some-project").mkdir()
    monkeypatch.chdir("some-project")
    assert init("--here") == 0
    assert set(files(Path())) >= WRITTEN
    assert Path("src/some_project/ops.py").is_file()
    assert "[tool.rustcuda] already" in refused(capfd, "--here", "--yes")


def test_which_package_the_kernels_go_into(capfd: pytest.CaptureFixture[str]) -> None:
    existing({"pyproject.toml": PYPROJECT, "src/one/__init__.py": "", "src/two/__init__.py": ""})
    said = refused(capfd, "--here", "--yes")
    assert "it is not clear into which package the kernels go: one, two" in said
    existing({"src/mine/__init__.py": ""})
    assert init("--here", "--yes") == 0
    assert read_settings(read_table(Path()) or {}, {}, {}).module == "mine.kernels_cuda"
    assert Path("src/mine/ops.py").is_file()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"src/mine.py": ""}, "'mine.py' is where the package 'mine' or its module 'kernels_cuda' would go"),
        ({"mine/__init__.py": "", "mine/kernels_cuda.py": ""}, "'kernels_cuda.py' is where the package"),
        ({"kernels/x": ""}, "there is a folder 'kernels' already"),
        ({"pyproject.toml": "x = "}, "pyproject.toml is not valid TOML"),
        (
            {"pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "hatchling.build"\n'},
            "the project is built by 'hatchling.build', and kernels join only what setuptools builds",
        ),
        ({"pyproject.toml": '[project]\nname = "9"\n'}, "'9', of '9', is no name for a package"),
    ],
)
def test_projects_that_cannot_have_kernels(
    capfd: pytest.CaptureFixture[str], content: dict[str, str], message: str
) -> None:
    existing({"pyproject.toml": PYPROJECT, **content})
    assert message in refused(capfd, "--here", "--yes")


@pytest.mark.parametrize("content", [{"setup.cfg": ""}, {"setup.py": ""}, {}])
def test_packages_that_the_project_names_itself(content: dict[str, str]) -> None:
    named = PYPROJECT if content else f'{PYPROJECT}[tool.setuptools]\npackages = ["mine"]\n'
    existing({"pyproject.toml": named, "mine/__init__.py": "", "mine/sub/__init__.py": "", **content})
    assert init("--here", "--yes") == 0
    assert "packages.find" not in Path("pyproject.toml").read_text(encoding="utf-8")


def test_line_ends_stay_as_they_are(capfd: pytest.CaptureFixture[str]) -> None:
    Path("pyproject.toml").write_bytes(PYPROJECT.replace("\n", "\r\n").encode())
    assert init("--here", "--yes") == 0
    written = Path("pyproject.toml").read_bytes()
    assert written.count(b"\n") == written.count(b"\r\n")
    assert '-name = "mine"' not in capfd.readouterr().out


def test_a_pyproject_that_is_not_utf_8(capfd: pytest.CaptureFixture[str]) -> None:
    Path("pyproject.toml").write_bytes(b"# \xff\n")
    assert "pyproject.toml is not UTF-8" in refused(capfd, "--here", "--yes")


# --- the edit --------------------------------------------------------------------------------------------

TABLES = '[tool.rustcuda]\ncrate = "kernels"\n'
UV = '[tool.uv]\ncache-keys = [{ file = "x" }]\n'


def edited(text: str) -> str:
    return pyproject_edit.with_kernels(text, Path("pyproject.toml"), TABLES, UV)


@pytest.mark.parametrize(
    "text",
    [
        "",
        PYPROJECT,
        "[build-system]\nrequires = []\n",
        '[build-system]\nrequires = [\n  "setuptools>=61", # why\n]\n[project]\nname = "x"\n',
        (
            "# first\n[build-system] # mine\nbuild-backend = 'setuptools.build_meta'\n"
            'requires = ["wheel"]\n\n[a]\nb = 1'
        ),
        '[build-system]\nrequires = ["rustcuda-backend>=0.1"]\nbuild-backend = "rustcuda_backend"\n',
        "[tool.uv]\nmanaged = true\n[tool.other]\nx = 1\n",
        "[tool.uv] # mine\n",
        "[tool.uv]\ncache-keys = []\n",
    ],
)
def test_layouts_that_can_be_edited(text: str) -> None:
    before, after = tomllib.loads(text), tomllib.loads(edited(text))
    assert after["build-system"]["build-backend"] == "rustcuda_backend"
    required = after["build-system"]["requires"]
    assert len([item for item in required if item.startswith("rustcuda-backend")]) == 1
    others = before.get("build-system", {}).get("requires", [])
    assert [item for item in required if item in others or "rustcuda" not in item] == others
    assert after["tool"]["rustcuda"] == {"crate": "kernels"}
    kept = before.get("tool", {}).get("uv", {})
    assert after["tool"]["uv"] == {"cache-keys": [{"file": "x"}], **kept}
    for line in text.splitlines():
        assert line in edited(text).splitlines() or "require" in line or "build-backend" in line


@pytest.mark.parametrize(
    "text",
    [
        'build-system = { requires = ["setuptools"] }\n',
        '[build-system]\n"requires" = ["setuptools"]\n',
        "[tool]\nuv = { managed = true }\n",
    ],
)
def test_layouts_that_cannot_be_edited(text: str) -> None:
    with pytest.raises(SettingsError, match="has a layout that cannot be edited automatically") as raised:
        edited(text)
    assert 'build-backend = "rustcuda_backend"' in raised.value.hint
