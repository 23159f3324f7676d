"""The documentation of rustcuda-device: its examples compile for the GPU, and rustdoc has no complaint.

An example is the inside of a crate. One that needs more than the least capability begins with
`#![cfg(cuda_arch = "90")]`.
"""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from environments import made_once, succeed
from projects import REPOSITORY

from rustcuda_backend import inspection, process
from rustcuda_backend.capability import all_cfg_values, parse_list
from rustcuda_backend.rust import TARGET, RustToolchain
from rustcuda_backend.sysroot import clean_environment

DEVICE = REPOSITORY / "rustcuda_backend" / "device"

# The least capability, and those that bring modules of their own.
CAPABILITIES = "7.0 9.0 10.0"

_FENCE = re.compile(r"```(?P<language>.*)")
_KERNEL_NAME = re.compile(r"(#\[(?:rustcuda_device::)?kernel\b[^{;]*?\bfn\s+)(\w+)")
_NEEDS = re.compile(r'#!\[cfg\(cuda_arch = "(\d+)"\)\]')


@dataclass(frozen=True)
class Example:
    """One block of code in the documentation.

    Attributes:
        name: The file and the line of the block's first line, e.g. `"thread_12"`.
        language: What stands behind its opening fence.
        source: Its lines, those included that rustdoc hides.
    """

    name: str
    language: str
    source: str

    @property
    def kernels(self) -> set[str]:
        """Its kernels, under names that no other example has."""
        return {f"{self.name}_{kernel}" for _, kernel in _KERNEL_NAME.findall(self.source)}

    @property
    def least(self) -> str:
        """The first of the capabilities here that it compiles for."""
        needed = _NEEDS.search(self.source)
        return next(item for item in CAPABILITIES.split() if int(item.replace(".", "")) >= _number(needed))

    def module(self) -> str:
        """The source of a module of its own."""
        return _KERNEL_NAME.sub(rf"\g<1>{self.name}_\g<2>", self.source)


def _number(needed: re.Match[str] | None) -> int:
    return int(needed[1]) if needed else 0


def examples_of(source: Path) -> list[Example]:
    """The blocks of code in a source file's doc comments."""
    found: list[Example] = []
    opened: tuple[int, str] | None = None
    lines: list[str] = []
    for number, line in enumerate(source.read_text(encoding="utf-8").splitlines(), 1):
        comment = re.match(r"\s*//[/!] ?(.*)", line)
        if comment is None:
            assert opened is None, f"{source.name}:{number}: the example above does not end"
            continue
        fence = _FENCE.fullmatch(comment[1].strip())
        if fence and opened:
            name = "_".join(source.relative_to(DEVICE).with_suffix("").parts[2:]) + f"_{opened[0]}"
            found.append(Example(name, opened[1], "\n".join(lines) + "\n"))
            opened, lines = None, []
        elif fence:
            opened = (number + 1, fence["language"])
        elif opened:
            # rustdoc hides `# ` and shows the rest of `##`.
            lines.append(re.sub(r"^(\s*)#(?: |$|(?=#))", r"\1", comment[1]))
    return found


EXAMPLES = [
    example
    for source in sorted(DEVICE.glob("*/src/**/*.rs"))
    for example in examples_of(source)
    if example.language != "text"
]


def build(folder: Path) -> None:
    project = folder / "project"
    files = {
        "pyproject.toml": (
            '[build-system]\nrequires = ["rustcuda-backend"]\nbuild-backend = "rustcuda_backend"\n'
            '[project]\nname = "examples"\nversion = "1.0"\n[tool.setuptools]\npackages = ["examples"]\n'
            f'[tool.rustcuda]\ncrate = "kernels"\ncapabilities = "{CAPABILITIES}"\n'
        ),
        "examples/__init__.py": "",
        "kernels/Cargo.toml": (
            '[package]\nname = "kernels"\nversion = "0.1.0"\nedition = "2024"\n'
            '[dependencies]\nrustcuda-device = "0.1"\n[workspace]\n'
        ),
        "kernels/src/lib.rs": "".join(f"mod {example.name};\n" for example in EXAMPLES),
        **{f"kernels/src/{example.name}.rs": example.module() for example in EXAMPLES},
    }
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text, encoding="utf-8")
    command = (sys.executable, "-m", "rustcuda_backend", "build", "--output", folder)
    succeed(process.run(command, cwd=project, env=clean_environment()))


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The names of the kernels that the examples have become, by capability."""
    folder = made_once(tmp_path_factory, "examples", build)
    (part,) = inspection.inspect(folder / "kernels_cuda.fatbin")
    return {image.capability: {kernel.name for kernel in image.kernels or ()} for image in part.images}


def test_examples_are_rust_that_is_compiled() -> None:
    assert len(EXAMPLES) >= 2
    assert {example.language for example in EXAMPLES} == {""}, "only rust, or ```text"


@pytest.mark.parametrize("capability", CAPABILITIES.split())
def test_every_example_compiles_from_the_least_capability_on(
    compiled: dict[str, set[str]], capability: str
) -> None:
    (wanted,) = parse_list(capability)
    there = [example for example in EXAMPLES if parse_list(example.least)[0].base <= wanted.base]
    expected = tuple(kernel for example in there for kernel in example.kernels)
    # A kernel for several types has their names behind its own.
    assert all(kernel.startswith(expected) for kernel in compiled[capability])
    lacking = [
        name for name in expected if not any(kernel.startswith(name) for kernel in compiled[capability])
    ]
    assert lacking == []


@pytest.fixture(scope="session")
def crates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the crates, in which cargo may write."""
    ignored = shutil.ignore_patterns("target", "Cargo.lock")
    return Path(shutil.copytree(DEVICE, tmp_path_factory.mktemp("crates") / "device", ignore=ignored))


@pytest.mark.parametrize("name", ["rustcuda-device", "rustcuda-macros"])
def test_rustdoc_has_no_complaint(
    toolchain: RustToolchain, gpu_sysroot: Path, crates: Path, name: str
) -> None:
    """For the newest GPU, whose documentation has everything; broken links are complaints too."""
    flags = [f"--sysroot={gpu_sysroot}", *(f'--cfg=cuda_arch="{value}"' for value in all_cfg_values())]
    environ = clean_environment() | {
        "RUSTC": str(toolchain.rustc),
        "RUSTDOC": str(toolchain.rustc.with_name("rustdoc" + toolchain.rustc.suffix)),
        "RUSTC_BOOTSTRAP": "1",
    }
    target: tuple[str, ...] = ()
    if name == "rustcuda-device":
        target = ("--target", TARGET)
        environ |= {
            "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(flags),
            "CARGO_ENCODED_RUSTDOCFLAGS": "\x1f".join([*flags, "-Dwarnings"]),
        }
    else:
        environ |= {"CARGO_ENCODED_RUSTDOCFLAGS": "-Dwarnings"}
    command: tuple[str | Path, ...] = (toolchain.cargo, "doc", "--no-deps", "--offline", *target)
    succeed(process.run(command, cwd=crates / name, env=environ))
