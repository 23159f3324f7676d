//! Loads and stores that say how caches should treat them, and prefetches.
//!
//! An ordinary load or store is right nearly always, and slices that a kernel only reads go through the
//! read-only cache by themselves; these are for what the compiler cannot know. They take numbers,
//! pairs of halves and [`Pack`]s, so 1 to 16 bytes, in one instruction.
//!
//! | loads | stores | meaning |
//! |---|---|---|
//! | [`ldg`] | | through the read-only cache |
//! | [`ldca`] | [`stwb`] | cached at all levels; what an ordinary access does |
//! | [`ldcg`] | [`stcg`] | cached in L2, not in L1 |
//! | [`ldcs`] | [`stcs`] | used once, first to be evicted |
//! | [`ldlu`] | | used for the last time |
//! | [`ldcv`] | [`stwt`] | not taken from a cache; written through to memory |
//! | `ld_…`, `ldg_…` | `st_…` | with what L1 is to do: `no_allocate`, `evict_first`, `evict_last` |
//! | [`ld_l2_128`] and others | | bringing that many bytes around it into L2 |
//!
//! ```
//! use rustcuda_device::memory::{ldcs, stcs};
//! use rustcuda_device::prelude::*;
//!
//! /// A copy that leaves in the caches what other kernels have there.
//! #[kernel]
//! unsafe fn stream(packs: usize, from: *const f32, to: *mut f32) {
//!     let at = thread::index_1d().get();
//!     if at < packs {
//!         // SAFETY: the caller passes so many packs at addresses that are multiples of 16.
//!         unsafe {
//!             let pack: F32x4 = ldcs(from.cast::<F32x4>().add(at));
//!             stcs(to.cast::<F32x4>().add(at), pack);
//!         }
//!     }
//! }
//! ```

use core::mem;

use crate::intrinsics::ptx;
use crate::pack::{Pack, PackElement};
use crate::requires::{Gpu, Has75, Has80};
use crate::{Bf16x2, F16x2, bf16};

/// What is loaded and stored in one instruction: numbers, pairs of halves, and [`Pack`]s of them.
pub trait Word: Copy + sealed::Sealed {}

mod sealed {
    /// Keeps other types from being words: some are larger, and some have no value for all bits.
    pub trait Sealed {}
}

macro_rules! words {
    ($($type:ident)*) => {
        $(
            impl sealed::Sealed for $type {}
            impl Word for $type {}
        )*
    };
}

words!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64 bf16 F16x2 Bf16x2);
// Not stable yet, so it must not disturb a check for the host.
#[cfg(target_arch = "nvptx64")]
words!(f16);

impl<T: PackElement<N>, const N: usize> sealed::Sealed for Pack<T, N> {}
impl<T: PackElement<N>, const N: usize> Word for Pack<T, N> {}

/// Defines loads with these modifiers of the instruction `ld.global`.
///
/// Those that are `pure` may be left out or merged where nothing is written in between.
macro_rules! loads {
    ($($(#[$doc:meta])* $name:ident = $modifiers:literal ($($pure:ident)?) $(needs $needs:ident)?;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            ///
            /// As for [`core::ptr::read`], and the address must be in global memory.
            #[inline(always)]
            pub unsafe fn $name<T: Word>(from: *const T) -> T
            $(where for<'pass> Gpu<'pass>: $needs)?
            {
                // SAFETY: promised by the caller. Both types have the same size, and all bits are values.
                unsafe {
                    match size_of::<T>() {
                        1 => {
                            let word: u32;
                            loads!(@one ($($pure)?) $modifiers, ".u8 {}, [{}];", from, out(reg32) word);
                            mem::transmute_copy(&word)
                        }
                        2 => {
                            let word: u16;
                            loads!(@one ($($pure)?) $modifiers, ".b16 {}, [{}];", from, out(reg16) word);
                            mem::transmute_copy(&word)
                        }
                        4 => {
                            let word: u32;
                            loads!(@one ($($pure)?) $modifiers, ".b32 {}, [{}];", from, out(reg32) word);
                            mem::transmute_copy(&word)
                        }
                        8 => {
                            let word: u64;
                            loads!(@one ($($pure)?) $modifiers, ".b64 {}, [{}];", from, out(reg64) word);
                            mem::transmute_copy(&word)
                        }
                        _ => {
                            let (low, high): (u64, u64);
                            loads!(
                                @one ($($pure)?) $modifiers, ".v2.b64 {{{}, {}}}, [{}];",
                                from, out(reg64) low, out(reg64) high
                            );
                            mem::transmute_copy(&[low, high])
                        }
                    }
                }
            }
        )*
    };
    (@one (pure) $modifiers:literal, $operands:literal, $from:ident, $($result:tt)*) => {
        ptx!(
            concat!("ld.global", $modifiers, $operands), $($result)*, in(reg64) $from,
            options(pure, readonly, nostack, preserves_flags)
        )
    };
    (@one () $modifiers:literal, $operands:literal, $from:ident, $($result:tt)*) => {
        ptx!(
            concat!("ld.global", $modifiers, $operands), $($result)*, in(reg64) $from,
            options(nostack, preserves_flags)
        )
    };
}

loads! {
    /// Loads through the read-only cache what no thread writes while the kernel runs.
    ldg = ".nc" (pure);
    /// Loads through all caches, as an ordinary load.
    ldca = ".ca" (pure);
    /// Loads through L2 only.
    ldcg = ".cg" (pure);
    /// Loads what will likely not be used again: first to be evicted.
    ldcs = ".cs" (pure);
    /// Loads for the last time: what is cached in L1 need not be written back.
    ldlu = ".lu" (pure);
    /// Loads anew every time, as a volatile read.
    ldcv = ".cv" ();

    /// Loads without taking a place in L1.
    ld_no_allocate = ".L1::no_allocate" (pure);
    /// Loads, and makes it the first to be evicted from L1.
    ld_evict_first = ".L1::evict_first" (pure);
    /// Loads, and makes it the last to be evicted from L1.
    ld_evict_last = ".L1::evict_last" (pure);
    /// [`ldg`] without taking a place in L1.
    ldg_no_allocate = ".nc.L1::no_allocate" (pure);
    /// [`ldg`], and makes it the first to be evicted from L1.
    ldg_evict_first = ".nc.L1::evict_first" (pure);
    /// [`ldg`], and makes it the last to be evicted from L1.
    ldg_evict_last = ".nc.L1::evict_last" (pure);

    /// Loads, and asks for the 64 bytes around to be brought into L2. From capability 7.5.
    ld_l2_64 = ".L2::64B" (pure) needs Has75;
    /// Loads, and asks for the 128 bytes around to be brought into L2. From capability 7.5.
    ld_l2_128 = ".L2::128B" (pure) needs Has75;
    /// Loads, and asks for the 256 bytes around to be brought into L2. From capability 8.0.
    ld_l2_256 = ".L2::256B" (pure) needs Has80;
    /// [`ldg`], and asks for the 64 bytes around to be brought into L2. From capability 7.5.
    ldg_l2_64 = ".nc.L2::64B" (pure) needs Has75;
    /// [`ldg`], and asks for the 128 bytes around to be brought into L2. From capability 7.5.
    ldg_l2_128 = ".nc.L2::128B" (pure) needs Has75;
    /// [`ldg`], and asks for the 256 bytes around to be brought into L2. From capability 8.0.
    ldg_l2_256 = ".nc.L2::256B" (pure) needs Has80;
}

/// Defines stores with these modifiers of the instruction `st.global`.
macro_rules! stores {
    ($($(#[$doc:meta])* $name:ident = $modifiers:literal;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            ///
            /// As for [`core::ptr::write`], and the address must be in global memory.
            #[inline(always)]
            pub unsafe fn $name<T: Word>(to: *mut T, value: T) {
                // SAFETY: promised by the caller. Both types have the same size.
                unsafe {
                    match size_of::<T>() {
                        1 => {
                            let word: u8 = mem::transmute_copy(&value);
                            stores!(@one $modifiers, ".b8 [{}], {};", to, in(reg32) u32::from(word))
                        }
                        2 => {
                            let word: u16 = mem::transmute_copy(&value);
                            stores!(@one $modifiers, ".b16 [{}], {};", to, in(reg16) word)
                        }
                        4 => {
                            let word: u32 = mem::transmute_copy(&value);
                            stores!(@one $modifiers, ".b32 [{}], {};", to, in(reg32) word)
                        }
                        8 => {
                            let word: u64 = mem::transmute_copy(&value);
                            stores!(@one $modifiers, ".b64 [{}], {};", to, in(reg64) word)
                        }
                        _ => {
                            let [low, high]: [u64; 2] = mem::transmute_copy(&value);
                            stores!(
                                @one $modifiers, ".v2.b64 [{}], {{{}, {}}};",
                                to, in(reg64) low, in(reg64) high
                            )
                        }
                    }
                }
            }
        )*
    };
    (@one $modifiers:literal, $operands:literal, $to:ident, $($value:tt)*) => {
        ptx!(
            concat!("st.global", $modifiers, $operands), in(reg64) $to, $($value)*,
            options(nostack, preserves_flags)
        )
    };
}

stores! {
    /// Stores through all caches, as an ordinary store.
    stwb = ".wb";
    /// Stores through L2 only.
    stcg = ".cg";
    /// Stores what will likely not be used again: first to be evicted.
    stcs = ".cs";
    /// Stores through the caches to memory.
    stwt = ".wt";
    /// Stores without taking a place in L1.
    st_no_allocate = ".L1::no_allocate";
    /// Stores, and makes it the first to be evicted from L1.
    st_evict_first = ".L1::evict_first";
    /// Stores, and makes it the last to be evicted from L1.
    st_evict_last = ".L1::evict_last";
}

/// Defines instructions that only ask for something and change no memory.
macro_rules! prefetches {
    ($($(#[$doc:meta])* $name:ident = $instruction:literal $(needs $needs:ident)?;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            ///
            /// The address must be in global memory that exists.
            #[inline(always)]
            pub unsafe fn $name<T>(address: *const T)
            $(where for<'pass> Gpu<'pass>: $needs)?
            {
                // SAFETY: promised by the caller.
                unsafe {
                    ptx!(
                        concat!($instruction, " [{}];"), in(reg64) address,
                        options(readonly, nostack, preserves_flags)
                    );
                }
            }
        )*
    };
}

prefetches! {
    /// Asks for the cache line of an address to be brought into L1 and L2.
    prefetch_l1 = "prefetch.global.L1";
    /// Asks for the cache line of an address to be brought into L2.
    prefetch_l2 = "prefetch.global.L2";
    /// [`prefetch_l2`] that makes it the last to be evicted. From capability 8.0.
    prefetch_l2_evict_last = "prefetch.global.L2::evict_last" needs Has80;
    /// [`prefetch_l2`] that makes it one of the others again. From capability 8.0.
    prefetch_l2_evict_normal = "prefetch.global.L2::evict_normal" needs Has80;
}
