"""The documentation keeps to the code: its blocks build, its tables are up to date, its links work."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import os
import re
from pathlib import Path
from types import ModuleType

import pytest
from projects import MANIFEST, REPOSITORY

from rustcuda_backend import fatbin, pipeline
from rustcuda_backend.capability import Capability
from rustcuda_backend.cuda_versions import CUDA_VERSIONS
from rustcuda_backend.loader import stub
from rustcuda_backend.loader.runtime.attributes import _ATTRIBUTES
from rustcuda_backend.loader.runtime.errors import _ERRORS
from rustcuda_backend.loader.runtime.kernel import _Kernel
from rustcuda_backend.pipeline import Kernels
from rustcuda_backend.pyproject import read_table
from rustcuda_backend.report import Report
from rustcuda_backend.settings import SETTING_FIELDS, read_settings

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
PAGES = sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").glob("*.md")])

# A block under a line that has nothing but a file's name is that file.
FILES = dict(re.findall(r"^`([\w./]+)`\n\n```\w+\n(.*?)^```$", README, re.MULTILINE | re.DOTALL))
RUST = re.findall(r"^```rust\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def block(marker: str) -> str:
    """The one Rust block that has the marker."""
    (found,) = [text for text in RUST if marker in text]
    return str(found)


def write(project: Path, files: dict[str, str]) -> Path:
    for name, text in {"src/hello_gpu/__init__.py": "", **FILES, **files}.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text, encoding="utf-8")
    return project


def build(project: Path, capabilities: str = "8.0;9.0") -> Kernels:
    settings = read_settings(read_table(project) or {}, {"capabilities": capabilities}, {})
    return pipeline.build(project, "hello_gpu.kernels_cuda", settings, Report(), os.environ)


def ptx(kernels: Kernels) -> list[str]:
    return [image.data.decode() for image in fatbin.read(kernels.fatbin).images if image.kind == "ptx"]


@pytest.fixture
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("settings_table", REPOSITORY / "tools/settings_table.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_of_settings_is_up_to_date(generator: ModuleType) -> None:
    assert generator.with_table(README) == README, "run: python tools/settings_table.py"


def test_the_table_has_every_setting_in_its_three_spellings(generator: ModuleType) -> None:
    rows = generator.table().splitlines()[2:]
    assert len(rows) == len(SETTING_FIELDS)
    default = next(row for row in rows if "cuda-version" in row)
    assert default.startswith('| `cuda-version` | `cuda-version=…` | `RUSTCUDA_CUDA_VERSION` | `"12.9"` |')
    assert "one of `12.9`, `13.0`" in default
    for row in rows:
        key, option, variable = re.findall(r"`([^`]+)`", row)[:3]
        name = key.replace("-", "_").replace(".", "_")
        text = {bool: "yes", int: "1"}.get(type(SETTING_FIELDS[name].default), default_text(name))
        assert option == f"{key}=…"
        table = {} if name == "kernels" else {"crate": "k"}
        read = read_settings(table, {key: text}, {variable: text})
        assert read.where(name) == f"environment variable {variable}"


def default_text(name: str) -> str:
    """A text that the setting takes."""
    return SETTING_FIELDS[name].default or {"module": "p.k"}.get(name, "8.0")


def test_the_script_says_what_is_stale_and_mends_it(
    generator: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{generator.BEGIN}| old |\n{generator.END}after\n", encoding="utf-8")
    monkeypatch.setattr(generator, "README", readme)
    monkeypatch.setattr("sys.argv", ["settings_table.py", "--check"])
    assert generator.main() == 1
    assert "| old |" in readme.read_text(encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["settings_table.py"])
    assert generator.main() == 0
    written = readme.read_text(encoding="utf-8")
    assert written.startswith("before\n")
    assert written.endswith("after\n")
    assert generator.table() in written
    monkeypatch.setattr("sys.argv", ["settings_table.py", "--check"])
    assert generator.main() == 0
    readme.write_text(generator.BEGIN, encoding="utf-8")
    with pytest.raises(ValueError, match="end of settings"):
        generator.main()


def test_the_first_project_builds_and_its_python_fits(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert set(FILES) == {"pyproject.toml", "kernels/Cargo.toml", "kernels/src/lib.rs", "run.py"}
    kernels = build(write(tmp_path, {}), "8.0;9.0a;12.0+PTX")
    said = capfd.readouterr().err
    header = next(line for line in said.splitlines() if "registers" in line)
    assert header in README, "the closing table that the README shows has other columns"
    assert "warning" not in said
    (documented,) = [line for line in kernels.loader.python.splitlines() if "saxpy[grid, block](" in line]
    assert "a: f32, x: &[f32], y: DisjointSlice<f32>" in documented
    calls = [node for node in ast.walk(ast.parse(FILES["run.py"])) if isinstance(node, ast.Call)]
    launches = [ast.unparse(call) for call in calls if isinstance(call.func, ast.Subscript)]
    assert launches == ["kernels_cuda.saxpy[grid, block](2.0, x, y)"]


def test_the_wheels_picture_names_what_a_build_makes(tmp_path: Path) -> None:
    picture = re.findall(r"^      hello_gpu/(\S+)", README, re.MULTILINE)
    made = build(write(tmp_path, {}), "8.0").files("kernels_cuda")
    assert set(picture) == {"__init__.py", "py.typed", *made}


def test_cuda_arch_in_the_readme(tmp_path: Path) -> None:
    project = write(tmp_path, {"kernels/src/lib.rs": block("cuda_arch")})
    texts = ptx(build(project, "8.0+PTX;9.0+PTX"))
    assert [re.findall(r"st\.global\.b32\s*\[%rd\d+\],\s*(\d+);", text) for text in texts] == [["70"], ["90"]]


def test_the_plain_crate_in_the_readme(tmp_path: Path) -> None:
    files = {"kernels/src/lib.rs": block("panic_handler"), "kernels/Cargo.toml": MANIFEST}
    kernels = build(write(tmp_path, files))
    assert "fill[grid, block](out: *mut u32, count: u32, value: u32)" in kernels.loader.python


def test_kernels_of_a_dependency_as_the_readme_has_them(tmp_path: Path) -> None:
    kernel = """\
use rustcuda_device::prelude::*;

#[kernel]
pub fn turn(mut y: DisjointSlice<f32>) {
    static mut TILE: SharedArray<f32, 64> = SharedArray::UNINIT;
    let index = thread::index_1d();
    let at = thread::threadIdx_x() as usize % 64;
    unsafe { TILE[at] = at as f32 };
    thread::sync_threads();
    if let Some(y) = y.get_mut(index) {
        *y = unsafe { TILE[63 - at] };
    }
}
"""
    manifest = FILES["kernels/Cargo.toml"]
    use = re.search(r"`(use \w+ as _;)`", README)
    assert use
    files = {
        "kernels/Cargo.toml": manifest + 'more_kernels = { path = "more" }\n',
        "kernels/src/lib.rs": use[1] + "\n" + FILES["kernels/src/lib.rs"],
        "kernels/more/Cargo.toml": manifest.replace("hello-kernels", "more_kernels"),
        "kernels/more/src/lib.rs": block("asm_experimental_arch") + kernel,
    }
    python = build(write(tmp_path, files)).loader.python
    assert "turn[grid, block](" in python
    assert "saxpy[grid, block](" in python


def test_every_rust_block_is_built_here() -> None:
    assert len(RUST) == len(
        {block(mark) for mark in ("saxpy", "cuda_arch", "panic_handler", "asm_experimental")}
    )


def test_the_tables_of_cuda_versions() -> None:
    for version in CUDA_VERSIONS.values():
        assert re.search(
            rf"^\| {version.name}[^|]*\| {re.escape(version.default_list)} \|", README, re.MULTILINE
        )
        floors = [version.driver_floor(Capability(*base)).branch for base in ((9, 0), (12, 0))]
        assert f"| built with CUDA {version.name} | {floors[0]} | {floors[1]} |" in README


def test_the_table_of_exceptions() -> None:
    listed = re.findall(r"^\| `(\w+)`.*\| .* \|$", README, re.MULTILINE)
    assert set(_ERRORS) - {"KernelError"} <= set(listed)
    assert "derive from `KernelError`" in README


LAUNCHING = (REPOSITORY / "docs/launching.md").read_text(encoding="utf-8")


def test_the_page_of_launches_has_all_that_a_module_offers() -> None:
    kernel_and_constant = inspect.getsource(stub).partition("class _KernelType")[2]
    offered = re.findall(r"^    def ([a-z]\w*)\(", kernel_and_constant, re.MULTILINE)
    assert {"launch", "attributes", "set"} <= set(offered)
    launch = inspect.signature(_Kernel.launch).parameters
    named = {*offered, *_ATTRIBUTES, *launch, "load", "unload"} - {"self"}
    assert {name for name in named if not re.search(rf"[`.( ]{name}[`(, =)\n]", LAUNCHING)} == set()


def test_the_page_of_launches_is_python() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", LAUNCHING, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4
    for text in blocks:
        ast.parse(text)


def test_the_samples_readme_has_all_its_functions_with_their_types() -> None:
    sample = REPOSITORY / "sample_ext"
    readme = (sample / "README.md").read_text(encoding="utf-8")
    tree = ast.parse((sample / "src/sample_ext/__init__.py").read_text(encoding="utf-8"))
    (names,) = (ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign))
    rows = re.findall(r"^\| `(\w+)\(([\w, ]+)\)` \| ([\w, ]+) \|", readme, re.MULTILINE)
    assert sorted(name for name, _, _ in rows) == sorted(names)
    functions = ast.parse((sample / "src/sample_ext/functions.py").read_text(encoding="utf-8"))
    defined = {node.name: node for node in functions.body if isinstance(node, ast.FunctionDef)}
    for name, parameters, dtypes in rows:
        assert [each.arg for each in defined[name].args.args] == parameters.split(", ")
        said = ast.get_docstring(defined[name]) or ""
        assert set(re.findall(r"\bb?f(?:16|32)\b", said)) == set(dtypes.split(", "))
    kernels = (sample / "kernels/src").glob("*.rs")
    marked = re.findall(
        r"^#\[kernel(.*)\]$", "\n".join(each.read_text("utf-8") for each in kernels), re.MULTILINE
    )
    assert sum(max(1, len(re.findall(r"\bb?f\d\d\b", each))) for each in marked) == 11
    for text in (README, readme, (sample / "pyproject.toml").read_text(encoding="utf-8")):
        assert re.search(r"\beleven (?:GPU )?kernels\b", text, re.IGNORECASE)


def headings(page: Path) -> set[str]:
    """What links can name in a page."""
    lines = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()).replace(" ", "-") for line in lines}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```|^    .*?$|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)]+)\)", prose):
        file, _, heading = target.partition("#")
        linked = page.parent / file if file else page
        if "://" not in target:
            assert linked.exists(), target
            assert not heading or heading in headings(linked), target
