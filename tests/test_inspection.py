"""What `inspect` finds in files of every kind, ours and those that nvcc and fatbinary make."""

from __future__ import annotations

import json
import shutil
import struct
import zipfile

import pytest
from cuda_wheels import cuobjdump, ptx, wheel_file
from hypothesis import given, settings
from hypothesis import strategies as st
from wheels_by_hand import fatbin_of, loader_of, module_files, wheel

from rustcuda_backend import driver_floor, elf, process, ptx_outline
from rustcuda_backend.capability import Capability
from rustcuda_backend.cli import main
from rustcuda_backend.cubin_resources import Toolkit, read_kernels, read_toolkit
from rustcuda_backend.cuda_versions import CUDA_VERSIONS, DriverFloor
from rustcuda_backend.errors import FormatError
from rustcuda_backend.inspection import inspect

CUDA_C = """
__global__ void one(float *x, int n) {
    __shared__ float block[256];
    block[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[0] = block[n & 255];
}
__global__ void two(int *p) {
    volatile int a[100];
    for (int i = 0; i < 100; i++) a[i] = p[i];
    p[0] = a[p[1] % 100];
}
"""


def program(name):
    found = wheel_file("nvidia-cuda-nvcc", f"/bin/{name}", "RUSTCUDA_TEST_CUDA130")
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def ran(*argv):
    finished = process.run(argv)
    assert finished.ok, finished.stdout + finished.stderr
    return finished.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("inspection")


@pytest.fixture(scope="module")
def nvcc(folder):
    """Compiles the CUDA C++ above into a file of the kind that the arguments ask for."""
    source = folder / "kernels.cu"
    source.write_text(CUDA_C, encoding="utf-8")
    compiler = program("nvcc")
    # It preprocesses with the host's compiler.
    if not shutil.which("g++"):
        pytest.skip("g++ is not installed")

    def compile_to(name, *arguments):
        if not (folder / name).exists():
            ran(compiler, *arguments, source, "-o", folder / name)
        return folder / name

    return compile_to


@pytest.fixture(scope="module")
def embedded(folder):
    """Puts images into a section of an object file, with the assembler text that nvcc has for it."""
    headers = program("nvcc").parent.parent / "include"
    if not shutil.which("gcc") or not (headers / "fatbinary_section.h").exists():
        pytest.skip("gcc or CUDA's headers are not installed")

    def embed(name, *arguments):
        unit = folder / f"{name}.c"
        ran(program("fatbinary"), f"--create={folder / name}.fatbin", f"--embedded-fatbin={unit}", *arguments)
        ran("gcc", "-w", "-fPIC", f"-I{headers}", "-c", unit, "-o", folder / f"{name}.o")
        return folder / f"{name}.o"

    return embed


def shape(parts):
    return [
        [(image.capability, image.kind, image.compression, image.driver) for image in part.images]
        for part in parts
    ]


def resources(image):
    return {
        kernel.name: (kernel.registers, kernel.shared, kernel.local, kernel.stack) for kernel in image.kernels
    }


class TestOurs:
    def test_wheel(self, tmp_path, tools):
        path = wheel(tmp_path / "pkg-1.whl", module_files(tools, "8.0;9.0a;10.0f;12.0+PTX"))
        (part,) = inspect(path)
        assert part.place == "pkg/kernels_cuda.fatbin"
        assert shape([part]) == [
            [
                ("8.0", "SASS", "none", 525),
                ("9.0a", "SASS", "none", 525),
                ("10.0f", "SASS", "none", 570),
                ("12.0", "SASS", "none", 570),
                ("12.0", "PTX", "none", 575),
            ]
        ]
        for image in part.images:
            assert {kernel.name: kernel.signature for kernel in image.kernels} == {
                "saxpy": "saxpy(out: *mut u32)",
                "other": "other()",
            }
        assert part.images[0].driver_source == "CUDA 12.9 by API version"
        assert part.images[3].driver_source == "CUDA 12.9 by toolkit note"
        assert part.images[4].driver_source == "PTX ISA 8.8"
        assert all(kernel.registers is None for kernel in part.images[4].kernels)

    def test_the_table(self, tmp_path, tools, capsys):
        path = wheel(tmp_path / "pkg-1.whl", module_files(tools, "8.0;9.0a+PTX"))
        assert main(["inspect", str(path)]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == "pkg/kernels_cuda.fatbin"
        header = " ".join(lines[1].split())
        assert header == "capability image compression bytes kernels driver from known by"
        assert lines[2].split()[:3] == ["8.0", "SASS", "none"]
        assert lines[4].split()[0:3:2] == ["9.0a", "none"]
        assert lines[6].split() == ["kernel", "capability", "registers", "shared", "local", "stack"]
        assert [line.split()[:2] for line in lines[7:11]] == [
            ["other", "8.0"],
            ["other", "9.0a"],
            ["saxpy", "8.0"],
            ["saxpy", "9.0a"],
        ]
        assert lines[11:] == ["", "  other()", "  saxpy(out: *mut u32)"]

    def test_json(self, tmp_path, tools, capsys):
        path = wheel(tmp_path / "pkg-1.whl", module_files(tools, "8.0+PTX"))
        assert main(["inspect", "--json", str(path)]) == 0
        content = json.loads(capsys.readouterr().out)
        assert content["file"] == str(path)
        (part,) = content["parts"]
        sass, text = part["images"]
        assert (sass["capability"], sass["kind"], text["kind"]) == ("8.0", "SASS", "PTX")
        kernel = next(kernel for kernel in sass["kernels"] if kernel["name"] == "saxpy")
        assert kernel["registers"] > 0
        assert kernel["signature"] == "saxpy(out: *mut u32)"
        assert {kernel["registers"] for kernel in text["kernels"]} == {None}

    def test_two_modules_and_a_hosts_library(self, tmp_path, tools, capsys):
        files = module_files(tools, "8.0")
        more = {
            "pkg/more/k.fatbin": files["pkg/kernels_cuda.fatbin"],
            "pkg/plain.so": elf.object_file(b"").replace(b".nv_fatbin", b".no_fatbin"),
            "pkg/old.so": b"\x7fELF\x01\x01" + bytes(60),
            "pkg/k.ptx": ptx("9.0").text.encode(),
        }
        path = wheel(tmp_path / "pkg-1.whl", {**files, **more})
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("pkg/folder/", b"")
        assert [part.place for part in inspect(path)] == [
            "pkg/kernels_cuda.fatbin",
            "pkg/more/k.fatbin",
            "pkg/k.ptx",
        ]
        assert main(["inspect", str(path)]) == 0
        # Parts are set apart.
        assert "\n\npkg/more/k.fatbin\n" in capsys.readouterr().out

    def test_object_file(self, tmp_path, tools):
        path = wheel(tmp_path / "pkg-1.whl", module_files(tools, "8.0;9.0", container="elf"))
        (part,) = inspect(path)
        assert part.place == "pkg/kernels_cuda.o, .nv_fatbin"
        assert [kernel.signature for kernel in part.images[0].kernels] != ["", ""]

    @pytest.mark.parametrize("beside", [True, False])
    def test_fatbin_with_and_without_its_loader(self, tmp_path, tools, beside):
        fatbin = fatbin_of(tools, "8.0")
        (tmp_path / "k.fatbin").write_bytes(fatbin)
        loader = loader_of(tools, fatbin, "8.0")[".py"] if beside else "# by hand\n"
        (tmp_path / "k.py").write_text(loader, encoding="utf-8")
        (part,) = inspect(tmp_path / "k.fatbin")
        assert part.place == ""
        assert any(kernel.signature for kernel in part.images[0].kernels) == beside

    def test_cubin_and_ptx(self, tmp_path, tools):
        fatbin = fatbin_of(tools, "9.0a")
        (tmp_path / "k.cubin").write_bytes(fatbin[fatbin.index(b"\x7fELF") :])
        (tmp_path / "k.ptx").write_text(ptx("9.0a").text, encoding="utf-8")
        assert shape(inspect(tmp_path / "k.cubin")) == [[("9.0a", "SASS", "none", 525)]]
        assert shape(inspect(tmp_path / "k.ptx")) == [[("9.0a", "PTX", "none", 525)]]


class TestNvcc:
    def test_fatbin(self, nvcc):
        path = nvcc(
            "k.fatbin",
            "-fatbin",
            "-gencode=arch=compute_80,code=sm_80",
            "-gencode=arch=compute_90a,code=sm_90a",
            "-gencode=arch=compute_90,code=compute_90",
        )
        (part,) = inspect(path)
        # nvcc 13 compresses PTX unasked.
        assert shape([part]) == [
            [
                ("8.0", "SASS", "none", 580),
                ("9.0a", "SASS", "none", 580),
                ("9.0", "PTX", "zstd", None),
            ]
        ]
        assert part.images[2].kernels is None
        assert part.images[2].driver_source == "compressed; reading zstd takes 550"
        found = resources(part.images[0])
        assert found["_Z3onePfi"][1:] == (1024, 0, 0)
        assert found["_Z3twoPi"][1:] == (0, 0, 400)

    def test_as_the_referee_says(self, nvcc):
        path = nvcc("k90.cubin", "-cubin", "-arch=sm_90")
        said = ran(cuobjdump(), "-res-usage", path)
        ((image,),) = [part.images for part in inspect(path)]
        for name, (registers, shared, local, stack) in resources(image).items():
            assert f"Function {name}:\n" in said
            line = said.split(f"Function {name}:\n")[1].splitlines()[0]
            # The system's own KiB of shared memory is counted in there, where there is any.
            with_system = shared + 1024 if shared else shared
            assert f"REG:{registers} STACK:{stack} SHARED:{with_system} LOCAL:{local} " in line

    def test_code_that_is_still_to_be_linked(self, nvcc):
        path = nvcc("lto.fatbin", "-fatbin", "-rdc=true", "-gencode=arch=compute_90,code=lto_90")
        assert shape(inspect(path)) == [[("9.0", "LTO-IR", "zstd", None)]]
        relocatable = nvcc("rdc.cubin", "-cubin", "-rdc=true", "-arch=sm_90")
        ((image,),) = [part.images for part in inspect(relocatable)]
        assert resources(image)["_Z3onePfi"][1:] == (1024, 0, 0)

    def test_compression(self, nvcc, folder, capsys):
        cubin = nvcc("k90.cubin", "-cubin", "-arch=sm_90")
        for mode, shown in (("speed", "LZ4"), ("size", "zstd"), ("none", "none")):
            path = folder / f"{mode}.fatbin"
            image = f"--image3=kind=elf,sm=90,file={cubin}"
            ran(program("fatbinary"), f"--create={path}", f"--compress-mode={mode}", "--compress-all", image)
            ((found,),) = [part.images for part in inspect(path)]
            assert found.compression == shown
            assert (found.kernels is None) == (mode != "none")
        assert main(["inspect", str(folder / "speed.fatbin")]) == 0
        _, _, row = capsys.readouterr().out.splitlines()
        assert row.split()[-3:] == ["-", "-", "compressed"]

    def test_object_and_library_with_several_fatbins(self, nvcc, embedded, folder):
        images = [
            f"--image3=kind=elf,sm={number},file={nvcc(f'k{number}.cubin', '-cubin', f'-arch=sm_{number}')}"
            for number in (80, 90)
        ]
        objects = [embedded("first", images[0]), embedded("second", images[1])]
        ((first,),) = [part.images for part in inspect(objects[0])]
        assert first.capability == "8.0"
        library = folder / "libkernels.so"
        ran("gcc", "-shared", *objects, "-o", library)
        (part,) = inspect(library)
        assert part.place == ".nv_fatbin"
        assert shape([part]) == [[("8.0", "SASS", "none", 580), ("9.0", "SASS", "none", 580)]]
        for image in part.images:
            assert resources(image)["_Z3onePfi"][1:] == (1024, 0, 0)
        program_file = folder / "program"
        (folder / "main.c").write_text("int main(void) { return 0; }\n", encoding="utf-8")
        ran("gcc", folder / "main.c", *objects, "-o", program_file)
        assert shape(inspect(program_file)) == shape([part])

    def test_section_for_linking(self, nvcc, embedded):
        cubin = nvcc("rdc.cubin", "-cubin", "-rdc=true", "-arch=sm_90")
        path = embedded("relocatable", "--device-c", f"--image3=kind=elf,sm=90,file={cubin}")
        (part,) = inspect(path)
        assert part.place == "__nv_relfatbin"
        assert shape([part]) == [[("9.0", "SASS", "zstd", None)]]


class TestNothingToSee:
    @pytest.mark.parametrize("content", ["import this\n", "OXIDEART\0\n.version 7.0\n.target sm_80\n"])
    def test_other_files(self, content, tmp_path, capsys):
        path = tmp_path / "other"
        path.write_text(content, encoding="utf-8")
        with pytest.raises(SystemExit) as ended:
            main(["inspect", str(path)])
        assert ended.value.code == 1
        what, where, hint = capsys.readouterr().err.splitlines()
        assert what == "rustcuda: error: this is no wheel, fatbin, cubin, PTX, ELF file or rlib"
        assert where.endswith(str(path))
        assert "name one of these" in hint

    def test_no_file(self, tmp_path):
        with pytest.raises(FormatError, match="cannot be read: No such file") as raised:
            inspect(tmp_path / "gone.whl")
        assert raised.value.where == str(tmp_path / "gone.whl")

    def test_no_device_code(self, tmp_path):
        path = tmp_path / "a.so"
        path.write_bytes(elf.object_file(b""))
        with pytest.raises(FormatError, match="no device code"):
            inspect(path)
        # Stripped of its sections.
        header = bytearray(elf.object_file(b"x"))
        struct.pack_into("<Q", header, 40, 0)
        path.write_bytes(bytes(header))
        with pytest.raises(FormatError, match="no device code"):
            inspect(path)
        path.write_bytes(b"\x7fELF\x01\x01" + bytes(60))
        with pytest.raises(FormatError, match="no device code"):
            inspect(path)
        with pytest.raises(FormatError, match="no device code"):
            inspect(wheel(tmp_path / "pkg-1.whl", {}))


class TestDamage:
    def test_where_it_is(self, tmp_path, tools):
        files = module_files(tools, "8.0")
        changed = bytearray(files["pkg/kernels_cuda.fatbin"])
        struct.pack_into("<I", changed, 16 + 28, 3)
        path = wheel(tmp_path / "pkg-1.whl", {**files, "pkg/kernels_cuda.fatbin": bytes(changed)})
        with pytest.raises(FormatError, match="names no capability") as raised:
            inspect(path)
        assert raised.value.where == f"{path}, pkg/kernels_cuda.fatbin, entry at byte 16"
        broken = bytearray(elf.object_file(b"x"))
        struct.pack_into("<Q", broken, 40, 1 << 40)
        path = wheel(tmp_path / "pkg-1.whl", {"pkg/broken.so": bytes(broken)})
        with pytest.raises(FormatError, match="section table") as raised:
            inspect(path)
        assert raised.value.where == f"{path}, pkg/broken.so"

    def test_loader(self, tmp_path, tools):
        files = module_files(tools, "8.0")
        files["pkg/kernels_cuda.py"] = files["pkg/kernels_cuda.py"].replace(b"_library = _Library(", b"x = (")
        with pytest.raises(FormatError, match="the generated loader is damaged") as raised:
            inspect(wheel(tmp_path / "pkg-1.whl", files))
        assert "pkg/kernels_cuda.fatbin" in raised.value.where

    def test_archive(self, tmp_path, tools):
        path = wheel(tmp_path / "pkg-1.whl", module_files(tools, "8.0"))
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2])
        with pytest.raises(FormatError, match="the archive cannot be read"):
            inspect(path)

    @pytest.mark.parametrize("kind", ["whl", "fatbin", "o", "ptx", "cubin"])
    def test_any(self, kind, tools, folder):
        good = self.files(tools, folder)[kind]

        @settings(deadline=None, max_examples=50)
        @given(st.data())
        def damaged(data):
            changed = bytearray(good)
            for place in data.draw(st.lists(st.integers(0, len(changed) - 1), min_size=1, max_size=4)):
                changed[place] ^= data.draw(st.integers(1, 255))
            path = folder / f"damaged.{kind}"
            path.write_bytes(bytes(changed[: data.draw(st.integers(0, len(changed)))]))
            try:
                assert inspect(path)
            except FormatError as error:
                assert str(path) in error.where  # noqa: PT017

        damaged()

    def files(self, tools, folder):
        files = module_files(tools, "8.0;9.0a+PTX")
        fatbin = files["pkg/kernels_cuda.fatbin"]
        return {
            "whl": wheel(folder / "good.whl", files).read_bytes(),
            "fatbin": fatbin,
            "o": elf.object_file(fatbin + bytes(12) + fatbin),
            "ptx": ptx("9.0").text.encode(),
            "cubin": fatbin[fatbin.index(b"\x7fELF") :],
        }


class TestFloors:
    def test_as_the_builds_own(self):
        for version in CUDA_VERSIONS.values():
            cuda = tuple(int(number) for number in version.name.split("."))
            for base in version.capabilities:
                capability = Capability(*base)
                assert driver_floor.of_sass(capability, cuda) == version.driver_floor(capability)

    @pytest.mark.parametrize(
        ("capability", "cuda", "branch"),
        [
            ((5, 2), (9, 2), 396),
            ((7, 5), (10, 2), 440),
            ((8, 0), (11, 8), 450),
            ((8, 6), (11, 8), 455),
            ((9, 0), (11, 8), 520),
            ((9, 0), (12, 9), 525),
            ((10, 0), (12, 8), 570),
        ],
    )
    def test_of_other_toolkits(self, capability, cuda, branch):
        floor = driver_floor.of_sass(Capability(*capability), cuda)
        assert floor
        assert floor.branch == branch

    def test_of_toolkits_to_come(self):
        assert driver_floor.of_sass(Capability(9, 0), (14, 1)) is None
        assert driver_floor.of_ptx(Capability(9, 0), "99.9") is None

    def test_of_ptx(self):
        assert driver_floor.of_ptx(Capability(8, 0), "7.0") == DriverFloor(450, 11000)
        assert driver_floor.of_ptx(Capability(9, 0), "8.0") == DriverFloor(525, 12000)
        assert driver_floor.of_ptx(Capability(10, 0), "8.6") == DriverFloor(570, 12080)

    def test_cubin_that_does_not_tell(self, tmp_path, tools, tools13):
        for its_tools, capability, source, driver in (
            (tools, "9.0", "ELF ABI 7", 525),
            (tools13, "9.0", "ELF ABI 8", 580),
            (tools13, "10.0", "ELF ABI 8", 570),
        ):
            fatbin = fatbin_of(its_tools, capability)
            cubin = fatbin[fatbin.index(b"\x7fELF") :].rstrip(b"\0")
            # Another tag than that of the API's version, and no release in the note.
            for version in (b"\x04\x37\x04\x00\x81\0\0\0", b"\x04\x37\x04\x00\x82\0\0\0"):
                cubin = cubin.replace(version, b"\x04\x70" + version[2:])
            (tmp_path / "k.cubin").write_bytes(cubin.replace(b"release 1", b"relaese 1"))
            ((image,),) = [part.images for part in inspect(tmp_path / "k.cubin")]
            assert (image.driver_source, image.driver) == (source, driver)


class TestPtxOutline:
    def test_what_is_no_definition(self):
        found = ptx_outline.read(
            b"// .entry no()\n.version 7.0 \n.target sm_86, debug\n/* .entry neither() {} */\n"
            b".extern .entry declared(.param .u64 p);\n"
            b".visible .entry a(.param .u64 p)\n.maxntid 256, 1, 1\n{}\n.entry b { ret; }\n.func f(){}\n\0\0"
        )
        assert found == ptx_outline.PtxOutline("7.0", Capability(8, 6), ("a", "b"))

    @pytest.mark.parametrize("text", [b"", b".version 7.0", b".target sm_80", b".version x\n.target sm_80"])
    def test_none(self, text):
        with pytest.raises(FormatError, match="no version or no target"):
            ptx_outline.read(text)


class TestAttributes:
    def cubin(self, tools):
        fatbin = fatbin_of(tools, "8.0")
        return bytearray(fatbin[fatbin.index(b"\x7fELF") :])

    def test_cut_off(self, tools):
        cubin = self.cubin(tools)
        # The register count's attribute says it is longer than its section.
        place = cubin.index(b"\x04\x2f\x08\x00")
        struct.pack_into("<H", cubin, place + 2, 60000)
        with pytest.raises(FormatError, match="attribute in the cubin is cut off"):
            read_kernels(bytes(cubin))

    def test_section_that_ends_within_an_attribute(self, tools):
        cubin = self.cubin(tools)
        offset = struct.unpack_from("<Q", cubin, 40)[0]
        for header in range(offset, offset + 64 * struct.unpack_from("<H", cubin, 60)[0], 64):
            kind, begin, size = struct.unpack_from("<4xI16xQQ", cubin, header)
            if kind == 0x70000000 and b"\x04\x2f\x08\x00" in cubin[begin : begin + size]:
                struct.pack_into("<Q", cubin, header + 32, 2)
        with pytest.raises(FormatError, match="attribute in the cubin is cut off"):
            read_kernels(bytes(cubin))

    def test_other_forms(self, tools):
        cubin = self.cubin(tools)
        without = bytes(cubin).replace(b"\x04\x2f\x08\x00", b"\x04\x70\x08\x00")
        assert {kernel.registers for kernel in read_kernels(without)} == {None}
        # Parameters that are not described one by one.
        undescribed = bytes(cubin).replace(b"\x04\x17\x0c\x00", b"\x04\x70\x0c\x00")
        found = {kernel.name: kernel.parameters for kernel in read_kernels(undescribed)}
        assert found == {"saxpy": None, "other": ()}
        assert read_toolkit(without) == Toolkit((12, 9), "API version")


class TestManySections:
    """An object file of more sections than the ELF header can count has the numbers in its first section."""

    def test_numbers_in_the_first_section(self, tmp_path, tools):
        fatbin = fatbin_of(tools, "8.0")
        changed = bytearray(elf.object_file(fatbin))
        table = struct.unpack_from("<Q", changed, 40)[0]
        count, names = struct.unpack_from("<HH", changed, 60)
        struct.pack_into("<HH", changed, 60, 0, 0xFFFF)
        struct.pack_into("<Q", changed, table + 32, count)
        struct.pack_into("<I", changed, table + 40, names)
        (tmp_path / "k.o").write_bytes(bytes(changed))
        assert shape(inspect(tmp_path / "k.o")) == [[("8.0", "SASS", "none", 525)]]

    @pytest.mark.parametrize(("offset", "value"), [(58, 63), (60, 60000), (62, 60000)])
    def test_malformed_table(self, tmp_path, offset, value):
        changed = bytearray(elf.object_file(b"x"))
        struct.pack_into("<H", changed, offset, value)
        (tmp_path / "k.o").write_bytes(bytes(changed))
        with pytest.raises(FormatError, match="section table is malformed or cut off"):
            inspect(tmp_path / "k.o")
