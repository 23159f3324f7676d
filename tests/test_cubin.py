"""Reading cubins and ptxas's reports, checked on what real ptxas of both CUDA versions writes."""

import contextlib
import io
import struct

import pytest
from cuda_wheels import VERSIONS, assembled, capabilities, ptx, ptxas
from elftools.elf.elffile import ELFFile
from hypothesis import given, settings
from hypothesis import strategies as st

from rustcuda_backend import process
from rustcuda_backend.capability import Capability
from rustcuda_backend.cubin import (
    KernelResources,
    kernel_names,
    parse_ptxas_report,
    read_capability,
    report_messages,
)
from rustcuda_backend.errors import FormatError

# A kernel with a stack frame, static shared memory, and a recursive function that spills.
DEMANDING = """
.visible .func (.param .b32 z) factorial(.param .b32 q)
{
	.reg .b32 %r<4>;
	.reg .pred %p;
	ld.param.u32 %r1, [q];
	mov.u32 %r3, 1;
	setp.lt.u32 %p, %r1, 2;
	@%p bra END;
	sub.u32 %r2, %r1, 1;
	{
		.param .b32 a;
		.param .b32 b;
		st.param.b32 [a], %r2;
		call (b), factorial, (a);
		ld.param.b32 %r3, [b];
	}
	mul.lo.u32 %r3, %r3, %r1;
	add.u32 %r3, %r3, 1;
END:
	st.param.b32 [z], %r3;
	ret;
}
.visible .entry demanding(.param .u64 p)
{
	.local .align 16 .b8 buffer[512];
	.shared .align 4 .b8 block[1024];
	.reg .b64 %r<5>;
	.reg .b32 %a<4>;
	ld.param.u64 %r1, [p];
	mov.u64 %r2, buffer;
	cvta.local.u64 %r3, %r2;
	mov.u32 %a1, %tid.x;
	mul.wide.u32 %r4, %a1, 4;
	add.s64 %r3, %r3, %r4;
	st.u32 [%r3], %a1;
	ld.volatile.u32 %a2, [%r3+4];
	mov.u32 %a3, block;
	st.shared.u32 [%a3], %a2;
	{
		.param .b32 a;
		.param .b32 b;
		st.param.b32 [a], %a2;
		call (b), factorial, (a);
		ld.param.b32 %a2, [b];
	}
	st.u32 [%r1], %a2;
	ret;
}
.visible .entry plain() { ret; }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cubins")


def run_ptxas(version, folder, *arguments):
    source, cubin = folder / "demanding.ptx", folder / "demanding.cubin"
    source.write_text(ptx("9.0", DEMANDING).text, encoding="utf-8")
    finished = process.run([ptxas(version), "-arch=sm_90", "-v", *arguments, source, "-o", cubin])
    assert finished.ok
    return finished.stdout + finished.stderr, cubin.read_bytes()


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
class TestRealTools:
    def test_report(self, version, folder):
        text, _ = run_ptxas(version, folder)
        found = {kernel.name: kernel for kernel in parse_ptxas_report(text)}
        assert set(found) == {"demanding", "plain"}
        demanding = found["demanding"]
        # The recursive function's own frame has 16 bytes of spills, which count for the kernel.
        assert (demanding.spill_stores, demanding.spill_loads) == (16, 16)
        assert (demanding.stack, demanding.shared) == (512, 1024)
        assert demanding.registers >= 16
        plain = found["plain"]
        assert plain == KernelResources("plain", plain.registers, 0, 0, 0, 0)
        assert 0 < plain.registers < demanding.registers
        assert report_messages(text) == ()

    def test_warnings_are_messages(self, version, folder):
        text, _ = run_ptxas(version, folder, "--warn-on-spills", "--maxrregcount=16")
        messages = report_messages(text)
        assert any("Registers are spilled" in message and "factorial" in message for message in messages)
        assert any("adjusting per thread register count" in message for message in messages)
        assert not any("Used" in message or "stack frame" in message for message in messages)

    def test_kernels_without_the_functions_they_call(self, version, folder):
        _, cubin = run_ptxas(version, folder)
        assert sorted(kernel_names(cubin)) == ["demanding", "plain"]
        symbols = ELFFile(io.BytesIO(cubin)).get_section_by_name(".symtab").iter_symbols()
        functions = [symbol.name for symbol in symbols if symbol["st_info"]["type"] == "STT_FUNC"]
        assert "$demanding$factorial" in functions
        assert [name for name in functions if "$" not in name] == list(kernel_names(cubin))

    def test_capability_of_every_form(self, version, folder):
        for capability in capabilities(version):
            data = assembled(version, capability, folder)
            assert read_capability(data) == capability
            assert sorted(kernel_names(data)) == ["other", "saxpy"]

    def test_abi_that_the_driver_floors_rest_on(self, version, folder):
        for capability in capabilities(version):
            old = version.name == "12.9" and capability.base <= (9, 0)
            assert assembled(version, capability, folder)[8] == (7 if old else 8)

    def test_every_truncation(self, version, folder):
        data = assembled(version, Capability(9, 0), folder)
        for size in range(0, len(data), 7):
            # Program headers end the file; a cut through them alone does not show.
            for read in (read_capability, kernel_names):
                try:
                    read(data[:size])
                except FormatError:
                    continue
                assert size > ELFFile(io.BytesIO(data)).header["e_shoff"]

    @settings(deadline=None)
    @given(st.data())
    def test_flipped_bytes(self, version, folder, data):
        cubin = bytearray(assembled(version, Capability(9, 0, "a"), folder))
        sections = struct.unpack_from("<Q", cubin, 40)[0]
        places = st.one_of(
            st.integers(0, len(cubin) - 1), st.integers(0, 63), st.integers(sections, sections + 640)
        )
        for place in data.draw(st.lists(places, min_size=1, max_size=4)):
            cubin[place] ^= data.draw(st.integers(1, 255))
        for read in (read_capability, kernel_names):
            with contextlib.suppress(FormatError):
                read(bytes(cubin))


@given(st.binary(max_size=200))
def test_no_cubin(data):
    for read in (read_capability, kernel_names):
        with pytest.raises(FormatError):
            read(data)


def changed(folder, offset, layout, value, capability=None):
    data = bytearray(assembled(VERSIONS[0], capability or Capability(9, 0), folder))
    struct.pack_into(layout, data, offset, value)
    return bytes(data)


def test_other_elf_files(folder):
    with pytest.raises(FormatError, match="machine is 62"):
        read_capability(changed(folder, 18, "<H", 62))
    with pytest.raises(FormatError, match="unknown ELF ABI version 9"):
        read_capability(changed(folder, 8, "<B", 9))
    with pytest.raises(FormatError, match="name no capability"):
        read_capability(changed(folder, 48, "<I", 3))
    with pytest.raises(FormatError, match="section table"):
        read_capability(changed(folder, 40, "<Q", 1 << 40))


def section_header(data, name):
    elf = ELFFile(io.BytesIO(data))
    return elf.header["e_shoff"] + 64 * elf.get_section_index(name)


def test_damaged_symbol_table(folder):
    header = section_header(changed(folder, 0, "<B", 0x7F), ".symtab")
    with pytest.raises(FormatError, match="symbol table is malformed"):
        kernel_names(changed(folder, header + 40, "<I", 60000))
    with pytest.raises(FormatError, match="symbol table is malformed"):
        kernel_names(changed(folder, header + 32, "<Q", 25))
    with pytest.raises(FormatError, match="beyond its end"):
        kernel_names(changed(folder, header + 32, "<Q", 24 << 20))
    # No symbol table at all: no kernels.
    assert kernel_names(changed(folder, header + 4, "<I", 1)) == ()


def test_kernel_name_that_is_no_text(folder):
    data = assembled(VERSIONS[0], Capability(9, 0), folder)
    broken = data.replace(b"\0saxpy\0", b"\0\xffaxpy\0")
    assert broken != data
    with pytest.raises(FormatError, match="not UTF-8"):
        kernel_names(broken)


def test_name_that_does_not_end(folder):
    header = section_header(changed(folder, 0, "<B", 0x7F), ".symtab")
    with pytest.raises(FormatError, match="name in the cubin is cut off"):
        kernel_names(changed(folder, header, "<I", 1 << 30))


def test_family_without_the_noted_command_line(folder):
    # A cubin whose note is gone reads as the plain capability: no flag tells a family's cubin.
    data = assembled(VERSIONS[0], Capability(10, 0, "f"), folder)
    assert read_capability(data) == Capability(10, 0, "f")
    assert read_capability(data.replace(b"-arch sm_100f", b"-xxxx sm_100f")) == Capability(10, 0)
    assert read_capability(data.replace(b"-arch sm_100f", b"-arch sm_121f")) == Capability(10, 0)


def test_empty_compatibility_section(folder):
    data = assembled(VERSIONS[1], Capability(9, 0, "a"), folder)
    header = section_header(data, ".nv.compat")
    cut = bytearray(data)
    struct.pack_into("<Q", cut, header + 32, 0)
    # The noted command line still tells.
    assert read_capability(bytes(cut)) == Capability(9, 0, "a")


def test_report_without_kernels():
    assert parse_ptxas_report("") == ()
    assert parse_ptxas_report("ptxas info    : 0 bytes gmem\n") == ()


@pytest.mark.parametrize("lost", ["Used 8 registers", "0 bytes stack frame"])
def test_incomplete_report(lost):
    text = (
        "ptxas info    : Compiling entry function 'k' for 'sm_90'\n"
        "ptxas info    : Function properties for k\n"
        "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 8 registers, used 0 barriers\n"
    )
    assert parse_ptxas_report(text) == (KernelResources("k", 8, 0, 0, 0, 0),)
    with pytest.raises(FormatError, match="kernel 'k' is incomplete"):
        parse_ptxas_report(text.replace(lost, ""))


def test_notes_on_performance_are_messages():
    note = "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized"
    assert report_messages(f"ptxas info    : 0 bytes gmem\n{note}\n    0 bytes stack frame\n") == (note,)
