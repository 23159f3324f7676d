"""The Rust crates for kernel authors, compiled by the real rustc and assembled by the real ptxas."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from rustcuda_backend import cuda, launch_bounds, process
from rustcuda_backend.capability import Capability, parse_list
from rustcuda_backend.constants import ConstantSymbol
from rustcuda_backend.errors import SignatureError
from rustcuda_backend.finishing import finish
from rustcuda_backend.process import Finished
from rustcuda_backend.ptx import PtxModule
from rustcuda_backend.rust import CRATE_FEATURES, TARGET, RustToolchain
from rustcuda_backend.signature import KernelSignature, parse_type
from rustcuda_backend.sysroot import clean_environment
from rustcuda_backend.toolkit import CudaTools

REPOSITORY = Path(__file__).resolve().parents[1]
DEVICE = REPOSITORY / "rustcuda_backend" / "device"
SAMPLE = REPOSITORY / "sample_ext" / "kernels" / "src" / "lib.rs"
CAPABILITIES = parse_list("7.5 8.0 9.0 10.0")
HOPPER = Capability(9, 0)


def run_rustc(toolchain: RustToolchain, source: Path, *arguments: str | Path, unstable: bool) -> Finished:
    environ = clean_environment() | ({"RUSTC_BOOTSTRAP": "1"} if unstable else {})
    argv = (toolchain.rustc, "--edition=2024", source, *arguments)
    return process.run(argv, cwd=source.parent, env=environ)


def library(
    toolchain: RustToolchain, name: str, output: Path, *arguments: str | Path, unstable: bool
) -> None:
    source = DEVICE / name.replace("_", "-") / "src" / "lib.rs"
    finished = run_rustc(
        toolchain, source, f"--crate-name={name}", "-Dwarnings", "-o", output, *arguments, unstable=unstable
    )
    assert finished.ok, finished.stderr


@pytest.fixture(scope="session")
def macros(toolchain: RustToolchain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("macros") / "librustcuda_macros.so"
    library(
        toolchain, "rustcuda_macros", output, "--crate-type=proc-macro", "--extern=proc_macro", unstable=False
    )
    return output


@dataclass
class Kernels:
    """Compiles kernel crates for the GPU, as a pass does."""

    toolchain: RustToolchain
    sysroot: Path
    macros: Path
    folder: Path

    def flags(self, capability: Capability) -> tuple[str, ...]:
        return (
            f"--target={TARGET}",
            f"--sysroot={self.sysroot}",
            f"-Ctarget-cpu={capability.sm}",
            *(("-Ctarget-feature=+ptx80",) if capability.base == (9, 0) else ()),
            *(f'--cfg=cuda_arch="{value}"' for value in capability.cfg_values()),
            *("-Copt-level=3", "-Cpanic=abort", "-Ccodegen-units=1", "-Zmir-enable-passes=-JumpThreading"),
            "-Cllvm-args=-unroll-threshold=4000",
        )

    def device_crate(self, capability: Capability) -> Path:
        output = self.folder / f"librustcuda_device_{capability.number}.rlib"
        if not output.exists():
            flags = (*self.flags(capability), "--crate-type=rlib", "-Cembed-bitcode=yes")
            extern = f"--extern=rustcuda_macros={self.macros}"
            library(self.toolchain, "rustcuda_device", output, *flags, extern, unstable=True)
        return output

    def rustc(self, source: Path, capability: Capability) -> Finished:
        return run_rustc(
            self.toolchain,
            source,
            *self.flags(capability),
            *("--crate-name=kernels", "--crate-type=staticlib", "-Clto=fat", "--emit=asm,link"),
            *("--out-dir", self.folder, "-L", self.macros.parent),
            f"--extern=rustcuda_device={self.device_crate(capability)}",
            *(f"-Zcrate-attr=feature({','.join(CRATE_FEATURES)})", "-Zcrate-attr=no_std"),
            *("-Aunused_features", "-Ainternal_features"),
            unstable=True,
        )

    def compile(self, source: Path, capability: Capability = HOPPER) -> PtxModule:
        finished = self.rustc(source, capability)
        assert finished.ok, finished.stderr
        assert "data layout" not in finished.stderr
        return finish((self.folder / "kernels.s").read_text(encoding="utf-8"), capability)


@pytest.fixture(scope="session")
def kernels(
    toolchain: RustToolchain, gpu_sysroot: Path, macros: Path, tmp_path_factory: pytest.TempPathFactory
) -> Kernels:
    return Kernels(toolchain, gpu_sysroot, macros, tmp_path_factory.mktemp("kernels"))


Snippet = Callable[[str], Path]


@pytest.fixture
def snippet(tmp_path: Path) -> Snippet:
    """Writes a kernel crate; its source begins on line 2."""

    def write(source: str) -> Path:
        path = tmp_path / "snippet.rs"
        path.write_text("use rustcuda_device::prelude::*;\n" + source, encoding="utf-8")
        return path

    return write


def body(module: PtxModule, kernel: str) -> str:
    """The PTX of one kernel."""
    # A brace that ends lines of asm! is no function's end.
    end = r"^\}\n(?!\t// end inline asm)"
    found = re.search(rf"\.entry {kernel}\(.*?{end}", module.text, re.MULTILINE | re.DOTALL)
    assert found
    return found[0]


def only(module: PtxModule) -> KernelSignature:
    (signature,) = module.signatures
    return signature


def parameters(**types: str) -> tuple[object, ...]:
    return tuple(parse_type(name, rust_type) for name, rust_type in types.items())


def test_every_parameter_type_is_recorded_with_aliases_resolved(kernels: Kernels, snippet: Snippet) -> None:
    source = snippet("""
type Index = u32;
type Out = *mut f16;
/// Moves data.
///
/// In *two* `lines`.
#[kernel]
pub unsafe fn everything(
    n: Index, flag: bool, half: f16, brain: bf16, wide: f64, small: i8, r#type: usize,
    from: *const f32, to: Out, one: &u64, read: &[i16], brains: &[bf16], fixed: &'static [bool],
    mut write: DisjointSlice<f32>, other: rustcuda_device::DisjointSlice<'_, u8>,
    weights: [f16; 3], long: [u8; 1_0 + 2],
) {
    let index = thread::index_1d();
    if let Some(place) = write.get_mut(index) { *place = n as f32; }
    let _ = (flag, half, brain, wide, small, r#type, from, to, one, read, brains, fixed, other);
    let _ = (weights, long);
}
""")
    signature = only(kernels.compile(source))
    assert signature.name == "everything"
    assert signature.doc == "Moves data.\n\nIn *two* `lines`."
    assert signature.launch_bounds is None
    assert signature.parameters == parameters(
        n="u32", flag="bool", half="f16", brain="bf16", wide="f64", small="i8", type="usize",
        **{"from": "*const f32"}, to="*mut f16", one="&u64", read="&[i16]", brains="&[bf16]", fixed="&[bool]",
        write="DisjointSlice<f32>", other="DisjointSlice<u8>", weights="[f16; 3]", long="[u8; 12]",
    )  # fmt: skip
    assert signature.abi_bytes[-2:] == (6, 12)


def test_any_character_can_stand_in_a_doc_comment(kernels: Kernels, snippet: Snippet) -> None:
    """The record's separators become spaces; the records stay readable."""
    source = snippet("""
/// a\x1eparameter\x1fx\x1df32 \x00\x01\x7f ü
#[doc = "b\\x1ec"]
#[kernel]
fn k(x: *mut f32) { unsafe { *x = TABLE.get()[0] } }

/// \x1etype\x1ff32
#[constant]
static TABLE: ConstantMemory<[f32; 4]> = ConstantMemory::UNINIT;
""")
    module = kernels.compile(source)
    assert only(module).doc == "a parameter x f32 \x00\x01\x7f ü\nb c"
    assert only(module).parameters == parameters(x="*mut f32")
    (constant,) = module.constants
    assert (constant.doc, constant.rust_type) == ("type f32", "[f32; 4]")


def test_a_struct_by_value(kernels: Kernels, snippet: Snippet) -> None:
    source = snippet("""
mod inner {
    #[repr(C)]
    #[derive(Clone, Copy, rustcuda_device::KernelParam)]
    pub struct Inner { a: u8, pub b: f64 }
}
/// Documented.
#[repr(C)]
#[derive(Clone, Copy, KernelParam)]
pub struct Params { /// Also documented,
    /// at length.
    pub scale: f32, #[doc(hidden)] pub(crate) r#type: [f16; 3], inner: inner::Inner, flag: bool }

#[kernel]
fn k(mut p: Params, y: *mut f32, q: inner::Inner) {
    p.scale += p.r#type[1] as f32 + p.inner.b as f32 + p.flag as u8 as f32 + q.b as f32;
    unsafe { *y = p.scale };
}
""")
    module = kernels.compile(source)
    first, _, last = only(module).parameters
    assert first.struct is not None
    assert [(field.name, field.rust_type) for field in first.struct.fields] == [
        ("scale", "f32"), ("type", "[f16; 3]"), ("inner", "Inner"), ("flag", "bool"),
    ]  # fmt: skip
    assert first.struct.doc == "Documented."
    assert [field.doc for field in first.struct.fields] == ["Also documented,\nat length.", "", "", ""]
    assert (first.abi_bytes, last.abi_bytes) == ((40,), (16,)), "as the PTX has them, which is compared"
    assert last.rust_type == "Inner"


@pytest.mark.parametrize(
    ("attributes", "bounds"),
    [
        ("#[kernel(launch_bounds(256))]", (256, 0)),
        ("#[kernel(launch_bounds(THREADS / 2, 1 + 1))]", (128, 2)),
        ("#[kernel]\n#[launch_bounds(THREADS, 4)]", (256, 4)),
        ("#[launch_bounds(32)]\n/// Doc.\n#[kernel]", (32, 0)),
    ],
)
def test_launch_bounds_reach_signature_and_ptx(
    kernels: Kernels, snippet: Snippet, attributes: str, bounds: tuple[int, int]
) -> None:
    items = f"const THREADS: usize = 256;\n{attributes}\npub fn bounded() {{ let _ = THREADS; }}\n"
    source = f"pub mod m {{\n#![deny(warnings)]\nuse rustcuda_device::prelude::*;\n{items}}}\n"
    module = kernels.compile(snippet(source))
    assert only(module).launch_bounds == bounds
    assert f".maxntid {bounds[0]}\n" in module.text
    assert (f".minnctapersm {bounds[1]}\n" in module.text) == (bounds[1] > 0)


@pytest.mark.parametrize(
    ("capability", "blocks"),
    [
        ("7.5", 4), ("8.0", 8), ("8.6", 6), ("9.0", 8), ("10.0", 8), ("10.1", 6), ("10.3", 8), ("11.0", 6),
        ("12.0", 6),
    ],
)  # fmt: skip
def test_bounds_can_ask_for_all_room_of_a_capability(
    kernels: Kernels, snippet: Snippet, capability: str, blocks: int
) -> None:
    (passed,) = parse_list(capability)
    source = snippet("#[kernel(launch_bounds(256, thread::RESIDENT_THREADS / 256))]\nfn full() {}\n")
    signature = only(kernels.compile(source, passed))
    assert signature.launch_bounds == (256, blocks)
    assert not launch_bounds.without_room([(signature, passed)])


def test_slices_are_loaded_from_global_memory_through_the_read_only_cache(
    kernels: Kernels, snippet: Snippet
) -> None:
    source = snippet("""
#[kernel]
fn scale(a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
    let index = thread::index_1d();
    let at = index.get();
    if let (Some(y), Some(x)) = (y.get_mut(index), x.get(at)) { *y += a * *x; }
}
""")
    text = body(kernels.compile(source), "scale")
    assert re.findall(r"\.param \.(\w+)", text) == ["f32", "u64", "u64", "u64", "u64"]
    assert sorted(re.findall(r"\b(?:ld|st)\.(?!param)[\w.]+", text)) == [
        "ld.global.b32", "ld.global.nc.b32", "st.global.b32",
    ]  # fmt: skip


def test_shared_memory_is_declared_and_reached_as_shared(
    kernels: Kernels, snippet: Snippet, tools: CudaTools, tmp_path: Path
) -> None:
    source = snippet("""
struct Field { TILE: u32 }
type Pair = SharedArray<u64, 2>;
#[kernel]
unsafe fn tiles(x: *const f32, y: *mut f32) {
    const SIDE: usize = 8;
    static mut TILE: SharedArray<f32, { SIDE * SIDE }> = SharedArray::UNINIT;
    static mut BYTES: SharedArray<u8, 5, 16> = SharedArray::UNINIT;
    static mut PAIR: Pair = Pair::UNINIT;
    let i = thread::threadIdx_x() as usize;
    let field = Field { TILE: TILE.len() as u32 - 61 };
    unsafe {
        let write = |value: f32| TILE[i] = value;
        write(*x.add(i));
        PAIR[i & 1] = 7;
        let bytes = &raw mut BYTES;
        *bytes.cast::<u8>().add(i % 5) = 1;
        thread::sync_threads();
        *y.add(i) = TILE[i ^ 1] + BYTES[0] as f32 + PAIR[1] as f32 + field.TILE as f32 + TILE.len() as f32;
    }
}
""")
    module = kernels.compile(source)
    text = body(module, "tiles")
    for declaration in (
        ".shared .align 4 .b8 __shared_tiles_TILE[256];",
        ".shared .align 16 .b8 __shared_tiles_BYTES[5];",
        ".shared .align 8 .b8 __shared_tiles_PAIR[16];",
    ):
        assert declaration in module.text
    assert "st.shared.b32" in text
    assert "ld.shared.b32" in text
    assert not re.search(r"\b(ld|st)\.[bu]\d", text), "generic access"
    assert "bar.sync" in text or "barrier.sync" in text
    assert "__rustcuda_shared_to_generic" not in module.text
    cuda.assemble(tools, module, arguments=(), keep=tmp_path / "kept.ptx")


def test_dynamic_shared_memory_is_one_extern_array(
    kernels: Kernels, snippet: Snippet, tools: CudaTools, tmp_path: Path
) -> None:
    source = snippet("""
#[kernel]
unsafe fn dynamic(y: *mut u32) {
    let i = thread::threadIdx_x() as usize;
    unsafe {
        *DynamicSharedArray::<u32>::get().add(i) = i as u32;
        *DynamicSharedArray::<u8>::offset(4096).add(i) = 1;
        thread::sync_threads();
        let byte = *DynamicSharedArray::<u8>::get_raw().add(4096);
        *y.add(i) = *DynamicSharedArray::<u32>::get().add(i ^ 1) + u32::from(byte);
    }
}
""")
    module = kernels.compile(source)
    assert module.text.count(".extern .shared .align 16 .b8 __rustcuda_dynamic_shared[];") == 1
    assert "ld.shared.b32" in body(module, "dynamic")
    cuda.assemble(tools, module, arguments=(), keep=tmp_path / "kept.ptx")


def test_warps_exchange_values_by_convergent_intrinsics(kernels: Kernels, snippet: Snippet) -> None:
    source = snippet("""
#[kernel]
unsafe fn warps(y: *mut u64, z: *mut f64) {
    let lane = warp::lane_id();
    let mut sum = warp::shuffle_xor(lane, 1) + warp::shuffle_down(lane, 2) + warp::shuffle_up(lane, 3);
    sum += warp::shuffle_sync(0xff, lane, 4) + warp::ballot(lane > 3) + warp::warp_id() + warp::active_mask();
    sum += u32::from(warp::all(lane > 1)) + u32::from(warp::any_sync(3, lane > 1));
    warp::sync_mask(0xffff);
    unsafe {
        *y.add(lane as usize) = u64::from(sum) + warp::shuffle_u64(u64::from(sum) << 20, 5);
        *z.add(lane as usize) = warp::reduce_sum_f64(f64::from(warp::reduce_max_f32(sum as f32)));
    }
}
""")
    text = body(kernels.compile(source), "warps")
    for instruction in (
        "shfl.sync.bfly.b32", "shfl.sync.down.b32", "shfl.sync.up.b32", "shfl.sync.idx.b32",
        "vote.sync.ballot.b32", "vote.sync.all.pred", "vote.sync.any.pred", "activemask.b32", "bar.warp.sync",
    ):  # fmt: skip
        assert instruction in text
    # Two shuffles for each of the five steps of the f64 sum, one for each of the f32 maximum.
    assert text.count("shfl.sync.bfly") == 1 + 10 + 5


HALVES = {"f16": "f16", "bf16": "bf16", "f16x2": "F16x2", "bf16x2": "Bf16x2"}


@pytest.mark.parametrize("capability", [Capability(7, 0), HOPPER], ids=str)
@pytest.mark.parametrize("half", HALVES)
def test_halves_do_what_other_numbers_do(
    kernels: Kernels, snippet: Snippet, half: str, capability: Capability
) -> None:
    source = snippet(
        f"""
use rustcuda_device::ops::{{Max, Min, Sum}};
type Half = {HALVES[half]};
#[constant]
static TABLE: ConstantMemory<[Half; 3]> = ConstantMemory::UNINIT;
#[kernel]
unsafe fn k(x: *mut Half, by: usize) {{ unsafe {{
    let moved = warp::shuffle_{half}(TABLE.get_ref()[by], 3) + warp::shuffle_xor_{half}(*x, 1)
        + warp::shuffle_down_{half}(*x, 1) + warp::shuffle_up_{half}_sync(1, *x, 1);
    *x = warp::reduce::<Half, Sum>(moved) + warp::reduce::<Half, Min>(moved)
        + warp::reduce::<Half, Max>(moved);
}} }}
""".replace("x: *mut Half", "x: *mut u32").replace("*x", "(*x.cast::<Half>())")
    )
    module = kernels.compile(source, capability)
    (table,) = module.constants
    assert (table.dtype, table.size) == ("" if "x2" in half else half, 3 * (4 if "x2" in half else 2))
    # One each, and five for each of the three reductions.
    assert body(module, "k").count("shfl.sync") == 4 + 3 * 5


@pytest.mark.parametrize(
    ("rust", "c"),
    [
        ("{:#?} {:#}", "%lld %lld"),
        ("{:#x} {:#010X}", "0x%llx 0x%08llX"),
        ("{:?} {{{:#o}}}", "%lld {0o%llo}"),
        ("{:<#10x} {:+x}", "0x%-8llx +%llx"),
        ("{: <5} {:>+5}", "%-5lld %+5lld"),
        ("{:<05} {:-12}", "%05lld %-12lld"),
        ("{:c}{:5c}", "%c%5c"),
    ],
)
def test_formats_become_those_of_c(kernels: Kernels, snippet: Snippet, rust: str, c: str) -> None:
    module = kernels.compile(snippet(f'#[kernel]\nfn k(a: i64, b: i64) {{ gpu_printf!("{rust}", a, b); }}'))
    assert ", ".join(map(str, (*c.encode(), 0))) in module.text


def test_formats_go_by_the_kind_of_their_argument(kernels: Kernels, snippet: Snippet) -> None:
    source = snippet("""
struct Format;
impl Format { fn new() -> u32 { 1 } }
#[kernel]
fn k(a: u32, b: bf16, c: f32) {
    gpu_printf!("{:+} {:<+5} {:8} {:>8} {:.3} {:+.2e}", a, Format::new(), c"l", c"r", b, c);
}
""")
    c = "+%llu +%-4llu %-8s %8s %.3f %+.2e"
    assert ", ".join(map(str, (*c.encode(), 0))) in kernels.compile(source).text


def test_characters_take_the_places_that_c_gives_them(kernels: Kernels, snippet: Snippet) -> None:
    source = snippet("""
#[kernel]
fn k(a: u8, b: u32, c: i64) { gpu_printf!("{:c}{:c}{}{:c}{}", a, b, c, a, c); }
""")
    stores = re.findall(r"st\.local\S*\.b(\d+)\s+\[%rd\d+(?:\+(\d+))?\]", body(kernels.compile(source), "k"))
    # A merged store may cover the two that begin it.
    assert {(int(at or 0), int(bits)) for bits, at in stores} >= {(8, 64), (16, 32), (24, 64)}, stores


def test_math_is_inlined(kernels: Kernels, snippet: Snippet, tools: CudaTools, tmp_path: Path) -> None:
    source = snippet("""
#[kernel]
unsafe fn floats(x: *mut f32, y: *mut f64) {
    unsafe {
        *x = (*x).exp().sqrt() + (*x).rsqrt() + (*x).tanh().floor() + (*x).powf(0.3).mul_add(2.0, 1.0).abs();
        *y = (*y).exp().sqrt() + (*y).sin().max(0.5) + (*y).hypot(2.0).ln();
    }
}
""")
    module = kernels.compile(source)
    text = body(module, "floats")
    assert "__nv_" not in module.text
    for instruction in ("ex2.approx", "sqrt.rn.f32", "sqrt.rn.f64", "rsqrt.approx"):
        assert instruction in text
    cuda.assemble(tools, module, arguments=(), keep=tmp_path / "kept.ptx")


def test_slices_compare_and_conditions_hold_for_kernel_and_record(kernels: Kernels, snippet: Snippet) -> None:
    source = snippet("""
#[kernel]
#[cfg(cuda_arch = "90")]
fn new(x: &[u8], y: &[u8], mut z: DisjointSlice<bool>) {
    if let Some(z) = z.get_mut(thread::index_1d()) { *z = x == y; }
}
#[kernel]
#[cfg(not(cuda_arch = "90"))]
fn old() {}
""")
    assert only(kernels.compile(source)).name == "new"
    assert only(kernels.compile(source, Capability(8, 0))).name == "old"


def test_an_atomic_static_is_global_memory(kernels: Kernels, snippet: Snippet) -> None:
    source = snippet("""
use rustcuda_device::atomic::{AtomicOrdering, DeviceAtomicU32};
static COUNT: DeviceAtomicU32 = unsafe { DeviceAtomicU32::new(7) };
#[kernel] unsafe fn count(x: *mut u32) { unsafe { *x = COUNT.fetch_add(1, AtomicOrdering::Relaxed) } }
""")
    module = kernels.compile(source)
    assert re.search(r"^\.global \.align 4 \.b8 \w+COUNT\[4\] = \{7\};$", module.text, re.MULTILINE)
    assert "atom.relaxed.gpu.global.add.u32" in body(module, "count")


def test_bulk_copies_arrive_in_shared_memory(
    kernels: Kernels, snippet: Snippet, tools: CudaTools, tmp_path: Path
) -> None:
    source = snippet("""
use rustcuda_device::bulk::{self, Barrier};
#[kernel]
unsafe fn staged(x: *const f32, y: *mut f32) {
    static mut ROW: SharedArray<f32, 256, 16> = SharedArray::UNINIT;
    static mut ARRIVED: Barrier = Barrier::UNINIT;
    let i = thread::threadIdx_x() as usize;
    unsafe {
        if i == 0 {
            bulk::init(&raw mut ARRIVED);
            bulk::copy_to_shared((&raw mut ROW).cast(), x.cast(), 1024, &raw mut ARRIVED);
        }
        thread::sync_threads();
        bulk::wait(&raw mut ARRIVED, 0);
        *y.add(i) = ROW[i ^ 1];
    }
}
""")
    module = kernels.compile(source)
    assert ".shared .align 8 .b8 __shared_staged_ARRIVED[8];" in module.text
    assert "cp.async.bulk.shared" in body(module, "staged")
    cuda.assemble(tools, module, arguments=(), keep=tmp_path / "kept.ptx")
    older = kernels.rustc(source, Capability(8, 0))
    assert not older.ok
    assert older.stderr.count("this needs capability 9.0\n") == 3


NEEDS_AMPERE = """
use rustcuda_device::requires::{Gpu, Has80};
fn new() -> u32 where for<'pass> Gpu<'pass>: Has80 { 80 }
struct Thing;
impl Thing { fn newer(&self) -> u32 where for<'pass> Gpu<'pass>: Has80 { new() + 1 } }
"""


@pytest.mark.parametrize("call", ["new()", "Thing.newer()"])
def test_what_a_gpu_lacks_is_an_error_that_names_the_capability(
    kernels: Kernels, snippet: Snippet, call: str
) -> None:
    source = snippet(f"{NEEDS_AMPERE}#[kernel] unsafe fn k(x: *mut u32) {{\nunsafe {{ *x = {call} }} }}")
    kernels.compile(source, Capability(8, 0))
    kernels.compile(source, Capability(8, 6))
    older = kernels.rustc(source, Capability(7, 5))
    assert not older.ok
    assert "error[E0277]: this needs capability 8.0\n" in older.stderr
    assert 'put it under #[cfg(cuda_arch = "80")]' in older.stderr
    assert "snippet.rs:8:" in older.stderr


@pytest.mark.parametrize(
    ("call", "capability", "needed"),
    [
        ("math::tanh_approx(0.5).to_bits()", Capability(7, 0), "7.5"),
        ("f16x2::max_f16x2(1, 2)", Capability(7, 5), "8.0"),
        ("bf16x2::add_bf16x2(1, 2)", Capability(7, 5), "8.0"),
        ("convert::cvt_rna_tf32_f32(0.5)", Capability(7, 5), "8.0"),
        ("convert::cvt_rn_satfinite_e4m3x2_f32(0.5, 1.0).into()", Capability(8, 6), "8.9"),
        ("convert::cvt_rn_tf32_f32(0.5)", Capability(8, 9), "9.0"),
        ("convert::cvt_rn_satfinite_tf32_f32(0.5)", HOPPER, "10.0"),
        ("memory::ld_l2_64(x)", Capability(7, 0), "7.5"),
        ("memory::ldg_l2_256(x)", Capability(7, 5), "8.0"),
        ("{ async_copy::cp_async_wait_group(1); 0 }", Capability(7, 5), "8.0"),
        ("warp::redux_sync_add(3, 1)", Capability(7, 5), "8.0"),
        ("warp::elect_sync(3).0", Capability(8, 9), "9.0"),
        ("barrier::mbarrier_arrive(x.cast()) as u32", Capability(7, 5), "8.0"),
        ("barrier::mbarrier_try_wait(x.cast(), 1).into()", Capability(8, 9), "9.0"),
        ("{ barrier::fence_proxy_async(); 0 }", Capability(8, 9), "9.0"),
        ("{ bulk::prefetch(&[*x]); 0 }", Capability(8, 9), "9.0"),
        ("atomic::atom_add_bf16x2(x, 1)", Capability(8, 9), "9.0"),
        (
            (
                "{ use atomic::*; "
                "DeviceAtomicBf16::from_ptr(x.cast()).fetch_add(bf16::ONE, AtomicOrdering::Relaxed); 0 }"
            ),
            Capability(8, 9),
            "9.0",
        ),
    ],
)
def test_a_function_names_the_capability_that_it_needs(
    kernels: Kernels, snippet: Snippet, call: str, capability: Capability, needed: str
) -> None:
    source = snippet(
        "#[allow(unused)] use rustcuda_device::{async_copy, atomic, barrier, bf16x2, bulk};\n"
        "#[allow(unused)] use rustcuda_device::{convert, f16x2, math, memory};\n"
        "#[allow(unused)] use rustcuda_device::atomic::{AtomicOrdering::Relaxed, DeviceAtomicBf16x2};\n"
        f"#[kernel] unsafe fn k(x: *mut u32) {{\nunsafe {{ *x = {call} }} }}"
    )
    finished = kernels.rustc(source, capability)
    assert not finished.ok
    assert f"this needs capability {needed}\n" in finished.stderr
    assert "snippet.rs:6:" in finished.stderr


def test_what_a_gpu_lacks_may_stand_under_its_capability(kernels: Kernels, snippet: Snippet) -> None:
    source = snippet(
        NEEDS_AMPERE
        + """
#[kernel] unsafe fn k(x: *mut u32) {
    #[cfg(cuda_arch = "80")]
    unsafe { *x = Thing.newer() }
    #[cfg(not(cuda_arch = "80"))]
    unsafe { *x = 75 }
}
"""
    )
    assert "81" in body(kernels.compile(source, Capability(8, 0)), "k")
    assert "75" in body(kernels.compile(source, Capability(7, 5)), "k")


def test_cfg_decides_about_a_shared_static_alone(kernels: Kernels, snippet: Snippet) -> None:
    source = snippet("""
#[kernel] unsafe fn gone(x: *mut u32) {
    #[cfg(cuda_arch = "100")]
    static mut T: SharedArray<u32, 8> = SharedArray::UNINIT;
    thread::sync_threads();
    unsafe { *x = 1 }
}
#[kernel] unsafe fn either(x: *mut u32) {
    /// Larger where there is room.
    #[cfg(cuda_arch = "100")]
    static mut T: SharedArray<u32, 256> = SharedArray::UNINIT;
    /// Smaller elsewhere.
    #[cfg(not(cuda_arch = "100"))]
    #[allow(unused)]
    static mut T: SharedArray<u32, 64> = SharedArray::UNINIT;
    let k = thread::threadIdx_x() as usize;
    unsafe { T[k] = 1; *x = T[k ^ 1]; }
}
""")
    for capability, size in ((HOPPER, 256), (Capability(10, 0), 1024)):
        finished = kernels.rustc(source, capability)
        assert finished.ok
        assert "unused" not in finished.stderr
        module = kernels.compile(source, capability)
        assert "bar.sync" in body(module, "gone")
        declared = re.findall(r"^\.shared .*", module.text, re.MULTILINE)
        assert declared == [f".shared .align 4 .b8 __shared_either_T[{size}];"]


def test_functions_that_a_macro_wrote_have_shared_memory_of_their_own(
    kernels: Kernels, snippet: Snippet
) -> None:
    source = snippet("""
macro_rules! sums { ($($name:ident)*) => { $(
    struct $name;
    impl $name {
        #[device] fn other(v: u32) -> u32 {
            static mut S: SharedArray<u32, 32> = SharedArray::UNINIT;
            unsafe { S[thread::threadIdx_x() as usize] = v };
            thread::sync_threads();
            unsafe { S[31 - thread::threadIdx_x() as usize] }
        }
    }
)* } }
sums!(A B);
#[kernel] unsafe fn k(x: *mut u32) { unsafe { *x = A::other(B::other(1)) } }
""")
    declared = re.findall(r"^\.shared .*", kernels.compile(source).text, re.MULTILINE)
    assert declared == [f".shared .align 4 .b8 __shared_other_S{n}[128];" for n in ("", "$2")]


@pytest.mark.parametrize(("rust_type", "count"), [("u32", 1), ("T", 2), ("(T, u32)", 2)])
def test_shared_arrays_of_generic_functions_are_told_by_their_type(
    kernels: Kernels, snippet: Snippet, rust_type: str, count: int
) -> None:
    source = snippet(f"""
#[device] unsafe fn place<T>() -> *mut u32 {{
    static mut S: SharedArray<{rust_type}, 4> = SharedArray::UNINIT;
    (&raw mut S).cast()
}}
#[kernel] unsafe fn k(x: *mut u32) {{ unsafe {{
    *place::<i32>() = *x; *place::<f32>() = *x.add(1); thread::sync_threads();
    *x = *place::<i32>() + *place::<f32>().add(1);
}} }}
""")
    module = kernels.compile(source)
    assert len(re.findall(r"^\.shared .*", module.text, re.MULTILINE)) == count


def test_a_method_of_two_traits_can_be_told_whose_it_is(kernels: Kernels, snippet: Snippet) -> None:
    source = """
trait Mine { fn sqrt(self) -> f32; }
impl Mine for f32 { fn sqrt(self) -> f32 { 2.0 } }
#[device] fn mine(x: f32) -> f32 { CALL }
#[kernel] unsafe fn k(x: *mut f32) { unsafe { *x = mine(*x) + FloatExt::sqrt(*x) } }
"""
    kernels.compile(snippet(source.replace("CALL", "Mine::sqrt(x)")))
    ambiguous = kernels.rustc(snippet(source.replace("CALL", "x.sqrt()")), HOPPER)
    assert "error[E0034]" in ambiguous.stderr


def test_shared_memory_of_no_bytes_is_refused(kernels: Kernels, snippet: Snippet) -> None:
    source = snippet("""#[kernel] unsafe fn k(x: *mut f32) { unsafe {
        static mut T: SharedArray<f32, 0> = SharedArray::UNINIT; *x = T[0] } }""")
    finished = kernels.rustc(source, HOPPER)
    assert not finished.ok
    assert "a shared array needs at least one byte" in finished.stderr


def test_kernels_that_macro_rules_write(kernels: Kernels, snippet: Snippet) -> None:
    module = kernels.compile(
        snippet("""
macro_rules! kernels {
    ($v:vis $name:ident, $x:ident: $t:ty, $y:ident, $body:block) => {
        #[kernel(launch_bounds(1 << 8, 2))]
        $v unsafe fn $name($x: $t, $y: *mut f32) $body
    };
}
kernels!(pub one, x: &[f32], y, { unsafe { *y = x[0] } });
kernels!(two, x: *const f32, y, { unsafe { *y = *x } });
""")
    )
    assert {signature.name: signature.parameters[0].kind for signature in module.signatures} == {
        "one": "slice",
        "two": "pointer",
    }
    assert {signature.launch_bounds for signature in module.signatures} == {(256, 2)}


def test_a_kernel_for_each_of_its_types(kernels: Kernels, snippet: Snippet) -> None:
    source = snippet("""
mod half { pub type Short = u16; }
/// Sums.
#[kernel(f32, core::primitive::f64, half::Short, launch_bounds(64))]
pub unsafe fn sum<T: Copy + core::iter::Sum<T>>(x: &[T], out: *mut T)
where
    T: Default,
{
    static mut PART: SharedArray<T, 64> = SharedArray::UNINIT;
    unsafe {
        PART[thread::threadIdx_x() as usize] = T::default();
        *out = x.iter().copied().sum();
    }
}
""")
    module = kernels.compile(source)
    assert {signature.name: signature.parameters for signature in module.signatures} == {
        "sum_f32": parameters(x="&[f32]", out="*mut f32"),
        "sum_f64": parameters(x="&[f64]", out="*mut f64"),
        "sum_Short": parameters(x="&[u16]", out="*mut u16"),
    }
    assert {(signature.doc, signature.launch_bounds) for signature in module.signatures} == {
        ("Sums.", (64, 0))
    }
    sizes = dict(re.findall(r"__shared_(\w+)_PART\[(\d+)\]", module.text))
    assert sizes == {"sum_f32": "256", "sum_f64": "512", "sum_Short": "128"}


def test_device_functions_are_as_they_are_written(kernels: Kernels, snippet: Snippet) -> None:
    source = snippet("""
#[device]
unsafe extern "C" {
    fn __nv_asinf(x: f32) -> f32;
    pub safe fn __nv_acosf(x: f32) -> f32;
}
struct Scale(f32);
impl Scale {
    #[device]
    #[inline(always)]
    const fn by<const N: usize>(&self, x: [f32; { 2 }]) -> f32
    where
        f32: Copy,
    {
        self.0 * x[0] * N as f32
    }
}
#[device]
fn root(x: f32) -> f32 {
    #![allow(unused_variables)]
    #![doc = "Four times."]
    let unused = 1;
    let mut sum = 0.0;
    let mut i = 0;
    #[unroll(4)]
    while i < 4 {
        sum += x.sqrt();
        i += 1;
    }
    sum
}
#[kernel]
unsafe fn calls(x: *mut f32) {
    #![allow(unused_variables)]
    let unused = 1;
    unsafe {
        #[unroll]
        for i in 0..2 {
            *x.add(i) = root(*x) + __nv_asinf(*x) + __nv_acosf(*x) + Scale(2.0).by::<3>([1.0, 2.0]);
        }
    }
}
""")
    module = kernels.compile(source)
    assert "sqrt.rn.f32" in body(module, "calls")
    assert "__nv_" not in module.text


def test_shared_arrays_tell_by_type_place_and_module(kernels: Kernels, snippet: Snippet) -> None:
    source = snippet("""
macro_rules! module {
    ($name:ident) => {
        pub mod $name {
            use rustcuda_device::prelude::*;
            #[device]
            pub fn part<T: Copy>(value: T) -> T {
                static mut PART: SharedArray<T, 1> = SharedArray::UNINIT;
                unsafe { PART[0] = value; thread::sync_threads(); PART[0] }
            }
        }
    };
}
module!(one);
module!(two);
#[kernel]
unsafe fn parts(x: *mut u32) {
    unsafe { *x = one::part(*x) + two::part(*x) + one::part(*x as f32) as u32 + one::part(*x + 1) }
}
""")
    declared = re.findall(r"^\.shared .*", kernels.compile(source).text, re.MULTILINE)
    assert declared == [f".shared .align 4 .b8 __shared_part_PART{n}[4];" for n in ("", "$2", "$3")]


def test_constants_are_recorded_and_read_as_such(
    kernels: Kernels, snippet: Snippet, tools: CudaTools, tmp_path: Path
) -> None:
    source = snippet("""
/// Weights.
#[constant]
pub(crate) static WEIGHTS: ConstantMemory<[f32; 8]> = ConstantMemory::UNINIT;
type Both = ConstantMemory<(u8, f64)>;
#[constant]
static BOTH: Both = Both::UNINIT;
#[cfg(nothing)]
#[constant]
static GONE: ConstantMemory<u8> = ConstantMemory::UNINIT;
fn weight(weights: &ConstantMemory<[f32; 8]>, at: usize) -> f32 { weights.get_ref()[at] }
#[kernel]
unsafe fn weigh(x: *mut f32, at: usize) {
    unsafe { *x = *x * weight(&WEIGHTS, at) + BOTH.get().1 as f32 }
}
""")
    module = kernels.compile(source)
    assert module.constants == (
        ConstantSymbol("BOTH", "Both", "", 16, 8),
        ConstantSymbol("WEIGHTS", "[f32; 8]", "f32", 32, 4, "Weights."),
    )
    text = body(module, "weigh")
    assert sorted(re.findall(r"ld\.[cg]\w+\.\w+", text)) == [
        "ld.const.b32", "ld.const.b64", "ld.global.b32",
    ]  # fmt: skip
    cuda.assemble(tools, module, arguments=(), keep=tmp_path / "kept.ptx")


def test_promises_of_a_launch_reach_signature_and_ptx(
    kernels: Kernels, snippet: Snippet, tools: CudaTools, tmp_path: Path
) -> None:
    source = snippet("""
const WIDE: u32 = 32;
#[kernel(block(WIDE, 8), launch_bounds(1024, 2), unchecked_indexing)]
#[cluster_launch(2, 1 + 1)]
fn promising() {}
""")
    module = kernels.compile(source)
    signature = only(module)
    assert (signature.block, signature.cluster) == ((32, 8, 1), (2, 2, 1))
    assert signature.launch_bounds == (256, 2)
    assert ".reqnctapercluster 2, 2, 1\n" in module.text
    cuda.assemble(tools, module, arguments=(), keep=tmp_path / "kept.ptx")


@pytest.mark.parametrize("promise", ["launch_bounds", "block", "cluster"])
def test_promises_are_not_cut_to_64_bits(kernels: Kernels, snippet: Snippet, promise: str) -> None:
    source = snippet(f"#[kernel({promise}((1_u128 << 64) + 2))]\nfn k() {{}}\n")
    with pytest.raises(SignatureError, match=str(2**64 - 1)):
        kernels.compile(source)


def test_a_slice_of_rows_has_three_parameters(kernels: Kernels, snippet: Snippet) -> None:
    module = kernels.compile(
        snippet("""
#[kernel]
fn rows(mut y: DisjointSlice<'_, f32, thread::Runtime2DIndex>) {
    if let Some(i) = thread::index_2d_runtime(&y) && let Some(y) = y.get_mut(i) { *y = 1.0; }
}
""")
    )
    assert only(module).abi_bytes == (8, 8, 4)
    assert only(module).parameters == parameters(y="DisjointSlice<f32, Runtime2DIndex>")


@pytest.mark.parametrize(
    "source",
    [
        "fn f(i: thread::ThreadIndex<'_>) { let j = i; let _ = (i.get(), j.get()); }",
        "fn f(s: &mut DisjointSlice<f32, thread::Index2D<8>>) { s.get_mut(thread::index_1d()); }",
        "use thread::*; fn f(s: &mut DisjointSlice<u8, Index2D<8>>) { s.get_mut(index_2d::<9>().unwrap()); }",
        "fn f<T: Send>(_: T) {} fn g() { f(thread::index_1d()); }",
        "fn f<T: Sync>(_: T) {} fn g(s: DisjointSlice<f32>) { f(s); }",
        "fn f(s: &mut DisjointSlice<f32>) { s.tile_mut(thread::index_1d()); }",
    ],
)
def test_two_threads_never_get_one_element(kernels: Kernels, snippet: Snippet, source: str) -> None:
    assert not kernels.rustc(snippet(source), HOPPER).ok


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            (
                "#[kernel] fn f(mut s: DisjointSlice<u8, thread::LinearTiles<{1 << 60}>>) {\n"
                "s.tile_mut(thread::index_1d()).fill(1) }"
            ),
            "a tile has at most 32768 elements",
        ),
        (
            "use rustcuda_device::atomic::*;\nstatic CELL: BlockAtomicU32 = unsafe { Atomic::new(0) };",
            "cannot be shared between threads safely",
        ),
        *(
            (
                f"use rustcuda_device::atomic::*;\nfn local() {{ {atomic}::new(Default::default()); }}",
                "Atomic::<T, S>::new` is unsafe and requires unsafe block",
            )
            for atomic in ("BlockAtomicU32", "DeviceAtomicF64", "SystemAtomicF16x2")
        ),
        *(
            (
                f"#[derive(Clone, Copy)] struct S;\nimpl rustcuda_device::{trait} for S {{}}",
                "requires an `unsafe impl` declaration",
            )
            for trait in (
                *("record::Scalar", "record::KernelParam", "pack::PackElement<2>", "atomic::AtomicValue"),
                "debug::GpuPrintfArg",
            )
        ),
    ],
)
def test_safe_code_cannot_reach_beyond_its_memory(
    kernels: Kernels, snippet: Snippet, source: str, message: str
) -> None:
    finished = kernels.rustc(snippet(source), HOPPER)
    assert not finished.ok
    assert message in finished.stderr


@pytest.mark.parametrize(
    ("source", "line", "message"),
    [
        ("#[kernel] fn k(\n    x: &mut [f32]) {}", 3, "take `DisjointSlice<T>`"),
        ("#[kernel] fn k(\n    x: &'static mut u8) {}", 3, "take `DisjointSlice<T>`"),
        ("#[kernel] fn k\n<T>(x: *mut T) {}", 3, "a kernel cannot be generic"),
        ("#[kernel] fn k()\n-> u32 { 0 }", 3, "a kernel returns nothing"),
        ("#[kernel] fn k()\nwhere u32: Copy {}", 3, "body must follow its parameters"),
        ("#[kernel] pub(crate)\nasync fn k() {}", 3, "a kernel cannot be `async`"),
        ('#[kernel]\nextern "C" fn k() {}', 3, "a kernel cannot be `extern`"),
        ("#[kernel]\nstruct K;", 3, "#[kernel] goes on a function"),
        ("#[kernel] fn\nκ() {}", 3, "ASCII"),
        ("#[constant] static\nκ: ConstantMemory<u8> = ConstantMemory::UNINIT;", 3, "rename the constant"),
        *(
            (f"{mark}\n#[{attribute}]\n{item}", 3, f"a {what} takes no #[{word}]: it is a symbol")
            for attribute, word in (
                ("no_mangle", "no_mangle"),
                ("unsafe(no_mangle)", "no_mangle"),
                ("test", "test"),
                ('unsafe(export_name = "x")', "export_name"),
                ('unsafe(link_section = ".x")', "link_section"),
                ("cfg_attr(all(), unsafe(no_mangle))", "no_mangle"),
            )
            for mark, item, what in (
                ("#[kernel]", "fn k() {}", "kernel"),
                ("#[constant]", "static C: ConstantMemory<u8> = ConstantMemory::UNINIT;", "constant"),
            )
        ),
        ("#[kernel] fn\nvprintf() {}", 3, "rename the kernel, e.g. to `vprintf_kernel`"),
        ("#[kernel] fn\nmemcmp() {}", 3, "CUDA or the compiler keeps the name `memcmp` for itself"),
        ("#[kernel] fn\n__nv_expf() {}", 3, "rename the kernel, e.g. to `nv_expf_kernel`"),
        ("#[kernel(f32)] fn\n__k<T>(x: *mut T) {}", 3, "keeps the name `__k_f32` for itself"),
        ("#[kernel] fn k\n<'a>(x: &'a [f32]) {}", 3, "over lifetimes neither"),
        ("struct S; impl S {\n#[kernel] fn k(&self) {} }", 3, "a kernel is a free function"),
        ("struct S; impl S {\n#[kernel] fn k(&'static mut self) {} }", 3, "a kernel is a free function"),
        ("struct S; impl S {\n#[kernel] fn k(mut self: S) {} }", 3, "a kernel is a free function"),
        ("struct S; impl S {\n#[kernel] fn k(x: &[Self]) {} }", 3, "a kernel is a free function"),
        ("#[kernel] fn k(\n    (a, b): (u32, u32)) {}", 3, "is `name: type`"),
        ("#[kernel] fn k(\n    _: u32) {}", 3, "give this parameter a name"),
        ("#[kernel] fn k(\n    #[allow(unused)] x: u32) {}", 3, "takes no attributes"),
        ("#[kernel(fast)]\nfn k() {}", 2, "#[kernel] takes only `launch_bounds("),
        ("#[kernel(launch_bounds())]\nfn k() {}", 2, "launch_bounds takes the most threads"),
        ("#[kernel]\n#[launch_bounds]\nfn k() {}", 3, "launch_bounds takes the most threads"),
        ("#[kernel(launch_bounds(1, 2, 3))]\nfn k() {}", 2, "launch_bounds takes the most threads"),
        ("#[kernel(launch_bounds(1))]\n#[launch_bounds(2)]\nfn k() {}", 4, "has two launch bounds"),
        (
            "#[kernel(\nlaunch_bounds(-1i32))]\nfn k() {}",
            3,
            "launch_bounds of kernel `k` has a negative number",
        ),
        ("#[kernel(block(32,\n0 - 1))]\nfn k() {}", 3, "block of kernel `k` has a negative number"),
        ("#[kernel]\n#[cluster_launch(-2)]\nfn k() {}", 3, "cluster of kernel `k` has a negative number"),
        *(
            (
                f"#[kernel]\n#[{attribute}({numbers})]\nfn k() {{}}",
                3,
                f"{promise} of kernel `k` takes {whole}",
            )
            for attribute, promise in (("launch_bounds", "launch_bounds"), ("cluster_launch", "cluster"))
            for numbers, whole in (
                ("255.9", "whole numbers, not a `{float}`"),
                ("true", "whole numbers, not a `bool`"),
                ("'a', 1", "whole numbers, not a `char`"),
                ("1, f32::MAX", "whole numbers, not a `f32`"),
            )
        ),
        ("#[kernel(block(1,\n2.5))]\nfn k() {}", 3, "block of kernel `k` takes whole numbers"),
        ("#[launch_bounds(2)]\nfn k() {}", 2, "belongs on a function with #[kernel]"),
        ("#[cluster_launch(2)]\nfn k() {}", 2, "#[cluster_launch] belongs on a function with #[kernel]"),
        ("#[kernel(block(1, 2, 3, 4))]\nfn k() {}", 2, "take one to three numbers"),
        ("#[kernel(cluster(1))]\n#[cluster_launch(2)]\nfn k() {}", 4, "has two cluster"),
        ("#[kernel]\nfn k<T>(x: *mut T) {}", 3, "list the types"),
        ("#[kernel(f32)]\nfn k<T, U>(x: *mut T) {}", 3, "a kernel cannot be generic"),
        ("#[kernel(f32)]\nfn k<const N: usize>() {}", 3, "a kernel cannot be generic"),
        ("#[kernel(\n[f32; 2])]\nfn k<T>(x: *mut T) {}", 3, "needs a name"),
        ("#[kernel(f32,\nf32)]\nfn k<T>(x: *mut T) {}", 3, "two of the types make a kernel called `k_f32`"),
        (
            "#[kernel(f32, f64,\ncore::primitive::f64)]\nfn k<T>(x: *mut T) {}",
            3,
            "two of the types make a kernel called `k_f64`",
        ),
        ("#[kernel(f32)]\nfn k(x: *mut f32) {}", 2, "for a kernel with a type parameter, types"),
        ("#[device]\nstruct S;", 2, "#[device] goes on a function"),
        ("#[device]\nmod m {}", 2, "#[device] goes on a function"),
        ("#[constant]\nfn f() {}", 2, "#[constant] goes on `static"),
        ("#[constant]\nstatic X: u32 = 1;", 2, "#[constant] goes on `static"),
        (
            "static X: ConstantMemory<u32> =\nConstantMemory::UNINIT;\n#[kernel] fn k() { X.get(); }",
            3,
            "with #[constant]",
        ),
        (
            '#[kernel] fn k() {\ngpu_printf!("{}"); }',
            3,
            "more places than arguments",
        ),
        ('#[kernel] fn k() {\ngpu_printf!("", 1); }', 3, "more arguments than places"),
        ('#[kernel] fn k() {\ngpu_printf!("{", 1); }', 3, "a `{` without its `}`"),
        ('#[kernel] fn k() {\ngpu_printf!("}"); }', 3, "a `}` without its `{`"),
        ('#[kernel] fn k() {\ngpu_printf!("{:x}", 1.0); }', 3, "does not fit its argument"),
        ('#[kernel] fn k() {\ngpu_printf!("{:.2}", 1); }', 3, "only floats and texts have a precision"),
        ('#[kernel] fn k() {\ngpu_printf!("{0}", 1); }', 3, "have no names or numbers"),
        ('#[kernel] fn k() {\ngpu_printf!("{a}"); }', 3, "have no names or numbers"),
        ('#[kernel] fn k() {\ngpu_printf!("{}{a:?}", 1); }', 3, "have no names or numbers"),
        ('#[kernel] fn k() {\ngpu_printf!("{:q3}", 1); }', 3, "an unknown format"),
        ('#[kernel] fn k() {\ngpu_printf!("{:65536}", 1); }', 3, "at most 65535"),
        ('#[kernel] fn k() {\ngpu_printf!("{:.18446744073709551617}", 1.0); }', 3, "at most 65535"),
        ('#[kernel] fn k() {\ngpu_printf!("{:0<5}", 1); }', 3, "gaps are filled by spaces only"),
        ('#[kernel] fn k() {\ngpu_printf!("{:*>5}", 1); }', 3, "gaps are filled by spaces only"),
        ('#[kernel] fn k() {\ngpu_printf!("{:^5}", 1); }', 3, "nothing can be put in the middle"),
        ('#[kernel] fn k() {\ngpu_printf!("{:#5x}", 1); }', 3, "no spaces can be put"),
        ('#[kernel] fn k() {\ngpu_printf!("{:+5}", 1_u8); }', 3, "no spaces can be put"),
        ('#[kernel] fn k() {\ngpu_printf!("{:08}", c"a"); }', 3, "only numbers have a sign"),
        ('#[kernel] fn k() {\ngpu_printf!("{:+c}", 65); }', 3, "only numbers have a sign"),
        ('#[kernel] fn k() {\ngpu_assert!(true, "{}", 1); }', 3, "print values by gpu_printf! before it"),
        ('#[kernel] fn k() {\ngpu_printf!("{}", [1]); }', 3, "gpu_printf! cannot print a `[{integer}; 1]`"),
        ("#[kernel]\nfn k(x: [f32; 0]) {}", 2, "an array without elements is no parameter of a kernel"),
        ("#[derive(KernelParam)]\nstruct S { a: u8 }", 3, "a struct that kernels take needs #[repr(C)]"),
        ("#[repr(C, packed)]\n#[derive(KernelParam)]\nstruct S { a: u8 }", 4, "and no other layout"),
        ("#[repr(C)] #[derive(KernelParam)]\nstruct S<T> { a: T }", 3, "named fields and is not generic"),
        ("#[repr(C)] #[derive(KernelParam)]\nstruct S(u8);", 3, "named fields and is not generic"),
        ("#[repr(C)] #[derive(KernelParam)]\nstruct S {}", 3, "without fields is no parameter"),
        ("#[derive(KernelParam)]\nenum S { A }", 2, "enums and unions have no counterpart in Python"),
        (
            "#[repr(C)] #[derive(KernelParam)] struct S {\n    a: *mut u8 }",
            3,
            "a struct that kernels take cannot hold a `*mut u8`",
        ),
        ("struct S;\n#[kernel] fn k(\n    s: S) {}", 4, "type `S` cannot be passed from Python"),
        (
            "#[kernel] fn k(\n    x: *const [f32; 4]) {}",
            3,
            "Python has no tensors and no numbers of type `[f32; 4]`",
        ),
        (
            "fn f(\n    x: Pack<f32, 3>) {}",
            3,
            "a Pack has 4, 8 or 16 bytes, e.g. Pack<f32, 4>, not 3 elements",
        ),
        ("#[kernel] fn k(\n    x: &[u128]) {}", 3, "Python has no tensors and no numbers of type `u128`"),
        (
            "type Sp = thread::Runtime2DIndex;\n#[kernel] fn k(\n    y: DisjointSlice<u32, Sp>) {}",
            3,
            "spell the space of a kernel's slice with its name",
        ),
        (
            "#[kernel] fn k() {\nstatic mut T: SharedArray<u8, 9, 3> = SharedArray::UNINIT;\nunsafe{T[0]=1}}",
            4,
            "an alignment is a power of two",
        ),
        ("type A<'a> = &'a [f32];\n#[kernel] fn k(\n    x: A<'_>) {}", 3, "not through an alias"),
        (
            """unsafe fn helper() -> f32 { unsafe {
                static mut T: SharedArray<f32, 4> = SharedArray::UNINIT; T[0] } }
            #[kernel] unsafe fn k(x: *mut f32) { unsafe { *x = helper() } }""",
            3,
            "in the body of a #[kernel]",
        ),
        (
            """macro_rules! tile { ($t:ident) => {
                static mut $t: SharedArray<f32, 4> = SharedArray::UNINIT; } }
            #[kernel] unsafe fn k(x: *mut f32) { tile!(T); unsafe { *x = T[0] } }""",
            3,
            "not by another macro",
        ),
        *(
            (f"{item}\n#[constant]\nstatic C: ConstantMemory<{of}> = ConstantMemory::UNINIT;", 4, message)
            for item, of, message in [
                ("#[derive(Clone, Copy)] struct P { a: f32 }", "P", "constant memory cannot hold a `P`"),
                ("", "[bool; 2]", "constant memory cannot hold a `bool`"),
            ]
        ),
        (
            "#[kernel] fn k(x: &[u8]) {\nwarp::reduce::<u8, rustcuda_device::ops::Sum>(x[0]); }",
            3,
            "shuffles cannot hand over a `u8`",
        ),
    ],
)
def test_a_mistake_is_reported_where_it_stands(
    kernels: Kernels, snippet: Snippet, source: str, line: int, message: str
) -> None:
    finished = kernels.rustc(snippet(source), HOPPER)
    assert not finished.ok
    assert message in finished.stderr
    assert f"snippet.rs:{line}:" in finished.stderr


def test_a_kernel_crate_checks_on_the_host_with_a_stable_compiler(
    toolchain: RustToolchain, macros: Path, snippet: Snippet, tmp_path: Path
) -> None:
    """As editors do: no GPU target, no feature gates, std."""
    device = tmp_path / "librustcuda_device.rlib"
    extern = f"--extern=rustcuda_macros={macros}"
    library(
        toolchain, "rustcuda_device", device, "--crate-type=rlib", "-Cpanic=abort", extern, unstable=False
    )
    source = snippet("""
/// Doc.
#[launch_bounds(256)]
#[kernel]
pub unsafe fn scale(x: &[f32], mut y: DisjointSlice<f32>) {
    #![allow(unused_variables)]
    let unused = 1;
    static mut TILE: SharedArray<f32, 256> = SharedArray::UNINIT;
    unsafe {
        TILE[0] = x[0].rsqrt();
        thread::sync_threads();
        *y.get_unchecked_mut(0) = warp::reduce_sum_f32(TILE[0].exp());
        F32x4::load(x, 0, 0.0).store(y.chunk_unchecked_mut::<4>(0));
    }
}

#[constant]
static TABLE: ConstantMemory<[f32; 4]> = ConstantMemory::UNINIT;

#[device]
fn first<T: Copy>(value: T) -> T {
    #![allow(unused_variables)]
    let unused = 1;
    static mut FIRST: SharedArray<T, 1> = SharedArray::UNINIT;
    #[unroll]
    while thread::threadIdx_x() == 0 {
        unsafe { FIRST[0] = value };
    }
    unsafe { FIRST[0] }
}

// f16 is not stable: named as a type of a kernel, or where it is cut away.
#[kernel(f16, bf16)]
pub fn halves<T: Float>(x: &[T], mut y: DisjointSlice<T>) {
    if let Some((y, index)) = y.get_mut_indexed() {
        *y = x[index.get()];
    }
}

#[kernel]
#[cfg(target_arch = "nvptx64")]
pub fn half(a: f16, mut y: DisjointSlice<f16>) {
    if let Some((y, _)) = y.get_mut_indexed() {
        *y *= a;
    }
}

/// Doc.
#[kernel(f32, f64)]
#[cluster_launch(2)]
pub fn typed<T: Copy + Into<f64>>(x: &[T], mut y: DisjointSlice<T, thread::Index2D<8>>)
where
    T: PartialOrd,
{
    gpu_assert!(x.len() > 3, "short");
    if let Some((y, index)) = y.get_mut_indexed() {
        *y = first(x[index.get()]);
        gpu_printf!("{} {:.3}\\n", index.get(), TABLE.get()[0]);
    }
}
""")
    arguments: Sequence[str | Path] = (
        *(
            "--crate-type=lib",
            "--emit=metadata",
            "-Dwarnings",
            "-Cpanic=abort",
            "-o",
            tmp_path / "snippet.rmeta",
        ),
        *(f"--extern=rustcuda_device={device}", "-L", macros.parent),
    )
    finished = run_rustc(toolchain, source, *arguments, unstable=False)
    assert finished.ok, finished.stderr


@pytest.mark.parametrize("capability", CAPABILITIES, ids=str)
def test_sample_kernels_are_lean_on_every_capability(
    kernels: Kernels, tools: CudaTools, tmp_path: Path, capability: Capability
) -> None:
    module = kernels.compile(SAMPLE, capability)
    names = {signature.name for signature in module.signatures}
    rows = {"rmsnorm", "rmsnorm_bf16", "softmax", "softmax_bf16"}
    vectors = {"reduce_sum", "histogram"}
    assert names == rows | vectors | {"saxpy", "silu_and_mul_f16", "silu_and_mul_bf16", "transpose", "sgemm"}
    assert all(signature.doc and signature.source == "record" for signature in module.signatures)
    assert not re.search(r"\b(?:ld|st)\.[bu]\d|\bcall\b|\.local\b", module.text)
    for name in names:
        text = body(module, name)
        assert re.search(r"ld\.global\.(nc\.)?v[24]\.b(32|64)", text)
        assert name in vectors or re.search(r"st\.global\.v[24]\.b(32|64)", text)
    for name in rows:
        assert "shfl.sync.bfly" in body(module, name)
        assert "ld.shared" in body(module, name)
    assert ("prefetch" in body(module, "rmsnorm")) == (capability.base >= (9, 0))
    cubin = cuda.assemble(tools, module, arguments=(), keep=tmp_path / "kept.ptx")
    assert cubin.capability == capability


def test_the_cast_to_shared_memory_is_its_source() -> None:
    binding = pytest.importorskip(
        "llvmlite.binding", reason="llvmlite, which writes LLVM bitcode, is not there"
    )
    source = binding.parse_assembly((DEVICE / "sysroot" / "shared_cast.ll").read_text(encoding="utf-8"))
    shipped = binding.parse_bitcode((DEVICE / "sysroot" / "shared_cast.bc").read_bytes())
    rebuilt = binding.parse_bitcode(source.as_bitcode())
    assert without_identifier(str(rebuilt)) == without_identifier(str(shipped))
    assert "addrspacecast ptr addrspace(3)" in str(shipped)


def without_identifier(assembly: str) -> str:
    """LLVM assembly without the lines that name the file it was read from."""
    return re.sub(r"^(; ModuleID|source_filename).*\n", "", assembly, flags=re.MULTILINE)
