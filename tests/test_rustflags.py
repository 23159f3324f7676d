"""The user's own rustc flags: our answer beside what cargo itself passes to rustc."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rustcuda_backend import process
from rustcuda_backend.rust import TARGET, RustToolchain
from rustcuda_backend.rustflags import user_rustflags

TRIPLE = "CARGO_TARGET_NVPTX64_NVIDIA_CUDA_RUSTFLAGS"


def flags_of_cargo(
    toolchain: RustToolchain, directory: Path, environ: dict[str, str], cargo_args: tuple[str, ...]
) -> tuple[str, ...]:
    """The flags at the end of the command line that cargo prints; compiling then fails without a core."""
    argv = (toolchain.cargo, "rustc", "-v", "--lib", "--crate-type=rlib", f"--target={TARGET}", *cargo_args)
    finished = process.run(argv, cwd=directory, env={**environ, "RUSTC": str(toolchain.rustc)})
    (line,) = (line for line in finished.stderr.splitlines() if line.lstrip().startswith("Running `"))
    words = shlex.split(line.strip().removeprefix("Running `").removesuffix("`"))
    last = max(index for index, word in enumerate(words) if word.startswith("dependency="))
    return tuple(words[last + 1 :])


@dataclass(frozen=True)
class Case:
    """Where flags come from, and the flags (without their `--cfg`) that come of it."""

    expected: str
    config: str = ""
    parent: str = ""
    home: str = ""
    environ: dict[str, str] = field(default_factory=dict)
    cargo_args: tuple[str, ...] = ()


BUILD = '[build]\nrustflags = ["--cfg", "build"]\n'
EXACT = f'[target.{TARGET}]\nrustflags = ["--cfg", "exact"]\n'


CLI_BUILD = "build.rustflags=['--cfg', 'cli']"


def conditional(*conditions: str) -> str:
    """A table for each condition, whose flag is named after its place among them."""
    return "".join(
        f"[target.'cfg({condition})']\nrustflags = ['--cfg', 'c{place}']\n"
        for place, condition in enumerate(conditions)
    )


CASES = {
    "nothing": Case(""),
    "build": Case("build", BUILD),
    "build as a string": Case("one two", '[build]\nrustflags = " --cfg one  --cfg\\ttwo "\n'),
    "a flag with a space": Case('x="a b"', "[build]\nrustflags = ['--cfg', 'x=\"a b\"']\n"),
    "exact hides build": Case("exact", BUILD + EXACT),
    "an empty exact does not hide build": Case("build", BUILD + f"[target.{TARGET}]\nrustflags = []\n"),
    "another target's": Case("build", BUILD + EXACT.replace(TARGET, "x86_64-unknown-linux-gnu")),
    "a target without flags": Case("build", BUILD + f'[target.{TARGET}]\nrunner = "x"\n'),
    "a matching cfg hides build": Case("c0", BUILD + conditional('target_arch = "nvptx64"')),
    "exact and matching cfgs": Case("exact c0 c1", EXACT + conditional("not(unix)", 'target_os="cuda"')),
    "cfgs that do not match": Case(
        "build",
        BUILD
        + conditional("unix", 'target_arch="x86_64"', 'any(unix, target_os = "linux")', "not(not(unix))"),
    ),
    "all": Case(
        "c0", conditional('all(target_os = "cuda", target_arch = "nvptx64")', 'all(unix, panic="abort")')
    ),
    "any": Case(
        "c1 c0", conditional('any(unix, target_os = "cuda")', 'any(target_os="cuda", unix)', "any()")
    ),
    "nested": Case("c0", conditional('all(not(any(unix, windows)), any(target_pointer_width = "64"),)')),
    "all of nothing": Case("c0", conditional("all()")),
    "not of two that differ": Case("c0", conditional('not(all(unix, target_os="cuda"))')),
    "true and false": Case("c0", conditional("true", "false")),
    "spaces": Case("c0", conditional(' all( not( unix ) ,target_os="cuda" ) ')),
    "names are no parts of names": Case("", conditional("nix", 'target_os = "cud"', 'target = "cuda"')),
    "a cfg that a flag sets": Case("exact c0", EXACT + conditional("exact", "build")),
    "a cfg that build's flag sets": Case("c0", BUILD + conditional("build")),
    "a cfg that another cfg's flag sets": Case("c0", conditional("not(unix)", "c0")),
    "an unstable flag": Case(
        "-Zthreads=2 build c1",
        '[build]\nrustflags = ["-Zthreads=2", "--cfg", "build"]\n' + conditional("unix"),
        parent=f"[target.{TARGET}]\nrustflags = ['-Zthreads=2', '--cfg', 'build']\n"
        + conditional("unix", "build"),
        environ={"RUSTC_BOOTSTRAP": "1"},
    ),
    "what only a profile decides": Case("c0", conditional("debug_assertions")),
    "a parent's": Case("build", parent=BUILD),
    "joined with a parent's": Case("outer build", BUILD, parent=BUILD.replace('"build"', '"outer"')),
    "exact in a parent hides build": Case("exact", BUILD, parent=EXACT),
    "of cargo's home": Case(
        "home outer build", BUILD, BUILD.replace('"build"', '"outer"'), BUILD.replace('"build"', '"home"')
    ),
    "RUSTFLAGS": Case("a b", BUILD + EXACT, environ={"RUSTFLAGS": " --cfg a  --cfg b "}),
    "an empty RUSTFLAGS": Case("", BUILD + EXACT, environ={"RUSTFLAGS": ""}),
    "RUSTFLAGS with tabs": Case('x="p\tq"', environ={"RUSTFLAGS": '--cfg x="p\tq"\t'}),
    "CARGO_ENCODED_RUSTFLAGS": Case(
        'x="a b" y',
        BUILD,
        environ={"CARGO_ENCODED_RUSTFLAGS": '--cfg\x1fx="a b"\x1f--cfg\x1fy', "RUSTFLAGS": "--cfg z"},
    ),
    "an empty CARGO_ENCODED_RUSTFLAGS": Case(
        "", BUILD, environ={"CARGO_ENCODED_RUSTFLAGS": "", "RUSTFLAGS": "--cfg z"}
    ),
    "CARGO_BUILD_RUSTFLAGS": Case("v", environ={"CARGO_BUILD_RUSTFLAGS": "--cfg v"}),
    "CARGO_BUILD_RUSTFLAGS and a file's": Case(
        "build v", BUILD, environ={"CARGO_BUILD_RUSTFLAGS": "--cfg v"}
    ),
    "exact hides CARGO_BUILD_RUSTFLAGS": Case("exact", EXACT, environ={"CARGO_BUILD_RUSTFLAGS": "--cfg v"}),
    "the target's variable": Case("v", BUILD, environ={TRIPLE: "--cfg v"}),
    "the target's variable and a file's": Case(
        "exact v c0", EXACT + conditional("not(unix)"), environ={TRIPLE: "--cfg v"}
    ),
    "an empty target's variable": Case("build", BUILD, environ={TRIPLE: ""}),
    "an argument": Case("cli", cargo_args=("--config", CLI_BUILD)),
    "an argument of one word": Case("build cli", BUILD, cargo_args=("-v", f"--config={CLI_BUILD}")),
    "an argument after files and variables": Case(
        "build v cli", BUILD, environ={"CARGO_BUILD_RUSTFLAGS": "--cfg v"}, cargo_args=("--config", CLI_BUILD)
    ),
    "an argument for the target hides build": Case(
        "exact v cli c0",
        BUILD + EXACT + conditional("not(unix)"),
        environ={TRIPLE: "--cfg v"},
        cargo_args=("--config", CLI_BUILD, "--config", f"target.{TARGET}.rustflags=['--cfg', 'cli']"),
    ),
    "an argument with a condition": Case(
        "c0", BUILD, cargo_args=("--config", "target.'cfg(not(unix))'.rustflags=['--cfg', 'c0']")
    ),
    "a file for an argument": Case("build", cargo_args=("--config", "src/more.toml")),
    "RUSTFLAGS hide an argument": Case(
        "a", environ={"RUSTFLAGS": "--cfg a"}, cargo_args=("--config", CLI_BUILD)
    ),
    "arguments without flags": Case("build", BUILD, cargo_args=("--config", "term.quiet=false")),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_flags_are_those_that_cargo_itself_would_pass(
    toolchain: RustToolchain, tmp_path: Path, case: Case
) -> None:
    crate = tmp_path / "a b" / "kernels"
    files = {
        crate / "Cargo.toml": '[package]\nname = "k"\nedition = "2021"\n[workspace]\n',
        crate / "src/lib.rs": "#![no_std]\n",
        crate / "src/more.toml": BUILD,
        crate / ".cargo/config.toml": case.config,
        crate.parent / ".cargo/config.toml": case.parent,
        tmp_path / "home/config.toml": case.home,
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    environ = {**os.environ, "CARGO_HOME": str(tmp_path / "home"), **case.environ}
    passed = flags_of_cargo(toolchain, crate, environ, case.cargo_args)
    assert user_rustflags(toolchain, crate, environ, case.cargo_args) == passed
    assert " ".join(flag for flag in passed if flag != "--cfg" and flag.strip()) == case.expected


@pytest.mark.parametrize("config", ["no toml", conditional("="), conditional("all(unix")])
def test_configuration_that_cargo_refuses_is_left_to_cargo(
    toolchain: RustToolchain, tmp_path: Path, config: str
) -> None:
    (tmp_path / ".cargo").mkdir()
    (tmp_path / ".cargo/config.toml").write_text(config, encoding="utf-8")
    assert user_rustflags(toolchain, tmp_path, os.environ) == ()
