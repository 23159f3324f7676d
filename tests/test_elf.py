"""Object files with a fatbin in them: what CUDA's own tools and the loader read of them."""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

import pytest
from cuda_wheels import cuobjdump
from elftools.elf.constants import P_FLAGS
from elftools.elf.elffile import ELFFile
from projects import MakeProject

from rustcuda_backend import elf, pipeline, process
from rustcuda_backend.pipeline import Kernels
from rustcuda_backend.pyproject import read_table
from rustcuda_backend.report import Report
from rustcuda_backend.settings import read_settings


def build(project: Path, capabilities: str, container: str = "elf") -> Kernels:
    config = {"capabilities": capabilities, "container": container}
    settings = read_settings(read_table(project) or {}, config, {})
    return pipeline.build(project, "some_package.kernels_cuda", settings, Report())


@pytest.mark.parametrize("size", [0, 1, 7, 8, 1000])
def test_the_section_holds_the_fatbin_at_the_offset(size: int) -> None:
    fatbin = bytes(index % 251 for index in range(size))
    data = elf.object_file(fatbin)
    assert data == elf.object_file(fatbin)
    assert data[elf.OFFSET : elf.OFFSET + size] == fatbin
    read = ELFFile(io.BytesIO(data))
    assert (read.elfclass, read.little_endian, read["e_type"]) == (64, True, "ET_REL")
    names = [section.name for section in read.iter_sections()]
    assert names == ["", ".nv_fatbin", ".note.GNU-stack", ".shstrtab"]
    stack = read.get_section_by_name(".note.GNU-stack")
    assert (stack["sh_size"], stack["sh_flags"]) == (0, 0), "no executable stack"
    section = read.get_section_by_name(elf.SECTION)
    assert section.data() == fatbin
    assert section["sh_offset"] % section["sh_addralign"] == read["e_shoff"] % 8 == 0
    assert len(data) == read["e_shoff"] + 4 * read["e_shentsize"]


@pytest.mark.parametrize("options", [(), ("-shared",)])
def test_what_is_linked_with_it_has_no_executable_stack(tmp_path: Path, options: tuple[str, ...]) -> None:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if sys.platform != "linux" or not compiler:
        pytest.skip("no C compiler for ELF")
    fatbin = bytes(range(200))
    (tmp_path / "kernels.o").write_bytes(elf.object_file(fatbin))
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n", encoding="utf-8")
    argv = [compiler, "-fPIC", *options, "main.c", "kernels.o", "-o", "linked"]
    finished = process.run(argv, cwd=tmp_path)
    assert finished.ok, finished.stderr
    assert "executable stack" not in finished.stderr
    read = ELFFile(io.BytesIO((tmp_path / "linked").read_bytes()))
    (stack,) = (each for each in read.iter_segments() if each["p_type"] == "PT_GNU_STACK")
    assert stack["p_flags"] == P_FLAGS.PF_R | P_FLAGS.PF_W
    assert read.get_section_by_name(elf.SECTION).data() == fatbin


def test_cuobjdump_reads_the_object_as_it_reads_the_fatbin(make_project: MakeProject, tmp_path: Path) -> None:
    kernels = build(make_project(), "8.0;9.0a;12.0+PTX")
    files = kernels.files("kernels_cuda")
    assert set(files) == {"kernels_cuda.py", "kernels_cuda.pyi", "kernels_cuda.o"}
    said = {}
    for name, data in (("k.o", files["kernels_cuda.o"]), ("k.fatbin", kernels.fatbin)):
        (tmp_path / name).write_bytes(data)
        for option in ("-lelf", "-lptx", "-sass"):
            finished = process.run([cuobjdump(), option, tmp_path / name])
            assert finished.ok, finished.stderr
            said[name, option] = finished.stdout.replace(name.removesuffix(Path(name).suffix), "k")
    listed = [line.rsplit(maxsplit=1)[1] for line in said["k.o", "-lelf"].splitlines()]
    assert [name.split(".", 1)[1] for name in listed] == ["sm_80.cubin", "sm_90a.cubin", "sm_120.cubin"]
    assert "sm_120.ptx" in said["k.o", "-lptx"]
    assert said["k.o", "-sass"].count("Function : store") == 3
    code = [line for line in said["k.fatbin", "-sass"].splitlines() if "/*" in line]
    assert [line for line in said["k.o", "-sass"].splitlines() if "/*" in line] == code


def test_the_loader_is_told_where_the_fatbin_is(make_project: MakeProject) -> None:
    project = make_project()
    in_object, bare = build(project, "8.0"), build(project, "8.0", "fatbin")
    assert in_object.fatbin == bare.fatbin
    object_call = in_object.loader.python.partition("_library = _Library(")[2].partition("\n)\n")[0]
    bare_call = bare.loader.python.partition("_library = _Library(")[2].partition("\n)\n")[0]
    assert object_call == bare_call.replace('".fatbin"', '".o"') + f"\n    {elf.OFFSET},"
