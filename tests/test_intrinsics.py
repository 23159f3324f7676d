"""Every function of rustcuda-device compiles and assembles, from the least capability that has it on.

The kernels that call them are in gpu/intrinsics; what they compute is tested on a GPU, by gpu/test_*.py.
"""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from cuda_wheels import cuobjdump
from environments import made_once, succeed
from projects import REPOSITORY

from rustcuda_backend import inspection, process
from rustcuda_backend.sysroot import clean_environment

PROJECT = REPOSITORY / "tests" / "gpu" / "intrinsics"


@dataclass(frozen=True)
class Built:
    """The kernels of gpu/intrinsics, built for all its capabilities."""

    fatbin: Path

    def kernels(self, capability: str) -> set[str]:
        """The names of the kernels in the image of a capability, e.g. `"8.0"`."""
        (part,) = inspection.inspect(self.fatbin)
        (image,) = (image for image in part.images if image.capability == capability)
        return {kernel.name for kernel in image.kernels or ()}

    def sass(self, kernel: str, capability: str) -> str:
        """The instructions of a kernel, one a line."""
        return _functions(self.fatbin, capability.replace(".", ""))[kernel]

    def instructions(self, kernel: str, capability: str = "9.0") -> list[str]:
        """The same, without addresses, predicates and encodings: `"LDG.E R2, desc[UR4][R2.64]"`."""
        found = re.findall(
            r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?\s*(\w[^;]*?) *;", self.sass(kernel, capability)
        )
        return [instruction for instruction in found if instruction != "NOP"]


@cache
def _functions(fatbin: Path, number: str) -> dict[str, str]:
    listing = succeed(process.run((cuobjdump(), "-sass", "-arch", f"sm_{number}", fatbin)))
    parts = re.split(r"^\s*Function : (\S+)$", listing, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def build(folder: Path) -> None:
    ignored = shutil.ignore_patterns("target", "build", "*.egg-info", "kernels_cuda.*", "__pycache__")
    project = shutil.copytree(PROJECT, folder / "project", ignore=ignored)
    command = (sys.executable, "-m", "rustcuda_backend", "build", "--output", folder)
    succeed(process.run(command, cwd=project, env=clean_environment()))


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return Built(made_once(tmp_path_factory, "intrinsics", build) / "kernels_cuda.fatbin")


# What came with a capability: kernels that its image has, and that of the capability before has not.
NEW = {
    "7.5": {
        "fast_tanh_approx",
        "memory_ld_l2_64", "memory_ld_l2_128", "memory_ldg_l2_64", "memory_ldg_l2_128",
    },
    "8.0": {
        "memory_ld_l2_256", "memory_ldg_l2_256", "memory_prefetch_priority",
        "packed_f16x2_80", "packed_bf16x2", "convert_to_halves_80", "convert_rna_tf32",
        "async_copy_ca_4", "async_copy_ca_8", "async_copy_ca_16", "async_copy_cg_16",
        "async_copy_ca_zfill_4", "async_copy_ca_zfill_8", "async_copy_ca_zfill_16", "async_copy_cg_zfill_16",
        "async_copy_pipeline", "async_copy_arrive",
        "warp_redux", "barrier_phases", "barrier_managed",
    },
    "8.6": set[str](),
    "8.9": {"convert_to_bytes", "convert_halves_to_bytes", "convert_bytes_to_halves"},
    "9.0": {
        "warp_elect", "atomic_add_bf16", "atomic_add_bf16x2", "atomic_function_bf16x2",
        "barrier_phases_90", "barrier_managed_90", "bulk_copy", "thread_cluster", "convert_tf32",
    },
    "10.0": {"convert_tf32_satfinite"},
}  # fmt: skip


@pytest.mark.parametrize(("capability", "before"), [*zip(NEW, ["7.0", *NEW], strict=False)])
def test_each_function_is_there_from_its_first_capability_on(
    built: Built, capability: str, before: str
) -> None:
    assert built.kernels(capability) - built.kernels(before) == NEW[capability]
    assert built.kernels(before) <= built.kernels(capability)


def test_an_index_costs_one_multiply_add(built: Built) -> None:
    assert built.sass("thread_index_1d", "9.0").count("IMAD.WIDE.U32") <= 2


def words(built: Built, kernel: str, capability: str) -> list[str]:
    """The instructions of a kernel without their operands, predicates and padding."""
    return re.findall(
        r"^\s+/\*\w{4}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", built.sass(kernel, capability), re.MULTILINE
    )


@pytest.mark.parametrize("capability", ["7.5", "8.0", "9.0"])
def test_warps_reduce_integers_by_redux_where_it_is(built: Built, capability: str) -> None:
    found = words(built, "warp_collect_u32", capability)
    reductions = [word for word in found if word.startswith(("REDUX", "CREDUX"))]
    assert len(reductions) == (0 if capability == "7.5" else 3)
    shuffles = [word for word in found if word.startswith("SHFL.BFLY")]
    # Five for each, and the three share the first.
    assert len(shuffles) == (13 if capability == "7.5" else 0)


def test_matches_and_elections_are_one_instruction(built: Built) -> None:
    found = words(built, "warp_matches", "9.0")
    assert [word for word in found if word.startswith("MATCH")] == [
        "MATCH.ANY", "MATCH.ANY.U64", "MATCH.ALL", "MATCH.ALL.U64",
    ]  # fmt: skip
    assert "ELECT" in words(built, "warp_elect", "9.0")


@pytest.mark.parametrize("capability", ["8.0", "9.0", "10.0"])
def test_atomics_have_their_scope_and_need_no_result(built: Built, capability: str) -> None:
    sent = [word for word in words(built, "atomic_unused", capability) if word.startswith(("RED.", "REDG."))]
    assert [word[word.index("STRONG") :] for word in sent] == ["STRONG.GPU", "STRONG.SYS", "STRONG.SM"]
    assert not re.search(r"\bATOM|MEMBAR|CCTL", built.sass("atomic_unused", capability))


@pytest.mark.parametrize("capability", ["8.0", "9.0", "10.0"])
def test_atomics_order_what_is_asked_and_no_more(built: Built, capability: str) -> None:
    release = built.sass("atomic_release", capability)
    assert release.index("MEMBAR") < re.search(r"\bREDG?\.", release).start()  # type: ignore[union-attr]
    assert "CCTL" not in release
    acquire = built.sass("atomic_acquire", capability)
    assert re.search(r"ATOMG.*STRONG\.GPU.*CCTL\.IVALL", acquire, re.DOTALL)
    assert "MEMBAR" not in acquire


@pytest.mark.parametrize("capability", ["7.5", "8.0", "9.0", "10.0"])
@pytest.mark.parametrize("kernel", ["atomic_histogram", "atomic_shared_u32", "atomic_shared_i64"])
def test_atomics_on_shared_memory_are_its_own(built: Built, kernel: str, capability: str) -> None:
    found = words(built, kernel, capability)
    assert any(word.startswith("ATOMS") for word in found)
    assert not any(word.startswith(("ATOM.", "ATOMG", "QSPC")) for word in found)


@pytest.mark.parametrize("capability", ["7.5", "8.0", "9.0", "10.0"])
def test_barriers_are_neither_copied_nor_dropped(built: Built, capability: str) -> None:
    barriers = {
        kernel: [word for word in words(built, kernel, capability) if word.startswith("BAR.")]
        for kernel in ("barrier_branches", "barrier_named", "barrier_arrive")
    }
    assert {kernel: len(found) for kernel, found in barriers.items()} == {
        "barrier_branches": 3,
        "barrier_named": 2,
        "barrier_arrive": 2,
    }
    assert any(word.startswith("BAR.ARV") for word in barriers["barrier_arrive"])


@pytest.mark.parametrize("capability", ["7.5", "8.0", "9.0", "10.0"])
def test_a_barrier_stands_between_writing_and_reading_shared_memory(built: Built, capability: str) -> None:
    found = [word.split(".")[0] for word in words(built, "barrier_branches", capability)]
    memory = [word for word in found if word in ("STS", "LDS", "BAR")]
    first_round = memory[: memory.index("LDS")]
    assert first_round == ["STS", "BAR"]


@pytest.mark.parametrize("kernel", ["block_f32", "block_6_f32", "groups_block", "groups_block_f32"])
def test_each_collective_of_a_block_costs_one_barrier(built: Built, kernel: str) -> None:
    collectives = {"block_f32": 6 + 1, "block_6_f32": 3, "groups_block": 2 + 1, "groups_block_f32": 2}
    found = words(built, kernel, "9.0")
    assert sum(word.startswith("BAR.") for word in found) == collectives[kernel]
    assert not any(word.startswith(("LD.", "ST.")) for word in found), "generic access"


def memory(instructions: list[str], kinds: str = "LD|ST|LDG|STG|LDS|STS|LDL|STL") -> list[str]:
    """The accesses to memory, without what they access: `"LDG.E.CONSTANT"`."""
    found = (re.match(rf"(?:{kinds})\b\S*", instruction) for instruction in instructions)
    return [match[0] for match in found if match]


def test_safe_access_checks_only_bounds(built: Built) -> None:
    instructions = built.instructions("disjoint_saxpy")
    assert sorted(memory(instructions)) == ["LDG.E", "LDG.E.CONSTANT", "STG.E"]
    # The launch's dimensions, and the index against the shorter length: nothing asks for null.
    assert sum(instruction.startswith("ISETP") for instruction in instructions) <= 6
    assert len(instructions) <= 45


def test_a_step_over_a_grid_costs_an_addition_and_a_comparison(built: Built) -> None:
    instructions = built.instructions("thread_grid_stride_saxpy")
    assert sorted(memory(instructions)) == ["LDG.E", "LDG.E.CONSTANT", "STG.E"]
    first = next(at for at, text in enumerate(instructions) if text.startswith("LDG"))
    last = next(at for at, text in enumerate(instructions) if text.startswith("STG"))
    # 64-bit additions and comparisons are two instructions each.
    assert last - first <= 12
    assert not any(re.match(r"CALL|MUFU|I2F", text) for text in instructions), "a division"


@pytest.mark.parametrize(
    "kernel",
    ["shared_static", "shared_generic", "shared_same_name", "shared_dynamic", "shared_carved"],
)
@pytest.mark.parametrize("capability", ["7.5", "9.0", "10.0"])
def test_shared_memory_is_accessed_as_such(built: Built, kernel: str, capability: str) -> None:
    instructions = built.instructions(kernel, capability)
    assert memory(instructions, "LDS")
    assert memory(instructions, "STS")
    assert not memory(instructions, "LD|ST|LDL|STL"), "generic or local accesses"


@pytest.mark.parametrize("capability", ["7.5", "9.0", "10.0"])
def test_constants_are_read_as_such(built: Built, capability: str) -> None:
    # Fixed places are operands, others are loaded from the same bank.
    assert "c[0x3][" in built.sass("constant_polynomial", capability)
    assert memory(built.instructions("constant_table", capability), "LDC|LDCU")
    for kernel in ("constant_polynomial", "constant_line", "constant_table"):
        assert not memory(built.instructions(kernel, capability), "LD|LDL")


def test_panics_without_messages_carry_no_text(built: Built) -> None:
    text = built.sass("debug_out_of_bounds", "9.0")
    assert "vprintf" not in text
    assert "BPT.TRAP" in text


@pytest.mark.parametrize(
    ("kernel", "load", "store"),
    [
        ("memory_ldg_1", r"LDG\.E\.U8\.CONSTANT", r"STG\.E\.U8"),
        ("memory_ldg_2", r"LDG\.E\.U16\.CONSTANT", r"STG\.E\.U16"),
        ("memory_ldg_4", r"LDG\.E\.CONSTANT", r"STG\.E\.STRONG\.SM "),
        ("memory_ldg_8", r"LDG\.E\.64\.CONSTANT", r"STG\.E\.64"),
        ("memory_ldg_16", r"LDG\.E\.128\.CONSTANT", r"STG\.E\.128"),
        ("memory_ldca_16", r"LDG\.E\.128\.STRONG\.SM ", r"STG\.E\.128\.STRONG\.GPU"),
        ("memory_ldcg_8", r"LDG\.E\.64\.STRONG\.GPU", r"STG\.E\.EF\.64"),
        ("memory_ldcs_4", r"LDG\.E\.EF ", r"STG\.E\.STRONG\.SYS"),
        ("memory_ldlu_2", r"LDG\.E\.LU\.U16", r"STG\.E\.NA\.U16"),
        ("memory_ldcv_16", r"LDG\.E\.128\.STRONG\.SYS", r"STG\.E\.EL\.128"),
        ("memory_ldg_no_allocate", r"LDG\.E\.NA\.128\.CONSTANT", r"STG\.E\.EF\.128"),
        ("memory_ldg_l2_256", r"LDG\.E\.LTC256B\.128\.CONSTANT", r"STG\.E\.EF\.128"),
        ("pack_u8_4", r"LDG\.E\.CONSTANT", r"STG\.E "),
        ("pack_f32_2", r"LDG\.E\.64\.CONSTANT", r"STG\.E\.64"),
        ("pack_f32_4", r"LDG\.E\.128\.CONSTANT", r"STG\.E\.128"),
        ("pack_f64_1", r"LDG\.E\.64\.CONSTANT", r"STG\.E\.64"),
        ("pack_f16_2", r"LDG\.E\.CONSTANT", r"STG\.E "),
        ("pack_bf16_4", r"LDG\.E\.64\.CONSTANT", r"STG\.E\.64"),
        ("pack_bf16_8", r"LDG\.E\.128\.CONSTANT", r"STG\.E\.128"),
        ("pack_shared", r"LDS\.128", r"STS\.128"),
    ],
)
def test_words_are_moved_in_one_instruction(built: Built, kernel: str, load: str, store: str) -> None:
    sass = built.sass(kernel, "9.0")
    assert re.search(load, sass)
    assert re.search(store, sass)


@pytest.mark.parametrize(
    ("kernel", "copy"),
    [
        ("async_copy_ca_4", r"LDGSTS\.E "),
        ("async_copy_ca_8", r"LDGSTS\.E\.64 "),
        ("async_copy_ca_16", r"LDGSTS\.E\.128 "),
        ("async_copy_cg_16", r"LDGSTS\.E\.BYPASS\.128 "),
        ("async_copy_cg_zfill_16", r"LDGSTS\.E\.BYPASS\.128\.ZFILL "),
        ("async_copy_pipeline", r"LDGSTS\.E "),
    ],
)
def test_asynchronous_copies_go_past_the_registers(built: Built, kernel: str, copy: str) -> None:
    for capability in ("8.0", "9.0"):
        sass = built.sass(kernel, capability)
        assert re.search(copy, sass)
        assert "LDGDEPBAR" in sass
        assert "DEPBAR.LE SB0, 0x" + ("1" if "pipeline" in kernel else "0") in sass


@pytest.mark.parametrize(
    ("kernel", "instruction"),
    [
        ("half_f16_add", "HADD2"),
        ("half_f16_sub", "HADD2"),
        ("half_f16_mul", "HMUL2"),
        ("half_f16_mul_add", "HFMA2"),
        ("half_f16_max", "HMNMX2"),
        ("half_f16_compare", "HSETP2"),
        ("half_bf16_add", "HADD2.BF16"),
        ("half_bf16_mul", "HMUL2.BF16"),
        ("half_bf16_mul_add", "HFMA2.BF16"),
        ("half_bf16_max", "HMNMX2.BF16"),
        ("half_f16x2", "HFMA2"),
        ("half_bf16x2", "HFMA2.MMA.BF16"),
        ("fast_tanh_approx", "MUFU.TANH"),
        ("fast_ex2_approx", "MUFU.EX2"),
        ("integer_byte_perm", "PRMT"),
        ("dotprod_signed", "IDP.4A.S8.S8"),
    ],
)
def test_one_instruction_does_it(built: Built, kernel: str, instruction: str) -> None:
    assert instruction in built.sass(kernel, "9.0")


def test_arithmetic_on_halves_stays_in_16_bits(built: Built) -> None:
    for operation in ("add", "sub", "mul", "mul_add"):
        assert not re.search("F2F|HADD2.F32", built.sass(f"half_f16_{operation}", "7.5"))
        assert not re.search("F2F|HADD2.F32", built.sass(f"half_bf16_{operation}", "8.0"))
        assert "HFMA2.BF16" in built.sass(f"half_bf16_{operation}", "8.0")


def test_results_through_pointers_stay_in_registers(built: Built) -> None:
    for kernel in ("math_frexp", "math_modf", "math_remquo", "math_sincospi", "fast_sin_cos"):
        assert not re.search("LDL|STL", built.sass(kernel, "9.0"))
