"""What `doctor` says of machines that have, and lack, what a build needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from test_cuda import copied_toolkit, make_toolkit
from test_gpu_detection import machine
from test_rust import make_toolchain, program

from rustcuda_backend import rust, toolkit
from rustcuda_backend.cli import main
from rustcuda_backend.commands.doctor import _print
from rustcuda_backend.cuda_versions import CUDA_VERSIONS
from rustcuda_backend.diagnosis import Line
from rustcuda_backend.doctor import examine
from rustcuda_backend.gpu import Gpu, present_gpus

pytestmark = pytest.mark.skipif(os.name != "posix", reason="its stand-ins are shell scripts")

DEVICE_MANIFEST = """\
[package]
name = "some-kernels"
version = "0.1.0"
edition = "2024"
[dependencies]
rustcuda-device = "0.1"
[workspace]
"""


@pytest.fixture
def environ(toolchain):
    """This machine's, with the Rust that a build takes and nothing else on PATH that matters."""
    return {"PATH": os.pathsep.join([str(toolchain.rustc.parent), "/usr/bin", "/bin"])}


@pytest.fixture
def without_wheels(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(toolkit, "DEFAULT_TOOLKIT", tmp_path / "usr-local-cuda")


def states(lines, *topics):
    return [(line.topic, line.state) for line in lines if not topics or line.topic in topics]


def only(lines, topic, state=None):
    (line,) = [line for line in lines if line.topic == topic and state in (None, line.state)]
    return line


class TestProject:
    def test_a_project_that_builds(self, make_project, environ, toolchain, tools):
        project = make_project(settings='capabilities = ["8.0", "9.0+PTX"]')
        lines = examine(project, [], environ)
        assert not [line for line in lines if line.state in ("missing", "warning")]
        assert only(lines, "project").text == f"{project}, crate kernels, CUDA 12.9"
        chosen = only(lines, "Rust", "ok").text
        assert str(toolchain.version) in chosen
        assert "; PATH)" in chosen
        assert only(lines, "capabilities").text == "8.0 9.0+PTX from [tool.rustcuda] capabilities"
        ptxas, packer = [line.text for line in lines if (line.topic, line.state) == ("CUDA 12.9", "ok")]
        assert ptxas == f"ptxas {tools.ptxas_version} ({tools.ptxas}; NVIDIA's wheels)"
        assert str(tools.packer) in packer
        assert str(tools.libdevice) in packer
        assert only(lines, "CUDA 13.0").text.endswith('used with cuda-version = "13.0"')

    def test_outside_of_any_project(self, tmp_path, environ):
        lines = examine(tmp_path, [], environ)
        assert states(lines, "project") == [("project", "note")]
        assert str(tmp_path) in only(lines, "project").text
        assert "missing" not in {line.state for line in lines}
        assert not states(lines, "capabilities")

    def test_settings_of_every_source_count(self, make_project, environ):
        project = make_project(settings='cuda-version = "13.0"')
        assert only(examine(project, [], environ), "project").text.endswith("CUDA 13.0")
        lines = examine(project, ["cuda-version=12.9"], environ)
        assert only(lines, "project").text.endswith("CUDA 12.9")
        lines = examine(project, ["cuda-version=12.9"], environ | {"RUSTCUDA_CUDA_VERSION": "13.0"})
        assert only(lines, "project").text.endswith("CUDA 13.0")
        assert len([line for line in lines if (line.topic, line.state) == ("CUDA 13.0", "ok")]) == 2
        assert only(lines, "CUDA 12.9").state == "note"

    @pytest.mark.parametrize(
        ("settings", "config", "said", "fix"),
        [
            ("jbos = 2", [], "unknown setting 'jbos' ([tool.rustcuda] in pyproject.toml)", "'jobs'?"),
            ("", ["jobs=0"], "config setting -C jobs", ""),
            ("", ["=1"], "'=1' is no setting of ours (-C =1)", "write -C key=value"),
            ("", ["--build-option=x"], "is no setting of ours", "write -C key=value"),
            ("", ["crate=elsewhere"], "there is no crate in 'elsewhere'", "Cargo.toml"),
            ("", ["crate=../x"], "the crate '../x' is outside the project", "move it inside"),
            ("", ["capabilities=9.7"], "9.7", ""),
            ("", ["capabilities=native"], "needs a GPU, and there is none", "name the capabilities"),
            ("", ["cuda-version=13.0", "capabilities=7.0"], "does not know capability 7.0", "leave it out"),
        ],
    )
    def test_mistakes(self, make_project, environ, settings, config, said, fix):
        lines = examine(make_project(settings=settings), config, environ)
        (line,) = [line for line in lines if line.state == "missing"]
        assert said in line.text
        assert fix in line.fix

    def test_a_project_that_is_not_there(self, tmp_path, environ):
        lines = examine(tmp_path / "gone", [], environ)
        assert only(lines, "project").text == f"the project's folder does not exist ({tmp_path / 'gone'})"

    def test_several_crates(self, make_project, environ):
        project = make_project(
            settings='[[tool.rustcuda.crates]]\ncrate = "kernels"\ncapabilities = "8.0"\n'
            '[[tool.rustcuda.crates]]\ncrate = "more"\nmodule = "some_package.more"\ncapabilities = "9.0"\n'
            '[[tool.rustcuda.crates]]\ncrate = "gone"\nmodule = "some_package.gone"\n',
            files={"more/Cargo.toml": DEVICE_MANIFEST},
        )
        text = (project / "pyproject.toml").read_text(encoding="utf-8")
        (project / "pyproject.toml").write_text(
            text.replace('\ncrate = "kernels"\n', "\n", 1), encoding="utf-8"
        )
        lines = examine(project, [], environ)
        assert only(lines, "project").text.startswith(f"{project}, crate kernels, crate more, crate gone,")
        assert only(lines, "crate").state == "missing"
        listed = [line.text.partition(" ")[0] for line in lines if line.topic == "capabilities"]
        assert listed == ["8.0", "9.0"]
        # The same toolchain is said once.
        assert len([line for line in lines if (line.topic, line.state) == ("Rust", "ok")]) == 1

    def test_ptx_that_few_gpus_take(self, make_project, environ):
        lines = examine(make_project(), ["capabilities=9.0a+PTX"], environ)
        assert "runs only on that GPU" in only(lines, "capabilities", "warning").text


class TestRust:
    def test_every_candidate_and_why_not(self, tmp_path, environ, toolchain):
        old = make_toolchain(tmp_path / "old", "1.95.0")
        bare = make_toolchain(tmp_path / "toolchains" / "stable", source=False)
        broken = program(tmp_path / "broken" / "rustc", "exit 1")
        path = [*(str(rustc.parent) for rustc in (old, bare, broken)), environ["PATH"]]
        last = make_toolchain(tmp_path / "last", "1.97.0")
        lines = examine(tmp_path, [], {"PATH": os.pathsep.join([*path, str(last.parent)])})
        over = [
            (line.text, line.fix) for line in lines if (line.topic, line.state) == ("Rust", "passed over")
        ]
        assert over[0] == (f"rustc 1.95.0 ({old}; PATH): rustc 1.95.0 is older than 1.96", "")
        assert "neither the target" in over[1][0]
        assert over[1][1] == "rustup component add rust-src --toolchain stable"
        assert over[2] == (f"({broken}; PATH): {broken} failed", "")
        assert over[-1] == (f"rustc 1.97.0 ({last}; PATH): an earlier one fits", "")
        assert f"rustc {toolchain.version} " in only(lines, "Rust", "ok").text

    def test_none(self, tmp_path):
        lines = examine(tmp_path, [], {"PATH": str(tmp_path)})
        line = only(lines, "Rust")
        assert (line.state, line.fix) == ("missing", rust.INSTALL_HINT)
        assert not states(lines, "cargo", "linker", "core")

    def test_one_that_lacks_a_component(self, tmp_path):
        bare = make_toolchain(tmp_path / "toolchains" / "stable", source=False)
        line = only(examine(tmp_path, [], {"PATH": str(bare.parent)}), "Rust", "missing")
        assert line.fix == "rustup component add rust-src --toolchain stable"

    def test_one_that_was_asked_for(self, tmp_path, make_project, environ):
        old = make_toolchain(tmp_path / "old", "1.95.0")
        lines = examine(make_project(), [f"toolchain={old}"], environ)
        (line,) = [line for line in lines if line.topic == "Rust"]
        assert line.state == "missing"
        assert "setting 'toolchain'" in line.text
        assert "1.95.0 is older" in line.text
        lines = examine(tmp_path, [], environ | {"RUSTC": str(old)})
        assert "RUSTC" in only(lines, "Rust").text

    def test_one_that_rustup_does_not_have(self, tmp_path, make_project):
        program(tmp_path / "bin" / "rustup", "echo 'error: toolchain is not installed' >&2; exit 1")
        lines = examine(make_project(), ["toolchain=1.2.3"], {"PATH": str(tmp_path / "bin")})
        line = only(lines, "Rust")
        assert line.state == "missing"
        assert "toolchain is not installed (setting 'toolchain' = '1.2.3')" in line.text
        assert line.fix.startswith("rustup toolchain install")

    def test_cargo_that_fails(self, tmp_path):
        rustc = make_toolchain(tmp_path / "t")
        program(tmp_path / "t/bin/cargo", "echo 'cargo is broken' >&2; exit 1")
        line = only(examine(tmp_path, [], {"PATH": str(rustc.parent)}), "cargo")
        assert line == Line(
            "cargo", "missing", f"cargo is broken ({tmp_path / 't/bin/cargo'})", rust.INSTALL_HINT
        )
        (tmp_path / "t/bin/cargo").chmod(0o644)
        line = only(examine(tmp_path, [], {"PATH": str(rustc.parent)}), "cargo")
        assert "it does not start: Permission denied" in line.text

    def test_linker(self, tmp_path, make_project):
        rustc = make_toolchain(tmp_path / "t")
        environ = {"PATH": str(rustc.parent)}
        assert only(examine(tmp_path, [], environ), "linker").state == "warning"
        needing = make_project(manifest=DEVICE_MANIFEST)
        assert only(examine(needing, [], environ), "linker").state == "missing"
        assert not states(
            examine(needing, [], environ | {"CARGO_TARGET_SOME_HOST_LINKER": "clang"}), "linker"
        )


class TestCuda:
    @pytest.mark.usefixtures("without_wheels")
    def test_an_isolated_build_brings_its_own(self, make_project, environ, tmp_path):
        wheels = " ".join(CUDA_VERSIONS["12.9"].wheels)
        for project in (make_project(), tmp_path):
            lines = examine(project, [], environ)
            line = only(lines, "CUDA 12.9", "note")
            assert "an isolated build, which is pip's default, brings its own" in line.text
            assert line.fix == f"pip install {wheels}"
            lines = examine(project, [], environ, isolated=False)
            line = only(lines, "CUDA 12.9", "missing")
            assert (line.text, line.fix) == ("there is no ptxas of CUDA 12.9", f"pip install {wheels}")
            over = [line.text for line in lines if (line.topic, line.state) == ("CUDA 12.9", "passed over")]
            assert over == ["NVIDIA's wheels: no ptxas", f"{tmp_path / 'usr-local-cuda'}: no ptxas"]
            other = only(lines, "CUDA 13.0")
            assert other.state == "note"
            assert other.fix == f"pip install {' '.join(CUDA_VERSIONS['13.0'].wheels)}"

    @pytest.mark.usefixtures("without_wheels")
    @pytest.mark.parametrize(
        ("requires", "state"),
        [
            ('"rustcuda-backend"', "missing"),
            (
                '"rustcuda-backend", "nvidia-cuda-nvcc-cu12==12.9.86", "NVIDIA_nvfatbin_cu12", "odd =="',
                "note",
            ),
        ],
    )
    def test_as_a_plugin_the_project_has_to_require_them(self, make_project, environ, requires, state):
        project = make_project()
        text = (project / "pyproject.toml").read_text(encoding="utf-8")
        text = text.replace('build-backend = "rustcuda_backend"', 'build-backend = "setuptools.build_meta"')
        text = text.replace('requires = ["rustcuda-backend"]', f"requires = [{requires}]")
        (project / "pyproject.toml").write_text(text, encoding="utf-8")
        lines = examine(project, [], environ)
        assert [line.state for line in lines if line.topic == "CUDA 12.9"][-1] == state

    def test_a_toolkit_that_was_named(self, tmp_path, environ):
        root = make_toolkit(tmp_path / "cuda", CUDA_VERSIONS["12.9"])
        lines = examine(tmp_path, [], environ | {"CUDA_HOME": str(root)})
        ptxas, _ = [line.text for line in lines if (line.topic, line.state) == ("CUDA 12.9", "ok")]
        assert f"CUDA_HOME={root}" in ptxas
        # It would be used for the other version as well, so there is nothing to say of that one.
        assert not states(lines, "CUDA 13.0")

    def test_a_toolkit_that_was_named_and_is_broken(self, tmp_path, environ, make_project):
        lines = examine(tmp_path, [], environ | {"CUDA_HOME": str(tmp_path)})
        line = only(lines, "CUDA 12.9", "missing")
        assert "CUDA_HOME names a CUDA toolkit that has no ptxas" in line.text
        assert "unset CUDA_HOME" in line.fix
        lines = examine(make_project(), ["ptxas=/nowhere/ptxas"], environ)
        line = only(lines, "CUDA 12.9", "missing")
        assert "'/nowhere/ptxas', which is no file" in line.text

    def test_places_that_are_passed_over(self, tmp_path, environ, monkeypatch):
        other = copied_toolkit(tmp_path / "other", CUDA_VERSIONS["12.9"], release="11.8.89")
        silent = program(tmp_path / "silent/bin/ptxas", "echo none").parents[1]
        lacking = make_toolkit(tmp_path / "lacking", CUDA_VERSIONS["12.9"], lacks=["libdevice"])
        monkeypatch.setattr(toolkit, "DEFAULT_TOOLKIT", lacking)
        lines = examine(tmp_path, [], {"PATH": os.pathsep.join([str(other / "bin"), environ["PATH"]])})
        over = [line.text for line in lines if (line.topic, line.state) == ("CUDA 12.9", "passed over")]
        assert over == [
            f"PATH: {other / 'bin/ptxas'}, it is 11.8.89, not of CUDA 12.9",
            f"{lacking}: {lacking / 'bin/ptxas'}, no libdevice.10.bc",
        ]
        monkeypatch.setattr(toolkit, "DEFAULT_TOOLKIT", silent)
        lines = examine(tmp_path, [], environ)
        assert "this is not ptxas" in only(lines, "CUDA 12.9", "passed over").text


class TestGpu:
    def gpu(self, tmp_path, text):
        asked = '[ "$*" = "--query-gpu=name,compute_cap,driver_version --format=csv,noheader" ] || exit 9'
        return machine(tmp_path, f"#!/bin/sh\n{asked}\nprintf '{text}'\n")

    def test_what_nvidia_smi_says(self, tmp_path):
        environ = self.gpu(tmp_path, "NVIDIA H200, 9.0, 580.65.06\\nRTX A, B, 8.6, 470.1\\n")
        assert present_gpus(environ) == (
            (Gpu("NVIDIA H200", "9.0", "580.65.06"), Gpu("RTX A, B", "8.6", "470.1")),
            "",
        )

    def test_driver_and_capabilities_that_serve(self, tmp_path, make_project, environ):
        smi = self.gpu(tmp_path, "NVIDIA H200, 9.0, 580.65.06\\n")
        for capabilities in ("9.0", "8.0+PTX", "9.0a", "8.0;9.0"):
            lines = examine(make_project(), [f"capabilities={capabilities}"], environ | smi)
            assert only(lines, "GPU") == Line(
                "GPU", "ok", "NVIDIA H200, capability 9.0, driver 580.65.06; kernels of CUDA 12.9 need 525"
            )

    def test_capabilities_that_do_not_serve(self, tmp_path, make_project, environ):
        smi = self.gpu(tmp_path, "NVIDIA H200, 9.0, 580.65.06\\n")
        for capabilities in ("8.0", "10.0+PTX", "10.0f"):
            lines = examine(make_project(), [f"capabilities={capabilities}"], environ | smi)
            line = only(lines, "GPU", "warning")
            assert line.text == (
                "the capabilities from config setting -C capabilities have no code for this GPU"
            )
            assert line.fix == f'capabilities = "{capabilities};9.0"'

    def test_driver_that_is_too_old(self, tmp_path, environ):
        lines = examine(tmp_path, [], environ | self.gpu(tmp_path, "A100, 8.0, 470.1\\n"))
        assert only(lines, "GPU") == Line(
            "GPU",
            "warning",
            "A100, capability 8.0, driver 470.1: too old, kernels of CUDA 12.9 need 525",
            "update NVIDIA's driver to branch 525 or newer",
        )

    def test_gpu_that_nothing_serves(self, tmp_path, make_project, environ):
        smi = self.gpu(tmp_path, "P100, 6.0, 580.1\\n")
        line = only(examine(make_project(), [], environ | smi), "GPU", "warning")
        assert "6.0" in line.text

    def test_none(self, tmp_path, environ):
        assert "there is no nvidia-smi on PATH" in only(examine(tmp_path, [], environ), "GPU").text
        smi = machine(tmp_path, "#!/bin/sh\necho 'Failed to initialize NVML\nmore' >&2; exit 9\n")
        line = only(examine(tmp_path, [], environ | smi), "GPU")
        assert line.state == "note"
        assert "finds no GPU: Failed to initialize NVML; a build needs none" in line.text
        smi = machine(tmp_path, "#!/bin/sh\nexit 9\n")
        assert "exit status 9" in only(examine(tmp_path, [], environ | smi), "GPU").text
        smi = machine(tmp_path, "\x7fELF of another machine")
        assert "does not start" in only(examine(tmp_path, [], environ | smi), "GPU").text


class TestTheRest:
    def test_cache_folder(self, tmp_path, environ, monkeypatch):
        monkeypatch.setenv("RUSTCUDA_CACHE_DIR", str(tmp_path / "not" / "yet"))
        lines = examine(tmp_path, [], environ)
        assert only(lines, "cache") == Line("cache", "ok", str(tmp_path / "not" / "yet"))
        # Nothing is made by looking.
        assert not (tmp_path / "not").exists()
        assert only(lines, "core").state == "note"
        (tmp_path / "file").touch()
        monkeypatch.setenv("RUSTCUDA_CACHE_DIR", str(tmp_path / "file" / "cache"))
        line = only(examine(tmp_path, [], environ), "cache")
        assert line.state == "missing"
        assert line.fix == "set RUSTCUDA_CACHE_DIR to a folder that can be written"

    def test_core_in_the_cache(self, tmp_path, environ, gpu_sysroot):
        assert gpu_sysroot
        assert only(examine(tmp_path, [], environ), "core").state == "ok"

    def test_torch_is_not_imported(self, tmp_path, environ, monkeypatch):
        (tmp_path / "torch.py").write_text("raise SystemExit('imported')\n", encoding="utf-8")
        (tmp_path / "torch-2.9.0+cu128.dist-info").mkdir()
        (tmp_path / "torch-2.9.0+cu128.dist-info/METADATA").write_text(
            "Metadata-Version: 2.1\nName: torch\nVersion: 2.9.0+cu128\n", encoding="utf-8"
        )
        monkeypatch.syspath_prepend(str(tmp_path))
        lines = examine(tmp_path, [], environ)
        assert "torch 2.9.0+cu128" in [line.text for line in lines]
        monkeypatch.setattr(sys, "path", [str(tmp_path / "none")])
        assert "torch is not installed; a build does not need it" in [
            line.text for line in examine(tmp_path, [], environ)
        ]


class TestCommand:
    def test_inside_a_project(self, make_project, environ, monkeypatch, capsys):
        monkeypatch.chdir(make_project())
        monkeypatch.setenv("PATH", environ["PATH"])
        assert main(["doctor"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[-1] == "a build can start"
        assert any(line.split()[:2] == ["project", "ok"] for line in lines)

    def test_what_is_missing_and_what_mends_it(self, tmp_path, monkeypatch, capsys):
        monkeypatch.setenv("PATH", str(tmp_path))
        assert main(["doctor", "--project", str(tmp_path)]) == 1
        lines = capsys.readouterr().out.splitlines()
        assert lines[-1] == "a build would fail: Rust"
        (missing,) = [number for number, line in enumerate(lines) if "MISSING" in line]
        fixes = [line.strip().removeprefix("-> ") for line in lines[missing + 1 : missing + 3]]
        assert fixes == rust.INSTALL_HINT.splitlines()

    def test_json(self, make_project, environ, monkeypatch, capsys):
        monkeypatch.setenv("PATH", environ["PATH"])
        assert main(["doctor", "--json", "--project", str(make_project()), "-C", "capabilities=8.0"]) == 0
        content = json.loads(capsys.readouterr().out)
        (line,) = [line for line in content if line["topic"] == "capabilities"]
        assert line == {
            "topic": "capabilities",
            "state": "ok",
            "text": "8.0 from config setting -C capabilities",
            "fix": "",
        }

    def test_texts_of_several_lines(self, capsys):
        _print([Line("Rust", "missing", "first\nsecond", "one\ntwo")])
        assert capsys.readouterr().out == (
            "Rust  MISSING  first\n"
            "               second\n"
            "               -> one\n"
            "               -> two\n"
            "\n"
            "a build would fail: Rust\n"
        )

    def test_as_a_program(self, tmp_path):
        argv = [sys.executable, "-m", "rustcuda_backend", "doctor", "--no-isolation", "--project"]
        done = subprocess.run([*argv, tmp_path / "gone"], capture_output=True, check=False, text=True)
        assert done.returncode == 1
        assert "the project's folder does not exist" in done.stdout
