"""`init`: the project it writes builds, tests and imports at once, and what is there stays as it is."""

from __future__ import annotations

import errno
import importlib.metadata
import os
import pty
import re
import shutil
import stat
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from disks import read_only
from projects import REPOSITORY

import rustcuda_backend as backend
from rustcuda_backend import cache, cli, process, pyproject_edit, scaffold
from rustcuda_backend.capability import all_cfg_values
from rustcuda_backend.errors import SettingsError
from rustcuda_backend.package_names import package_name
from rustcuda_backend.pyproject import read_table
from rustcuda_backend.rust import RustToolchain
from rustcuda_backend.settings import read_settings
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
        ("\u017f", "'\u017f' is no name for a distribution"),
        (
            "1abc",
            "the name '1abc' does not suit a package of kernels: Python cannot import '1abc', which begins",
        ),
        ("class", "'class' does not suit a package of kernels: 'class' is a word of Python's own"),
        ("json", "it would hide 'json' of Python's standard library"),
        ("Test", "it would hide 'test' of Python's standard library"),
        ("Torch", "it would hide 'torch', which its own functions need"),
        ("numpy", "it would hide 'numpy', which its own functions need"),
        ("pytest", "it would hide 'pytest', which its tests need"),
        ("pip", "it would hide 'pip', which installs it"),
        ("setuptools", "it would hide 'setuptools', which installs it"),
        ("rustcuda-backend", "it would hide 'rustcuda_backend', which builds it"),
        ("kernels", "'kernels' is another folder of the project"),
        ("target", "'target' is another folder of the project"),
    ],
)
def test_names_that_cannot_be(capfd: pytest.CaptureFixture[str], name: str, message: str) -> None:
    said = refused(capfd, "--", name)
    assert message in said
    assert "my-kernels" in said


def test_no_package_is_named_as_one_that_a_build_needs() -> None:
    """Whatever pyproject.toml of ours requires must stay importable."""
    pyproject = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    for required in [*pyproject["build-system"]["requires"], *pyproject["project"]["dependencies"]]:
        distribution = re.split(r"[^\w-]", required)[0]
        modules = importlib.metadata.packages_distributions()
        for module in [each for each, names in modules.items() if distribution in names]:
            if not module.startswith("_"):
                with pytest.raises(SettingsError, match=f"would hide '{module}'"):
                    package_name(module)


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
        ({"kernels/x": ""}, "there is a folder or file 'kernels' already"),
        ({"pyproject.toml": "x = "}, "pyproject.toml is not valid TOML"),
        (
            {"pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "hatchling.build"\n'},
            "the project is built by 'hatchling.build', and kernels join only what setuptools builds",
        ),
        (
            {"pyproject.toml": '[project]\nname = "9"\n'},
            "Python cannot import '9', which begins with a digit",
        ),
        ({"pyproject.toml": "[project]\nname = 3\n"}, "'name' must be a text, not 3"),
        ({"pyproject.toml": "project = 3\n"}, "'project' must be a table, not 3"),
        ({"pyproject.toml": "tool = 3\n"}, "'tool' must be a table, not 3"),
        ({"pyproject.toml": "[tool]\nsetuptools = []\n"}, "'setuptools' must be a table, not []"),
        ({"pyproject.toml": "[tool]\nuv = 1\n"}, "'uv' must be a table, not 1"),
        ({"pyproject.toml": "[tool.uv]\ncache-keys = 1\n"}, "'cache-keys' must be a list"),
        ({"pyproject.toml": "build-system = 3\n"}, "'build-system' must be a table, not 3"),
        (
            {"pyproject.toml": "[build-system]\nrequires = 'x'\n"},
            "'requires' must be a list of texts, not 'x'",
        ),
        (
            {"pyproject.toml": "[build-system]\nrequires = []\nbackend-path = ['.']\n"},
            "the project is built by a backend of its own, in 'backend-path'",
        ),
        (
            {"pyproject.toml": "\ufeff[project]\nname = 'x'\n"},
            "pyproject.toml begins with a byte-order mark (BOM)",
        ),
        ({"setup.cfg": "packages\n"}, "setup.cfg cannot be read"),
    ],
)
def test_projects_that_cannot_have_kernels(
    capfd: pytest.CaptureFixture[str], content: dict[str, str], message: str
) -> None:
    existing({"pyproject.toml": PYPROJECT, **content})
    assert message in refused(capfd, "--here", "--yes")


@pytest.mark.parametrize("content", [{"setup.cfg": "[options]\npackages = mine\n"}, {"setup.py": ""}, {}])
def test_packages_that_the_project_names_itself(content: dict[str, str]) -> None:
    named = PYPROJECT if content else f'{PYPROJECT}[tool.setuptools]\npackages = ["mine"]\n'
    existing({"pyproject.toml": named, "mine/__init__.py": "", "mine/sub/__init__.py": "", **content})
    assert init("--here", "--yes") == 0
    assert "packages.find" not in Path("pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("search", "there", "source"),
    [
        ('[tool.setuptools.packages.find]\nwhere = ["lib"]\n', "", "lib/mine"),
        ('[tool.setuptools.packages.find]\nwhere = ["./lib/"]\n', "lib/other", "lib/other"),
        ('[tool.setuptools.packages.find]\nwhere = ["a", "b"]\n', "b/mine", "b/mine"),
        ('[tool.setuptools.packages.find]\nwhere = ["lib"]\nexclude = ["one*"]\n', "lib/one", "lib/mine"),
        ('[tool.setuptools.packages.find]\ninclude = ["mine*"]\n', "", "mine"),
        ("[tool.setuptools.packages.find]\n", "mine", "mine"),
        ('[tool.setuptools.package-dir]\n"" = "lib"\n', "", "lib/mine"),
        ('[tool.setuptools]\npackages = ["mine"]\n', "", "mine"),
        ('[tool.setuptools]\npackages = ["one"]\npackage-dir = { "" = "lib" }\n', "", "lib/one"),
        ('[tool.setuptools]\npackages = ["mine"]\npackage-dir = { mine = "python" }\n', "", "python"),
        ('[tool.setuptools]\npackage-dir = { one = "python/x" }\n', "python/x", "python/x"),
        ("setup.cfg\n[options]\npackages = find:\n[options.packages.find]\nwhere = lib\n", "", "lib/mine"),
        ("setup.cfg\n[options]\npackages =\n    one\n    one.sub\npackage_dir =\n    =lib\n", "", "lib/one"),
        ("setup.cfg\n[flake8]\nignore = E1\n", "mine", "mine"),
    ],
)
def test_a_package_goes_where_setuptools_looks(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], search: str, there: str, source: str
) -> None:
    files = {f"{there}/__init__.py": ""} if there else {}
    if search.startswith("setup.cfg\n"):
        files["setup.cfg"], search = search.partition("\n")[2], ""
    if "one.sub" in str(files):
        files["lib/one/sub/__init__.py"] = ""
    existing({"pyproject.toml": PYPROJECT + search, **files})
    assert init("--here", "--yes") == 0
    assert Path(source, "ops.py").is_file()
    assert ("note: setuptools takes the folder 'kernels'" in capfd.readouterr().out) == (
        search == "[tool.setuptools.packages.find]\n"
    )
    backend.build_wheel(str(tmp_path), ONE)
    (wheel,) = tmp_path.glob("*.whl")
    package = {"lib/other": "other", "python": "mine", "python/x": "one"}.get(source, Path(source).name)
    with zipfile.ZipFile(wheel) as archive:
        assert {f"{package}/ops.py", f"{package}/kernels_cuda.fatbin"} < set(archive.namelist())


@pytest.mark.parametrize(
    ("content", "message", "hint"),
    [
        ("[tool.setuptools]\npackages = []\n", "setuptools is told of no package", 'add "mine" to packages'),
        ('[tool.setuptools]\npackages = ["a", "b"]\n', "into which package the kernels go: a, b", "'mine'"),
        (
            '[tool.setuptools]\npy-modules = ["x"]\n',
            "setuptools packs only the modules that py-modules lists",
            'packages = ["mine"]',
        ),
        (
            '[tool.setuptools.packages.find]\ninclude = ["other*"]\n',
            "setuptools would leave out a package 'mine'",
            'add "mine*" to include',
        ),
        (
            '[tool.setuptools.packages.find]\nwhere = ["../lib"]\n',
            "the packages are outside the project, in '../lib/mine'",
            "",
        ),
        ("[tool.setuptools]\npackages = 3\n", "setuptools does not take what stands there on packages", ""),
        ("[tool.setuptools]\npackages = [3]\n", "setuptools does not take what stands there on packages", ""),
        (
            '[tool.setuptools.packages.find]\nwhere = "lib"\n',
            "setuptools does not take what stands there",
            "",
        ),
        ("[tool.setuptools]\npackage-dir = 1\n", "setuptools does not take what stands there", ""),
    ],
)
def test_packages_that_setuptools_would_not_find(
    capfd: pytest.CaptureFixture[str], content: str, message: str, hint: str
) -> None:
    existing({"pyproject.toml": PYPROJECT + content})
    said = refused(capfd, "--here", "--yes")
    assert message in said
    assert hint in said
    assert "where: [tool.setuptools] in " in said


def test_a_module_that_setuptools_would_no_longer_pack(capfd: pytest.CaptureFixture[str]) -> None:
    existing({"pyproject.toml": PYPROJECT, "alone.py": "", "conftest.py": ""})
    said = refused(capfd, "--here", "--yes")
    assert "with a package in src, setuptools would no longer pack the module 'alone'" in said


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ({"pyproject.toml": ""}, ['name = "work"', 'version = "0.1.0"']),
        ({"pyproject.toml": '[project]\nname = "mine"\n'}, ['version = "0.1.0"']),
        ({"pyproject.toml": '[project]\nname = "mine"\ndynamic = ["version"]\n'}, []),
        ({"pyproject.toml": '[project]\nname = "mine"\ndynamic = 3\n'}, ['version = "0.1.0"']),
        ({"setup.cfg": "[metadata]\nname = mine\n"}, []),
        ({"setup.py": "from setuptools import setup\nsetup(name='mine')\n"}, []),
    ],
)
def test_a_project_that_does_not_say_what_it_is(
    capfd: pytest.CaptureFixture[str], content: dict[str, str], lines: list[str]
) -> None:
    existing(content)
    assert init("--here", "--yes") == 0
    said = capfd.readouterr().out.partition("note: pyproject.toml does not say what is installed; write\n")[2]
    assert said.splitlines()[:-1] == (["[project]", *lines] if lines else [])


@pytest.mark.parametrize("ends", [["\r\n"] * 3, ["\n", "\r\n", "\n"]])
def test_line_ends_stay_as_they_are(capfd: pytest.CaptureFixture[str], ends: list[str]) -> None:
    lines = zip(PYPROJECT.splitlines(), ends, strict=True)
    Path("pyproject.toml").write_bytes("".join(line + end for line, end in lines).encode())
    assert init("--here", "--yes") == 0
    written = Path("pyproject.toml").read_bytes()
    for line, end in zip(PYPROJECT.splitlines(), ends, strict=True):
        assert f"{line}{end}".encode() in written
    assert written.count(b"\r\n") in (written.count(b"\n"), 1)
    assert '-name = "mine"' not in capfd.readouterr().out


# All that `init --here` writes into the project of `PYPROJECT`, in the order of writing.
ADDED = sorted(scaffold.new("mine", Path("/nowhere")).files, key=lambda name: name == "pyproject.toml")
FOLDERS = sorted({place.as_posix() for name in ADDED for place in Path(name).parents} - {"."})


def tree(folder: Path) -> dict[str, tuple[int, bytes | str | None]]:
    """Everything in a folder: modes, and contents or where links lead."""
    found: dict[str, tuple[int, bytes | str | None]] = {}
    for path in sorted(folder.rglob("*")):
        content = str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[path.relative_to(folder).as_posix()] = path.lstat().st_mode, content
    return found


@pytest.mark.parametrize("here", [True, False], ids=["beside a pyproject", "without one"])
@pytest.mark.parametrize("obstacle", ["link", "file"])
@pytest.mark.parametrize("place", FOLDERS)
def test_what_is_in_the_place_of_a_folder(
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    obstacle: str,
    here: bool,
) -> None:
    Path("mine").mkdir()
    monkeypatch.chdir("mine")
    if here:
        existing({"pyproject.toml": PYPROJECT})
    Path(place).parent.mkdir(parents=True, exist_ok=True)
    if obstacle == "link":
        Path(place).symlink_to("nowhere")
    else:
        Path(place).write_text("mine", encoding="utf-8")
    before = tree(Path())
    refused(capfd, "--here", "--yes")
    assert tree(Path()) == before


@pytest.mark.parametrize("obstacle", ["link", "folder"])
@pytest.mark.parametrize("name", [name for name in ADDED if not name.endswith("py.typed")])
def test_what_is_in_the_place_of_a_file(capfd: pytest.CaptureFixture[str], name: str, obstacle: str) -> None:
    existing({"setup.cfg": "[metadata]\nname = mine\n"})
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    if obstacle == "link":
        Path(name).symlink_to("nowhere")
    else:
        Path(name).mkdir()
    before = tree(Path())
    said = refused(capfd, "--here", "--yes")
    assert name.startswith("kernels/") or f"where the file '{name}' goes" in said
    assert tree(Path()) == before


@pytest.mark.parametrize("place", [".", "tests", "src/mine", ".github", "target"])
def test_places_that_cannot_be_written(capfd: pytest.CaptureFixture[str], place: str) -> None:
    existing({"pyproject.toml": PYPROJECT, "src/mine/__init__.py": "", "target/pyproject.toml": PYPROJECT})
    Path(place).mkdir(parents=True, exist_ok=True)
    if place == "target":
        Path("pyproject.toml").unlink()
        Path("pyproject.toml").symlink_to("target/pyproject.toml")
    before = tree(Path())
    with read_only(Path(place)):
        said = refused(capfd, "--here", "--yes")
    assert "cannot be written" in said
    assert str(Path(place).resolve()) in said
    assert tree(Path()) == before


@pytest.mark.parametrize("fault", [OSError(errno.ENOSPC, "no space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("arguments", [["mine"], ["--here", "--yes"]])
@pytest.mark.parametrize("number", range(len(ADDED) + 1))
def test_nothing_is_left_where_writing_fails(
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    arguments: list[str],
    fault: BaseException,
) -> None:
    if "--here" in arguments:
        existing({"pyproject.toml": PYPROJECT, "tests/test_mine.py": ""})
    before = tree(Path())
    write, written = cache.write_atomically, []

    def failing(path: Path, data: bytes, **options: Any) -> None:
        # Lending writes a file of its own.
        if len(written) == number:
            raise fault
        written.append(path)
        write(path, data, **options)

    monkeypatch.setattr(cache, "write_atomically", failing)
    with pytest.raises(SystemExit) as raised:
        init(*arguments)
    assert len(written) == number
    assert raised.value.code == (1 if isinstance(fault, OSError) else 130)
    assert ("nothing has been changed" in capfd.readouterr().err) == isinstance(fault, OSError)
    assert tree(Path()) == before


def test_pyproject_is_written_last(monkeypatch: pytest.MonkeyPatch) -> None:
    existing({"pyproject.toml": PYPROJECT})
    write, written = cache.write_atomically, []

    def noting(path: Path, data: bytes, **options: Any) -> None:
        written.append(path.name)
        write(path, data, **options)

    monkeypatch.setattr(cache, "write_atomically", noting)
    assert init("--here", "--yes") == 0
    assert written.index("pyproject.toml") == len(written) - 1


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664])
@pytest.mark.parametrize("target", ["", "config/real.toml", "../real.toml", "other/link.toml"])
def test_a_link_stays_one_and_modes_stay(target: str, mode: int) -> None:
    (Path("..") / ".git").mkdir()
    existing({target or "pyproject.toml": PYPROJECT})
    real = Path(target or "pyproject.toml").resolve()
    if target == "other/link.toml":
        real = real.rename("real.toml").resolve()
        Path(target).symlink_to("../real.toml")
    real.chmod(mode)
    if target:
        Path("pyproject.toml").symlink_to(target)
    assert init("--here", "--yes") == 0
    assert Path("pyproject.toml").is_symlink() == bool(target)
    assert "[tool.rustcuda]" in real.read_text(encoding="utf-8")
    assert stat.S_IMODE(real.stat().st_mode) == mode


def test_a_link_out_of_the_project_is_not_followed(capfd: pytest.CaptureFixture[str]) -> None:
    existing({"../other/pyproject.toml": PYPROJECT})
    Path("pyproject.toml").symlink_to("../other/pyproject.toml")
    said = refused(capfd, "--here", "--yes")
    assert "pyproject.toml is a link to a file outside of this project" in said
    assert Path("pyproject.toml").read_text(encoding="utf-8") == PYPROJECT


def test_a_pyproject_that_is_not_utf_8(capfd: pytest.CaptureFixture[str]) -> None:
    Path("pyproject.toml").write_bytes(b"# \xff\n")
    assert "pyproject.toml is not UTF-8" in refused(capfd, "--here", "--yes")


# --- the edit --------------------------------------------------------------------------------------------

TABLES = '[tool.rustcuda]\ncrate = "kernels"\n'
UV = '[tool.uv]\ncache-keys = [\n  { file = "x" },\n  { file = "y" },\n]\n'
XY = [{"file": "x"}, {"file": "y"}]


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
        '[tool.uv.sources]\nx = { path = "x" }\n',
        '[[tool.uv.index]]\nurl = "x"',
        "[ tool . uv ]\nmanaged = true",
        # Keys without a table, which must not get into one.
        'x = 1\n[project]\nname = "x"\n',
        "project.name = 'x'\nproject.version = '1'\n",
        "x = { a = 1 } # last, without an end of the line",
        'x = """\n[build-system]\nrequires = []\n"""\n',
        'x = """\n[tool.uv]\ncache-keys = [\n"""\n',
        "tool.black.x = 1\n",
        "[tool.x]\na = inf\nb = 2020-01-01\n",
        # What looks like a table of ours.
        '[a]\nrequires = ["x"]\nbuild-backend = "y"\n[ build-system ]\nrequires = ["z"]\n',
        '[build-system]\nrequires = ["z"]\n[[a]]\nrequires = ["x"]\nbuild-backend = "y"\n',
        '[build-system]\nrequires = ["z"]\n["a"]\nbuild-backend = "y"\n',
        "[build-system]",
        '[build-system]\nrequires = ["rustcuda-backend-extras", "setuptools"]\n',
    ],
)
def test_layouts_that_can_be_edited(text: str) -> None:
    before, after = tomllib.loads(text), tomllib.loads(edited(text))
    build_system = after.pop("build-system")
    assert build_system.pop("build-backend") == "rustcuda_backend"
    required = build_system.pop("requires")
    assert not build_system
    others = before.pop("build-system", {}).get("requires", [])
    ours = [] if others == ["rustcuda-backend>=0.1"] else ["rustcuda-backend"]
    assert required == [*ours, *others]
    assert after["tool"].pop("rustcuda") == {"crate": "kernels"}
    assert after["tool"]["uv"].pop("cache-keys") == XY
    assert after.pop("tool") in ({"uv": {}, **before.get("tool", {})}, before.get("tool"))
    before.pop("tool", None)
    assert after == before
    for line in text.splitlines():
        assert line in edited(text).splitlines() or "require" in line or "build-backend" in line


@pytest.mark.parametrize(
    "text",
    [
        'build-system = { requires = ["setuptools"] }\n',
        '[build-system]\n"requires" = ["setuptools"]\n',
        "[tool]\nuv = { managed = true }\n",
        "tool = { black = { x = 1 } }\n",
        "tool.uv.managed = true\n",
        "tool.uv.cache-keys = []\n",
        "[tool]\nuv = { cache-keys = [] }\n",
        '[tool.uv]\n"cache-keys" = []\n',
        "build-system.requires = []\n",
        '[build-system]\nrequires = ["x"]\nbuild-backend = """setuptools.build_meta"""\n',
    ],
)
def test_layouts_that_cannot_be_edited(text: str) -> None:
    with pytest.raises(SettingsError, match="has a layout that cannot be edited automatically") as raised:
        edited(text)
    for lines in ('[build-system]\nrequires = ["rustcuda-backend"]\n', TABLES, UV):
        assert lines in raised.value.hint


def test_what_equals_nothing_can_be_edited_and_what_only_looks_equal_counts() -> None:
    assert "a = nan" in edited("[tool.x]\na = nan\n")
    assert pyproject_edit._is("x = 1", {"x": 1})
    assert not pyproject_edit._is("x = 1", {"x": True})
    assert not pyproject_edit._is("x = ", {})


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("[]", '[\n  { file = "x" },\n  { file = "y" },\n]'),
        ('[{ file = "x" }]', '[\n  { file = "y" },\n  { file = "x" }]'),
        ('[ "y", "z" ] # mine', '[\n  { file = "x" },\n  "y", "z" ] # mine'),
        (
            '[ # mine\n    "a", # too\n    { env = "B" } ]',
            '[ # mine\n  { file = "x" },\n  { file = "y" },\n    "a", # too\n    { env = "B" } ]',
        ),
        ('[\n  { file = "y" },\n  "x"]', '[\n  { file = "y" },\n  "x"]'),
    ],
)
def test_cache_keys_join_those_that_are_there(keys: str, expected: str) -> None:
    text = "[tool.uv]\nmanaged = true\n# keys\ncache-keys = {}\n\n[other]\ncache-keys = 1\n"
    assert text.format(expected) in edited(text.format(keys))
