"""Editable installs: stale kernels are told, or built anew when they are imported."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from disks import read_only
from projects import PLAIN_HEAD, PLAIN_KERNEL, MakeProject

import rustcuda_backend as backend
from rustcuda_backend import editable, process
from rustcuda_backend.errors import SettingsError
from rustcuda_backend.loader.editable import _Editable
from rustcuda_backend.pyproject import read_table
from rustcuda_backend.report import Report
from rustcuda_backend.settings import read_settings

ONE = {"capabilities": "8.0"}
REBUILD = "[tool.rustcuda.editable]\nrebuild = true\n"
IMPORT = "import some_package.kernels_cuda as k; print([n for n in k.__all__ if n.islower()])"
OTHER = PLAIN_KERNEL.replace("store", "other")

pytestmark = pytest.mark.filterwarnings("ignore:Editable installation")


@pytest.fixture
def install(
    make_project: MakeProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Path]:
    """Returns a function that makes a project and writes its kernels as an editable install does."""

    def do(given: dict[str, str] | None = None, **options: object) -> Path:
        project = make_project(**options)
        monkeypatch.chdir(project)
        (tmp_path / "out").mkdir()
        backend.build_editable(str(tmp_path / "out"), ONE | (given or {}))
        return project

    return do


def python(project: Path, code: str = IMPORT, *options: str, **variables: str) -> tuple[int, str, str]:
    """Runs a new Python that finds the package where an editable install points to."""
    environ = {**os.environ, "PYTHONPATH": str(project), **variables}
    finished = process.run([sys.executable, *options, "-c", code], cwd=project.parent, env=environ)
    return finished.returncode, finished.stdout.strip(), finished.stderr


def change(path: Path, text: str = "// changed\n") -> None:
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


# --- the warning -----------------------------------------------------------------------------------------


def test_a_changed_source_gives_one_warning(install: Callable[..., Path]) -> None:
    project = install(files={"kernels/README.md": "", "kernels/src/more.rs": ""})
    assert python(project, IMPORT, "-Werror") == (0, "['load', 'unload', 'store']", "")
    # What kernels are not made of; and a time alone, which git and copies set.
    change(project / "kernels/README.md")
    change(project / "some_package/__init__.py", "x = 1\n")
    change(project / "pyproject.toml", "[tool.other]\nx = 1\n")
    for path in project.rglob("*.rs"):
        os.utime(path, (1, 1))
    assert python(project, IMPORT, "-Werror") == (0, "['load', 'unload', 'store']", "")
    change(project / "kernels/src/lib.rs")
    status, _, said = python(project, f"import some_package\n{IMPORT}\n{IMPORT}")
    assert status == 0
    assert said.count("RuntimeWarning") == 1
    assert "was built before the last change of kernels/src/lib.rs; install again: pip install -e " in said
    assert "<string>:2: RuntimeWarning" in said, "at the line that imports"
    (project / "kernels/src/more.rs").unlink()
    change(project / "kernels/Cargo.toml", "# changed\n")
    pyproject = project / "pyproject.toml"
    text = pyproject.read_text(encoding="utf-8").replace('"kernels"', '"kernels"\njobs = 1')
    pyproject.write_text(text, encoding="utf-8")
    status, _, said = python(project, IMPORT, "-Werror")
    assert status == 1
    named = "kernels/Cargo.toml, kernels/src/lib.rs, kernels/src/more.rs, …"
    assert f"RuntimeWarning: some_package.kernels_cuda was built before the last change of {named}" in said
    backend.build_editable(str(project.parent / "out"), ONE)
    assert python(project, IMPORT, "-Werror") == (0, "['load', 'unload', 'store']", "")


def test_in_strict_mode_too(install: Callable[..., Path]) -> None:
    project = install({"editable_mode": "strict"})
    (tree,) = (project / "build").glob("__editable__*")
    assert python(tree, IMPORT, "-Werror")[0] == 0
    change(project / "kernels/src/lib.rs")
    status, shown, said = python(tree)
    assert (status, shown, said.count("RuntimeWarning")) == (0, "['load', 'unload', 'store']", 1)


def test_nothing_of_it_is_in_a_wheel(
    make_project: MakeProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project()
    monkeypatch.chdir(project)
    out = tmp_path / "wheel"
    wheel = out / backend.build_wheel(str(out), ONE)
    shutil.unpack_archive(wheel, out / "unpacked", "zip")
    loader = (out / "unpacked/some_package/kernels_cuda.py").read_text(encoding="utf-8")
    assert "_Editable" not in loader
    assert str(tmp_path) not in loader


def test_importing_a_fresh_install_is_cheap(install: Callable[..., Path]) -> None:
    project = install()
    slow = "('hashlib', 'warnings', 'subprocess', 'rustcuda_backend')"
    code = f"import sys; sys.path.insert(0, {str(project)!r}); import some_package.kernels_cuda; "
    code += f"print([name for name in {slow} if name in sys.modules])"
    assert python(project, code, "-S", "-E") == (0, "[]", "")


# Files that only the compiler and a build script can tell to be sources, each with what it says at first.
ELSEWHERE = {
    "kernels/.hidden/table.txt": "1",
    "kernels/README.md": "2",
    "data/a b.txt": "3",
    "data/more/deep.rs": "pub const DEEP: u32 = 4;\n",
    "data/watched/x.bin": "5",
    "some_package/other.txt": "6",
    "../beside the project.txt": "7",
    "helper/.table.txt": "8",
    "macros/src/.table.txt": "9",
}
READING = """\
#[path = "../../data/more/deep.rs"]
mod deep;
use helper as _;
macros::nothing!();
const READ: [&str; 4] = [
    include_str!("../.hidden/table.txt"),
    include_str!("../README.md"),
    include_str!("../../data/a b.txt"),
    include_str!("../../../beside the project.txt"),
];
const MADE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/made.bin"));
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn store(out: *mut u32) {
    unsafe { *out = READ[0].len() as u32 + deep::DEEP + MADE.len() as u32 }
}
"""
SCRIPT = """\
fn main() {
    for name in ["../data/watched", "../some_package", "../nowhere"] {
        println!("cargo::rerun-if-changed={name}");
    }
    let made = std::path::Path::new(&std::env::var("OUT_DIR").unwrap()).join("made.bin");
    std::fs::copy("../data/watched/x.bin", made).unwrap();
}
"""


def package(name: str, table: str = "") -> str:
    return f'[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2024"\n{table}'


def test_every_file_that_is_compiled_makes_the_kernels_stale(install: Callable[..., Path]) -> None:
    paths = '[dependencies]\nhelper = { path = "../helper" }\nmacros = { path = "../macros" }\n'
    project = install(
        source=PLAIN_HEAD + READING,
        manifest=package("some-kernels", f"[workspace]\n{paths}"),
        settings=REBUILD,
        files={
            "kernels/build.rs": SCRIPT,
            "helper/Cargo.toml": package("helper"),
            "helper/src/lib.rs": '#![no_std]\nconst X: &str = include_str!("../.table.txt");\n',
            "macros/Cargo.toml": package("macros", "[lib]\nproc-macro = true\n"),
            "macros/src/lib.rs": "use proc_macro::TokenStream;\n"
            "#[proc_macro]\npub fn nothing(_: TokenStream) -> TokenStream { TokenStream::new() }\n"
            'const X: &str = include_str!(".table.txt");\n',
            **ELSEWHERE,
        },
    )
    known = record(project)
    names = {name for name, *_ in known.sources}
    assert names == {
        *("pyproject.toml", "kernels/Cargo.toml", "kernels/Cargo.lock", "kernels/src/lib.rs"),
        *("kernels/build.rs", "helper/Cargo.toml", "helper/src/lib.rs"),
        *("macros/Cargo.toml", "macros/src/lib.rs", "some_package/__init__.py"),
        *(name for name in ELSEWHERE if not name.startswith("../")),
        str(project.parent / "beside the project.txt"),
    }, "nothing that a build has made, and nothing that is not there"
    assert known.changed() == []
    for name, text in ELSEWHERE.items():
        path = Path(os.path.normpath(project / name))
        path.write_text(f"{text} ", encoding="utf-8")
        shown = name if path.is_relative_to(project) else str(path)
        assert known.changed() == [shown]
        path.write_text(text, encoding="utf-8")
        assert known.changed() == []
    (project / "data/more/deep.rs").write_text("pub const DEEP: u64 = 4;\n", encoding="utf-8")
    (project / "kernels/README.md").write_text("new", encoding="utf-8")
    with pytest.raises(
        ImportError, match=r"after a change of data/more/deep\.rs, kernels/README\.md\n"
    ) as raised:
        known.check({})
    assert "mismatched types" in str(raised.value) or "cannot add" in str(raised.value)
    # What is read no longer does not matter any more.
    source = READING.replace('#[path = "../../data/more/deep.rs"]\nmod deep;\n', "").replace(
        "deep::DEEP", "0"
    )
    (project / "kernels/src/lib.rs").write_text(PLAIN_HEAD + source, encoding="utf-8")
    scope: dict[str, object] = {"__all__": [], "__file__": "x"}
    known.check(scope)
    known = record(project)
    assert {name for name, *_ in known.sources} == names - {"data/more/deep.rs"}
    assert known.changed() == []


# --- rebuilding ------------------------------------------------------------------------------------------


def test_an_import_rebuilds_what_has_changed(install: Callable[..., Path]) -> None:
    project = install(settings=REBUILD)
    assert python(project) == (0, "['load', 'unload', 'store']", "")
    (project / "kernels/src/lib.rs").write_text(PLAIN_HEAD + OTHER, encoding="utf-8")
    code = f"{IMPORT}\nassert not hasattr(k, 'store'), k.store"
    status, shown, said = python(project, code)
    assert (status, shown) == (0, "['load', 'unload', 'other']"), said
    assert said == "rustcuda: kernels/src/lib.rs changed, so some_package.kernels_cuda is built again\n"
    assert python(project) == (0, "['load', 'unload', 'other']", ""), "quiet when fresh"
    loader = (project / "some_package/kernels_cuda.py").read_text(encoding="utf-8")
    assert "_Image(8, 0," in loader, "the settings of the install are kept"
    assert "_Image(9, 0," not in loader


def test_a_rebuild_that_fails_says_what_the_compiler_said(install: Callable[..., Path]) -> None:
    project = install({"editable.rebuild": "true"})
    before = (project / "some_package/kernels_cuda.py").read_bytes()
    change(project / "kernels/src/lib.rs", "fn broken(")
    code = f"try:\n  {IMPORT}\nexcept ImportError as error: print(error.name); print(error)"
    status, shown, _ = python(project, code)
    assert status == 0
    assert shown.startswith(
        "some_package.kernels_cuda\nsome_package.kernels_cuda could not be built after a change"
    )
    assert "error: this file contains an unclosed delimiter" in shown
    assert "rustcuda: error: the kernel crate does not compile for capability 8.0" in shown
    assert (project / "some_package/kernels_cuda.py").read_bytes() == before
    (project / "kernels/src/lib.rs").write_text(PLAIN_HEAD + OTHER, encoding="utf-8")
    assert python(project, IMPORT, RUSTCUDA_VERBOSE="1")[1] == "['load', 'unload', 'other']"


def test_without_the_backend_a_rebuild_says_what_it_needs(install: Callable[..., Path]) -> None:
    project = install(settings=REBUILD)
    change(project / "kernels/src/lib.rs")
    code = "import sys; sys.modules['rustcuda_backend.editable'] = None\n"
    status, _, said = python(project, code + IMPORT)
    assert status == 1
    assert "ImportError: some_package.kernels_cuda: kernels/src/lib.rs changed, and " in said
    assert "--no-build-isolation" in said
    assert "During handling" not in said


def test_a_build_that_imports_the_module_does_not_start_another(install: Callable[..., Path]) -> None:
    script = """\
fn main() {
    let python = std::env::var("PYTHON_FOR_TEST").unwrap();
    let done = std::process::Command::new(python).args(["-c", "import some_package.kernels_cuda"]).status();
    assert!(done.unwrap().success());
}
"""
    project = install(settings=REBUILD)
    (project / "kernels/build.rs").write_text(script, encoding="utf-8")
    change(project / "kernels/src/lib.rs")
    status, shown, said = python(project, IMPORT, PYTHON_FOR_TEST=sys.executable)
    assert (status, shown) == (0, "['load', 'unload', 'store']"), said
    assert said.count("built again") == 1


def test_of_several_processes_one_builds(install: Callable[..., Path]) -> None:
    project = install(settings=REBUILD)
    (project / "kernels/src/lib.rs").write_text(PLAIN_HEAD + OTHER, encoding="utf-8")
    environ = {**os.environ, "PYTHONPATH": str(project)}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", IMPORT],
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        for _ in range(3)
    ]
    said = [child.communicate() for child in started]
    assert [shown.strip() for shown, _ in said] == ["['load', 'unload', 'other']"] * 3, said
    assert "".join(errors for _, errors in said).count("built again") == 1


# --- in this process -------------------------------------------------------------------------------------


def record(project: Path) -> _Editable:
    """What the module on disk knows."""
    scope: dict[str, object] = {"__name__": "x", "__file__": str(project / "some_package/kernels_cuda.py")}
    code = (project / "some_package/kernels_cuda.py").read_text(encoding="utf-8")
    exec(code.replace("_editable.check(globals())", ""), scope)  # noqa: S102
    found = scope["_editable"]
    return _Editable(**vars(found))


def test_rebuilding_in_place(install: Callable[..., Path], capfd: pytest.CaptureFixture[str]) -> None:
    project = install(settings=REBUILD)
    known = record(project)
    assert known.rebuild
    assert known.given == ONE
    capfd.readouterr()
    scope: dict[str, object] = {"__all__": ["gone"], "gone": 1, "__file__": "x"}
    known.check(scope)
    assert scope["gone"] == 1, "nothing is done while it is fresh"
    (project / "kernels/src/lib.rs").write_text(PLAIN_HEAD + OTHER, encoding="utf-8")
    known.check(scope)
    assert "gone" not in scope
    assert "other" in scope
    assert "built again" in capfd.readouterr().err
    known.check(scope)
    assert capfd.readouterr().err == "", "another process has built it meanwhile"
    assert _Editable.guard not in os.environ


def test_a_guarded_module_does_nothing(install: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    project = install()
    change(project / "kernels/src/lib.rs")
    known = record(project)
    monkeypatch.setenv(_Editable.guard, "1")
    known.check({})
    monkeypatch.delenv(_Editable.guard)
    with pytest.warns(RuntimeWarning, match=r"before the last change of kernels/src/lib\.rs; "):
        known.check({})


def test_a_rebuild_where_the_settings_name_another_module(install: Callable[..., Path]) -> None:
    project = install(settings=REBUILD)
    known = record(project)
    pyproject = project / "pyproject.toml"
    text = pyproject.read_text(encoding="utf-8")
    pyproject.write_text(
        text.replace('crate = "kernels"', 'crate = "kernels"\nmodule = "some_package.new"'), "utf-8"
    )
    with pytest.raises(ImportError, match=r"no crate is set to be built into 'some_package\.kernels_cuda'"):
        known.check({})
    (project / "some_package/kernels_cuda.py").write_text("# not ours\n", encoding="utf-8")
    with pytest.raises(ImportError, match="install again: pip install -e"):
        known.check({})


@pytest.mark.parametrize("kind", ["a file", "below a file", "read-only"])
def test_a_rebuild_without_a_cache(install: Callable[..., Path], tmp_path: Path, kind: str) -> None:
    project = install(settings=REBUILD)
    change(project / "kernels/src/lib.rs")
    place = tmp_path / "place"
    folder = place / "cache" if kind == "below a file" else place
    with contextlib.ExitStack() as stack:
        if kind == "read-only":
            place.mkdir()
            stack.enter_context(read_only(place))
        else:
            place.touch()
        status, _, said = python(project, RUSTCUDA_CACHE_DIR=str(folder))
    assert status == 1
    assert said.count("Traceback") == 1, "that of the import alone"
    error = said.partition("ImportError: ")[2]
    assert error.startswith(
        "some_package.kernels_cuda could not be built after a change of kernels/src/lib.rs\n"
    )
    assert "rustcuda: error: the cache folder cannot be written: " in error
    assert "what to do: set RUSTCUDA_CACHE_DIR to a folder that can be written" in error


def test_a_fault_of_ours_in_a_rebuild_stays_one(
    install: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    project = install(settings=REBUILD)
    known = record(project)
    change(project / "kernels/src/lib.rs")

    def faulty(*_: object) -> None:
        raise FileNotFoundError(2, "x", "y")

    monkeypatch.setattr(editable, "build", faulty)
    with pytest.raises(FileNotFoundError):
        known.check({})


def test_a_verbose_rebuild_tells_all(install: Callable[..., Path], capfd: pytest.CaptureFixture[str]) -> None:
    project = install({"verbose": "1"}, settings=REBUILD)
    known = record(project)
    change(project / "kernels/src/lib.rs")
    capfd.readouterr()
    editable.rebuild(known, "it")
    assert "rustcuda: running: " in capfd.readouterr().err
    change(project / "kernels/src/lib.rs", "fn broken(")
    with pytest.raises(ImportError, match="does not compile") as raised:
        editable.rebuild(known, "it")
    assert "unclosed" not in str(raised.value)
    assert "unclosed" in capfd.readouterr().err


def test_settings_given_to_the_install_are_kept(make_project: MakeProject) -> None:
    project = make_project(settings="jobs = 2")
    table = read_table(project) or {}
    config = {"features": "a;b", "ptxas-args": "-v '-x y'", "locked": "", "rustcuda.capabilities": "8.0"}
    environ = {"RUSTCUDA_CAPABILITIES": "9.0 ; 10.0", "TORCH_CUDA_ARCH_LIST": "7.0"}
    settings = read_settings(table, config, environ)
    kept = editable.given(settings, environ)
    assert kept == {
        "features": "a;b",
        "ptxas-args": "-v '-x y'",
        "locked": "true",
        "capabilities": "9.0;10.0",
    }
    assert read_settings(table, kept, {}) == settings
    plain = read_settings(table, {}, {})
    assert editable.given(plain, environ) == {"capabilities": "7.0"}
    assert editable.given(plain, {}) == {}


def test_what_a_module_cannot_do_alone(install: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    project = install(settings=REBUILD)
    known = record(project)
    (project / "kernels/src/lib.rs").unlink()
    assert known.changed() == ["kernels/src/lib.rs"]
    monkeypatch.setitem(sys.modules, "rustcuda_backend.editable", None)
    with pytest.raises(
        ImportError, match=r"kernels/src/lib\.rs changed, and building it again needs"
    ) as raised:
        known.check({})
    assert raised.value.name == "some_package.kernels_cuda"


# --- the setting -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "config", "environ", "expected"),
    [
        ({}, {}, {}, False),
        ({"editable": {}}, {}, {}, False),
        ({"editable": {"rebuild": True}}, {}, {}, True),
        ({}, {"editable.rebuild": "true"}, {}, True),
        ({}, {"rustcuda.editable.rebuild": ""}, {}, True),
        ({"editable": {"rebuild": True}}, {"editable.rebuild": "no"}, {}, False),
        ({}, {"editable.rebuild": "no"}, {"RUSTCUDA_EDITABLE_REBUILD": "1"}, True),
    ],
)
def test_the_setting(
    table: dict[str, object], config: dict[str, str], environ: dict[str, str], expected: bool
) -> None:
    assert read_settings({"crate": "k", **table}, config, environ).editable_rebuild is expected


@pytest.mark.parametrize(
    ("table", "config", "environ", "message", "where"),
    [
        (
            {"editable": True},
            {},
            {},
            "'editable' must be a table, not True",
            "[tool.rustcuda] editable in pyproject.toml",
        ),
        ({"editable": {"rebuid": 1}}, {}, {}, "unknown setting 'editable.rebuid'", "[tool.rustcuda] in"),
        ({"editable-rebuild": True}, {}, {}, "unknown setting 'editable-rebuild'", "[tool.rustcuda] in"),
        (
            {"editable": {"rebuild": 1}},
            {},
            {},
            "'editable.rebuild' must be true or false, not 1",
            "[tool.rustcuda] editable.rebuild",
        ),
        ({}, {"editable-rebuild": "1"}, {}, "unknown setting 'editable-rebuild'", "-C editable-rebuild"),
        (
            {},
            {},
            {"RUSTCUDA_EDITABLE_REBUID": "1"},
            "unknown setting 'RUSTCUDA_EDITABLE_REBUID'",
            "environment variable RUSTCUDA_EDITABLE_REBUID",
        ),
    ],
)
def test_what_the_setting_cannot_be(
    table: dict[str, object], config: dict[str, str], environ: dict[str, str], message: str, where: str
) -> None:
    with pytest.raises(SettingsError) as raised:
        read_settings({"crate": "k", **table}, config, environ)
    assert raised.value.what == message
    assert where in raised.value.where
    meant = "RUSTCUDA_EDITABLE_REBUILD" if environ else "editable.rebuild"
    assert (f"did you mean '{meant}'?" in raised.value.hint) == message.startswith("unknown")


# --- git -------------------------------------------------------------------------------------------------


def git(project: Path, *arguments: str) -> str:
    finished = process.run(["git", *arguments], cwd=project)
    assert finished.ok, finished.stderr
    return finished.stdout


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_what_git_does_not_ignore_is_said(
    install: Callable[..., Path],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project = install()
    assert ".gitignore" not in capfd.readouterr().err, "no repository"
    git(project, "init", "--quiet")
    place = editable.Place(
        "some_package.kernels_cuda",
        read_settings(read_table(project) or {}, {}, {}),
        project / "some_package",
    )
    editable._say_what_git_sees(place, Report())
    said = capfd.readouterr().err
    assert f"git does not ignore what was written into {project / 'some_package'}; to .gitignore add:" in said
    names = ("kernels_cuda.fatbin", "kernels_cuda.py", "kernels_cuda.pyi", "py.typed")
    lines = [f"rustcuda:   {name}" for name in names]
    assert said.splitlines()[1:] == lines
    (project / ".gitignore").write_text(
        "\n".join([*names, "*.egg-info", "Cargo.lock", "build"]), encoding="utf-8"
    )
    editable._say_what_git_sees(place, Report())
    assert capfd.readouterr().err == ""
    assert "target" not in git(project, "status", "--porcelain", "--untracked-files=all"), (
        "cargo's are ignored"
    )
    monkeypatch.setenv("PATH", "")
    (project / ".gitignore").unlink()
    editable._say_what_git_sees(place, Report())
    assert capfd.readouterr().err == ""
