"""Measures how long the sample's kernels take to build: wall time for 1 and for 5 capabilities.

Each build is the PEP 517 hook `build_wheel` in a fresh process, on a copy of the sample:

- cold: nothing of the crate is compiled; the sysroot (Rust's `core` for GPUs) and `rustcuda-device` are in
  their cache, as they are after the first build on a machine.
- unchanged: the same build once more.
- setuptools: the same package without `[tool.rustcuda]`: what a build costs without any kernels.
- nvcc: the same kernels in CUDA C++ (kernels.cu) to a fatbin, where an nvcc is named.

    python benchmarks/build_time.py [--runs 5] [--json result.json] [--nvcc nvcc] [crate or package folder]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ROOT / "benchmarks" / "kernels.cu"
LISTS = {"1 capability": "9.0", "5 capabilities": "7.5;8.0;8.9;9.0;10.0"}
HOOK = "import sys, {0} as backend; backend.build_wheel(sys.argv[1])"
# What a build leaves in the package's folder.
LEFTOVERS = ("build", "dist", "target", "*.egg-info", "kernels_cuda.*", ".venv", "__pycache__")


@dataclass(frozen=True)
class Row:
    """The wall times of one kind of build.

    Attributes:
        build: What was built.
        state: `cold`, `unchanged`, `setuptools` or `nvcc`.
        seconds: The wall time of every run.
    """

    build: str
    state: str
    seconds: tuple[float, ...]


def build(package: Path, output: Path, capabilities: str, backend: str = "rustcuda_backend") -> float:
    """Builds the wheel once in a new process; returns its wall time in seconds."""
    # The capabilities are this script's; every other setting is the caller's.
    env = {**os.environ, "RUSTCUDA_CAPABILITIES": capabilities}
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", HOOK.format(backend), str(output)],
        cwd=package,
        env=env,
        capture_output=True,
        check=False,
    )
    seconds = time.perf_counter() - start
    if done.returncode:
        sys.exit((done.stdout + done.stderr).decode("utf-8", "replace"))
    return seconds


def copy_package(package: Path, folder: Path) -> Path:
    """Copies the package without anything that earlier builds left."""
    return Path(shutil.copytree(package, folder, ignore=shutil.ignore_patterns(*LEFTOVERS)))


def without_kernels(package: Path) -> Path:
    """Takes `[tool.rustcuda]` out, which leaves a plain setuptools package."""
    pyproject = package / "pyproject.toml"
    text = pyproject.read_text("utf-8")
    pyproject.write_text(re.sub(r"(?ms)^\[+tool\.rustcuda.*?(?=^\[(?!tool\.rustcuda)|\Z)", "", text), "utf-8")
    return package


def measure(package: Path, capabilities: str, runs: int, work: Path) -> dict[str, list[float]]:
    """Times cold and unchanged builds, each cold one in a folder of its own."""
    times: dict[str, list[float]] = {"cold": [], "unchanged": []}
    for _ in range(runs):
        with tempfile.TemporaryDirectory(dir=work) as folder:
            copy = copy_package(package, Path(folder) / "package")
            for state in times:
                times[state].append(build(copy, Path(folder), capabilities))
    return times


def measure_setuptools(package: Path, runs: int, work: Path) -> list[float]:
    """Times builds of the same package without kernels."""
    seconds = []
    for _ in range(runs):
        with tempfile.TemporaryDirectory(dir=work) as folder:
            plain = without_kernels(copy_package(package, Path(folder) / "package"))
            seconds.append(build(plain, Path(folder), "", backend="setuptools.build_meta"))
    return seconds


def measure_nvcc(nvcc: Path, capabilities: str, runs: int, work: Path) -> list[float]:
    """Times nvcc on kernels.cu, with as many of its threads as there are cores."""
    numbers = [capability.replace(".", "") for capability in capabilities.split(";")]
    targets = [f"-gencode=arch=compute_{number},code=sm_{number}" for number in numbers]
    output = ("-fatbin", "-o", str(work / "kernels.fatbin"), str(KERNELS))
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run([str(nvcc), "-O3", f"--threads={cores()}", *targets, *output], check=True)
        seconds.append(time.perf_counter() - start)
    return seconds


def processor() -> str:
    """The processor's name, where the system tells it."""
    cpuinfo = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.+)", cpuinfo.read_text("utf-8")) if cpuinfo.exists() else None
    return found[1] if found else platform.processor() or platform.machine()


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def print_rows(rows: list[Row]) -> None:
    """Prints the table: seconds, least, median and most."""
    print(f"{'build':<16} {'state':<11} {'min s':>8} {'median s':>9} {'max s':>8}")
    for row in rows:
        low, middle, high = min(row.seconds), statistics.median(row.seconds), max(row.seconds)
        print(f"{row.build:<16} {row.state:<11} {low:8.2f} {middle:9.2f} {high:8.2f}")


def main() -> None:
    """Runs the measurement and prints its table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("package", type=Path, nargs="?", default=ROOT / "sample_ext", help="what to build")
    parser.add_argument("--runs", type=int, default=5, help="builds of each kind (default 5)")
    parser.add_argument("--nvcc", type=Path, help="an nvcc to time on the same kernels in CUDA C++")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all times there as well")
    args = parser.parse_args()

    hardware = {"processor": processor(), "cores": cores(), "system": platform.platform()}
    print(f"{hardware['processor']}, {hardware['cores']} cores, {hardware['system']}; {args.runs} runs each")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        # Fills the caches of sysroot and device crate, and Python's, outside the measurement.
        for capabilities in LISTS.values():
            measure(args.package, capabilities, 1, work)
        rows = [Row("no kernels", "setuptools", tuple(measure_setuptools(args.package, args.runs, work)))]
        for name, capabilities in LISTS.items():
            times = measure(args.package, capabilities, args.runs, work)
            rows += [Row(name, state, tuple(seconds)) for state, seconds in times.items()]
            if args.nvcc:
                rows.append(Row(name, "nvcc", tuple(measure_nvcc(args.nvcc, capabilities, args.runs, work))))
    print_rows(rows)
    one, five = (statistics.median(row.seconds) for row in rows if row.state == "cold")
    print(f"5 capabilities / 1 capability, cold: {five / one:.2f}")
    if args.nvcc:
        theirs = statistics.median(rows[-1].seconds)
        print(f"5 capabilities, cold, whole wheel / nvcc's fatbin alone: {five / theirs:.2f}")
    if args.json:
        result = {"hardware": hardware, "rows": [asdict(row) for row in rows]}
        args.json.write_text(json.dumps(result, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
