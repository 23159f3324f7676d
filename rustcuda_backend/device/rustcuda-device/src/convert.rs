//! Conversions between `f32` and the smaller floats, packed into one register.
//!
//! Names are those of the PTX instructions: `cvt`, the rounding (`rn` to nearest with ties to even, `rz`
//! towards 0, `rna` to nearest with ties away from 0), what is done besides (`relu`: negative numbers
//! become 0; `satfinite`: what is too large becomes the largest finite number), the result, the operand.
//! Of two numbers `lo` comes into the lower half.
//!
//! `e4m3` and `e5m2` are the floats of 8 bits, with 4 bits of exponent and 3 of mantissa, and 5 and 2.
//! `tf32` is an `f32` whose low 13 bits tensor cores do not look at.

use crate::half::packed;

/// `lo` and `hi` as a pair of `f16`, to nearest.
#[inline(always)]
pub fn cvt_f16x2_f32(lo: f32, hi: f32) -> u32 {
    #[cfg(cuda_arch = "80")]
    {
        native::cvt_rn_f16x2_f32(hi, lo)
    }
    #[cfg(all(target_arch = "nvptx64", not(cuda_arch = "80")))]
    {
        join((lo as f16).to_bits(), (hi as f16).to_bits())
    }
    #[cfg(not(target_arch = "nvptx64"))]
    unreachable!("this function runs on a GPU only")
}

/// `lo` and `hi` as a pair of `bf16`, to nearest.
#[inline(always)]
pub fn cvt_bf16x2_f32(lo: f32, hi: f32) -> u32 {
    #[cfg(cuda_arch = "80")]
    {
        native::cvt_rn_bf16x2_f32(hi, lo)
    }
    #[cfg(not(cuda_arch = "80"))]
    {
        join(
            crate::bf16::from_f32(lo).to_bits(),
            crate::bf16::from_f32(hi).to_bits(),
        )
    }
}

#[cfg(cuda_arch = "80")]
mod native {
    super::packed! {
        cvt_rn_f16x2_f32(hi: f32, lo: f32) -> u32 = "cvt.rn.f16x2.f32";
        cvt_rn_bf16x2_f32(hi: f32, lo: f32) -> u32 = "cvt.rn.bf16x2.f32";
    }
}

/// Two halves in one register.
#[inline(always)]
pub(crate) const fn join(lo: u16, hi: u16) -> u32 {
    (hi as u32) << 16 | lo as u32
}

/// The pair of `f16` as numbers.
#[inline(always)]
pub fn cvt_f32x2_f16x2(packed: u32) -> (f32, f32) {
    (cvt_f32_f16x2_lo(packed), cvt_f32_f16x2_hi(packed))
}

/// The lower `f16` of a pair.
#[inline(always)]
pub fn cvt_f32_f16x2_lo(packed: u32) -> f32 {
    half_to_f32(packed as u16)
}

/// The upper `f16` of a pair.
#[inline(always)]
pub fn cvt_f32_f16x2_hi(packed: u32) -> f32 {
    half_to_f32((packed >> 16) as u16)
}

#[inline(always)]
fn half_to_f32(bits: u16) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        f16::from_bits(bits) as f32
    }
    #[cfg(not(target_arch = "nvptx64"))]
    unreachable!("this function runs on a GPU only")
}

/// The pair of `bf16` as numbers.
#[inline(always)]
pub const fn cvt_f32x2_bf16x2(packed: u32) -> (f32, f32) {
    (cvt_f32_bf16x2_lo(packed), cvt_f32_bf16x2_hi(packed))
}

/// The lower `bf16` of a pair.
#[inline(always)]
pub const fn cvt_f32_bf16x2_lo(packed: u32) -> f32 {
    f32::from_bits(packed << 16)
}

/// The upper `bf16` of a pair.
#[inline(always)]
pub const fn cvt_f32_bf16x2_hi(packed: u32) -> f32 {
    f32::from_bits(packed & 0xffff_0000)
}

/// Defines conversions of two numbers; the instruction takes the upper one first.
macro_rules! from_two {
    ($($(#[$doc:meta])* $name:ident -> $result:ident = $instruction:literal needs $needs:ident;)*) => {
        mod upper_first {
            super::packed! {
                $($name(hi: f32, lo: f32) -> $result = $instruction needs $needs;)*
            }
        }
        $(
            $(#[$doc])*
            #[inline(always)]
            pub fn $name(lo: f32, hi: f32) -> $result
            where
                for<'pass> crate::requires::Gpu<'pass>: crate::requires::$needs,
            {
                upper_first::$name(hi, lo)
            }
        )*
    };
}

from_two! {
    /// A pair of `f16`. From capability 8.0.
    cvt_rz_f16x2_f32 -> u32 = "cvt.rz.f16x2.f32" needs Has80;
    /// A pair of `f16`. From capability 8.0.
    cvt_rn_relu_f16x2_f32 -> u32 = "cvt.rn.relu.f16x2.f32" needs Has80;
    /// A pair of `bf16`. From capability 8.0.
    cvt_rz_bf16x2_f32 -> u32 = "cvt.rz.bf16x2.f32" needs Has80;
    /// A pair of `bf16`. From capability 8.0.
    cvt_rn_relu_bf16x2_f32 -> u32 = "cvt.rn.relu.bf16x2.f32" needs Has80;
    /// A pair of `e4m3`. From capability 8.9.
    cvt_rn_satfinite_e4m3x2_f32 -> u16 = "cvt.rn.satfinite.e4m3x2.f32" needs Has89;
    /// A pair of `e5m2`. From capability 8.9.
    cvt_rn_satfinite_e5m2x2_f32 -> u16 = "cvt.rn.satfinite.e5m2x2.f32" needs Has89;
    /// A pair of `e4m3`. From capability 8.9.
    cvt_rn_satfinite_relu_e4m3x2_f32 -> u16 = "cvt.rn.satfinite.relu.e4m3x2.f32" needs Has89;
    /// A pair of `e5m2`. From capability 8.9.
    cvt_rn_satfinite_relu_e5m2x2_f32 -> u16 = "cvt.rn.satfinite.relu.e5m2x2.f32" needs Has89;
}

packed! {
    /// A pair of `e4m3` from one of `f16`. From capability 8.9.
    cvt_rn_satfinite_e4m3x2_f16x2(packed: u32) -> u16 = "cvt.rn.satfinite.e4m3x2.f16x2" needs Has89;
    /// A pair of `e5m2` from one of `f16`. From capability 8.9.
    cvt_rn_satfinite_e5m2x2_f16x2(packed: u32) -> u16 = "cvt.rn.satfinite.e5m2x2.f16x2" needs Has89;
    /// A pair of `e4m3` from one of `f16`. From capability 8.9.
    cvt_rn_satfinite_relu_e4m3x2_f16x2(packed: u32) -> u16 = "cvt.rn.satfinite.relu.e4m3x2.f16x2" needs Has89;
    /// A pair of `e5m2` from one of `f16`. From capability 8.9.
    cvt_rn_satfinite_relu_e5m2x2_f16x2(packed: u32) -> u16 = "cvt.rn.satfinite.relu.e5m2x2.f16x2" needs Has89;
    /// A pair of `f16` from one of `e4m3`, exactly. From capability 8.9.
    cvt_rn_f16x2_e4m3x2(packed: u16) -> u32 = "cvt.rn.f16x2.e4m3x2" needs Has89;
    /// A pair of `f16` from one of `e5m2`, exactly. From capability 8.9.
    cvt_rn_f16x2_e5m2x2(packed: u16) -> u32 = "cvt.rn.f16x2.e5m2x2" needs Has89;
    /// A pair of `f16` from one of `e4m3`. From capability 8.9.
    cvt_rn_relu_f16x2_e4m3x2(packed: u16) -> u32 = "cvt.rn.relu.f16x2.e4m3x2" needs Has89;
    /// A pair of `f16` from one of `e5m2`. From capability 8.9.
    cvt_rn_relu_f16x2_e5m2x2(packed: u16) -> u32 = "cvt.rn.relu.f16x2.e5m2x2" needs Has89;

    /// A `tf32`. From capability 8.0.
    cvt_rna_tf32_f32(value: f32) -> u32 = "cvt.rna.tf32.f32" needs Has80;
    /// A `tf32`. From capability 9.0.
    cvt_rn_tf32_f32(value: f32) -> u32 = "cvt.rn.tf32.f32" needs Has90;
    /// A `tf32`. From capability 9.0.
    cvt_rn_relu_tf32_f32(value: f32) -> u32 = "cvt.rn.relu.tf32.f32" needs Has90;
    /// A `tf32`. From capability 9.0.
    cvt_rz_tf32_f32(value: f32) -> u32 = "cvt.rz.tf32.f32" needs Has90;
    /// A `tf32`. From capability 9.0.
    cvt_rz_relu_tf32_f32(value: f32) -> u32 = "cvt.rz.relu.tf32.f32" needs Has90;
    /// A `tf32`. From capability 10.0.
    cvt_rna_satfinite_tf32_f32(value: f32) -> u32 = "cvt.rna.satfinite.tf32.f32" needs Has100;
    /// A `tf32`. From capability 10.0.
    cvt_rn_satfinite_tf32_f32(value: f32) -> u32 = "cvt.rn.satfinite.tf32.f32" needs Has100;
    /// A `tf32`. From capability 10.0.
    cvt_rn_relu_satfinite_tf32_f32(value: f32) -> u32 = "cvt.rn.relu.satfinite.tf32.f32" needs Has100;
    /// A `tf32`. From capability 10.0.
    cvt_rz_satfinite_tf32_f32(value: f32) -> u32 = "cvt.rz.satfinite.tf32.f32" needs Has100;
    /// A `tf32`. From capability 10.0.
    cvt_rz_relu_satfinite_tf32_f32(value: f32) -> u32 = "cvt.rz.relu.satfinite.tf32.f32" needs Has100;
}
