//! Small vectors under CUDA's names: `Float4`, `Int2`, ….
//!
//! They are arrays in registers; for one load or store of all elements see [`Pack`](crate::Pack).
//!
//! ```
//! use rustcuda_device::cusimd::Float4;
//! use rustcuda_device::prelude::*;
//!
//! /// The brightness of pixels.
//! #[kernel]
//! fn luma(x: &[f32], mut out: DisjointSlice<f32>) {
//!     let index = thread::index_1d();
//!     let pixel = Float4::new(*Pack::load(x, 4 * index.get(), 0.0));
//!     if let Some(out) = out.get_mut(index) {
//!         *out = 0.299 * pixel.x() + 0.587 * pixel.y() + 0.114 * pixel.z();
//!     }
//! }
//! ```

use core::array;
use core::ops::Index;

/// Numbers that vectors are made of.
pub trait SimdElement: Copy + Sized {
    /// The most of them in a vector that the GPU's instructions take.
    const MAX_N: usize;
}

macro_rules! elements {
    ($($type:ident $most:literal)*) => {
        $(
            impl SimdElement for $type {
                const MAX_N: usize = $most;
            }
        )*
    };
}

elements!(f32 32 f64 16 u32 128 i32 128 u64 16 i64 16 u16 32 i16 32);

/// A vector of `N` numbers.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CuSimd<T: SimdElement, const N: usize> {
    elements: [T; N],
}

impl<T: SimdElement, const N: usize> CuSimd<T, N> {
    /// A vector of these numbers.
    #[inline(always)]
    pub const fn new(elements: [T; N]) -> Self {
        Self { elements }
    }

    /// Element `I`; beyond the end is an error when compiling.
    #[inline(always)]
    pub const fn get<const I: usize>(&self) -> T {
        const { assert!(I < N, "the vector has no such element") };
        self.elements[I]
    }

    /// Element `index`; beyond the end the kernel traps.
    #[inline(always)]
    pub fn at(&self, index: usize) -> T {
        self.elements[index]
    }

    /// Its numbers.
    #[inline(always)]
    pub const fn to_array(self) -> [T; N] {
        self.elements
    }

    /// How many there are.
    #[inline(always)]
    pub const fn len(&self) -> usize {
        N
    }

    /// Whether there are none.
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        N == 0
    }
}

impl<T: SimdElement, const N: usize> Index<usize> for CuSimd<T, N> {
    type Output = T;

    #[inline(always)]
    fn index(&self, index: usize) -> &T {
        &self.elements[index]
    }
}

impl<T: SimdElement + Default, const N: usize> Default for CuSimd<T, N> {
    #[inline(always)]
    fn default() -> Self {
        Self::new(array::from_fn(|_| T::default()))
    }
}

/// Defines the methods that give an element by its letter.
macro_rules! letters {
    ($($length:literal { $($letter:ident $index:literal)* })*) => {
        $(
            impl<T: SimdElement> CuSimd<T, $length> {
                $(
                    #[doc = concat!("Element ", $index, ".")]
                    #[inline(always)]
                    pub const fn $letter(&self) -> T {
                        self.elements[$index]
                    }
                )*
            }
        )*
    };
}

letters! {
    2 { x 0 y 1 }
    4 { x 0 y 1 z 2 w 3 }
}

impl<T: SimdElement> CuSimd<T, 2> {
    /// Both.
    #[inline(always)]
    pub const fn xy(self) -> (T, T) {
        (self.x(), self.y())
    }
}

impl<T: SimdElement> CuSimd<T, 4> {
    /// All four.
    #[inline(always)]
    pub const fn xyzw(self) -> (T, T, T, T) {
        (self.x(), self.y(), self.z(), self.w())
    }

    /// The first two.
    #[inline(always)]
    pub const fn lo(&self) -> CuSimd<T, 2> {
        CuSimd::new([self.x(), self.y()])
    }

    /// The last two.
    #[inline(always)]
    pub const fn hi(&self) -> CuSimd<T, 2> {
        CuSimd::new([self.z(), self.w()])
    }
}

/// Two `f32`.
pub type Float2 = CuSimd<f32, 2>;
/// Four `f32`.
pub type Float4 = CuSimd<f32, 4>;
/// Two `f64`.
pub type Double2 = CuSimd<f64, 2>;
/// Two `i32`.
pub type Int2 = CuSimd<i32, 2>;
/// Four `i32`.
pub type Int4 = CuSimd<i32, 4>;
/// Two `u32`.
pub type Uint2 = CuSimd<u32, 2>;
/// Four `u32`.
pub type Uint4 = CuSimd<u32, 4>;
/// Four `f32`, as tensor memory gives them.
pub type TmemRegs4 = CuSimd<f32, 4>;
/// Eight `f32`, as tensor memory gives them.
pub type TmemRegs8 = CuSimd<f32, 8>;
/// Sixteen `f32`, as tensor memory gives them.
pub type TmemRegs16 = CuSimd<f32, 16>;
/// Thirty-two `f32`, as tensor memory gives them.
pub type TmemRegs32 = CuSimd<f32, 32>;
