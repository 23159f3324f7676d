//! rustcuda_device::memory and pack: copies of one element a thread.

use rustcuda_device::memory::*;
use rustcuda_device::prelude::*;

/// Kernels that copy a word by this load and this store.
macro_rules! copies {
    ($($(#[$attribute:meta])* $kernel:ident: $type:ty = $load:ident $store:ident;)*) => {
        $(
            $(#[$attribute])*
            #[kernel]
            pub unsafe fn $kernel(words: usize, from: *const u8, to: *mut u8) {
                let at = thread::index_1d().get();
                if at < words {
                    // SAFETY: the test passes so many words, at addresses that are multiples of 256.
                    unsafe {
                        let word: $type = $load(from.cast::<$type>().add(at));
                        $store(to.cast::<$type>().add(at), word);
                    }
                }
            }
        )*
    };
}

copies! {
    memory_ldg_1: u8 = ldg stwb;
    memory_ldg_2: bf16 = ldg stwb;
    memory_ldg_4: f32 = ldg stwb;
    memory_ldg_8: Pack<u16, 4> = ldg stwb;
    memory_ldg_16: F32x4 = ldg stwb;
    memory_ldca_16: Bf16x8 = ldca stcg;
    memory_ldcg_8: f64 = ldcg stcs;
    memory_ldcs_4: Pack<f16, 2> = ldcs stwt;
    memory_ldlu_2: u16 = ldlu st_no_allocate;
    memory_ldcv_1: i8 = ldcv st_evict_first;
    memory_ldcv_16: Pack<i64, 2> = ldcv st_evict_last;
    memory_ld_no_allocate: F32x4 = ld_no_allocate st_no_allocate;
    memory_ld_evict_first: F32x4 = ld_evict_first st_evict_first;
    memory_ld_evict_last: F32x4 = ld_evict_last st_evict_last;
    memory_ldg_no_allocate: F32x4 = ldg_no_allocate stcs;
    memory_ldg_evict_first: F32x4 = ldg_evict_first stcs;
    memory_ldg_evict_last: F32x4 = ldg_evict_last stcs;
    #[cfg(cuda_arch = "75")]
    memory_ld_l2_64: F32x4 = ld_l2_64 stcs;
    #[cfg(cuda_arch = "75")]
    memory_ld_l2_128: F32x4 = ld_l2_128 stcs;
    #[cfg(cuda_arch = "80")]
    memory_ld_l2_256: F32x4 = ld_l2_256 stcs;
    #[cfg(cuda_arch = "75")]
    memory_ldg_l2_64: F32x4 = ldg_l2_64 stcs;
    #[cfg(cuda_arch = "75")]
    memory_ldg_l2_128: F32x4 = ldg_l2_128 stcs;
    #[cfg(cuda_arch = "80")]
    memory_ldg_l2_256: F32x4 = ldg_l2_256 stcs;
}

/// Asks for the last of the words before the first is copied.
#[kernel]
pub unsafe fn memory_prefetch(words: usize, from: *const f32, to: *mut f32) {
    // SAFETY: the test passes so many words.
    unsafe {
        prefetch_l1(from.add(words - 1));
        prefetch_l2(from.add(words - 1));
        for at in 0..words {
            *to.add(at) = *from.add(at);
        }
    }
}

/// As before, with a wish for L2.
#[kernel]
#[cfg(cuda_arch = "80")]
pub unsafe fn memory_prefetch_priority(words: usize, from: *const f32, to: *mut f32) {
    // SAFETY: the test passes so many words.
    unsafe {
        prefetch_l2_evict_last(from.add(words - 1));
        prefetch_l2_evict_normal(from.add(words - 1));
        for at in 0..words {
            *to.add(at) = *from.add(at);
        }
    }
}

/// Kernels that copy packs, from a start that need not be aligned.
macro_rules! packs {
    ($($kernel:ident: $type:ident $length:literal $fill:expr;)*) => {
        $(
            #[kernel]
            pub fn $kernel(start: usize, from: &[$type], mut to: DisjointSlice<$type>) {
                let index = thread::index_1d();
                let pack = Pack::<$type, $length>::load(from, start + $length * index.get(), $fill);
                // SAFETY: all threads use the slice this way.
                pack.store(unsafe { to.chunk_mut::<$length>(index) });
            }
        )*
    };
}

packs! {
    pack_u8_4: u8 4 7;
    pack_f32_2: f32 2 7.0;
    pack_f32_4: f32 4 7.0;
    pack_f64_1: f64 1 7.0;
    pack_f16_2: f16 2 7.0;
    pack_bf16_4: bf16 4 bf16::from_f32_const(7.0);
    pack_bf16_8: bf16 8 bf16::from_f32_const(7.0);
}

/// Arrays by value: each thread picks an element of both.
#[kernel]
pub fn memory_arrays(weights: [f32; 5], signs: [i8; 3], mut y: DisjointSlice<f32>) {
    let index = thread::index_1d();
    let at = index.get();
    if let Some(y) = y.get_mut(index) {
        *y = weights[at % 5] * f32::from(signs[at % 3]);
    }
}

/// A struct in a struct by value, with padding in both.
#[repr(C)]
#[derive(Clone, Copy, KernelParam)]
pub struct MemoryPair {
    small: u8,
    wide: f64,
}

/// See [`memory_structs`].
#[repr(C)]
#[derive(Clone, Copy, KernelParam)]
pub struct MemoryParams {
    scale: f32,
    halves: [f16; 3],
    pair: MemoryPair,
    flag: bool,
    brain: bf16,
}

/// Every field of both structs.
#[kernel]
pub fn memory_structs(n: u32, p: MemoryParams, mut y: DisjointSlice<f64>, q: MemoryPair) {
    let index = thread::index_1d();
    let at = index.get();
    if let Some(y) = y.get_mut(index) {
        *y = match at {
            0 => f64::from(n),
            1 => f64::from(p.scale),
            2..5 => p.halves[at - 2] as f64,
            5 => f64::from(p.pair.small),
            6 => p.pair.wide,
            7 => f64::from(u8::from(p.flag)),
            8 => f64::from(p.brain.to_f32()),
            9 => f64::from(q.small),
            _ => q.wide,
        };
    }
}

/// A struct of a kernel without `#[kernel]`, which rustdoc shows.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MemoryPlain {
    small: i8,
    wide: MemoryWide,
    halves: [f16; 3],
    flag: bool,
}

/// See [`MemoryPlain`].
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MemoryWide {
    a: u16,
    b: f64,
}

/// Every field, by one thread, with other parameters around.
///
/// # Safety
///
/// `y` must have eight elements.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn memory_plain_structs(
    n: u8,
    p: MemoryPlain,
    y: *mut f64,
    q: MemoryWide,
) {
    let [x0, x1, x2] = p.halves;
    let values = [
        f64::from(n) + f64::from(u8::from(p.flag)),
        f64::from(p.small),
        f64::from(p.wide.a),
        p.wide.b,
        x0 as f64,
        x1 as f64 + x2 as f64,
        f64::from(q.a),
        q.b,
    ];
    // SAFETY: promised by the caller.
    unsafe { y.cast::<[f64; 8]>().write(values) };
}

/// Packs in shared memory, reversed within a block of 64.
#[kernel]
pub fn pack_shared(x: &[f32], mut y: DisjointSlice<f32>) {
    static mut TILE: SharedArray<F32x4, 64> = SharedArray::UNINIT;
    let index = thread::index_1d();
    let thread = thread::threadIdx_x() as usize;
    let pack = F32x4::load(x, 4 * index.get(), 0.0);
    // SAFETY: each thread writes its own pack; the barrier is between writing and reading.
    let reversed = unsafe {
        TILE[thread] = pack;
        thread::sync_threads();
        TILE[63 - thread]
    };
    // SAFETY: all threads use the slice this way.
    reversed.store(unsafe { y.chunk_mut::<4>(index) });
}
