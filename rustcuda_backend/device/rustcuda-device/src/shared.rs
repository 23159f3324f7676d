//! Memory that the threads of a block share, on the multiprocessor itself.

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ops::{Index, IndexMut};

use crate::intrinsics::ptx;

/// `N` elements of shared memory, not initialized, declared inside the body of a kernel:
///
/// ```
/// use rustcuda_device::prelude::*;
///
/// /// Turns each block's 256 elements round.
/// #[kernel(launch_bounds(256))]
/// pub fn reverse(x: &[f32], mut y: DisjointSlice<f32>) {
///     static mut TILE: SharedArray<f32, 256> = SharedArray::UNINIT;
///     let (index, at) = (thread::index_1d(), thread::threadIdx_x() as usize);
///     // SAFETY: each thread writes its own element; those of others are read after the barrier.
///     unsafe { TILE[at] = x[index.get()] };
///     thread::sync_threads();
///     let turned = unsafe { TILE[255 - at] };
///     if let Some(y) = y.get_mut(index) {
///         *y = turned;
///     }
/// }
/// ```
///
/// Each block has its own. `ALIGN` is its least alignment in bytes, if that of `T` is too small.
///
/// Uses of it are `unsafe`, as of every `static mut`: an element must have been written before it is
/// read, with a [`sync_threads`](crate::thread::sync_threads) between where another thread wrote it;
/// two threads must not use one element at once if either writes; an index must be below `N`
/// (checked with debug assertions only).
#[repr(C)]
pub struct SharedArray<T, const N: usize, const ALIGN: usize = 0> {
    elements: UnsafeCell<[MaybeUninit<T>; N]>,
}

impl<T, const N: usize, const ALIGN: usize> SharedArray<T, N, ALIGN> {
    /// The initial value of the static. `#[kernel]` takes it out where it makes shared memory; left
    /// anywhere else it would silently be ordinary global memory, hence the error.
    #[allow(clippy::declare_interior_mutable_const)] // only ever a static's value
    pub const UNINIT: Self = {
        refuse_global_memory();
        Self {
            elements: UnsafeCell::new([const { MaybeUninit::uninit() }; N]),
        }
    };

    /// Size and alignment in bytes.
    #[doc(hidden)]
    pub const STORAGE: [usize; 2] = {
        let natural = align_of::<T>();
        assert!(
            size_of::<[T; N]>() > 0,
            "a shared array needs at least one byte"
        );
        [
            size_of::<[T; N]>(),
            if ALIGN > natural { ALIGN } else { natural },
        ]
    };

    /// The number of elements.
    pub const fn len(&self) -> usize {
        N
    }

    /// Whether there are no elements.
    pub const fn is_empty(&self) -> bool {
        N == 0
    }

    /// The first element's address.
    #[inline(always)]
    pub const fn as_ptr(&self) -> *const T {
        self.elements.get().cast()
    }

    /// The first element's address.
    #[inline(always)]
    pub const fn as_mut_ptr(&mut self) -> *mut T {
        self.elements.get().cast()
    }
}

impl<T, const N: usize, const ALIGN: usize> Index<usize> for SharedArray<T, N, ALIGN> {
    type Output = T;

    #[inline(always)]
    fn index(&self, index: usize) -> &T {
        debug_assert!(index < N);
        // SAFETY: promised by whoever used the `static mut`.
        unsafe { &*self.as_ptr().add(index) }
    }
}

impl<T, const N: usize, const ALIGN: usize> IndexMut<usize> for SharedArray<T, N, ALIGN> {
    #[inline(always)]
    fn index_mut(&mut self, index: usize) -> &mut T {
        debug_assert!(index < N);
        // SAFETY: promised by whoever used the `static mut`.
        unsafe { &mut *self.as_mut_ptr().add(index) }
    }
}

/// Fails where `#[kernel]` has not made shared memory of a static.
pub(crate) const fn refuse_global_memory() {
    if cfg!(target_arch = "nvptx64") {
        panic!(
            "shared memory is declared as `static mut NAME: type = type::UNINIT;` in the body of a #[kernel]"
        );
    }
}

/// The shared memory whose size the launch gives, in bytes: `kernel[grid, block, shared_bytes]`.
///
/// There is one per block, aligned to 16 bytes, however often and with whichever `T` it is asked
/// for. Reading and writing it has the duties of a [`SharedArray`].
pub struct DynamicSharedArray<T>(PhantomData<T>);

impl<T> DynamicSharedArray<T> {
    /// Its first element's address.
    #[inline(always)]
    pub fn get() -> *mut T {
        const {
            assert!(
                align_of::<T>() <= 16,
                "dynamic shared memory is aligned to 16 bytes"
            )
        };
        Self::get_raw().cast()
    }

    /// Its first byte's address.
    #[inline(always)]
    pub fn get_raw() -> *mut u8 {
        // SAFETY: the address is that of a shared variable.
        unsafe { generic(dynamic_address()) }
    }

    /// The address `bytes` after its start, which must be a multiple of `T`'s alignment.
    #[inline(always)]
    pub fn offset(bytes: usize) -> *mut T {
        Self::get_raw().wrapping_add(bytes).cast()
    }
}

/// The address of shared memory as instructions take it that want no generic pointer.
///
/// # Safety
///
/// `pointer` must point into shared memory.
#[inline(always)]
pub unsafe fn cvta_generic_to_shared_offset(pointer: *const u8) -> u64 {
    let address: u64;
    // SAFETY: promised by the caller.
    unsafe {
        ptx!(
            "cvta.to.shared.u64 {}, {};", out(reg64) address, in(reg64) pointer,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    address
}

#[cfg(target_arch = "nvptx64")]
unsafe extern "C" {
    // LLVM bitcode in the sysroot (device/sysroot/shared_cast.ll): after inlining, LLVM knows that
    // the pointer is to shared memory, which Rust has no way to say.
    fn __rustcuda_shared_to_generic(address: u64) -> *mut u8;
}

/// A pointer to the shared variable at `address`.
#[doc(hidden)]
#[inline(always)]
pub unsafe fn generic(address: u64) -> *mut u8 {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: promised by the caller.
    unsafe {
        __rustcuda_shared_to_generic(address)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let _ = address;
        unreachable!("this function runs on a GPU only")
    }
}

#[inline(always)]
fn dynamic_address() -> u64 {
    let address: u64;
    // SAFETY: takes the address of a variable that the build backend declares in the PTX.
    unsafe {
        ptx!(
            "mov.u64 {}, __rustcuda_dynamic_shared;", out(reg64) address,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    address
}
