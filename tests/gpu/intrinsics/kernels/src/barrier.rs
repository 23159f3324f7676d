use rustcuda_device::barrier::*;
use rustcuda_device::prelude::*;
use rustcuda_device::{fence, sync_threads_and, sync_threads_count, sync_threads_or};

use crate::store;

/// The first warp hands its values, reversed, to the second.
#[kernel]
pub unsafe fn barrier_arrive(x: *const f32, y: *mut f32) {
    static mut VALUES: SharedArray<f32, 32> = SharedArray::UNINIT;
    let lane = warp::lane_id() as usize;
    unsafe {
        if warp::warp_id() == 0 {
            VALUES[31 - lane] = *x.add(lane);
            bar_arrive::<1>(64);
        } else {
            bar_sync::<1>(64);
            *y.add(lane) = VALUES[lane];
        }
    }
}

/// Each half of a block of 128 threads reverses its values by a barrier of its own.
#[kernel]
pub unsafe fn barrier_named(out: *mut u32) {
    static mut VALUES: SharedArray<u32, 128> = SharedArray::UNINIT;
    let thread = thread::threadIdx_x() as usize;
    unsafe {
        VALUES[thread] = thread as u32;
        if thread < 64 {
            bar_sync::<15>(64);
        } else {
            bar_sync::<2>(64);
        }
        store(out, [VALUES[thread ^ 63]]);
    }
}

/// A barrier's votes: each thread gets count, all and any.
#[kernel]
pub unsafe fn barrier_votes(predicates: *const bool, out: *mut u32) {
    let predicate = unsafe { *predicates.add(thread::threadIdx_x() as usize) };
    let values = [
        sync_threads_count(predicate),
        u32::from(sync_threads_and(predicate)),
        u32::from(sync_threads_or(predicate)),
    ];
    unsafe { store(out, values) }
}

/// One barrier between two branches on the same condition, and one in a loop.
#[kernel]
pub unsafe fn barrier_branches(x: *const u32, rounds: u32, out: *mut u32) {
    static mut VALUES: SharedArray<u32, 256> = SharedArray::UNINIT;
    let thread = thread::threadIdx_x() as usize;
    unsafe {
        let x = *x.add(thread);
        let large = x > 100;
        let mut value = if large { x / 7 } else { x * x + 3 };
        VALUES[thread] = value;
        thread::sync_threads();
        value += if large {
            VALUES[thread ^ 1]
        } else {
            5 * VALUES[thread ^ 2]
        };
        for round in 0..rounds {
            thread::sync_threads();
            VALUES[thread] = value;
            thread::sync_threads();
            value += if large {
                VALUES[thread ^ 4]
            } else {
                VALUES[thread ^ 8] + round
            };
        }
        store(out, [value]);
    }
}

/// Every fence; each thread leaves 1.
#[kernel]
pub unsafe fn barrier_fences(out: *mut u32) {
    fence::threadfence_block();
    fence::threadfence();
    fence::threadfence_system();
    unsafe {
        nanosleep(100);
        #[cfg(cuda_arch = "90")]
        {
            fence_proxy_async();
            fence_proxy_async_shared_cta();
            fence_proxy_async_global();
            fence_mbarrier_init_release_cluster();
        }
        store(out, [1]);
    }
}

/// Three phases of an mbarrier, waited for in three ways; each thread gets its neighbours' numbers.
#[cfg(cuda_arch = "80")]
#[kernel]
pub unsafe fn barrier_phases(out: *mut u32) {
    static mut ARRIVED: Barrier = Barrier::UNINIT;
    static mut VALUES: SharedArray<u32, 256> = SharedArray::UNINIT;
    let (thread, threads) = (
        thread::threadIdx_x() as usize,
        thread::blockDim_x() as usize,
    );
    let arrived = &raw mut ARRIVED;
    let mut values = [0; 3];
    unsafe {
        if thread == 0 {
            mbarrier_init(arrived, threads as u32);
        }
        thread::sync_threads();
        for (phase, value) in values.iter_mut().enumerate() {
            VALUES[thread] = (thread + 1000 * phase) as u32;
            match phase {
                0 => {
                    let token = mbarrier_arrive(arrived);
                    while !mbarrier_test_wait(arrived, token) {}
                }
                1 => {
                    mbarrier_arrive(arrived);
                    while !mbarrier_test_wait_parity(arrived, 1) {}
                }
                _ => mbarrier_arrive_and_wait(arrived),
            }
            *value = VALUES[(thread + 1) % threads];
            thread::sync_threads();
        }
        if thread == 0 {
            mbarrier_inval(arrived);
        }
        store(out, values);
    }
}

/// The same by what came with 9.0.
#[cfg(cuda_arch = "90")]
#[kernel]
pub unsafe fn barrier_phases_90(out: *mut u32) {
    static mut ARRIVED: Barrier = Barrier::UNINIT;
    static mut VALUES: SharedArray<u32, 256> = SharedArray::UNINIT;
    let (thread, threads) = (
        thread::threadIdx_x() as usize,
        thread::blockDim_x() as usize,
    );
    let arrived = &raw mut ARRIVED;
    let mut values = [0; 3];
    unsafe {
        if thread == 0 {
            mbarrier_init(arrived, threads as u32);
        }
        thread::sync_threads();
        for (phase, value) in values.iter_mut().enumerate() {
            VALUES[thread] = (thread + 1000 * phase) as u32;
            let token = mbarrier_arrive_expect_tx(arrived, 1, 0);
            match phase {
                0 => while !mbarrier_try_wait(arrived, token) {},
                1 => while !mbarrier_try_wait_parity(arrived, 1) {},
                _ => mbarrier_wait(arrived, token),
            }
            *value = VALUES[(thread + 1) % threads];
            thread::sync_threads();
        }
        store(out, values);
    }
}

/// Two phases of a managed barrier.
#[cfg(cuda_arch = "80")]
#[kernel]
pub unsafe fn barrier_managed(out: *mut u32) {
    static mut ARRIVED: Barrier = Barrier::UNINIT;
    static mut VALUES: SharedArray<u32, 256> = SharedArray::UNINIT;
    let (thread, threads) = (
        thread::threadIdx_x() as usize,
        thread::blockDim_x() as usize,
    );
    let barrier = ManagedBarrier::<Uninit, GeneralBarrier>::from_static(&raw mut ARRIVED);
    unsafe {
        let barrier = barrier.init(threads as u32);
        VALUES[thread] = thread as u32;
        let token = barrier.arrive();
        barrier.wait(token);
        let first = VALUES[(thread + 1) % threads];
        let token = barrier.arrive();
        while !barrier.test_wait(BarrierToken::from_raw(token.raw())) {}
        VALUES[thread] = first;
        let barrier = barrier.inval();
        let _: ManagedBarrier<Invalidated, GeneralBarrier> = barrier;
        store(out, [first, VALUES[(thread + 1) % threads]]);
    }
}

/// A managed barrier for bytes, made and ended by the last thread.
#[cfg(cuda_arch = "90")]
#[kernel]
pub unsafe fn barrier_managed_90(out: *mut u32) {
    static mut ARRIVED: Barrier = Barrier::UNINIT;
    let last = thread::blockDim_x() - 1;
    let barrier = ManagedBarrier::<Uninit, TmaBarrier, 1>::from_static(&raw mut ARRIVED);
    unsafe {
        let barrier = barrier.init_by(last + 1, last);
        let token = barrier.arrive_expect_tx(0);
        while !barrier.try_wait(token) {}
        let over = barrier.try_wait_parity(0);
        mbarrier_arrive_and_wait(barrier.as_ptr());
        let _ = barrier.inval_by(last);
        store(out, [u32::from(over)]);
    }
}
