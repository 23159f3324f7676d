//! The atomic instructions, for each scope; see PTX ISA, "atom".

use super::AtomicOrdering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};
use crate::intrinsics::{intrinsics, ptx};
use crate::shared::cvta_generic_to_shared_offset;

mod nvvm {
    super::intrinsics! {
        "llvm.nvvm.isspacep.shared" fn is_shared(address: *const u8) -> bool;
        "llvm.nvvm.isspacep.global" fn is_global(address: *const u8) -> bool;
    }
}

/// The threads of one block.
pub struct Block;
/// The threads of one GPU.
pub struct Device;
/// The threads of all GPUs, and the host.
pub struct System;

/// Runs an instruction in its form for the memory that `$place` is in.
///
/// LLVM mostly knows which that is, and leaves that form only. One for any memory would do too, but
/// is slower.
macro_rules! in_space {
    ($place:ident, $instruction:ident!($($arguments:tt)*)) => {
        if nvvm::is_shared($place.cast()) {
            let place = cvta_generic_to_shared_offset($place.cast());
            $instruction!(".shared", "mov.b64 address, {place};", place, $($arguments)*)
        } else if nvvm::is_global($place.cast()) {
            $instruction!(".global", "cvta.to.global.u64 address, {place};", $place, $($arguments)*)
        } else {
            $instruction!("", "mov.b64 address, {place};", $place, $($arguments)*)
        }
    };
}

/// One instruction, `$text` with its memory's space in it; the braces keep `address` to itself.
macro_rules! at_address {
    ($address:literal, $place:ident, $text:expr, $($operands:tt)*) => {
        ptx!(
            "{{",
            ".reg .b64 address;",
            $address,
            $text,
            "}}",
            place = in(reg64) $place,
            $($operands)*,
            options(nostack, preserves_flags),
        )
    };
}

macro_rules! load {
    ($space:literal, $address:literal, $place:ident, $sem:literal $scope:literal $type:literal $register:ident) => {{
        let value;
        at_address!(
            $address, $place, concat!("ld", $sem, $scope, $space, $type, " {value}, [address];"),
            value = out($register) value
        );
        value
    }};
}

macro_rules! store {
    ($space:literal, $address:literal, $place:ident, $sem:literal $scope:literal $type:literal $register:ident $value:ident) => {
        at_address!(
            $address, $place, concat!("st", $sem, $scope, $space, $type, " [address], {value};"),
            value = in($register) $value
        )
    };
}

macro_rules! read_modify_write {
    ($space:literal, $address:literal, $place:ident, $sem:literal $scope:literal $operation:literal $register:ident $value:ident) => {{
        let old;
        at_address!(
            $address, $place, concat!("atom", $sem, $scope, $space, $operation, " {old}, [address], {value};"),
            value = in($register) $value,
            old = out($register) old
        );
        old
    }};
}

macro_rules! compare_exchange {
    ($space:literal, $address:literal, $place:ident, $sem:literal $scope:literal $type:literal $register:ident $current:ident $new:ident) => {{
        let old;
        at_address!(
            $address, $place, concat!("atom", $sem, $scope, $space, ".cas", $type, " {old}, [address], {current}, {new};"),
            current = in($register) $current,
            new = in($register) $new,
            old = out($register) old
        );
        old
    }};
}

/// An instruction in the order asked for. The strictest one is a fence before one that acquires.
macro_rules! in_order {
    ($order:ident, $place:ident, $instruction:ident!($($arguments:tt)*)) => {
        match $order {
            Relaxed => in_space!($place, $instruction!(".relaxed" $($arguments)*)),
            Acquire => in_space!($place, $instruction!(".acquire" $($arguments)*)),
            Release => in_space!($place, $instruction!(".release" $($arguments)*)),
            AcqRel => in_space!($place, $instruction!(".acq_rel" $($arguments)*)),
            SeqCst => {
                Self::fence();
                in_space!($place, $instruction!(".acquire" $($arguments)*))
            }
        }
    };
}

/// Declares the trait of scopes and implements it: a function for every instruction.
macro_rules! instructions {
    (@trait $($bits:ident $register:ident $type:literal: $load:ident $store:ident $compare_exchange:ident
        { $($name:ident = $operation:literal;)* })*) => {
        /// Which threads an atomic is for: [`Block`], [`Device`] or [`System`].
        ///
        /// # Safety
        ///
        /// Not for implementing.
        pub unsafe trait Scope {
            #[doc(hidden)]
            unsafe fn fence();
            $(
                #[doc(hidden)]
                unsafe fn $load(place: *mut $bits, order: AtomicOrdering) -> $bits;
                #[doc(hidden)]
                unsafe fn $store(place: *mut $bits, value: $bits, order: AtomicOrdering);
                #[doc(hidden)]
                unsafe fn $compare_exchange(
                    place: *mut $bits, current: $bits, new: $bits, order: AtomicOrdering,
                ) -> $bits;
                $(
                    #[doc(hidden)]
                    unsafe fn $name(place: *mut $bits, value: $bits, order: AtomicOrdering) -> $bits;
                )*
            )*
        }
    };
    (@scope $scope:ident $suffix:literal
        $($bits:ident $register:ident $type:literal: $load:ident $store:ident $compare_exchange:ident
        { $($name:ident = $operation:literal;)* })*) => {
        // SAFETY of all: promised by the callers.
        unsafe impl Scope for $scope {
            #[inline(always)]
            unsafe fn fence() {
                unsafe { ptx!(concat!("fence.sc", $suffix, ";"), options(nostack, preserves_flags)) }
            }
            $(
                #[inline(always)]
                unsafe fn $load(place: *mut $bits, order: AtomicOrdering) -> $bits {
                    unsafe {
                        match order {
                            Relaxed | Release => in_space!(place, load!(".relaxed" $suffix $type $register)),
                            Acquire | AcqRel => in_space!(place, load!(".acquire" $suffix $type $register)),
                            SeqCst => {
                                Self::fence();
                                in_space!(place, load!(".acquire" $suffix $type $register))
                            }
                        }
                    }
                }

                #[inline(always)]
                unsafe fn $store(place: *mut $bits, value: $bits, order: AtomicOrdering) {
                    unsafe {
                        match order {
                            Relaxed | Acquire => in_space!(place, store!(".relaxed" $suffix $type $register value)),
                            Release | AcqRel => in_space!(place, store!(".release" $suffix $type $register value)),
                            SeqCst => {
                                Self::fence();
                                in_space!(place, store!(".relaxed" $suffix $type $register value))
                            }
                        }
                    }
                }

                #[inline(always)]
                unsafe fn $compare_exchange(
                    place: *mut $bits, current: $bits, new: $bits, order: AtomicOrdering,
                ) -> $bits {
                    unsafe { in_order!(order, place, compare_exchange!($suffix $type $register current new)) }
                }

                $(
                    #[inline(always)]
                    unsafe fn $name(place: *mut $bits, value: $bits, order: AtomicOrdering) -> $bits {
                        unsafe { in_order!(order, place, read_modify_write!($suffix $operation $register value)) }
                    }
                )*
            )*
        }
    };
    ($($list:tt)*) => {
        instructions!(@trait $($list)*);
        instructions!(@scope Block ".cta" $($list)*);
        instructions!(@scope Device ".gpu" $($list)*);
        instructions!(@scope System ".sys" $($list)*);
    };
}

instructions! {
    u16 reg16 ".b16": load_b16 store_b16 compare_exchange_b16 {
        add_f16 = ".add.noftz.f16";
        add_bf16 = ".add.noftz.bf16";
    }
    u32 reg32 ".b32": load_b32 store_b32 compare_exchange_b32 {
        exchange_b32 = ".exch.b32";
        add_u32 = ".add.u32";
        and_b32 = ".and.b32";
        or_b32 = ".or.b32";
        xor_b32 = ".xor.b32";
        min_u32 = ".min.u32";
        max_u32 = ".max.u32";
        min_s32 = ".min.s32";
        max_s32 = ".max.s32";
        add_f32 = ".add.f32";
        add_f16x2 = ".add.noftz.f16x2";
        add_bf16x2 = ".add.noftz.bf16x2";
    }
    u64 reg64 ".b64": load_b64 store_b64 compare_exchange_b64 {
        exchange_b64 = ".exch.b64";
        add_u64 = ".add.u64";
        and_b64 = ".and.b64";
        or_b64 = ".or.b64";
        xor_b64 = ".xor.b64";
        min_u64 = ".min.u64";
        max_u64 = ".max.u64";
        min_s64 = ".min.s64";
        max_s64 = ".max.s64";
        add_f64 = ".add.f64";
    }
}
