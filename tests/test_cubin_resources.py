"""What cubins say of their kernels, held against ptxas -v and cuobjdump -res-usage."""

import contextlib
import re

import pytest
from cuda_wheels import VERSIONS, capabilities, cuobjdump, ptx, ptxas
from hypothesis import given, settings
from hypothesis import strategies as st
from test_cubin import DEMANDING

from rustcuda_backend import process
from rustcuda_backend.capability import Capability
from rustcuda_backend.cubin import parse_ptxas_report
from rustcuda_backend.cubin_resources import Toolkit, read_kernels, read_toolkit
from rustcuda_backend.errors import FormatError

PARAMETERS = """
.visible .entry params(.param .u64 p, .param .b8 small, .param .b16 half, .param .f32 f, .param .u64 last)
{
	.shared .align 4 .b8 block[4096];
	.reg .b64 %r<3>;
	.reg .b32 %t<3>;
	ld.param.u64 %r1, [last];
	mov.u32 %t1, block;
	ld.shared.u32 %t2, [%t1];
	st.u32 [%r1], %t2;
	ret;
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cubins")


def assembled(version, capability, folder):
    """ptxas's report and the cubin."""
    name = f"{version.name}-{capability.sm}"
    source, cubin = folder / f"{name}.ptx", folder / f"{name}.cubin"
    if not cubin.exists():
        source.write_text(ptx(capability, DEMANDING + PARAMETERS).text, encoding="utf-8")
        finished = process.run([ptxas(version), f"-arch={capability.sm}", "-v", source, "-o", cubin])
        assert finished.ok, finished.stderr
        source.with_suffix(".report").write_text(finished.stdout + finished.stderr, encoding="utf-8")
    return source.with_suffix(".report").read_text(encoding="utf-8"), cubin


def referee(cubin):
    said = process.run([cuobjdump(), "-res-usage", cubin]).stdout
    return {
        name: {key: int(value) for key, value in re.findall(r"(REG|STACK|SHARED|LOCAL):(\d+)", usage)}
        for name, usage in re.findall(r"Function (\S+):\s*\n\s*(.*)", said)
    }


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
class TestRealTools:
    def test_as_ptxas_says(self, version, folder):
        for capability in capabilities(version):
            report, cubin = assembled(version, capability, folder)
            said = {
                kernel.name: (kernel.registers, kernel.stack, kernel.shared)
                for kernel in parse_ptxas_report(report)
            }
            found = {
                kernel.name: (kernel.registers, kernel.stack, kernel.shared)
                for kernel in read_kernels(cubin.read_bytes())
            }
            assert found == said, capability
            assert found["demanding"][1:] == (512, 1024)
            assert found["params"][1:] == (0, 4096)

    def test_as_cuobjdump_says(self, version, folder):
        for capability in capabilities(version):
            _, cubin = assembled(version, capability, folder)
            said = referee(cubin)
            kernels = read_kernels(cubin.read_bytes())
            assert {kernel.name for kernel in kernels} == set(said) == {"demanding", "plain", "params"}
            for kernel in kernels:
                theirs = said[kernel.name]
                assert (kernel.registers, kernel.stack, kernel.local) == (
                    theirs["REG"],
                    theirs["STACK"],
                    theirs["LOCAL"],
                )
                # cuobjdump counts in what the system takes of each block from 9.0 on.
                system = 1024 if capability.base >= (9, 0) and kernel.shared else 0
                assert kernel.shared == theirs["SHARED"] - system

    def test_parameters(self, version, folder):
        for capability in capabilities(version):
            _, cubin = assembled(version, capability, folder)
            found = {kernel.name: kernel.parameters for kernel in read_kernels(cubin.read_bytes())}
            assert found == {"params": (8, 1, 2, 4, 8), "demanding": (8,), "plain": ()}

    def test_toolkit(self, version, folder):
        numbers = tuple(int(number) for number in version.name.split("."))
        for capability in capabilities(version):
            _, cubin = assembled(version, capability, folder)
            found = read_toolkit(cubin.read_bytes())
            # CUDA 12.9 writes the note from 10.0 on only.
            noted = version.name != "12.9" or capability.base >= (10, 0)
            assert found == Toolkit(numbers, "toolkit note" if noted else "API version")

    @settings(deadline=None, max_examples=60)
    @given(st.data())
    def test_damage(self, version, folder, data):
        _, cubin = assembled(version, Capability(9, 0, "a"), folder)
        changed = bytearray(cubin.read_bytes())
        for place in data.draw(st.lists(st.integers(0, len(changed) - 1), min_size=1, max_size=4)):
            changed[place] ^= data.draw(st.integers(1, 255))
        for read in (read_kernels, read_toolkit):
            with contextlib.suppress(FormatError):
                read(bytes(changed[: data.draw(st.integers(0, len(changed)))]))
