"""Reading fatbins, with cuobjdump as the referee."""

import contextlib
import ctypes
import re
import struct

import pytest
from cuda_wheels import VERSIONS, assembled, capabilities, cuobjdump, ptx, wheel_file
from hypothesis import given, settings
from hypothesis import strategies as st

from rustcuda_backend import process
from rustcuda_backend.capability import Capability
from rustcuda_backend.errors import FormatError
from rustcuda_backend.fatbin import Image, read

SM90 = Capability(9, 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fatbins")


def packed(version, items, *options):
    """A fatbin by that version's libnvfatbin itself, without the code under test; items: (kind, sm, data)."""
    distribution = version.wheels[1].split("==")[0]
    library = wheel_file(
        distribution,
        f"/libnvfatbin.so.{version.name.split('.')[0]}",
        f"RUSTCUDA_TEST_CUDA{version.name.replace('.', '')}",
    )
    if library is None:
        pytest.skip(f"{distribution} is not installed")
    nvfatbin = ctypes.CDLL(str(library))
    handle, size = ctypes.c_void_p(), ctypes.c_size_t()
    argv = (ctypes.c_char_p * (len(options) + 1))(b"-64", *(option.encode() for option in options))
    assert nvfatbin.nvFatbinCreate(ctypes.byref(handle), argv, ctypes.c_size_t(len(argv))) == 0
    for kind, arch, data in items:
        arguments = (handle, data, ctypes.c_size_t(len(data)), arch.encode(), b"kernels")
        if kind == "sass":
            assert nvfatbin.nvFatbinAddCubin(*arguments) == 0
        else:
            assert nvfatbin.nvFatbinAddPTX(*arguments, None) == 0
    assert nvfatbin.nvFatbinSize(handle, ctypes.byref(size)) == 0
    buffer = ctypes.create_string_buffer(size.value)
    assert nvfatbin.nvFatbinGet(handle, buffer) == 0
    assert nvfatbin.nvFatbinDestroy(ctypes.byref(handle)) == 0
    return buffer.raw


def both(version, folder, *, capability=SM90, option="-compress=false"):
    """A fatbin with a cubin and PTX for one capability."""
    text = "\n" + ptx(capability).text
    items = [
        ("sass", capability.number, assembled(version, capability, folder)),
        ("ptx", capability.number, text.encode()),
    ]
    return packed(version, items, option)


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
class TestRealTools:
    def test_every_capability(self, version, folder, tmp_path):
        asked = capabilities(version)
        cubins = [assembled(version, capability, folder) for capability in asked]
        texts = [("\n" + ptx(capability).text).encode() for capability in asked]
        data = packed(
            version,
            [("sass", c.number, cubin) for c, cubin in zip(asked, cubins, strict=True)]
            + [("ptx", c.number, text) for c, text in zip(asked, texts, strict=True)],
            "-compress=false",
        )
        images = read(data).images
        assert [image.kind for image in images] == ["sass"] * len(asked) + ["ptx"] * len(asked)
        assert [image.capability for image in images] == asked * 2
        assert [image.data for image in images[: len(asked)]] == cubins
        # The packer drops whitespace at line ends and comments, nothing else.
        assert [image.data.split() for image in images[len(asked) :]] == [text.split() for text in texts]
        assert not any(image.compressed for image in images)

        file = tmp_path / "kernels.fatbin"
        file.write_bytes(data)
        listed = process.run([cuobjdump(), "-lelf", "-lptx", file])
        assert listed.ok, listed.stderr
        # cuobjdump prints a family's cubin as the plain one.
        numbers = [capability.number for capability in asked]
        assert re.findall(r"ELF file.*sm_(\w+)\.cubin", listed.stdout) == [
            number.rstrip("f") for number in numbers
        ]
        assert re.findall(r"PTX file.*sm_(\w+)\.ptx", listed.stdout) == numbers

    def test_extracted_by_the_referee(self, version, folder, tmp_path):
        file = tmp_path / "kernels.fatbin"
        file.write_bytes(both(version, folder))
        assert process.run([cuobjdump(), "-xelf", "all", "-xptx", "all", file], cwd=tmp_path).ok
        sass, text = read(file.read_bytes()).images
        assert [path.read_bytes() for path in tmp_path.glob("*.cubin")] == [sass.data]
        assert [path.read_bytes().rstrip(b"\0") for path in tmp_path.glob("*.ptx")] == [text.data]

    def test_compressed(self, version, folder):
        capability = Capability(10, 0, "f")
        data = both(version, folder, capability=capability, option="-compress-all")
        plain = both(version, folder, capability=capability)
        assert len(data) < len(plain)
        images = read(data).images
        assert [(image.kind, image.capability, image.compressed) for image in images] == [
            ("sass", capability, True),
            ("ptx", capability, True),
        ]
        assert all(image.data in data and image.data not in plain for image in images)
        if version.name == "13.0":
            assert all(image.data.startswith(b"\x28\xb5\x2f\xfd") for image in images)

    def test_several(self, version, folder):
        one, other = both(version, folder), both(version, folder, capability=Capability(8, 0))
        expected = read(one).images + read(other).images
        assert len(expected) == 4
        assert read(one + other).images == expected
        assert read(one + bytes(8) + other + bytes(5)).images == expected

    @settings(deadline=None)
    @given(st.data())
    def test_flipped_bytes(self, version, folder, data):
        fatbin = bytearray(both(version, folder))
        headers = 16 + 72
        for place in data.draw(
            st.lists(st.integers(0, headers) | st.integers(0, len(fatbin) - 1), max_size=3)
        ):
            fatbin[place] ^= data.draw(st.integers(1, 255))
        with contextlib.suppress(FormatError):
            assert read(bytes(fatbin)).images

    def test_every_truncation(self, version, folder):
        data = both(version, folder)
        for size in range(len(data)):
            with pytest.raises(FormatError):
                read(data[:size])


@given(st.binary(max_size=300))
def test_no_fatbin(data):
    with pytest.raises(FormatError):
        read(data)


def entry(
    kind=1, header=64, size=None, packed=0, number=90, flags=0x11, unpacked=0, content=b".target sm_90"
):
    size = len(content) if size is None else size
    return struct.pack(
        "<HHIQIIIIIIQQQ", kind, 0x101, header, size, packed, 0, 0, number, 0, 0, flags, 0, unpacked
    ) + bytes(content)


def container(*entries, magic=0xBA55ED50, version=1, header=16):
    content = b"".join(entries)
    return struct.pack("<IHHQ", magic, version, header, len(content)) + bytes(header - 16) + content


def test_written_by_hand():
    assert read(container(entry())).images == (Image("ptx", SM90, b".target sm_90", False),)
    # A header that has grown is no obstacle.
    assert read(container(entry(), header=24)).images == read(container(entry())).images
    packed = container(entry(kind=2, content=b"abcd\0\0\0\0", packed=4, unpacked=900))
    assert read(packed).images == (Image("sass", SM90, b"abcd", True),)


def test_suffix_that_the_entry_lacks():
    (image,) = read(container(entry(content=b".version 8.0\n.target sm_90a, debug\n"))).images
    assert image.capability == Capability(9, 0, "a")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "holds no image"),
        (container(), "holds no image"),
        (container(entry(), magic=0x12345678), "begins with 0x12345678"),
        (container(entry(), version=2), "unknown version 2"),
        (container(entry())[:-1], "is cut off"),
        (container(entry()) + b"tail", "header at byte 93 is cut off"),
        (container(entry()[:40]), "header of a fatbin's entry is cut off"),
        (container(entry(header=8)), "reaches beyond its end"),
        (container(entry(size=1 << 40)), "reaches beyond its end"),
        (container(entry(packed=99)), "reaches beyond its end"),
        (container(entry(kind=8)), "kind 8, which is neither SASS nor PTX"),
        (container(entry(number=0)), "names no capability"),
        (container(entry(flags=0x300011)), "names no capability"),
        (container(entry(content=b"no text")), r"has no \.target"),
        (container(entry(content=b".target sm_" + b"9" * 5000)), r"has no \.target"),
        (container(entry(number=80)), "is for 8.0, but what it holds is for 9.0"),
        (
            container(entry(flags=0x200011, content=b".target sm_90a")),
            "is for 9.0f, but what it holds is for 9.0a",
        ),
        (container(entry(kind=2)), "this is no cubin"),
    ],
)
def test_malformed(data, message):
    with pytest.raises(FormatError, match=message):
        read(data)


def test_place_of_a_damaged_cubin():
    with pytest.raises(FormatError) as caught:
        read(container(entry(), entry(kind=2)))
    assert caught.value.where == "entry at byte 93"
