"""The command line as a whole, and the command `build`."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from wheels_by_hand import wheel

from rustcuda_backend import fatbin
from rustcuda_backend.check import check_wheel
from rustcuda_backend.cli import COMMANDS, main
from rustcuda_backend.project import config_settings
from rustcuda_backend.version import VERSION

PROGRAM = [sys.executable, "-m", "rustcuda_backend"]


def run(*arguments, **environment):
    environ = {**os.environ, "PYTHONUTF8": "0", **environment}
    return subprocess.run([*PROGRAM, *arguments], capture_output=True, check=False, env=environ)


def text_of(folder, kernels):
    """A PTX file with so many kernels."""
    text = "".join(f".visible .entry kernel_{number} () {{}}\n" for number in range(kernels))
    (folder / "k.ptx").write_text(f".version 8.0\n.target sm_80\n{text}", encoding="utf-8")
    return folder / "k.ptx"


def failed(capsys, *arguments):
    """What a command that the user has to mend prints, line by line."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    assert ended.value.code == 1
    return capsys.readouterr().err.splitlines()


class TestProgram:
    def test_help_names_every_command(self):
        done = run("--help")
        assert done.returncode == 0
        for command in COMMANDS:
            assert f"    {command.NAME} " in done.stdout.decode()
        assert {command.NAME for command in COMMANDS} >= {"doctor", "inspect", "build", "check", "init"}

    def test_version(self):
        assert run("--version").stdout.decode().strip() == f"rustcuda-backend {VERSION}"

    @pytest.mark.parametrize(
        "arguments",
        [[], ["bild"], ["build", "--nonsense"], ["build", "--out", "x"], ["inspect"], ["check"]],
    )
    def test_wrong_arguments(self, arguments):
        done = run(*arguments)
        assert done.returncode == 2
        assert b"usage: python -m rustcuda_backend" in done.stderr
        assert b"Traceback" not in done.stderr

    def test_a_reader_that_has_seen_enough(self, tmp_path):
        # More than a pipe holds, so that writing goes on after the reader is gone.
        with subprocess.Popen(
            [*PROGRAM, "inspect", "--json", text_of(tmp_path, 5000)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as child:
            assert child.stdout
            assert child.stderr
            child.stdout.read(10)
            child.stdout.close()
            said = child.stderr.read()
        assert said == b""
        assert child.returncode == 1

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
    @pytest.mark.parametrize("unbuffered", ["", "1"])
    @pytest.mark.parametrize("kernels", [1, 20_000])
    @pytest.mark.parametrize("arguments", [["inspect"], ["inspect", "--json"], ["--help"], ["build", "-h"]])
    def test_an_output_that_takes_nothing(self, tmp_path, arguments, kernels, unbuffered):
        # Less and more than what Python collects before it writes.
        path = text_of(tmp_path, kernels)
        file = [path] if arguments[0] == "inspect" else []
        with open("/dev/full", "wb") as full:  # noqa: PTH123
            done = subprocess.run(
                [*PROGRAM, *arguments, *file],
                stdout=full,
                stderr=subprocess.PIPE,
                check=False,
                env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            )
        assert done.stderr.decode().splitlines() == [
            "rustcuda: error: the output cannot be written: no space left on device",
            "rustcuda:   where: standard output",
        ]
        assert done.returncode == 1

    @pytest.mark.skipif(os.name == "nt", reason="closes a descriptor with a POSIX shell")
    @pytest.mark.parametrize("arguments", [["--version"], ["inspect", "k.ptx"], ["doctor", "--json"]])
    def test_an_output_that_is_closed(self, tmp_path, arguments):
        text_of(tmp_path, 1)
        script = f"{shlex.join([*PROGRAM, *arguments])} >&-"
        done = subprocess.run(["/bin/sh", "-c", script], cwd=tmp_path, stderr=subprocess.PIPE, check=False)
        assert done.stderr.decode().splitlines() == [
            "rustcuda: error: the output cannot be written: it is closed",
            "rustcuda:   where: standard output",
        ]
        assert done.returncode == 1

    @pytest.mark.parametrize("unbuffered", ["", "1"])
    @pytest.mark.parametrize("arguments", [["--help"], ["inspect", "k.ptx"], ["check", "k.ptx"]])
    def test_a_reader_that_is_gone(self, tmp_path, arguments, unbuffered):
        text_of(tmp_path, 1)
        read, write = os.pipe()
        os.close(read)
        try:
            done = subprocess.run(
                [*PROGRAM, *arguments],
                cwd=tmp_path,
                stdout=write,
                stderr=subprocess.PIPE,
                check=False,
                env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            )
        finally:
            os.close(write)
        assert b"Broken pipe" not in done.stderr
        assert b"Traceback" not in done.stderr
        assert (done.stderr == b"") == (arguments[0] != "check")
        assert done.returncode == 1

    def test_any_name_in_any_locale(self, tmp_path):
        path = tmp_path / "wärme 🦀.ptx"
        path.write_text(".version 8.0\n.target sm_80\n", encoding="utf-8")
        done = run("inspect", path, LC_ALL="C", PYTHONIOENCODING="ascii")
        assert done.returncode == 0
        assert b"rme " in done.stdout
        assert b"PTX ISA 8.0" in done.stdout
        done = run("inspect", tmp_path / "größe.whl", LC_ALL="C", PYTHONIOENCODING="ascii")
        assert done.returncode == 1
        assert b"cannot be read" in done.stderr
        assert b"Traceback" not in done.stderr

    def test_importing_it_does_nothing(self, capsys):
        importlib.import_module("rustcuda_backend.__main__")
        assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ([], {}),
        (["a=1"], {"a": "1"}),
        (["a=1=2", "b"], {"a": "1=2", "b": ""}),
        (["a=1", "a=2", "a=3"], {"a": ["1", "2", "3"]}),
    ],
)
def test_config_settings(texts, found):
    assert config_settings(texts) == found


class TestBuild:
    def test_into_a_folder(self, make_project, tmp_path, capsys, tools):
        assert tools
        project = make_project()
        output = tmp_path / "a b" / "ü"
        argv = ["build", "--project", str(project), "--output", str(output), "-C", "capabilities=8.0;9.0"]
        assert main(argv) == 0
        said = capsys.readouterr()
        names = ["kernels_cuda.py", "kernels_cuda.pyi", "kernels_cuda.fatbin"]
        assert said.out.splitlines() == [str(output / name) for name in names]
        assert sorted(path.name for path in output.iterdir()) == sorted(names)
        assert "packed" in said.err
        images = fatbin.read((output / "kernels_cuda.fatbin").read_bytes()).images
        assert [image.capability.name for image in images] == ["8.0", "9.0"]
        # What was written can be imported where it lies.
        code = "import kernels_cuda; print(kernels_cuda.store)"
        done = subprocess.run([sys.executable, "-c", code], cwd=output, capture_output=True, check=True)
        assert b"<kernel store[grid, block](out: *mut u32, value: u32)>" in done.stdout
        # In a wheel, nothing is wrong with it: the real compiler leaves no path of this machine.
        packed = wheel(
            tmp_path / "pkg-1.whl", {f"pkg/{name}": (output / name).read_bytes() for name in names}
        )
        assert check_wheel(packed).findings == ()
        # A second build overwrites the first; another container takes the first one's file away.
        assert main([*argv, "-C", "container=elf", "--module", "kernels_cuda"]) == 0
        assert sorted(path.name for path in output.iterdir()) == [
            "kernels_cuda.o",
            "kernels_cuda.py",
            "kernels_cuda.pyi",
        ]

    def test_the_project_here(self, make_project, monkeypatch, capsys):
        monkeypatch.chdir(make_project(settings='module = "some_package.fast"\ncapabilities = "8.0"'))
        assert main(["build"]) == 0
        assert capsys.readouterr().out.splitlines()[0] == os.path.join("build", "kernels", "fast.py")  # noqa: PTH118

    def test_several_crates(self, make_project, tmp_path, capsys):
        project = make_project(
            settings='[[tool.rustcuda.crates]]\ncrate = "kernels"\nmodule = "a.one"\n'
            '[[tool.rustcuda.crates]]\ncrate = "kernels"\nmodule = "b.two"\n'
        )
        path = project / "pyproject.toml"
        text = path.read_text(encoding="utf-8").replace(
            '\ncrate = "kernels"\n', '\ncapabilities = "8.0"\n', 1
        )
        path.write_text(text, encoding="utf-8")
        argv = ["build", "--project", str(project), "--output", str(tmp_path / "out")]
        assert main(argv) == 0
        assert {path.name for path in (tmp_path / "out").iterdir()} >= {"one.fatbin", "two.fatbin"}
        what, where, _ = failed(capsys, *argv, "--module", "x")[-3:]
        assert what == "rustcuda: error: --module cannot be given for several crates at once"
        assert where == "rustcuda:   where: --module"
        path.write_text(re.sub('module = ".*"\n', "", text), encoding="utf-8")
        what, where, _ = failed(capsys, *argv)[-3:]
        assert what == "rustcuda: error: two modules 'kernels_cuda' would be written to the same files"
        assert where == "rustcuda:   where: [[tool.rustcuda.crates]] number 2 crate"
        path.write_text(text.replace("b.two", "b.One"), encoding="utf-8")
        what, where, _ = failed(capsys, *argv)[-3:]
        assert "'a.one' and 'b.One' would be written to the same files" in what
        assert "[[tool.rustcuda.crates]] number 2 module" in where

    def test_mistakes(self, make_project, tmp_path, capsys):
        project = make_project()
        argv = ["build", "--project", project, "--output", tmp_path / "out"]
        for more, said, place in (
            (["--module", "9lives"], "'9lives' is no name of a Python module", "--module"),
            (["--module", "a..b"], "'a..b' is no name of a Python module", "--module"),
            (["--module", "a.class"], "'a.class' is no name of a Python module", "--module"),
            *(
                (["--module", name], f"'{name}' is no name of a Python module", "--module")
                for name in (
                    "__init__",
                    "x.__init__",
                    "x.__main__",
                    "__init__.x",
                    "x.__pycache__",
                    "x.",
                    ".x",
                    "x y",
                )
            ),
            (["--module", "../evil"], "'../evil' is no name of a Python module", "--module"),
            (["-C", "module=../evil"], "'../evil' is no name of a Python module", "-C module"),
            (["-C", "crate=../out"], "is outside the project", "-C crate"),
            (["-C", "jobs=0"], "'jobs'", "-C jobs"),
            (["-C", "capabilities="], "capability list is empty", "-C capabilities"),
        ):
            what, where, *_ = failed(capsys, *argv, *more)
            assert said in what
            assert place in where
        assert not (tmp_path / "out").exists()

    def test_no_project(self, tmp_path, capsys):
        what, where, _ = failed(capsys, "build", "--project", tmp_path)
        assert "there is no project with kernels here: no [tool.rustcuda]" in what
        assert str(tmp_path / "pyproject.toml") in where
        what, where = failed(capsys, "build", "--project", tmp_path / "gone")
        assert "the project's folder does not exist" in what
        assert str(tmp_path / "gone") in where

    def test_a_module_that_somebody_wrote(self, make_project, tmp_path, capsys):
        (tmp_path / "kernels_cuda.py").write_text("mine = 1\n", encoding="utf-8")
        what, where, _ = failed(capsys, "build", "--project", make_project(), "--output", tmp_path)
        assert "'kernels_cuda' is already there, and no build has made it" in what
        assert str(tmp_path / "kernels_cuda.py") in where

    def test_a_folder_that_cannot_be_written(self, make_project, tmp_path, capsys):
        (tmp_path / "file").touch()
        argv = ["build", "--project", make_project(), "--output", tmp_path / "file", "-C", "capabilities=8.0"]
        what, where, _ = failed(capsys, *argv)[-3:]
        assert "the kernels cannot be written: " in what
        assert str(tmp_path / "file") in where

    def test_the_compilers_message_is_whole(self, make_project, capsys):
        project = make_project('compile_error!("first line\\nsecond line");\n#![no_std]\n')
        said = failed(capsys, "build", "--project", project, "-C", "capabilities=8.0")
        assert any("first line" in line for line in said)
        assert any("second line" in line for line in said)
