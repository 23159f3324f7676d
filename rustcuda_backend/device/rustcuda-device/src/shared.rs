//! Memory that the threads of a block share, on the multiprocessor itself.

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ops::{Index, IndexMut};

use crate::intrinsics::ptx;

/// `N` elements of shared memory, not initialized, declared inside the body of a kernel or of a
/// [`device`](crate::device) function, on whose constants and type parameters `T` and `N` may depend:
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
/// Each block has its own. In a generic function there is one for each type that `T` is; one whose own type
/// does not depend on the function's type parameter, as `SharedArray<u32, 32>`, is one for all instances, as
/// every static in Rust is. Two instances that are in use at once, or without a barrier between, then
/// overwrite each other; in CUDA C++ each instance of a template has its own. `ALIGN` is its least alignment in bytes, if that of `T` is too small.
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
        assert!(
            ALIGN == 0 || ALIGN.is_power_of_two(),
            "an alignment is a power of two"
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

    /// The first element's address, by that of the array.
    ///
    /// # Safety
    ///
    /// `array` must be the address of a shared array.
    #[inline(always)]
    pub const unsafe fn as_raw_mut_ptr(array: *mut Self) -> *mut T {
        array.cast()
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
            "shared memory is declared as `static mut NAME: type = type::UNINIT;` in the body of a #[kernel] \
             or #[device] function, and written there: not by another macro that is called in it"
        );
    }
}

/// The pointer for which a use of a static stands: `__shared_<name>__<size>_<alignment>_<identity>`,
/// which the build backend declares.
#[doc(hidden)]
#[macro_export]
#[cfg(target_arch = "nvptx64")]
macro_rules! shared_pointer {
    ($type:ty, $marker:ty, $name:literal, $line:literal, $column:literal) => {
        // SAFETY: takes the address of a variable that the build backend declares in the PTX.
        unsafe {
            let address: u64;
            ::core::arch::asm!(
                ::core::concat!("mov.u64 {}, __shared_", $name, "__{}_{}_{};"),
                out(reg64) address,
                const <$type>::STORAGE[0],
                const <$type>::STORAGE[1],
                const $crate::shared::identity::<($type, $marker)>(::core::module_path!(), $line, $column),
                options(pure, nomem, nostack, preserves_flags)
            );
            $crate::shared::generic(address).cast::<$type>()
        }
    };
}

/// As for the GPU, of which it has the type.
#[doc(hidden)]
#[macro_export]
#[cfg(not(target_arch = "nvptx64"))]
macro_rules! shared_pointer {
    ($type:ty, $marker:ty, $name:literal, $line:literal, $column:literal) => {
        // SAFETY: panics.
        unsafe { $crate::shared::generic(0).cast::<$type>() }
    };
}

/// What tells two statics apart that have the name, the size and the alignment in common: a hash
/// (FNV-1a) of where they stand, of a type that stands there, and of their own type, which is another in
/// each instance of a generic function.
#[doc(hidden)]
#[cfg(target_arch = "nvptx64")]
pub const fn identity<T>(module: &str, line: u32, column: u32) -> u64 {
    let hash = hashed(0xcbf2_9ce4_8422_2325, module.as_bytes());
    let hash = hashed(hash, core::any::type_name::<T>().as_bytes());
    hashed(hashed(hash, &line.to_le_bytes()), &column.to_le_bytes())
}

#[cfg(target_arch = "nvptx64")]
const fn hashed(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x100_0000_01b3);
        at += 1;
    }
    hash
}

/// The shared memory whose size the launch gives, in bytes: `kernel[grid, block, shared_bytes]`.
///
/// There is one per block, however often and with whichever `T` it is asked for; its alignment is the
/// largest `ALIGN` that any use in the wheel has. Reading and writing it has the duties of a
/// [`SharedArray`]. [`DynamicShared`] takes several arrays from it.
pub struct DynamicSharedArray<T, const ALIGN: usize = 16>(PhantomData<T>);

impl<T, const ALIGN: usize> DynamicSharedArray<T, ALIGN> {
    /// Its first element's address.
    #[inline(always)]
    pub fn get() -> *mut T {
        const {
            assert!(ALIGN.is_power_of_two(), "an alignment is a power of two");
            assert!(
                align_of::<T>() <= ALIGN,
                "dynamic shared memory for this type needs a larger ALIGN"
            )
        };
        Self::get_raw().cast()
    }

    /// Its first byte's address.
    #[inline(always)]
    pub fn get_raw() -> *mut u8 {
        // SAFETY: the address is that of a shared variable.
        unsafe { generic(dynamic_address::<ALIGN>()) }
    }

    /// The address `bytes` after its start, which must be a multiple of `T`'s alignment.
    #[inline(always)]
    pub fn offset(bytes: usize) -> *mut T {
        Self::get_raw().wrapping_add(bytes).cast()
    }
}

/// Takes arrays from the dynamic shared memory one after another, with the gaps that their alignment
/// needs.
///
/// Each thread takes the same ones in the same order, and so has the same addresses. An array that
/// does not fit is a panic.
///
/// ```
/// use rustcuda_device::prelude::*;
///
/// /// How often each number below the block's size is there; 8 bytes of shared memory for each thread.
/// #[kernel]
/// pub unsafe fn histogram(keys: &[u32], totals: *mut u32) {
///     let bins = thread::blockDim_x() as usize;
///     let mut memory = DynamicShared::new();
///     let (counts, shown) = (memory.take::<u32>(bins), memory.take::<u32>(bins));
///     let at = thread::threadIdx_x() as usize;
///     // SAFETY: each thread uses its own elements only.
///     unsafe {
///         *counts.add(at) = keys.iter().filter(|&&key| key as usize == at).count() as u32;
///         *shown.add(at) = *counts.add(at);
///         *totals.add(at) = *shown.add(at);
///     }
/// }
/// ```
pub struct DynamicShared {
    end: usize,
}

impl DynamicShared {
    /// Begins at the start of the memory.
    ///
    /// Two of these give out the same memory.
    #[inline(always)]
    #[allow(clippy::new_without_default)] // no value like any other: it stands for a resource
    pub fn new() -> Self {
        Self { end: 0 }
    }

    /// The address of the next `count` elements, in no defined state; reading and writing them has the
    /// duties of a [`SharedArray`].
    ///
    /// # Panics
    ///
    /// They do not fit in what the launch has given.
    #[inline(always)]
    pub fn take<T>(&mut self, count: usize) -> *mut T {
        const {
            assert!(
                align_of::<T>() <= 16,
                "dynamic shared memory is aligned to 16 bytes"
            )
        };
        let start = self.end.next_multiple_of(align_of::<T>());
        let bytes = count.saturating_mul(size_of::<T>());
        self.end = start.saturating_add(bytes);
        assert!(
            self.end <= dynamic_smem_size() as usize,
            "the launch has given too little shared memory"
        );
        DynamicSharedArray::<T>::offset(start)
    }

    /// The bytes that the arrays taken so far need.
    #[inline(always)]
    pub fn bytes(&self) -> usize {
        self.end
    }
}

macro_rules! sizes {
    ($($(#[doc = $doc:literal])* $name:ident = $instruction:literal;)*) => {
        $(
            $(#[doc = $doc])*
            #[inline(always)]
            pub fn $name() -> u32 {
                let bytes: u32;
                // SAFETY: reads a special register that every thread has.
                unsafe {
                    ptx!($instruction, out(reg32) bytes, options(pure, nomem, nostack, preserves_flags));
                }
                bytes
            }
        )*
    };
}

sizes! {
    /// Bytes of dynamic shared memory that the launch has given.
    dynamic_smem_size = "mov.u32 {}, %dynamic_smem_size;";
    /// Bytes of shared memory that the block has, static and dynamic.
    total_smem_size = "mov.u32 {}, %total_smem_size;";
}

/// The address of shared memory as instructions take it that want no generic pointer.
///
/// # Safety
///
/// `pointer` must point into shared memory.
#[inline(always)]
pub unsafe fn cvta_generic_to_shared_offset(pointer: *const u8) -> u64 {
    // SAFETY: promised by the caller.
    unsafe { cast::__rustcuda_generic_to_shared(pointer) }
}

/// A pointer to the shared variable at `address`.
#[doc(hidden)]
#[inline(always)]
pub unsafe fn generic(address: u64) -> *mut u8 {
    // SAFETY: promised by the caller.
    unsafe { cast::__rustcuda_shared_to_generic(address) }
}

// LLVM bitcode in the sysroot (device/sysroot/shared_cast.ll): after inlining, LLVM knows that a pointer
// is to shared memory, which Rust has no way to say, and one cast takes back the other.
mod cast {
    crate::intrinsics::intrinsics! {
        "__rustcuda_shared_to_generic" fn __rustcuda_shared_to_generic(address: u64) -> *mut u8;
        "__rustcuda_generic_to_shared" fn __rustcuda_generic_to_shared(pointer: *const u8) -> u64;
    }
}

#[inline(always)]
fn dynamic_address<const ALIGN: usize>() -> u64 {
    let address: u64;
    // SAFETY: takes the address of a variable that the build backend declares in the PTX.
    unsafe {
        ptx!(
            "mov.u64 {}, __rustcuda_dynamic_shared__{};", out(reg64) address, const ALIGN,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    address
}
