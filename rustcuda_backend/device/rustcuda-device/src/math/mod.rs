//! Functions on floats, which `core` has not: NVIDIA's libdevice, or one instruction.
//!
//! `abs`, `max`, `min`, `clamp`, `copysign`, `signum`, `recip`, `to_degrees`, `to_radians`, `total_cmp`,
//! `is_nan` and the like are methods of `core` and need no trait. How exact the functions are: CUDA C++
//! programming guide, "Mathematical Functions", under the name in libdevice without `__nv_`; for
//! `f16` and `bf16` they are those for `f32`, rounded to nearest.
//!
//! | what | functions of libdevice behind it |
//! |---|---|
//! | [`FloatExt`]: the names of `std`, and `rsqrt`, `exp10`, `erf`, `erfc` | `floor` `ceil` `trunc` `round` `rint` `rsqrt` `cbrt` `hypot` `pow` `powi` `exp` `exp2` `exp10` `expm1` `log` `log1p` `log2` `log10` `sin` `cos` `sincos` `tan` `asin` `acos` `atan` `atan2` `sinh` `cosh` `tanh` `asinh` `acosh` `atanh` `erf` `erfc` `fmod`, each with `f` at the end for `f32` |
//! | [`CudaFloatExt`]: CUDA's names | `rcbrt` `rhypot` `norm3d` `rnorm3d` `norm4d` `rnorm4d` `sinpi` `cospi` `sincospi` `erfinv` `erfcinv` `erfcx` `normcdf` `normcdfinv` `lgamma` `tgamma` `j0` `j1` `jn` `y0` `y1` `yn` `cyl_bessel_i0` `cyl_bessel_i1` `fdim` `fmod` `remainder` `remquo` `ldexp` `frexp` `modf` `logb` `ilogb` `llrint` `llround`, likewise |
//! | [`norm`], [`rnorm`] | `norm` `rnorm`, likewise |
//! | [`RoundingExt`]: the rounding named | `fadd_rn` … `fma_rd` `drcp_ru`, `nextafter` |
//! | [`rsqrt_rn`] | `frsqrt_rn` |
//! | [`ToIntegerExt`], [`ToF32Ext`], [`ToF64Ext`] | `float2int_rn` … `ull2double_rz` |
//! | [`fast_exp`] and what else is `fast_`, [`saturate`] | `fast_expf` …, `saturatef` |
//! | [`tanh_approx`] and what else is `_approx` | none: an instruction; `fast_tanhf` is [`tanh_approx`] |
//! | [`integer`](crate::integer) | `mul24` `mulhi` `mul64hi` `sad` `hadd` `rhadd` and those for unsigned |
//! | methods of `core`, and `as` | `fabs` `copysign` `fmax` `fmin` `isnan` `isinf` `finite` `signbit` `abs` `min` `max` `brev` `clz` `popc`, bit casts, `int2double` `uint2double` |
//! | left out, being another's name | `nearbyint` (`rint`), `scalbn` (`ldexp`), `fmaf_ieee_rn` (`fmaf_rn` without `ftz`), `rcp64h`, `nan` |
//!
//! ```
//! use rustcuda_device::math::fast_exp;
//! use rustcuda_device::prelude::*;
//!
//! /// The logistic function, and its fast version.
//! #[kernel]
//! fn sigmoid(mut exact: DisjointSlice<f64>, mut fast: DisjointSlice<f32>) {
//!     if let Some(x) = exact.get_mut(thread::index_1d()) {
//!         *x = 1.0 / (1.0 + (-*x).exp());
//!     }
//!     if let Some(x) = fast.get_mut(thread::index_1d()) {
//!         *x = 1.0 / (1.0 + fast_exp(-*x));
//!     }
//! }
//! ```

mod conversions;
mod cuda_float_ext;
mod fast;
mod float;
mod float_ext;
mod functions;
mod libdevice;
mod methods;
mod norm;
mod rounding;

pub use conversions::{ToF32Ext, ToF64Ext, ToIntegerExt};
pub use cuda_float_ext::CudaFloatExt;
pub use fast::*;
pub use float::Float;
pub use float_ext::FloatExt;
pub use norm::{Norm, norm, rnorm};
pub use rounding::{RoundingExt, rsqrt_rn};
