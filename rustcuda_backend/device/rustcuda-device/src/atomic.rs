//! Memory that threads change at the same time without losing a change.
//!
//! A type says the widest circle of threads that use the memory at once: [`BlockAtomicU32`] those of a
//! block, [`DeviceAtomicU32`] those of the GPU, [`SystemAtomicU32`] other GPUs and the host as well.
//! Narrower ones are no slower. Memory that kernels are given becomes one by a cast of the pointer:
//!
//! ```
//! use rustcuda_device::atomic::{AtomicOrdering, BlockAtomicU32, DeviceAtomicU32};
//! use rustcuda_device::prelude::*;
//!
//! /// Counts how often each byte occurs.
//! ///
//! /// # Safety
//! ///
//! /// `counts` must have 256 elements, and a block 256 threads.
//! #[kernel]
//! unsafe fn histogram(bytes: &[u8], counts: *mut u32) {
//!     static mut LOCAL: SharedArray<BlockAtomicU32, 256> = SharedArray::UNINIT;
//!     let thread = thread::threadIdx_x() as usize;
//!     unsafe {
//!         LOCAL[thread].store(0, AtomicOrdering::Relaxed);
//!         thread::sync_threads();
//!         if let Some(byte) = bytes.get(thread::index_1d().get()) {
//!             LOCAL[usize::from(*byte)].fetch_add(1, AtomicOrdering::Relaxed);
//!         }
//!         thread::sync_threads();
//!         let count = LOCAL[thread].load(AtomicOrdering::Relaxed);
//!         DeviceAtomicU32::from_ptr(counts.add(thread)).fetch_add(count, AtomicOrdering::Relaxed);
//!     }
//! }
//! ```
//!
//! A result that is not used costs nothing: the GPU then sends the operation off and goes on.
//! The memory must be global or shared: of a local variable, which no other thread could reach, the GPU has
//! no atomic operations. So [`Atomic::new`] is `unsafe`; it is for statics, which are global memory:
//!
//! ```
//! use rustcuda_device::atomic::{AtomicOrdering, DeviceAtomicU32};
//! use rustcuda_device::prelude::*;
//!
//! // SAFETY: the value of a static.
//! static LAUNCHED: DeviceAtomicU32 = unsafe { DeviceAtomicU32::new(0) };
//!
//! /// Numbers the threads of all launches.
//! #[kernel]
//! fn number(mut y: DisjointSlice<u32>) {
//!     if let Some(y) = y.get_mut(thread::index_1d()) {
//!         *y = LAUNCHED.fetch_add(1, AtomicOrdering::Relaxed);
//!     }
//! }
//! ```

mod float;
mod half;
mod instruction;
mod integer;
mod value;

use core::cell::UnsafeCell;
use core::marker::PhantomData;

use crate::half::{Bf16x2, F16x2, bf16};

pub use half::{atom_add_bf16x2, atom_add_f16x2};
pub use instruction::{Block, Device, Scope, System};
pub use value::AtomicValue;
use value::Word;

/// What an atomic operation says of the memory around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum AtomicOrdering {
    /// Nothing.
    Relaxed = 0,
    /// What the thread that released the value read here had written before is visible from here on.
    Acquire = 1,
    /// What this thread has written before is visible to whoever acquires the value written here.
    Release = 2,
    /// Both.
    AcqRel = 3,
    /// Both; and all threads agree on one order of all such operations.
    SeqCst = 4,
}

/// A `T` that the threads of the scope `S` change at the same time; see the module's documentation.
#[repr(transparent)]
pub struct Atomic<T, S> {
    value: UnsafeCell<T>,
    scope: PhantomData<S>,
}

// SAFETY: every access is one atomic instruction. Not for `Block`: a static is there for all blocks, where
// what is atomic within each of them alone is a race.
unsafe impl<T: Send> Sync for Atomic<T, Device> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Atomic<T, System> {}

impl<T, S> Atomic<T, S> {
    /// One that holds `value`.
    ///
    /// # Safety
    ///
    /// It must be used in global or shared memory only, as the value of a static is; never in a local
    /// variable.
    pub const unsafe fn new(value: T) -> Self {
        Self {
            value: UnsafeCell::new(value),
            scope: PhantomData,
        }
    }

    /// The memory at `pointer` as an atomic.
    ///
    /// # Safety
    ///
    /// For `'a` the memory must be valid and aligned to its size, and only be used by atomics whose
    /// scope has all threads that use it.
    #[inline(always)]
    pub const unsafe fn from_ptr<'a>(pointer: *mut T) -> &'a Self {
        // SAFETY: promised by the caller; the layout is the same.
        unsafe { &*pointer.cast() }
    }
}

impl<T: AtomicValue, S: Scope> Atomic<T, S> {
    /// The value. Of `order`, only what it acquires matters.
    #[inline(always)]
    pub fn load(&self, order: AtomicOrdering) -> T {
        // SAFETY: the memory is this atomic's own.
        T::from_bits(unsafe { T::Bits::load::<S>(self.place(), order) })
    }

    /// Writes the value. Of `order`, only what it releases matters.
    #[inline(always)]
    pub fn store(&self, value: T, order: AtomicOrdering) {
        // SAFETY: the memory is this atomic's own.
        unsafe { T::Bits::store::<S>(self.place(), value.to_bits(), order) }
    }

    /// Writes the value and returns the one before. For 16 bits a loop of compare-exchanges.
    #[inline(always)]
    pub fn swap(&self, value: T, order: AtomicOrdering) -> T {
        // SAFETY: the memory is this atomic's own.
        T::from_bits(unsafe { T::Bits::exchange::<S>(self.place(), value.to_bits(), order) })
    }

    /// Writes `new` if the value is `current`, bit for bit: `Ok` with it then, else `Err` with the value
    /// that is there. `success` is the order if it was written, `failure` if not.
    #[inline(always)]
    pub fn compare_exchange(
        &self,
        current: T,
        new: T,
        success: AtomicOrdering,
        failure: AtomicOrdering,
    ) -> Result<T, T> {
        let (current, new) = (current.to_bits(), new.to_bits());
        let order = success.and(failure);
        // SAFETY: the memory is this atomic's own.
        let old = unsafe { T::Bits::compare_exchange::<S>(self.place(), current, new, order) };
        if old == current {
            Ok(T::from_bits(old))
        } else {
            Err(T::from_bits(old))
        }
    }

    /// Writes what `change` makes of the value, and returns the one before: a loop of
    /// compare-exchanges, which calls `change` again where another thread came in between.
    #[inline(always)]
    fn update(&self, order: AtomicOrdering, change: impl Fn(T) -> T) -> T {
        let mut old = self.load(AtomicOrdering::Relaxed);
        loop {
            match self.compare_exchange(old, change(old), order, AtomicOrdering::Relaxed) {
                Ok(old) => return old,
                Err(now) => old = now,
            }
        }
    }

    #[inline(always)]
    fn place(&self) -> *mut T::Bits {
        self.value.get().cast()
    }
}

impl AtomicOrdering {
    /// The order that has all that both have.
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (order, Self::Relaxed) | (Self::Relaxed, order) => order,
            (Self::SeqCst, _) | (_, Self::SeqCst) => Self::SeqCst,
            (Self::Acquire, Self::Acquire) => Self::Acquire,
            (Self::Release, Self::Release) => Self::Release,
            _ => Self::AcqRel,
        }
    }
}

macro_rules! names {
    ($($type:ident $block:ident $device:ident $system:ident;)*) => {
        $(
            #[doc = concat!("An atomic [`", stringify!($type), "`] for the threads of a block.")]
            pub type $block = Atomic<$type, Block>;
            #[doc = concat!("An atomic [`", stringify!($type), "`] for the threads of a GPU.")]
            pub type $device = Atomic<$type, Device>;
            #[doc = concat!("An atomic [`", stringify!($type), "`] for all GPUs and the host.")]
            pub type $system = Atomic<$type, System>;
        )*
    };
}

names! {
    u32 BlockAtomicU32 DeviceAtomicU32 SystemAtomicU32;
    i32 BlockAtomicI32 DeviceAtomicI32 SystemAtomicI32;
    u64 BlockAtomicU64 DeviceAtomicU64 SystemAtomicU64;
    i64 BlockAtomicI64 DeviceAtomicI64 SystemAtomicI64;
    f32 BlockAtomicF32 DeviceAtomicF32 SystemAtomicF32;
    f64 BlockAtomicF64 DeviceAtomicF64 SystemAtomicF64;
    bf16 BlockAtomicBf16 DeviceAtomicBf16 SystemAtomicBf16;
    F16x2 BlockAtomicF16x2 DeviceAtomicF16x2 SystemAtomicF16x2;
    Bf16x2 BlockAtomicBf16x2 DeviceAtomicBf16x2 SystemAtomicBf16x2;
}
#[cfg(target_arch = "nvptx64")]
names! {
    f16 BlockAtomicF16 DeviceAtomicF16 SystemAtomicF16;
}
