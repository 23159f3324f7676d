"""What `check` finds in wheels that are right but for one thing."""

from __future__ import annotations

import stat
import struct
import zipfile

import pytest
from cuda_wheels import KERNELS, cuobjdump, ptx, wheel_file
from hypothesis import given, settings
from hypothesis import strategies as st
from oxart_blobs import CUBIN_KIND, LTO_KIND, NVVM_KIND, PTX, PTX_KIND, Blob, Host
from wheels_by_hand import ONE_KERNEL, OTHER, SAXPY, fatbin_of, loader_of, module_files, record_of, wheel

from rustcuda_backend import process
from rustcuda_backend.check import check_wheel
from rustcuda_backend.cli import main
from rustcuda_backend.errors import FormatError
from rustcuda_backend.signature import KernelSignature, Parameter
from rustcuda_backend.stripping import strip

FATBIN = "pkg/kernels_cuda.fatbin"
LOADER = "pkg/kernels_cuda.py"


@pytest.fixture
def files(tools):
    return module_files(tools)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("check")


@pytest.fixture(scope="module")
def good_wheel(tools, folder):
    return wheel(folder / "good.whl", module_files(tools)).read_bytes()


def findings(tmp_path, files, **more):
    return [str(finding) for finding in check_wheel(wheel(tmp_path / "pkg-1.whl", files, **more)).findings]


@pytest.mark.parametrize("container", ["fatbin", "elf"])
def test_a_good_wheel(tmp_path, tools, container, capsys):
    path = wheel(tmp_path / "pkg-1.whl", module_files(tools, container=container))
    outcome = check_wheel(path)
    assert (outcome.findings, outcome.notes) == ((), ())
    assert (outcome.modules, outcome.kernels, outcome.images) == (1, 2, 3)
    assert main(["check", str(path)]) == 0
    assert capsys.readouterr().out == "pkg-1.whl: all is well: 1 module, 2 kernels, 3 images\n"


def test_findings_are_lines(tmp_path, files, capsys):
    path = wheel(tmp_path / "pkg-1.whl", {**files, "pkg/k.ptx": b".version 8.0\n"})
    assert main(["check", str(path)]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert line == "pkg-1.whl: pkg/k.ptx: stray PTX: no loader in the wheel loads it"


class TestKernels:
    def test_other_fatbin(self, tmp_path, tools, files):
        found = findings(tmp_path, {**files, FATBIN: fatbin_of(tools, "8.0")})
        assert any("bytes, but" in line and "according to the loader" in line for line in found)
        assert any(line.startswith(f"{FATBIN}: the fatbin's SHA-256 is ") for line in found)
        assert f"{FATBIN}: there is no SASS for 9.0a, which the loader lists" in found
        assert f"{FATBIN}: there is no PTX for 9.0a, which the loader lists" in found

    def test_one_byte(self, tmp_path, files):
        changed = bytearray(files[FATBIN])
        changed[1000] ^= 1
        found = findings(tmp_path, {**files, FATBIN: bytes(changed)})
        assert any("SHA-256" in line for line in found)

    def test_stray_ptx(self, tmp_path, tools):
        found = findings(tmp_path, module_files(tools, "8.0;9.0+PTX", listed="8.0;9.0"))
        assert found == [f"{FATBIN}: there is stray PTX for 9.0, which the loader does not list"]

    def test_capability_that_the_loader_does_not_list(self, tmp_path, tools):
        found = findings(tmp_path, module_files(tools, "8.0;9.0", listed="8.0"))
        assert found == [f"{FATBIN}: there is SASS for 9.0, which the loader does not list"]

    def test_capability_of_another_kind(self, tmp_path, tools):
        found = findings(tmp_path, module_files(tools, "9.0a", listed="9.0"))
        assert found == [
            f"{FATBIN}: there is SASS for 9.0a, which the loader does not list",
            f"{FATBIN}: there is no SASS for 9.0, which the loader lists",
        ]

    def test_kernel_lacking_for_one_capability(self, tmp_path, tools):
        found = findings(tmp_path, module_files(tools, "8.0+PTX;9.0", kernels={"8.0": ONE_KERNEL}))
        assert found == [
            f"{FATBIN}: the SASS for 8.0 lacks the kernel 'other', and the loader does not know it",
            f"{FATBIN}: the PTX for 8.0 lacks the kernel 'other', and the loader does not know it",
        ]

    def test_kernel_that_the_loader_knows_to_be_lacking(self, tmp_path, tools, capsys):
        files = module_files(tools, "8.0;9.0", kernels={"8.0": ONE_KERNEL}, lacking={"other": "8.0"})
        path = wheel(tmp_path / "pkg-1.whl", files)
        assert main(["check", str(path)]) == 0
        note, last = capsys.readouterr().out.splitlines()
        assert note == f"note: {LOADER}: kernel 'other' is left out for 8.0, as the loader says"
        assert "all is well" in last

    def test_kernel_that_is_not_lacking_after_all(self, tmp_path, tools):
        found = findings(tmp_path, module_files(tools, "8.0;9.0", lacking={"other": "8.0"}))
        assert found == [
            f"{FATBIN}: the SASS for 8.0 has the kernel 'other', which the loader says is left out"
        ]

    def test_kernel_that_the_loader_does_not_know(self, tmp_path, tools):
        found = findings(tmp_path, module_files(tools, "8.0", signatures=[SAXPY]))
        assert found == [f"{FATBIN}: the SASS for 8.0 has the kernel 'other', which the loader does not know"]

    def test_other_parameters(self, tmp_path, tools):
        longer = KernelSignature("saxpy", (*SAXPY.parameters, Parameter("n", "scalar", "u16")))
        taking = KernelSignature("other", (Parameter("n", "scalar", "u16"),))
        found = findings(tmp_path, module_files(tools, "8.0", signatures=[taking, longer]))
        start = f"{FATBIN}: the SASS for 8.0: kernel"
        assert found == [
            f"{start} 'other' takes parameters of no bytes, but the loader passes 2",
            f"{start} 'saxpy' takes parameters of 8 bytes, but the loader passes 8 2",
        ]

    def test_driver_floor_that_is_too_low(self, tmp_path, tools, tools13):
        fatbin = fatbin_of(tools13, "9.0")
        texts = loader_of(tools, fatbin, "9.0")
        files = {f"pkg/kernels_cuda{suffix}": text.encode() for suffix, text in texts.items()}
        found = findings(tmp_path, {**files, FATBIN: fatbin})
        (line,) = found
        assert line.startswith(f"{FATBIN}: the SASS for 9.0 was written by CUDA 13.0 and needs driver 580, ")
        assert line.endswith("but 525 according to the loader")

    def test_compressed(self, tmp_path, tools):
        fatbinary = wheel_file("nvidia-cuda-nvcc", "/bin/fatbinary", "RUSTCUDA_TEST_CUDA130")
        if fatbinary is None:
            pytest.skip("fatbinary is not installed")
        (tmp_path / "k.ptx").write_text(ptx("9.0").text, encoding="utf-8")
        output = tmp_path / "k.fatbin"
        argv = [fatbinary, f"--create={output}", f"--image3=kind=ptx,sm=90,file={tmp_path / 'k.ptx'}"]
        assert process.run([*argv, "--compress-all"]).ok
        fatbin = output.read_bytes()
        texts = loader_of(tools, fatbin, "9.0+PTX")
        files = {f"pkg/kernels_cuda{suffix}": text.encode() for suffix, text in texts.items()}
        assert findings(tmp_path, {**files, FATBIN: fatbin}) == [
            f"{FATBIN}: the PTX for 9.0 is compressed, so it cannot be checked",
            f"{FATBIN}: there is no SASS for 9.0, which the loader lists",
        ]

    def test_entry_of_another_kind(self, tmp_path, tools, files):
        fatbin = bytearray(fatbin_of(tools, "8.0"))
        struct.pack_into("<H", fatbin, 16, 8)
        texts = loader_of(tools, bytes(fatbin), "8.0")
        files = {f"pkg/kernels_cuda{suffix}": text.encode() for suffix, text in texts.items()}
        assert findings(tmp_path, {**files, FATBIN: bytes(fatbin)}) == [
            f"{FATBIN}: there is code of the kind 8 for 8.0",
            f"{FATBIN}: there is no SASS for 8.0, which the loader lists",
        ]

    def test_damaged_fatbin(self, tmp_path, files):
        found = findings(tmp_path, {**files, FATBIN: files[FATBIN][:-10]})
        assert any("is cut off" in line for line in found)
        # The entry's number of the capability.
        changed = bytearray(files[FATBIN])
        struct.pack_into("<I", changed, 16 + 28, 3)
        found = findings(tmp_path, {**files, FATBIN: bytes(changed)})
        assert any("names no capability" in line and "entry at byte 16" in line for line in found)

    def test_damaged_symbol_table(self, tmp_path, tools):
        fatbin = fatbin_of(tools, "8.0").replace(b"\0saxpy\0", b"\0\xffaxpy\0")
        texts = loader_of(tools, fatbin, "8.0")
        files = {f"pkg/kernels_cuda{suffix}": text.encode() for suffix, text in texts.items()}
        found = findings(tmp_path, {**files, FATBIN: fatbin})
        assert found == [f"{FATBIN}: the SASS for 8.0: a kernel's name in the cubin is not UTF-8"]

    def test_damaged_ptx(self, tmp_path, tools):
        fatbin = fatbin_of(tools, "8.0+PTX").replace(b".version 8.0", b".versio  8.0")
        texts = loader_of(tools, fatbin, "8.0+PTX")
        files = {f"pkg/kernels_cuda{suffix}": text.encode() for suffix, text in texts.items()}
        found = findings(tmp_path, {**files, FATBIN: fatbin})
        assert found == [f"{FATBIN}: the PTX for 8.0: the PTX names no version or no target"]


class TestFiles:
    def test_no_loader(self, tmp_path):
        assert findings(tmp_path, {}) == [
            "the wheel has no generated loader, so there is nothing to hold kernels against"
        ]

    def test_no_fatbin(self, tmp_path, files):
        del files[FATBIN]
        assert findings(tmp_path, files) == [
            f"{LOADER}: the file with its kernels, {FATBIN}, is not in the wheel"
        ]

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            (b"_library = _Library(", b"_library = _Library(1, "),
            (b"_library = _Library(", b"_library = _Other("),
            (b"_library = _Library(", b"_library = ("),
            (b"_library = _Library(\n    _os", b"_library = _Library(\n    1 or _os"),
            (b"_Image(8, 0,", b"_Image('8', 0,"),
            (b"_Image(8, 0,", b"(8, 0,"),
            (b"'pointer', 'u32'", b"'thing', 'u32'"),
            (b"'pointer', 'u32'", b"'scalar', 'u33'"),
            (b"Stores.", b"Sto\xffres."),
        ],
    )
    def test_damaged_loader(self, tmp_path, files, old, new):
        assert old in files[LOADER]
        (line,) = findings(tmp_path, {**files, LOADER: files[LOADER].replace(old, new)})
        assert line.startswith(f"{LOADER}: ")

    def test_the_loader_is_not_run(self, tmp_path, files):
        files[LOADER] += b"\nraise SystemExit('run')\n"
        assert findings(tmp_path, files) == []

    def test_stray_files(self, tmp_path, tools, files):
        cubin = cubin_of(files[FATBIN])
        strays = {"pkg/a.bin": fatbin_of(tools, "8.0"), "pkg/b.bin": cubin, "pkg/c.ptx": b"//"}
        assert findings(tmp_path, {**files, **strays, "pkg/lib.so": b"\x7fELF" + bytes(60)}) == [
            "pkg/a.bin: stray fatbin: no loader in the wheel loads it",
            "pkg/b.bin: stray cubin: no loader in the wheel loads it",
            "pkg/c.ptx: stray PTX: no loader in the wheel loads it",
        ]

    @pytest.mark.parametrize("name", ["a.cubin", "A.CUBIN", "a.fatbin", "a.ptx"])
    @pytest.mark.parametrize("data", [b"", b"junk", b"\x7fELF", b"\x7fELF" + bytes(60)])
    def test_damaged_stray_with_a_telling_name(self, tmp_path, files, name, data):
        kind = {"cubin": "cubin", "fatbin": "fatbin", "ptx": "PTX"}[name.rpartition(".")[2].lower()]
        assert findings(tmp_path, {**files, f"pkg/{name}": data}) == [
            f"pkg/{name}: stray {kind}: no loader in the wheel loads it"
        ]

    @pytest.mark.parametrize("length", [20, 40, 200])
    def test_damaged_stray_with_the_first_bytes_of_one(self, tmp_path, files, length):
        data = cubin_of(files[FATBIN])[:20] + b"\xff" * (length - 20)
        assert findings(tmp_path, {**files, "pkg/data": data}) == [
            "pkg/data: stray cubin: no loader in the wheel loads it"
        ]


def cubin_of(fatbin):
    begin = fatbin.index(b"\x7fELF")
    return fatbin[begin:]


class TestEmbedded:
    """What cuda-oxide has left in libraries."""

    STRIP = (
        "which is compiled on the user's machine when the library loads it; to strip it, name the library in "
        "[tool.rustcuda] kernels, or run objcopy --remove-section=.oxart on it before it is packed"
    )

    @pytest.fixture
    def host(self, tmp_path):
        (tmp_path / "host").mkdir()
        return Host(tmp_path / "host")

    @staticmethod
    def found(tmp_path, files, library):
        return findings(tmp_path, {**files, "pkg/_native.so": library.read_bytes()})

    @pytest.mark.parametrize(
        ("kinds", "named"),
        [
            ([PTX_KIND], "PTX"),
            ([NVVM_KIND, CUBIN_KIND, PTX_KIND], "NVVM IR and PTX"),
            ([LTO_KIND], "LTO-IR"),
        ],
    )
    def test_code_that_is_compiled_at_load(self, tmp_path, files, host, kinds, named):
        payloads = tuple((kind, "file", PTX) for kind in kinds)
        library = host.library("l.so", host.object_file("o0", Blob(payloads=payloads).data()))
        assert self.found(tmp_path, files, library) == [
            f"pkg/_native.so: it keeps {named} that cuda-oxide embedded for some-package, {self.STRIP}"
        ]

    def test_several_packages(self, tmp_path, files, host):
        objects = [host.object_file(f"o{number}", Blob(name).data()) for number, name in enumerate("aba")]
        (line,) = self.found(tmp_path, files, host.library("l.so", *objects))
        assert "it keeps PTX that cuda-oxide embedded for a and b, which" in line

    def test_machine_code_is_no_finding(self, tmp_path, files, host):
        blob = Blob(payloads=((CUBIN_KIND, "file", b"code"),)).data()
        assert self.found(tmp_path, files, host.library("l.so", host.object_file("o0", blob))) == []

    def test_both_ways_to_strip(self, tmp_path, files, host):
        library = host.library("l.so", host.object_file("o0", Blob().data()))
        removed = library.with_name("removed.so")
        argv = ["objcopy", "--remove-section=.oxart", library, removed]
        assert process.run(argv).ok
        assert strip(library)
        assert self.found(tmp_path, files, library) == self.found(tmp_path, files, removed) == []

    def test_damage(self, tmp_path, files, host):
        library = host.library("l.so", host.object_file("o0", Blob().but(version=9)))
        (line,) = self.found(tmp_path, files, library)
        assert line.startswith(
            "pkg/_native.so: what cuda-oxide has embedded in it cannot be read: the bundle has the unknown "
        )

    def test_other_libraries_need_not_be_understood(self, tmp_path, files):
        for data in (b"\x7fELF\2\1" + b"\xff" * 100, b"OXIDEART", b"\x7fELF\1\1 OXIDEART"):
            assert findings(tmp_path, {**files, "pkg/_native.so": data}) == []


class TestPrivatePaths:
    @pytest.mark.parametrize(
        "path",
        [
            "/home/me/project/src/lib.rs",
            "".join(("/ro", "ot/x")),
            "/Users/me/kernels",
            "/tmp/build-1/x.rs",  # noqa: S108
            "/var/folders/a/b",
            "/workspace/kernels/src",
            "/builds/group/project",
            "/__w/repo/repo",
            r"C:\Users\me\kernels",
            "D:/a/repo/repo",
        ],
    )
    def test_in_the_loader(self, tmp_path, tools, path):
        named = KernelSignature("saxpy", SAXPY.parameters, doc=f"See {path}")
        found = findings(tmp_path, module_files(tools, "8.0", signatures=[OTHER, named]))
        assert {line.partition(": ")[0] for line in found} == {LOADER, f"{LOADER}i"}
        assert all("it names a path of the machine that built it" in line for line in found)
        assert path.split("/")[-1].split("\\")[-1] in found[0]

    def test_in_ptx(self, tmp_path, tools):
        named = KERNELS + '.file 1 "/home/me/kernels/src/lib.rs"\n'
        (line,) = findings(tmp_path, module_files(tools, "8.0+PTX", kernels={"8.0": named}))
        assert line == f"{FATBIN}: it names a path of the machine that built it: /home/me/kernels/src/lib.rs"

    def test_in_a_string_of_the_kernels(self, tmp_path, tools):
        # Strings in machine code follow each other without anything between them.
        text = b"out of bounds/home/me/kernels/src/lib.rs"
        numbers = ", ".join(str(number) for number in text)
        named = f".visible .global .align 1 .b8 said[{len(text)}] = {{{numbers}}};\n{KERNELS}"
        (line,) = findings(tmp_path, module_files(tools, "8.0", kernels={"8.0": named}))
        assert "/home/me/kernels/src/lib.rs" in line

    @pytest.mark.parametrize(
        "path", ["/rustc/abc/library/core", "src/home/x.rs", "https://x.org/home/y", "a/tmp/b", "/homes/x"]
    )
    def test_others(self, tmp_path, tools, path):
        named = KernelSignature("saxpy", SAXPY.parameters, doc=f"See {path}")
        assert findings(tmp_path, module_files(tools, "8.0", signatures=[OTHER, named])) == []


def found_paths(tmp_path, files, capsys, place, data):
    """The exit status of check, and what it says of paths in another file of a good wheel."""
    path = wheel(tmp_path / "pkg-1.whl", {**files, place: data})
    status = main(["check", str(path)])
    lines = capsys.readouterr().out.splitlines()
    return status, [line for line in lines if "it names a path" in line]


class TestPrivatePathsInOtherFiles:
    HOMES = (
        "/home/anna/kernels/src/lib.rs",
        "/Users/anna/kernels",
        "/home/jürgen/x",
        r"C:\Users\anna\kernels",
        r"C:\\Users\\anna\\kernels",
        "d:/Users/anna/kernels",
    )
    BUILDS = (
        "/tmp/pip-req-build-ab12/src/x.c",  # noqa: S108
        "/tmp/build-env-ab12cd/bin/python",  # noqa: S108
        "/tmp/rustcuda-build-ab12/tree/x",  # noqa: S108
        "/var/tmp/tmpab12cd34/x.o",  # noqa: S108
        "/private/var/folders/ab/c123/T/pip-install-1/x",
        "/var/folders/ab/c123/T/.tmpAB12cd/x",
    )

    @pytest.mark.parametrize("path", [*HOMES, *BUILDS])
    @pytest.mark.parametrize("name", ["pkg/lib.so", "pkg/lib.pyd", "pkg/x.o", "pkg/data.bin"])
    def test_in_what_a_compiler_wrote(self, tmp_path, files, capsys, name, path):
        data = b"\x7fELF" + bytes(60) + f"GNU C17\0{path}\0{path}\0main".encode()
        status, lines = found_paths(tmp_path, files, capsys, name, data)
        assert lines == [f"pkg-1.whl: {name}: it names a path of the machine that built it: {path}"]
        assert status == 1

    @pytest.mark.parametrize("path", BUILDS)
    @pytest.mark.parametrize(
        "name", ["pkg/config.py", "pkg/a.txt", "pkg-1.data/scripts/x", "pkg-1.dist-info/x"]
    )
    def test_of_a_build_in_text(self, tmp_path, files, capsys, name, path):
        status, lines = found_paths(tmp_path, files, capsys, name, f'x = "{path}"\n'.encode())
        assert lines == [f"pkg-1.whl: {name}: it names a path of the machine that built it: {path}"]
        assert status == 1

    @pytest.mark.parametrize("path", HOMES)
    def test_of_somebody_in_text_may_be_meant(self, tmp_path, files, capsys, path):
        data = f"Put it into {path}.\n".encode()
        status, lines = found_paths(tmp_path, files, capsys, "pkg/README.txt", data)
        assert lines == [f"note: pkg/README.txt: it names a path of somebody's machine: {path}."]
        assert status == 0

    def test_address_of_a_file(self, tmp_path, files, capsys):
        data = b"Name: pkg\nRequires-Dist: other @ file:///home/anna/other\n"
        status, lines = found_paths(tmp_path, files, capsys, "pkg-1.dist-info/METADATA.more", data)
        assert status == 1
        assert "it names a path of the machine that built it: /home/anna/other" in lines[0]

    def test_in_record(self, tmp_path, files):
        everything = {"pkg/__init__.py": b"", **files, "pkg-1.dist-info/METADATA": b"Name: pkg\n"}
        record = record_of(everything) + b"/tmp/pip-install-1/x.py,,\n"
        found = findings(tmp_path, files, record=record)
        assert any(line.startswith("pkg-1.dist-info/RECORD: it names a path") for line in found)

    def test_hundreds(self, tmp_path, files, capsys):
        data = b"\0".join(b"/home/anna/kernels/src/%d.c" % number for number in range(300))
        status, lines = found_paths(tmp_path, files, capsys, "pkg/lib.so", data)
        assert status == 1
        assert [line.rpartition(": ")[2] for line in lines] == [
            "/home/anna/kernels/src/0.c",
            "/home/anna/kernels/src/1.c",
            "/home/anna/kernels/src/2.c (and 297 more)",
        ]

    @pytest.mark.parametrize(
        "text",
        [
            "/home/user/project", "/home/<you>/x", "/home/$USER/x", "/home/{name}/x", "/home/runner/work/x",
            r"C:\Users\me\x", r"C:\Users\%USERNAME%\x", "~/x", "/home/", "/home/anna", "../home/anna/x",
            "https://anna.org/home/anna/x", "https://x.org/tmp/pip-1/x", "src/home/anna/x.rs",
            "/usr/lib/x", "/rustc/abc/library/core", "/project/src/x.c", "/usr/local/cuda/bin/ptxas",
            "/mnt/data/x", "/".join(("", "root", ".cache", "x")), "/homes/anna/x",
            "a/Users/anna/x", "/workspace/x", "/tmp/socket/x",  # noqa: S108
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("name", ["pkg/lib.so", "pkg/a.py"])
    def test_others(self, tmp_path, files, capsys, name, text):
        data = b"\0 " + text.encode() + b"\0" if name.endswith(".so") else f"x = '{text}'\n".encode()
        assert found_paths(tmp_path, files, capsys, name, data) == (0, [])

    @pytest.mark.parametrize("name", ["index.html", "app.js", "a.css"])
    def test_places_on_a_site(self, tmp_path, files, capsys, name):
        data = b'<a href="/home/team/about">'
        assert found_paths(tmp_path, files, capsys, f"pkg/{name}", data) == (0, [])


class TestRecord:
    def test_changed_file(self, tmp_path, files):
        record = record_of({"pkg/__init__.py": b"x", **files, "pkg-1.dist-info/METADATA": b"Name: pkg\n"})
        first, second = findings(tmp_path, files, record=record)
        assert first.startswith("pkg/__init__.py: it is not the file that RECORD lists: its sha256 is ")
        assert second == "pkg/__init__.py: it has 0 bytes, but 1 according to RECORD"

    def test_missing_and_superfluous_entries(self, tmp_path, files):
        record = record_of({**files, "pkg-1.dist-info/METADATA": b"Name: pkg\n", "pkg/gone.py": b""})
        assert findings(tmp_path, files, record=record) == [
            "pkg/__init__.py: RECORD does not list it",
            "pkg/gone.py: RECORD lists it, but it is not in the wheel",
        ]

    def test_malformed(self, tmp_path, files):
        everything = {"pkg/__init__.py": b"", **files, "pkg-1.dist-info/METADATA": b"Name: pkg\n"}
        good = record_of(everything)
        (line,) = findings(tmp_path, files, record=b"\xff")
        assert line == "pkg-1.dist-info/RECORD: it is no list of files: byte 0 is not UTF-8"
        record = good + b"a,b\npkg/__init__.py,,\n"
        number = good.count(b"\n") + 1
        assert findings(tmp_path, files, record=record) == [
            f"pkg-1.dist-info/RECORD: line {number} has not the three fields name, hash and size: a,b",
            "pkg-1.dist-info/RECORD: it lists pkg/__init__.py twice",
        ]
        record = good.replace(b"pkg/__init__.py,sha256=", b"pkg/__init__.py,md5=")
        (line,) = findings(tmp_path, files, record=record)
        assert line.startswith("pkg/__init__.py: RECORD has no SHA-256 of it, but 'md5=")
        record = b"".join(
            line.rpartition(b",")[0] + b",\n" for line in good.splitlines() if b"RECORD" not in line
        )
        assert findings(tmp_path, files, record=record + b"pkg-1.dist-info/RECORD,,\n") == []

    def test_none(self, tmp_path, files):
        path = tmp_path / "pkg-1.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in files.items():
                archive.writestr(name, data)
        (finding,) = check_wheel(path).findings
        assert str(finding) == (
            "the wheel has no *.dist-info/RECORD, the list of its files; installers refuse it"
        )

    def test_several(self, tmp_path, files):
        other = "more-1.dist-info/RECORD"
        assert findings(tmp_path, {**files, other: b""}) == [
            f"the wheel has several lists of its files: {other}, pkg-1.dist-info/RECORD"
        ]

    @pytest.mark.parametrize(
        ("record", "why"),
        [
            (b"", "it is empty"),
            (b"\r\n\n", "it is empty"),
            (b"\xff\xfe", "byte 0 is not UTF-8"),
            (b"garbage\n" * 1000, "none of its lines has the three fields name, hash and size"),
            (b"a\x1b[31mb\n<html>, and more\n", "none of its lines has the three fields name, hash and size"),
            (b'"' + b"x" * 200_000, "field larger than field limit (131072)"),
        ],
    )
    def test_garbage(self, tmp_path, files, record, why):
        # One line, not one for each line of the garbage and each file that is not listed.
        found = findings(tmp_path, files, record=record)
        assert found == [f"pkg-1.dist-info/RECORD: it is no list of files: {why}"]

    def test_long_garbage_in_one_line(self, tmp_path, files):
        everything = {"pkg/__init__.py": b"", **files, "pkg-1.dist-info/METADATA": b"Name: pkg\n"}
        (line,) = findings(tmp_path, files, record=record_of(everything) + b"\x1b]" + b"x" * 10_000)
        assert line.endswith("hash and size: \\x1b]" + "x" * 98)


class TestArchive:
    @pytest.mark.parametrize(
        ("name", "said"),
        [
            ("../evil.py", "leads out of the folder"),
            ("pkg/../../evil.py", "leads out of the folder"),
            ("..", "leads out of the folder"),
            ("/etc/passwd", "is an absolute path"),
            ("C:/evil.py", "is an absolute path"),
            ("c:evil.py", "is an absolute path"),
            ("pkg\\evil.py", "a backslash in its name"),
        ],
    )
    def test_members_that_escape(self, tmp_path, files, name, said):
        path = wheel(tmp_path / "pkg-1.whl", files)
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(name, b"")
        (finding,) = check_wheel(path).findings
        assert said in finding.what
        assert finding.place

    def test_name_with_a_nul(self, tmp_path, files):
        path = wheel(tmp_path / "pkg-1.whl", {**files, "pkg/evilX.py": b""})
        path.write_bytes(path.read_bytes().replace(b"pkg/evilX.py", b"pkg/evil\0.py"))
        assert any("its name has a NUL in it" in finding.what for finding in check_wheel(path).findings)

    def test_twice(self, tmp_path, files):
        path = wheel(tmp_path / "pkg-1.whl", files)
        with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "a") as archive:
            archive.writestr(FATBIN, b"other")
        (finding,) = check_wheel(path).findings
        assert str(finding) == f"{FATBIN}: it is in the wheel twice"

    def test_symbolic_link(self, tmp_path, files):
        path = wheel(tmp_path / "pkg-1.whl", files)
        member = zipfile.ZipInfo("pkg/link.py")
        member.external_attr = (stat.S_IFLNK | 0o777) << 16
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(member, "/etc/passwd")
        (finding,) = check_wheel(path).findings
        assert str(finding) == "pkg/link.py: it is a symbolic link"

    def test_folders_are_no_files(self, tmp_path, files):
        path = wheel(tmp_path / "pkg-1.whl", files)
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("pkg/empty/", b"")
        assert check_wheel(path).findings == ()

    def test_no_archive(self, tmp_path, capsys):
        path = tmp_path / "pkg-1.whl"
        for data in (b"", b"PK\x03\x04", b"nothing"):
            path.write_bytes(data)
            with pytest.raises(FormatError, match="the wheel cannot be read"):
                check_wheel(path)
        with pytest.raises(SystemExit) as ended:
            main(["check", str(tmp_path / "gone.whl")])
        assert ended.value.code == 1
        said = capsys.readouterr().err
        assert "the file cannot be read: No such file or directory" in said
        assert "gone.whl" in said

    def test_encrypted(self, tmp_path, files):
        path = wheel(tmp_path / "pkg-1.whl", files)
        data = bytearray(path.read_bytes())
        data[data.index(b"PK\x01\x02") + 8] |= 1
        path.write_bytes(bytes(data))
        with pytest.raises(FormatError, match="encrypted"):
            check_wheel(path)

    @settings(deadline=None, max_examples=60)
    @given(st.data())
    def test_damage(self, good_wheel, folder, data):
        changed = bytearray(good_wheel)
        for place in data.draw(st.lists(st.integers(0, len(changed) - 1), min_size=1, max_size=3)):
            changed[place] ^= data.draw(st.integers(1, 255))
        (folder / "pkg-1.whl").write_bytes(bytes(changed))
        try:
            outcome = check_wheel(folder / "pkg-1.whl")
        except FormatError as error:
            assert error.where  # noqa: PT017
        else:
            assert all(len(str(finding).splitlines()) == 1 for finding in outcome.findings)


def test_the_referee_agrees_on_the_good_wheel(tmp_path, tools):
    (tmp_path / "k.fatbin").write_bytes(module_files(tools)[FATBIN])
    said = process.run([cuobjdump(), "--list-elf", "--list-ptx", tmp_path / "k.fatbin"]).stdout
    assert said.count("ELF file") == 2
    assert said.count("PTX file") == 1
