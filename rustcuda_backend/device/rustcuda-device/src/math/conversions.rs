//! Conversions with the rounding named: `_rn` to nearest with ties to even, `_rz` towards 0, `_ru` up,
//! `_rd` down.
//!
//! `as` rounds towards 0 to integers and to nearest to floats. To an integer all of them give the
//! nearest one there is where the value is beyond; of NaN `as` makes 0, these what the GPU does: 0 of an
//! `f32` for 32 bits, else the number of which only the highest bit is set.

use super::functions;

/// Defines a trait of conversions and implements it for each type by four functions of libdevice.
macro_rules! conversions {
    ($(#[$doc:meta])* trait $trait:ident $methods:tt $($type:ident $functions:tt)*) => {
        conversions!(@define [$(#[$doc])*] $trait $methods);
        $(conversions!(@implement $trait $type $methods $functions);)*
    };
    (@define [$(#[$doc:meta])*] $trait:ident {
        $($result:ident: $rn:ident $rz:ident $ru:ident $rd:ident)*
    }) => {
        $(#[$doc])*
        pub trait $trait: Copy {
            $(
                #[doc = concat!("The nearest `", stringify!($result), "`, ties to even.")]
                fn $rn(self) -> $result;
                #[doc = concat!("The next `", stringify!($result), "` towards 0.")]
                fn $rz(self) -> $result;
                #[doc = concat!("The next `", stringify!($result), "` that is not smaller.")]
                fn $ru(self) -> $result;
                #[doc = concat!("The next `", stringify!($result), "` that is not larger.")]
                fn $rd(self) -> $result;
            )*
        }
    };
    (@implement $trait:ident $type:ident
        { $($result:ident: $rn:ident $rz:ident $ru:ident $rd:ident)* }
        { $($rn_function:ident $rz_function:ident $ru_function:ident $rd_function:ident)* }
    ) => {
        // SAFETY of all: arithmetic only.
        impl $trait for $type {
            $(
                #[inline(always)]
                fn $rn(self) -> $result {
                    unsafe { functions::$rn_function(self) }
                }
                #[inline(always)]
                fn $rz(self) -> $result {
                    unsafe { functions::$rz_function(self) }
                }
                #[inline(always)]
                fn $ru(self) -> $result {
                    unsafe { functions::$ru_function(self) }
                }
                #[inline(always)]
                fn $rd(self) -> $result {
                    unsafe { functions::$rd_function(self) }
                }
            )*
        }
    };
}

conversions! {
    /// Floats to integers.
    trait ToIntegerExt {
        i32: to_i32_rn to_i32_rz to_i32_ru to_i32_rd
        u32: to_u32_rn to_u32_rz to_u32_ru to_u32_rd
        i64: to_i64_rn to_i64_rz to_i64_ru to_i64_rd
        u64: to_u64_rn to_u64_rz to_u64_ru to_u64_rd
    }
    f32 {
        __nv_float2int_rn __nv_float2int_rz __nv_float2int_ru __nv_float2int_rd
        __nv_float2uint_rn __nv_float2uint_rz __nv_float2uint_ru __nv_float2uint_rd
        __nv_float2ll_rn __nv_float2ll_rz __nv_float2ll_ru __nv_float2ll_rd
        __nv_float2ull_rn __nv_float2ull_rz __nv_float2ull_ru __nv_float2ull_rd
    }
    f64 {
        __nv_double2int_rn __nv_double2int_rz __nv_double2int_ru __nv_double2int_rd
        __nv_double2uint_rn __nv_double2uint_rz __nv_double2uint_ru __nv_double2uint_rd
        __nv_double2ll_rn __nv_double2ll_rz __nv_double2ll_ru __nv_double2ll_rd
        __nv_double2ull_rn __nv_double2ull_rz __nv_double2ull_ru __nv_double2ull_rd
    }
}

conversions! {
    /// Integers and `f64` to `f32`.
    trait ToF32Ext {
        f32: to_f32_rn to_f32_rz to_f32_ru to_f32_rd
    }
    i32 { __nv_int2float_rn __nv_int2float_rz __nv_int2float_ru __nv_int2float_rd }
    u32 { __nv_uint2float_rn __nv_uint2float_rz __nv_uint2float_ru __nv_uint2float_rd }
    i64 { __nv_ll2float_rn __nv_ll2float_rz __nv_ll2float_ru __nv_ll2float_rd }
    u64 { __nv_ull2float_rn __nv_ull2float_rz __nv_ull2float_ru __nv_ull2float_rd }
    f64 { __nv_double2float_rn __nv_double2float_rz __nv_double2float_ru __nv_double2float_rd }
}

conversions! {
    /// Integers of 64 bits to `f64`; those of 32 bits all are floats there.
    trait ToF64Ext {
        f64: to_f64_rn to_f64_rz to_f64_ru to_f64_rd
    }
    i64 { __nv_ll2double_rn __nv_ll2double_rz __nv_ll2double_ru __nv_ll2double_rd }
    u64 { __nv_ull2double_rn __nv_ull2double_rz __nv_ull2double_ru __nv_ull2double_rd }
}
