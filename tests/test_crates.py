"""Several kernel crates in one wheel."""

from __future__ import annotations

import re
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from projects import MANIFEST, PLAIN_HEAD, PLAIN_KERNEL, MakeProject

import rustcuda_backend as backend
from rustcuda_backend import fatbin
from rustcuda_backend.errors import SettingsError
from rustcuda_backend.modules import modules
from rustcuda_backend.settings import Settings, read_settings

SECOND = """\
#[cfg(feature = "fast")]
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn fast(out: *mut f32) { unsafe { *out = 1.0 } }
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn slow(out: *mut f32) { unsafe { *out = 2.0 } }
"""
TABLES = """\
[tool.rustcuda]
capabilities = "8.0"
[[tool.rustcuda.crates]]
crate = "first"
[[tool.rustcuda.crates]]
crate = "second"
module = "some_package.inner.second_cuda"
features = ["fast"]
capabilities = "9.0;9.0a"
"""
WORKSPACE = '[workspace]\nmembers = ["first", "second"]\nresolver = "3"\n'


def project_of(make_project: MakeProject, tables: str = TABLES, *, workspace: bool = False) -> Path:
    manifest = MANIFEST.replace("[workspace]\n", "") if workspace else MANIFEST
    files = {
        "first/Cargo.toml": manifest.replace("some-kernels", "first-kernels"),
        "first/src/lib.rs": PLAIN_HEAD + PLAIN_KERNEL,
        "second/Cargo.toml": manifest.replace("some-kernels", "second-kernels") + "[features]\nfast = []\n",
        "second/src/lib.rs": PLAIN_HEAD + SECOND,
        "some_package/inner/__init__.py": "",
    }
    if workspace:
        files["Cargo.toml"] = WORKSPACE
    project: Path = make_project(files=files)
    pyproject = (project / "pyproject.toml").read_text(encoding="utf-8").partition("[tool.rustcuda]")[0]
    pyproject = pyproject.replace('["some_package"]', '["some_package", "some_package.inner"]')
    (project / "pyproject.toml").write_text(pyproject + tables, encoding="utf-8")
    return project


def files_of(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}


def capabilities(data: bytes) -> list[str]:
    return [image.capability.name for image in fatbin.read(data).images]


@pytest.mark.parametrize("workspace", [False, True])
def test_each_crate_has_its_module_features_and_capabilities(
    make_project: MakeProject,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    workspace: bool,
) -> None:
    project = project_of(make_project, workspace=workspace)
    monkeypatch.chdir(project)
    files = files_of(tmp_path / backend.build_wheel(str(tmp_path)))
    loaders = ("some_package/kernels_cuda", "some_package/inner/second_cuda")
    suffixes = (".py", ".pyi", ".fatbin")
    assert set(files) == {
        *("some_package/__init__.py", "some_package/py.typed"),
        *("some_package/inner/__init__.py", "some_package/inner/py.typed"),
        *(loader + suffix for loader in loaders for suffix in suffixes),
    }
    assert capabilities(files[f"{loaders[0]}.fatbin"]) == ["8.0"]
    assert capabilities(files[f"{loaders[1]}.fatbin"]) == ["9.0", "9.0a"]
    assert b"\nstore = _Kernel(" in files[f"{loaders[0]}.py"]
    assert b"\nfast = _Kernel(" in files[f"{loaders[1]}.py"]
    said = [line for line in capfd.readouterr().err.splitlines() if line.startswith("rustcuda: ")]
    titles = [index for index, line in enumerate(said) if re.fullmatch(r"rustcuda: \S+ in \S+:", line)]
    assert [said[index].split()[1:] for index in titles] == [
        ["first-kernels", "in", "some_package.kernels_cuda:"],
        ["second-kernels", "in", "some_package.inner.second_cuda:"],
    ]
    assert all("capability  image" in said[index + 1] for index in titles)
    assert said[titles[1] + 4] == "rustcuda: capabilities: [[tool.rustcuda.crates]] number 2 capabilities"
    target = project / ("target" if workspace else "second/target")
    assert (target / "rustcuda/sm_90a/second_kernels-sm_90a.ptx").is_file()


def test_an_sdist_has_the_sources_of_all(
    make_project: MakeProject, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    project = project_of(make_project, workspace=True)
    monkeypatch.chdir(project)
    name = backend.build_sdist(str(tmp_path))
    with tarfile.open(tmp_path / name) as archive:
        names = {member.partition("/")[2] for member in archive.getnames()}
    crates = {f"{crate}/{file}" for crate in ("first", "second") for file in ("Cargo.toml", "src/lib.rs")}
    assert names >= {*crates, "Cargo.toml"}


@pytest.mark.filterwarnings("ignore:Editable installation")
@pytest.mark.parametrize("hook", ["build_wheel", "build_editable"])
def test_half_a_build_leaves_nothing(
    make_project: MakeProject,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    hook: str,
) -> None:
    project = project_of(make_project)
    (project / "second/src/lib.rs").write_text("fn broken(", encoding="utf-8")
    monkeypatch.chdir(project)
    with pytest.raises(SystemExit) as raised:
        getattr(backend, hook)(str(tmp_path))
    assert raised.value.code == 1
    said = capfd.readouterr().err
    assert "first-kernels in some_package.kernels_cuda:" in said
    assert "error: the kernel crate does not compile" in said
    assert "Traceback" not in said
    assert not list(tmp_path.rglob("*_cuda.*"))
    assert not list(tmp_path.rglob("*.whl"))


def test_a_mistake_in_the_last_crate_is_found_before_the_first_is_compiled(
    make_project: MakeProject,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    project = project_of(make_project, TABLES.replace("9.0;9.0a", "9.9"))
    monkeypatch.chdir(project)
    with pytest.raises(SystemExit):
        backend.build_wheel(str(tmp_path))
    said = capfd.readouterr().err
    assert "'9.9' is not a capability" in said
    assert "where: [[tool.rustcuda.crates]] number 2 capabilities" in said
    assert not (project / "first/target").exists()


@pytest.mark.filterwarnings("ignore:Editable installation")
def test_an_editable_install_has_all_modules(
    make_project: MakeProject, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    project = project_of(make_project, TABLES.replace("[[", 'container = "elf"\n[[', 1))
    package = project / "some_package"
    monkeypatch.chdir(project)
    backend.build_editable(str(tmp_path))
    written = {path.relative_to(package).as_posix() for path in package.rglob("*_cuda.*")}
    first, second = "kernels_cuda", "inner/second_cuda"
    assert written == {f"{name}.{suffix}" for name in (first, second) for suffix in ("py", "pyi", "o")}
    pyproject = (project / "pyproject.toml").read_text(encoding="utf-8").replace('container = "elf"\n', "")
    (project / "pyproject.toml").write_text(pyproject, encoding="utf-8")
    backend.build_editable(str(tmp_path))
    written = {path.relative_to(package).as_posix() for path in package.rglob("*_cuda.*")}
    assert written == {f"{name}.{suffix}" for name in (first, second) for suffix in ("py", "pyi", "fatbin")}


# --- settings --------------------------------------------------------------------------------------------


def read(table: dict[str, Any], config: dict[str, str] | None = None, **environ: str) -> Settings:
    return read_settings(table, config or {}, environ)


TWO: list[dict[str, Any]] = [{"crate": "a"}, {"crate": "b", "features": ["own"], "capabilities": "9.0"}]


def test_each_knows_the_folders_of_the_others() -> None:
    tables: list[dict[str, str]] = [{"crate": "a"}, {"crate": "b"}, {"kernels": "c.so"}, {"crate": "d"}]
    each = read_settings({"crates": tables}, {}, {}).of_each_crate()
    assert [item.others for item in each] == [("b", "d"), ("a", "d"), ("a", "b", "d"), ("a", "b")]
    assert read_settings({"crate": "a"}, {}, {}).others == ()


def test_what_wins() -> None:
    table = {"features": ["shared"], "capabilities": "8.0", "jobs": 3, "crates": TWO}
    first, second = read(table).of_each_crate()
    assert (first.crate, first.features, first.capabilities, first.jobs) == ("a", ("shared",), ("8.0",), 3)
    assert (second.crate, second.features, second.capabilities, second.jobs) == ("b", ("own",), ("9.0",), 3)
    assert first.where("features") == "[tool.rustcuda] features"
    assert second.where("features") == "[[tool.rustcuda.crates]] number 2 features"
    everywhere = read(table, {"features": "config"}, RUSTCUDA_CAPABILITIES="12.0")
    for each in everywhere.of_each_crate():
        assert (each.features, each.capabilities) == (("config",), ("12.0",))
    assert (everywhere.crate, everywhere.jobs) == ("", 3)
    one = read({"crate": "k"})
    assert one.of_each_crate() == (one,)


@pytest.mark.parametrize(
    ("table", "config", "environ", "what", "where", "hint"),
    [
        (
            {"crates": [{"crat": "a"}]},
            {},
            {},
            "unknown setting 'crat'",
            "1 in pyproject.toml",
            "mean 'crate'?",
        ),
        (
            {"crates": [{"crate": "a"}, {"crate": "b", "zzz": 1}]},
            *(
                {},
                {},
                "unknown setting 'zzz'",
                "2 in pyproject.toml",
                "are: crate, kernels, module, capabilities, features",
            ),
        ),
        (
            {"crates": [{"crate": "a", "jobs": 1}]},
            {},
            {},
            "'jobs' cannot be set for one crate",
            "1",
            "set it in",
        ),
        ({"crates": [{"crate": 1}]}, {}, {}, "'crate' must be a string, not 1", "1 crate in", ""),
        (
            {"crates": [{"module": "a.b"}]},
            {},
            {},
            "the setting 'crate' is missing",
            "1 in pyproject.toml",
            "name",
        ),
        (
            {"crates": [{"crate": "a", "capabilities": []}]},
            {},
            {},
            "list is empty",
            "1 capabilities",
            "at least",
        ),
        ({"crates": []}, {}, {}, "'crates' must be a list of tables", "[tool.rustcuda] crates", "write [["),
        ({"crates": {}}, {}, {}, "'crates' must be a list of tables", "[tool.rustcuda] crates", "write [["),
        ({"crates": [1]}, {}, {}, "'crates' must be a list of tables", "[tool.rustcuda] crates", "write [["),
        (
            {"crates": TWO, "crate": "c"},
            {},
            {},
            "'crate' cannot be set for several",
            "[tool.rustcuda] crate",
            "each",
        ),
        (
            {"crates": TWO},
            {"module": "a.b"},
            {},
            "'module' cannot be set for several",
            "setting -C module",
            "each",
        ),
        (
            {"crates": TWO},
            *({}, {"RUSTCUDA_CRATE": "c"}, "'crate' cannot be set for", "variable RUSTCUDA_CRATE", "each"),
        ),
        ({"crates": TWO}, {"crates": "a"}, {}, "unknown setting 'crates'", "-C crates", "mean 'crate'?"),
    ],
)
def test_wrong_tables(
    table: dict[str, Any], config: dict[str, str], environ: dict[str, str], what: str, where: str, hint: str
) -> None:
    with pytest.raises(SettingsError) as raised:
        read(table, config, **environ)
    assert what in raised.value.what
    assert where in raised.value.where
    assert hint in raised.value.hint


@pytest.mark.parametrize("names", [("", ""), ("p.kernels_cuda", ""), ("p.k", "p.k"), ("p.K", "p.k")])
def test_two_crates_in_one_module(names: tuple[str, str]) -> None:
    crates = [
        {"crate": crate, **({"module": name} if name else {})}
        for crate, name in zip("ab", names, strict=True)
    ]
    with pytest.raises(SettingsError, match="kernels of 'a' and of 'b' go into one module") as raised:
        modules(read({"crates": crates}), ["p"])
    assert raised.value.where == f"[[tool.rustcuda.crates]] number 2 {'module' if names[1] else 'crate'}"
    assert "module of its own" in raised.value.hint


def test_one_crate_listed_twice() -> None:
    crates = [{"crate": "a"}, {"crate": "a"}]
    with pytest.raises(SettingsError) as raised:
        modules(read({"crates": crates}), ["p"])
    assert raised.value.what == "the kernels of 'a', listed twice, go into one module, 'p.kernels_cuda'"
    assert raised.value.where == "[[tool.rustcuda.crates]] number 2 crate"
    # With a module for one of them it is one crate in two modules, which is allowed.
    crates[1]["module"] = "p.other"
    assert [name for name, _ in modules(read({"crates": crates}), ["p"])] == ["p.kernels_cuda", "p.other"]
