//! Functions of one instruction on registers.

/// Defines functions of one instruction; `needs` names the capability that brought it.
///
/// Operands are `u32` or `f32` (registers of 32 bits) and `u16` (of 16 bits).
macro_rules! packed {
    ($($(#[$doc:meta])* $name:ident($($operand:ident: $type:ident),*) -> $result:ident
        = $instruction:literal $(needs $needs:ident)?;)*) => {
        $(
            $(#[$doc])*
            #[inline(always)]
            pub fn $name($($operand: $type),*) -> $result
            $(where for<'pass> $crate::requires::Gpu<'pass>: $crate::requires::$needs)?
            {
                let result: $result;
                // SAFETY: arithmetic only.
                unsafe {
                    $crate::half::packed!(@asm $instruction, result: $result, $($operand: $type),*);
                }
                result
            }
        )*
    };
    (@asm $instruction:literal, $result:ident: u16, $a:ident: u32) => {
        $crate::half::packed!(@one $instruction, " {}, {};", out(reg16) $result, in(reg32) $a)
    };
    (@asm $instruction:literal, $result:ident: u16, $a:ident: f32, $b:ident: f32) => {
        $crate::half::packed!(@one $instruction, " {}, {}, {};", out(reg16) $result, in(reg32) $a, in(reg32) $b)
    };
    (@asm $instruction:literal, $result:ident: $wide:ident, $a:ident: u16) => {
        $crate::half::packed!(@one $instruction, " {}, {};", out(reg32) $result, in(reg16) $a)
    };
    (@asm $instruction:literal, $result:ident: $wide:ident, $a:ident: $type:ident) => {
        $crate::half::packed!(@one $instruction, " {}, {};", out(reg32) $result, in(reg32) $a)
    };
    (@asm $instruction:literal, $result:ident: $wide:ident, $a:ident: $type:ident, $b:ident: $other:ident) => {
        $crate::half::packed!(@one $instruction, " {}, {}, {};", out(reg32) $result, in(reg32) $a, in(reg32) $b)
    };
    (@asm $instruction:literal, $result:ident: $wide:ident, $a:ident: $x:ident, $b:ident: $y:ident, $c:ident: $z:ident) => {
        $crate::half::packed!(
            @one $instruction, " {}, {}, {}, {};",
            out(reg32) $result, in(reg32) $a, in(reg32) $b, in(reg32) $c
        )
    };
    (@one $instruction:literal, $operands:literal, $($register:tt)*) => {
        $crate::intrinsics::ptx!(
            concat!($instruction, $operands), $($register)*,
            options(pure, nomem, nostack, preserves_flags)
        )
    };
}
pub(crate) use packed;
