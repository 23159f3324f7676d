//! Floats of 16 bits: [`bf16`], the compiler's own `f16`, and pairs of each in one register.
//!
//! `f16` is a type of the compiler, so `+`, `*`, `mul_add`, comparisons and `as` become the GPU's
//! instructions for it. [`bf16`] is ours: arithmetic on it is native where the GPU has it (fused from
//! capability 8.0, all of it from 9.0) and goes through `f32` before. Both have the methods of
//! [`FloatExt`](crate::FloatExt). A pair, [`F16x2`] or [`Bf16x2`], does two operations in one
//! instruction, which is what makes arithmetic on halves faster than on `f32`.
//!
//! `a * b + c` rounds once, as of other floats, unless the setting `fmad` is false; then, and of `bf16`
//! and its pairs before capability 9.0, it rounds twice. `a.mul_add(b, c)` rounds once with any setting.
//! (PTX in the wheel, by `+PTX`, says of `bf16` and pairs nothing of the setting: a driver that compiles
//! it contracts them.)
//!
//! ```
//! use rustcuda_device::prelude::*;
//!
//! /// y = a * x + y
//! #[kernel]
//! fn axpy_bf16(a: bf16, x: &[bf16], mut y: DisjointSlice<bf16>) {
//!     let index = thread::index_1d();
//!     let at = index.get();
//!     if let Some(y) = y.get_mut(index) {
//!         *y = a.mul_add(x[at], *y);
//!     }
//! }
//! ```

mod packed;
mod pairs;
mod scalar;
mod traits;

pub(crate) use packed::packed;
pub use pairs::{Bf16x2, F16x2};
pub use scalar::bf16;
