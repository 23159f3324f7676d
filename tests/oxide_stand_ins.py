"""Stands for cuda-oxide, which cannot be installed in one step: a recorder in place of cargo.

The recorder keeps each call's arguments and variables, and does what cargo and the backend library are
documented to do: compile when flags or sources have changed, write `<crate>.ptx` or NVVM IR where
CUDA_OXIDE_PTX_DIR says, refuse a target that is too low. What it writes are PTX texts that the test gives it.
Of cargo's other commands it calls the real ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from environments import AWAY

from rustcuda_backend.rust import RustToolchain

RECORDER = """\
#!{python}
import hashlib, json, os, subprocess, sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
REAL = {{"RUSTC": {rustc!r}, "RUSTDOC": {rustdoc!r}}}
arguments, environ = sys.argv[1:], dict(os.environ)

if "build" not in arguments:
    if "rustdoc" in arguments and (ROOT / "no-rustdoc").exists():
        sys.exit("error: this rustdoc is not to be had")
    # The real rustc has no such backend.
    flags = environ.get("CARGO_ENCODED_RUSTFLAGS", "").split("\\x1f")
    kept = [flag for flag in flags if not flag.startswith("-Zcodegen-backend")]
    environ["CARGO_ENCODED_RUSTFLAGS"] = "\\x1f".join(kept)
    environ["RUSTC_BOOTSTRAP"] = "1"
    sys.exit(subprocess.run([{cargo!r}, *arguments], env={{**environ, **REAL}}).returncode)

with (ROOT / "calls").open("a") as calls:
    calls.write(json.dumps({{"arguments": arguments, "environ": environ, "directory": os.getcwd()}}) + "\\n")

long = [argument[2:] for argument in arguments if argument.startswith("--") and "=" in argument]
options = dict(argument.split("=", 1) for argument in long)
target_directory = Path(arguments[arguments.index("--target-dir") + 1])
crate, manifest = Path.cwd(), Path.cwd() / "Cargo.toml"
name = (ROOT / "crate").read_text()
said = {{"reason": "compiler-artifact", "manifest_path": str(manifest)}}
sm, ptx_directory = environ["CUDA_OXIDE_TARGET"], Path(environ["CUDA_OXIDE_PTX_DIR"])
library = target_directory / options["target"] / "release" / f"lib{{name}}.rlib"
scenario = (ROOT / "scenario").read_text() if (ROOT / "scenario").exists() else ""

# cargo compiles anew when flags or sources have changed; of variables it knows nothing.
source = b"".join(path.read_bytes() for path in sorted(crate.rglob("src/*.rs")))
state = hashlib.sha256(source + environ["CARGO_ENCODED_RUSTFLAGS"].encode()).hexdigest()
fresh = library.exists() and library.read_text() == state
if not fresh:
    if scenario.startswith("fails: "):
        print(scenario.removeprefix("fails: "), file=sys.stderr)
        print("error: could not compile `kernels` (lib)", file=sys.stderr)
        sys.exit(101)
    library.parent.mkdir(parents=True, exist_ok=True)
    library.write_text(state)
    ptx_directory.mkdir(parents=True, exist_ok=True)
    linked = Path(environ["CUDA_OXIDE_LIBDEVICE"]).is_file()
    linked = linked and os.access(environ["CUDA_OXIDE_LLVM_LINK"], os.X_OK)
    if scenario == "loses libdevice":
        Path(environ["CUDA_OXIDE_LIBDEVICE"]).unlink()
        linked = False
    if scenario == "writes nothing":
        pass
    elif linked and scenario != "NVVM IR":
        for text in (ROOT / "ptx").glob(f"*.{{sm}}"):
            (ptx_directory / f"{{text.stem}}.ptx").write_bytes(text.read_bytes())
    else:
        # The backend's silent way out where a kernel uses libdevice.
        (ptx_directory / f"{{name}}.ll").write_text("call float @__nv_sinf(float %0)\\n")
        (ptx_directory / f"{{name}}.target").write_text(sm + "\\n")
print("warning: what cargo says", file=sys.stderr)
print("this is no message of cargo's")
kind = ["bin"] if "bin" in options else ["lib"]
print(json.dumps({{"reason": "compiler-artifact", "manifest_path": "/elsewhere/Cargo.toml", "fresh": False,
                   "target": {{"name": name, "kind": ["lib"]}}, "filenames": []}}))
said.update(target={{"name": name, "kind": kind}}, fresh=fresh, filenames=[str(library)])
print(json.dumps(said))
print(json.dumps({{**said, "reason": "build-finished"}}))
"""

VERSION = """\
rustc 1.96.0-nightly (55e86c996 2026-04-02)
commit-hash: 55e86c996
commit-date: 2026-04-02
host: {host}
release: 1.96.0-nightly
LLVM version: 22.1.2
"""


def program(path: Path, text: str) -> Path:
    """Writes a program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def llvm(folder: Path, version: str = "22.1.2", *, suffix: str = "", without: str = "") -> Path:
    """LLVM's tools, as far as saying their version goes; returns llc."""
    for name in ("llc", "opt", "llvm-link"):
        if name != without:
            program(
                folder / f"{name}{suffix}",
                f"#!/bin/sh\necho 'LLVM (http://llvm.org/):'\necho '  LLVM version {version}'\n",
            )
    return folder / f"llc{suffix}"


@dataclass(frozen=True)
class Call:
    """One call of `cargo build`."""

    arguments: list[str]
    environ: dict[str, str]
    directory: str

    @property
    def flags(self) -> list[str]:
        return self.environ["CARGO_ENCODED_RUSTFLAGS"].split("\x1f")

    @property
    def target(self) -> str:
        return self.environ["CUDA_OXIDE_TARGET"]


@dataclass(frozen=True)
class StandIn:
    """A toolchain folder whose cargo records, with LLVM's tools and a backend library beside it."""

    root: Path
    host: str
    backend: Path

    @property
    def llvm(self) -> Path:
        return self.root / "lib" / "rustlib" / self.host / "bin"

    def writes(self, sm: str, text: str, crate: str = "") -> None:
        """What the backend writes for a capability."""
        folder = self.root / "ptx"
        folder.mkdir(exist_ok=True)
        name = crate or (self.root / "crate").read_text(encoding="utf-8")
        (folder / f"{name}.{sm}").write_text(text, encoding="utf-8")

    def plays(self, scenario: str) -> None:
        (self.root / "scenario").write_text(scenario, encoding="utf-8")

    def without_rustdoc(self) -> None:
        (self.root / "no-rustdoc").touch()

    @property
    def calls(self) -> list[Call]:
        file = self.root / "calls"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return [Call(**json.loads(line)) for line in lines]

    def environ(self, **more: str) -> dict[str, str]:
        """An environment without the machine's Rust, in which the backend library is named."""
        kept = {name: os.environ[name] for name in ("HOME", "RUSTCUDA_CACHE_DIR") if name in os.environ}
        return {**kept, "PATH": "/usr/bin:/bin", "CUDA_OXIDE_BACKEND": str(self.backend), **more}


def make_stand_in(root: Path, real: RustToolchain, crate: str = "oxide_kernels") -> StandIn:
    """Makes the folder.

    Args:
        root: The toolchain's folder to be.
        real: The toolchain whose cargo and rustdoc answer all but builds.
        crate: The crate's name, as the backend calls its PTX.
    """
    text = VERSION.format(host=real.host)
    program(
        root / "bin" / "rustc",
        f"#!/bin/sh\nif [ \"$1\" = -vV ]; then echo '{text.strip()}'\n"
        f"elif [ \"$1 $2\" = '--print sysroot' ]; then echo '{root}'\nelse exec '{real.rustc}' \"$@\"; fi\n",
    )
    values: dict[str, Any] = {
        "python": sys.executable,
        "rustc": str(real.rustc),
        "rustdoc": str(real.rustc.with_name("rustdoc")),
        "cargo": str(real.cargo),
    }
    program(root / "bin" / "cargo", RECORDER.format(**values))
    program(root / "bin" / "rustdoc", "#!/bin/sh\nexit 1\n")
    (root / "lib").mkdir()
    (root / "lib" / "librustc_driver-0123abcd.so").touch()
    llvm(root / "lib" / "rustlib" / real.host / "bin")
    backend = root.with_name(f"{root.name}-backend") / "librustc_codegen_cuda.so"
    backend.parent.mkdir()
    backend.write_bytes(b"\x7fELF stand-in\0librustc_driver-0123abcd.so\0")
    backend.with_name("toolchain-fingerprint.txt").write_text(text.strip(), encoding="utf-8")
    (root / "crate").write_text(crate, encoding="utf-8")
    return StandIn(root, real.host, backend)


# ---- PTX as cuda-oxide writes it ----


def ptx(sm: str, *entries: str, head: str = "", version: str = "") -> str:
    """A PTX text in the form that llc gives it."""
    version = version or {"sm_75": "6.3", "sm_80": "7.0", "sm_90": "7.8", "sm_90a": "8.0"}[sm]
    top = "//\n// Generated by LLVM NVPTX Back-End\n//\n\n"
    return f"{top}.version {version}\n.target {sm}\n.address_size 64\n\n" + head + "".join(entries)


def entry(name: str, *parameters: str, directives: str = "", body: str = "") -> str:
    """A kernel; `parameters` are what stands between `.param` and each name: `".u64 .ptr .align 4"`."""
    listed = []
    for index, parameter in enumerate(parameters):
        kind, _, size = parameter.partition("[")
        listed.append(f"\t.param {kind} {name}_param_{index}" + (f"[{size}" if size else ""))
    joined = ",\n".join(listed)
    inside = f"(\n{joined}\n)" if listed else "()"
    lines = "".join(f"{line}\n" for line in directives.split(";") if line)
    return (
        f"\t// .globl\t{name}                  // -- Begin function {name}\n"
        f".visible .entry {name}{inside}                 // @{name}\n{lines}{{\n{body}// %bb.0:\n\tret;\n"
        "                                        // -- End function\n}\n"
    )


SLICE = (".u64 .ptr .align 4", ".u64")


# A rustc that is the real one, but for the backend library: it takes the flag away and writes its PTX.
RUSTC = """\
#!{python}
import os, sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
arguments = sys.argv[1:]
if arguments == ["-vV"]:
    sys.exit(print({version!r}))
if arguments == ["--print", "sysroot"]:
    sys.exit(print(ROOT))
kept = [argument for argument in arguments if not argument.startswith("-Zcodegen-backend=")]
if kept != arguments and any("link" in argument for argument in kept if argument.startswith("--emit=")):
    name = arguments[arguments.index("--crate-name") + 1]
    text = ROOT / "ptx" / (name + "." + os.environ["CUDA_OXIDE_TARGET"])
    if text.exists():
        (Path(os.environ["CUDA_OXIDE_PTX_DIR"]) / (name + ".ptx")).write_bytes(text.read_bytes())
os.environ["RUSTC_BOOTSTRAP"] = "1"
os.execv({rustc!r}, [{rustc!r}, *kept])
"""


def with_real_cargo(stand_in: StandIn, real: RustToolchain) -> None:
    """Lets the real cargo and rustc work in place of the recorder; only the backend library is played."""
    version = VERSION.format(host=real.host).strip()
    values = {"python": sys.executable, "rustc": str(real.rustc), "version": version}
    program(stand_in.root / "bin" / "rustc", RUSTC.format(**values))
    program(stand_in.root / "bin" / "cargo", f"#!/bin/sh\nexec '{real.cargo}' \"$@\"\n")
    rustdoc = real.rustc.with_name("rustdoc")
    text = f"#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec '{rustdoc}' \"$@\"\n"
    program(stand_in.root / "bin" / "rustdoc", text)


def ferrum_library(folder: Path) -> bytes:
    """The library in the wheel ferrum-gpu 0.3.0, in which cuda-oxide has embedded PTX.

    Skips the test where PyPI is away.
    """
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    argv += ["--platform=manylinux_2_28_x86_64", "--abi=abi3", "--python-version=3.11"]
    argv += ["--dest", str(folder), "ferrum-gpu==0.3.0"]
    done = subprocess.run(argv, capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode and AWAY.search(done.stderr):
        pytest.skip(f"PyPI is away, which has the wheel ferrum-gpu: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith(".so")]
        return archive.read(name)


def ferrum_ptx(data: bytes) -> str:
    """The PTX in the library of ferrum-gpu, found without our reader: 15 kernels, for 8.0."""
    start = data.index(b"//\n// Generated by LLVM NVPTX Back-End")
    return data[start : data.index(b"\0", start)].decode()
