//! A barrier whose type says whether it is ready.

use core::marker::PhantomData;

use super::mbarrier::*;
use crate::requires::{Gpu, Has80, Has90};
use crate::thread::{sync_threads, threadIdx_x};

/// The state of a barrier that is memory only.
pub struct Uninit;
/// The state of a barrier in use.
pub struct Ready;
/// The state of a barrier whose use has ended.
pub struct Invalidated;

/// The kind of barriers for data that copies bring.
pub struct TmaBarrier;
/// The kind of barriers for what tensor cores have finished.
pub struct MmaBarrier;
/// The kind of barriers for anything.
pub struct GeneralBarrier;

/// The phase in which a thread has arrived.
#[must_use = "wait for the phase by its token"]
#[derive(Clone, Copy, Debug)]
pub struct BarrierToken(u64);

impl BarrierToken {
    /// The number that [`mbarrier_wait`] takes.
    #[inline(always)]
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// The token that [`mbarrier_arrive`] returned.
    #[inline(always)]
    pub const fn from_raw(token: u64) -> Self {
        Self(token)
    }
}

/// A [`Barrier`] whose type says in which `State` it is, what `Kind` it is for, and which one it is:
/// barriers of different `ID` cannot be mixed up.
///
/// ```
/// #![cfg(cuda_arch = "80")]
///
/// use rustcuda_device::barrier::{Barrier, GeneralBarrier, ManagedBarrier, Uninit};
/// use rustcuda_device::prelude::*;
///
/// /// Each thread gets its neighbour's number; for blocks of 64 threads.
/// #[kernel]
/// fn neighbours(mut out: DisjointSlice<u32>) {
///     static mut ARRIVED: Barrier = Barrier::UNINIT;
///     static mut NUMBERS: SharedArray<u32, 64> = SharedArray::UNINIT;
///     let thread = thread::threadIdx_x() as usize;
///     let barrier = ManagedBarrier::<Uninit, GeneralBarrier>::from_static(&raw mut ARRIVED);
///     let number = unsafe {
///         let barrier = barrier.init(64);
///         NUMBERS[thread] = thread as u32;
///         let token = barrier.arrive();
///         barrier.wait(token);
///         let number = NUMBERS[(thread + 1) % 64];
///         barrier.inval();
///         number
///     };
///     if let Some(place) = out.get_mut(thread::index_1d()) {
///         *place = number;
///     }
/// }
/// ```
#[must_use = "a barrier does nothing by itself"]
pub struct ManagedBarrier<State, Kind, const ID: usize = 0> {
    barrier: *mut Barrier,
    types: PhantomData<(State, Kind)>,
}

impl<State, Kind, const ID: usize> ManagedBarrier<State, Kind, ID> {
    #[inline(always)]
    fn new(barrier: *mut Barrier) -> Self {
        Self {
            barrier,
            types: PhantomData,
        }
    }
}

impl<Kind, const ID: usize> ManagedBarrier<Uninit, Kind, ID> {
    /// The barrier in a kernel's `static mut`: `from_static(&raw mut ARRIVED)`.
    #[inline(always)]
    pub fn from_static(barrier: *mut Barrier) -> Self {
        Self::new(barrier)
    }

    /// Makes it ready for phases of `count` arrivals, and waits for the block.
    ///
    /// # Safety
    ///
    /// It must be in shared memory, and no other of this type made of it. All threads of the block must
    /// call this; the block extends along x only.
    #[inline(always)]
    pub unsafe fn init(self, count: u32) -> ManagedBarrier<Ready, Kind, ID>
    where
        for<'pass> Gpu<'pass>: Has80,
    {
        // SAFETY: promised by the caller.
        unsafe { self.init_by(count, 0) }
    }

    /// [`init`](Self::init) by another thread than the first: that whose `threadIdx_x()` is `thread`.
    ///
    /// # Safety
    ///
    /// As for [`init`](Self::init); there must be such a thread.
    #[inline(always)]
    pub unsafe fn init_by(self, count: u32, thread: u32) -> ManagedBarrier<Ready, Kind, ID>
    where
        for<'pass> Gpu<'pass>: Has80,
    {
        if threadIdx_x() == thread {
            // SAFETY: promised by the caller. The fence shows the barrier to units that copy.
            unsafe {
                mbarrier_init(self.barrier, count);
                #[cfg(cuda_arch = "90")]
                crate::fence::fence_proxy_async_shared_cta();
            }
        }
        sync_threads();
        ManagedBarrier::new(self.barrier)
    }
}

impl<Kind, const ID: usize> ManagedBarrier<Ready, Kind, ID> {
    /// The barrier, for functions that take its address.
    #[inline(always)]
    pub fn as_ptr(&self) -> *const Barrier {
        self.barrier
    }

    /// See [`mbarrier_arrive`].
    #[inline(always)]
    pub fn arrive(&self) -> BarrierToken
    where
        for<'pass> Gpu<'pass>: Has80,
    {
        // SAFETY: it is ready.
        BarrierToken(unsafe { mbarrier_arrive(self.barrier) })
    }

    /// See [`mbarrier_arrive_expect_tx`].
    #[inline(always)]
    pub fn arrive_expect_tx(&self, bytes: u32) -> BarrierToken
    where
        for<'pass> Gpu<'pass>: Has90,
    {
        // SAFETY: it is ready.
        BarrierToken(unsafe { mbarrier_arrive_expect_tx(self.barrier, 1, bytes) })
    }

    /// Waits until the phase of `token` is over; see [`mbarrier_wait`].
    #[inline(always)]
    pub fn wait(&self, token: BarrierToken)
    where
        for<'pass> Gpu<'pass>: Has80,
    {
        // SAFETY: it is ready.
        unsafe { mbarrier_wait(self.barrier, token.0) }
    }

    /// See [`mbarrier_test_wait`].
    #[inline(always)]
    pub fn test_wait(&self, token: BarrierToken) -> bool
    where
        for<'pass> Gpu<'pass>: Has80,
    {
        // SAFETY: it is ready.
        unsafe { mbarrier_test_wait(self.barrier, token.0) }
    }

    /// See [`mbarrier_try_wait`].
    #[inline(always)]
    pub fn try_wait(&self, token: BarrierToken) -> bool
    where
        for<'pass> Gpu<'pass>: Has90,
    {
        // SAFETY: it is ready.
        unsafe { mbarrier_try_wait(self.barrier, token.0) }
    }

    /// See [`mbarrier_try_wait_parity`].
    #[inline(always)]
    pub fn try_wait_parity(&self, parity: u32) -> bool
    where
        for<'pass> Gpu<'pass>: Has90,
    {
        // SAFETY: it is ready.
        unsafe { mbarrier_try_wait_parity(self.barrier, parity) }
    }

    /// Waits for the block and ends the use of the barrier.
    ///
    /// # Safety
    ///
    /// All threads of the block must call this; the block extends along x only.
    #[inline(always)]
    pub unsafe fn inval(self) -> ManagedBarrier<Invalidated, Kind, ID>
    where
        for<'pass> Gpu<'pass>: Has80,
    {
        // SAFETY: promised by the caller.
        unsafe { self.inval_by(0) }
    }

    /// [`inval`](Self::inval) by another thread than the first: that whose `threadIdx_x()` is `thread`.
    ///
    /// # Safety
    ///
    /// As for [`inval`](Self::inval); there must be such a thread.
    #[inline(always)]
    pub unsafe fn inval_by(self, thread: u32) -> ManagedBarrier<Invalidated, Kind, ID>
    where
        for<'pass> Gpu<'pass>: Has80,
    {
        sync_threads();
        if threadIdx_x() == thread {
            // SAFETY: nobody uses it after the barrier before.
            unsafe { mbarrier_inval(self.barrier) };
        }
        sync_threads();
        ManagedBarrier::new(self.barrier)
    }
}
