//! Values handed from lane to lane through registers.

use super::FULL_MASK;
use crate::half::{Bf16x2, F16x2, bf16};
use crate::intrinsics::intrinsics;

mod nvvm {
    super::intrinsics! {
        "llvm.nvvm.shfl.sync.idx.i32" fn idx(mask: u32, value: u32, lane: u32, clamp: u32) -> u32;
        "llvm.nvvm.shfl.sync.bfly.i32" fn xor(mask: u32, value: u32, lane: u32, clamp: u32) -> u32;
        "llvm.nvvm.shfl.sync.down.i32" fn down(mask: u32, value: u32, delta: u32, clamp: u32) -> u32;
        "llvm.nvvm.shfl.sync.up.i32" fn up(mask: u32, value: u32, delta: u32, clamp: u32) -> u32;
    }
}

/// A value that shuffles hand over, 32 bits at a time.
#[diagnostic::on_unimplemented(
    message = "shuffles cannot hand over a `{Self}`",
    note = "they hand over numbers of 32 and 64 bits, halves and their pairs; widen others first"
)]
pub trait WarpShuffle: Copy {
    /// This value with each of its 32-bit words put through `exchange`.
    fn map_words(self, exchange: impl Fn(u32) -> u32) -> Self;
}

macro_rules! words {
    ($($type:ty: |$value:ident, $exchange:ident| $result:expr;)*) => {
        $(
            impl WarpShuffle for $type {
                #[inline(always)]
                fn map_words(self, $exchange: impl Fn(u32) -> u32) -> Self {
                    let $value = self;
                    $result
                }
            }
        )*
    };
}

words! {
    u32: |value, exchange| exchange(value);
    i32: |value, exchange| exchange(value as u32) as i32;
    f32: |value, exchange| f32::from_bits(exchange(value.to_bits()));
    u64: |value, exchange| u64::from(exchange(value as u32)) | u64::from(exchange((value >> 32) as u32)) << 32;
    i64: |value, exchange| (value as u64).map_words(exchange) as i64;
    f64: |value, exchange| f64::from_bits(value.to_bits().map_words(exchange));
    bf16: |value, exchange| bf16::from_bits(exchange(u32::from(value.to_bits())) as u16);
    F16x2: |value, exchange| F16x2::from_bits(exchange(value.to_bits()));
    Bf16x2: |value, exchange| Bf16x2::from_bits(exchange(value.to_bits()));
}
#[cfg(target_arch = "nvptx64")]
words! {
    f16: |value, exchange| f16::from_bits(exchange(u32::from(value.to_bits())) as u16);
}

/// Shuffles within segments of `WIDTH` neighbouring lanes, a power of 2. A lane that would read from
/// beyond its segment gets its own value.
pub(crate) mod segment {
    use super::{WarpShuffle, nvvm};

    /// The operand that tells shuffles where a lane's segment ends; for those from below, begins.
    const fn clamp(width: u32, last: u32) -> u32 {
        (32 - width) << 8 | last
    }

    /// The `value` of the lane `rank` of the segment, modulo its width.
    #[inline(always)]
    pub fn idx<T: WarpShuffle, const WIDTH: u32>(mask: u32, value: T, rank: u32) -> T {
        // SAFETY: see the documentation of `warp`; a wrong mask hangs.
        value.map_words(|word| unsafe { nvvm::idx(mask, word, rank, clamp(WIDTH, 31)) })
    }

    /// The `value` of the lane whose number is this one's xor `lane_mask`.
    #[inline(always)]
    pub fn xor<T: WarpShuffle, const WIDTH: u32>(mask: u32, value: T, lane_mask: u32) -> T {
        // The hardware looks at the end of a segment only, not at its beginning.
        let inside = WIDTH == 32 || lane_mask % 32 < WIDTH;
        let lane_mask = if inside { lane_mask } else { 0 };
        // SAFETY: see the documentation of `warp`; a wrong mask hangs.
        value.map_words(|word| unsafe { nvvm::xor(mask, word, lane_mask, clamp(WIDTH, 31)) })
    }

    /// The `value` of the lane `delta` above.
    #[inline(always)]
    pub fn down<T: WarpShuffle, const WIDTH: u32>(mask: u32, value: T, delta: u32) -> T {
        // SAFETY: see the documentation of `warp`; a wrong mask hangs.
        value.map_words(|word| unsafe { nvvm::down(mask, word, delta, clamp(WIDTH, 31)) })
    }

    /// The `value` of the lane `delta` below.
    #[inline(always)]
    pub fn up<T: WarpShuffle, const WIDTH: u32>(mask: u32, value: T, delta: u32) -> T {
        // SAFETY: see the documentation of `warp`; a wrong mask hangs.
        value.map_words(|word| unsafe { nvvm::up(mask, word, delta, clamp(WIDTH, 0)) })
    }
}

/// Defines a shuffle for every type, with and without mask.
macro_rules! shuffles {
    ($doc:literal $segment:ident($other:ident): $($(#[$condition:meta])? $name:ident $masked:ident $type:ty;)*) => {
        $(
            $(#[$condition])?
            #[doc = $doc]
            #[inline(always)]
            pub fn $masked(mask: u32, value: $type, $other: u32) -> $type {
                segment::$segment::<$type, 32>(mask, value, $other)
            }

            $(#[$condition])?
            #[doc = $doc]
            #[inline(always)]
            pub fn $name(value: $type, $other: u32) -> $type {
                $masked(FULL_MASK, value, $other)
            }
        )*
    };
}

shuffles! {
    "The `value` of lane `source_lane`, modulo 32."
    idx(source_lane):
    shuffle shuffle_sync u32;
    shuffle_i32 shuffle_i32_sync i32;
    shuffle_f32 shuffle_f32_sync f32;
    shuffle_u64 shuffle_u64_sync u64;
    shuffle_i64 shuffle_i64_sync i64;
    shuffle_f64 shuffle_f64_sync f64;
    shuffle_bf16 shuffle_bf16_sync bf16;
    shuffle_f16x2 shuffle_f16x2_sync F16x2;
    shuffle_bf16x2 shuffle_bf16x2_sync Bf16x2;
    #[cfg(target_arch = "nvptx64")]
    shuffle_f16 shuffle_f16_sync f16;
}
shuffles! {
    "The `value` of the lane whose number is this one's xor `lane_mask`."
    xor(lane_mask):
    shuffle_xor shuffle_xor_sync u32;
    shuffle_xor_i32 shuffle_xor_i32_sync i32;
    shuffle_xor_f32 shuffle_xor_f32_sync f32;
    shuffle_xor_u64 shuffle_xor_u64_sync u64;
    shuffle_xor_i64 shuffle_xor_i64_sync i64;
    shuffle_xor_f64 shuffle_xor_f64_sync f64;
    shuffle_xor_bf16 shuffle_xor_bf16_sync bf16;
    shuffle_xor_f16x2 shuffle_xor_f16x2_sync F16x2;
    shuffle_xor_bf16x2 shuffle_xor_bf16x2_sync Bf16x2;
    #[cfg(target_arch = "nvptx64")]
    shuffle_xor_f16 shuffle_xor_f16_sync f16;
}
shuffles! {
    "The `value` of the lane `delta` above; the last `delta` lanes keep their own. `delta` must be below 32: the instruction sees its lowest five bits."
    down(delta):
    shuffle_down shuffle_down_sync u32;
    shuffle_down_i32 shuffle_down_i32_sync i32;
    shuffle_down_f32 shuffle_down_f32_sync f32;
    shuffle_down_u64 shuffle_down_u64_sync u64;
    shuffle_down_i64 shuffle_down_i64_sync i64;
    shuffle_down_f64 shuffle_down_f64_sync f64;
    shuffle_down_bf16 shuffle_down_bf16_sync bf16;
    shuffle_down_f16x2 shuffle_down_f16x2_sync F16x2;
    shuffle_down_bf16x2 shuffle_down_bf16x2_sync Bf16x2;
    #[cfg(target_arch = "nvptx64")]
    shuffle_down_f16 shuffle_down_f16_sync f16;
}
shuffles! {
    "The `value` of the lane `delta` below; the first `delta` lanes keep their own. `delta` must be below 32: the instruction sees its lowest five bits."
    up(delta):
    shuffle_up shuffle_up_sync u32;
    shuffle_up_i32 shuffle_up_i32_sync i32;
    shuffle_up_f32 shuffle_up_f32_sync f32;
    shuffle_up_u64 shuffle_up_u64_sync u64;
    shuffle_up_i64 shuffle_up_i64_sync i64;
    shuffle_up_f64 shuffle_up_f64_sync f64;
    shuffle_up_bf16 shuffle_up_bf16_sync bf16;
    shuffle_up_f16x2 shuffle_up_f16x2_sync F16x2;
    shuffle_up_bf16x2 shuffle_up_bf16x2_sync Bf16x2;
    #[cfg(target_arch = "nvptx64")]
    shuffle_up_f16 shuffle_up_f16_sync f16;
}
