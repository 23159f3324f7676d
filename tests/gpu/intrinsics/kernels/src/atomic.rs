use rustcuda_device::atomic::*;
use rustcuda_device::prelude::*;

use crate::store;

/// The ordering with a number.
fn ordering(number: u32) -> AtomicOrdering {
    match number {
        0 => AtomicOrdering::Relaxed,
        1 => AtomicOrdering::Acquire,
        2 => AtomicOrdering::Release,
        3 => AtomicOrdering::AcqRel,
        _ => AtomicOrdering::SeqCst,
    }
}

/// The least and the strictest ordering: the types for which this is enough share their instructions
/// with one that has all.
fn extreme(number: u32) -> AtomicOrdering {
    match number {
        0 => AtomicOrdering::Relaxed,
        _ => AtomicOrdering::SeqCst,
    }
}

/// Does each operation on a place of its own, with this thread's `x`, and returns what each returned:
/// the operations listed, swap, load, store (`x`), compare-exchange with `expected`, whether that did it.
macro_rules! each {
    ($atomic:ident, $one:expr, $zero:expr, $places:expr, $x:expr, $expected:expr, $order:expr, $($operation:ident)*) => {{
        let (mut place, x, order) = ($places, $x, $order);
        let mut next = || {
            let this = $atomic::from_ptr(place);
            place = place.add(1);
            this
        };
        [
            $(next().$operation(x, order),)*
            next().swap(x, order),
            next().load(order),
            {
                next().store(x, order);
                x
            },
            match next().compare_exchange($expected, x, order, order) {
                Ok(old) | Err(old) => old,
            },
            match next().compare_exchange($expected, x, order, AtomicOrdering::Relaxed) {
                Ok(_) => $one,
                Err(_) => $zero,
            },
        ]
    }};
}

/// Kernels that do each operation with all threads of a block, in global and in shared memory.
macro_rules! atomics {
    ($($type:ident $one:expr, $zero:expr, $count:literal, $ordering:ident: $($kernel:ident $atomic:ident)* | $shared:ident $block:ident: $operations:tt;)*) => {
        $(
            $(
                atomics!(@global $kernel $atomic $type $one, $zero, $ordering, $operations);
            )*
            atomics!(@shared $shared $block $type $one, $zero, $count, $operations);
        )*
    };
    (@global $kernel:ident $atomic:ident $type:ident $one:expr, $zero:expr, $ordering:ident, [$($operation:ident)*]) => {
        #[kernel]
        pub unsafe fn $kernel(x: *const $type, expected: $type, order: u32, places: *mut $type, out: *mut $type) {
            unsafe {
                let x = *x.add(thread::threadIdx_x() as usize);
                store(out, each!($atomic, $one, $zero, places, x, expected, $ordering(order), $($operation)*));
            }
        }
    };
    (@shared $kernel:ident $atomic:ident $type:ident $one:expr, $zero:expr, $count:literal, [$($operation:ident)*]) => {
        #[kernel]
        pub unsafe fn $kernel(x: *const $type, expected: $type, places: *mut $type, out: *mut $type) {
            static mut PLACES: SharedArray<$type, $count> = SharedArray::UNINIT;
            let thread = thread::threadIdx_x() as usize;
            unsafe {
                if thread == 0 {
                    for k in 0..$count {
                        PLACES[k] = *places.add(k);
                    }
                }
                thread::sync_threads();
                let shared = (&raw mut PLACES).cast::<$type>();
                let x = *x.add(thread);
                store(out, each!($atomic, $one, $zero, shared, x, expected, AtomicOrdering::Relaxed, $($operation)*));
                thread::sync_threads();
                if thread == 0 {
                    for k in 0..$count {
                        *places.add(k) = PLACES[k];
                    }
                }
            }
        }
    };
}

atomics! {
    u32 1, 0, 12, ordering: atomic_block_u32 BlockAtomicU32 atomic_device_u32 DeviceAtomicU32 atomic_system_u32 SystemAtomicU32
        | atomic_shared_u32 BlockAtomicU32: [fetch_add fetch_sub fetch_min fetch_max fetch_and fetch_or fetch_xor];
    i32 1, 0, 12, extreme: atomic_block_i32 BlockAtomicI32 atomic_device_i32 DeviceAtomicI32 atomic_system_i32 SystemAtomicI32
        | atomic_shared_i32 BlockAtomicI32: [fetch_add fetch_sub fetch_min fetch_max fetch_and fetch_or fetch_xor];
    u64 1, 0, 12, ordering: atomic_block_u64 BlockAtomicU64 atomic_device_u64 DeviceAtomicU64 atomic_system_u64 SystemAtomicU64
        | atomic_shared_u64 BlockAtomicU64: [fetch_add fetch_sub fetch_min fetch_max fetch_and fetch_or fetch_xor];
    i64 1, 0, 12, extreme: atomic_block_i64 BlockAtomicI64 atomic_device_i64 DeviceAtomicI64 atomic_system_i64 SystemAtomicI64
        | atomic_shared_i64 BlockAtomicI64: [fetch_add fetch_sub fetch_min fetch_max fetch_and fetch_or fetch_xor];
    f32 1.0, 0.0, 9, extreme: atomic_block_f32 BlockAtomicF32 atomic_device_f32 DeviceAtomicF32 atomic_system_f32 SystemAtomicF32
        | atomic_shared_f32 BlockAtomicF32: [fetch_add fetch_sub fetch_min fetch_max];
    f64 1.0, 0.0, 9, extreme: atomic_block_f64 BlockAtomicF64 atomic_device_f64 DeviceAtomicF64 atomic_system_f64 SystemAtomicF64
        | atomic_shared_f64 BlockAtomicF64: [fetch_add fetch_sub fetch_min fetch_max];
    f16 1.0, 0.0, 9, ordering: atomic_block_f16 BlockAtomicF16 atomic_device_f16 DeviceAtomicF16 atomic_system_f16 SystemAtomicF16
        | atomic_shared_f16 BlockAtomicF16: [fetch_add fetch_sub fetch_min fetch_max];
}

/// Pairs of halves and bf16 as the bits that they are; one place for each operation.
macro_rules! packed {
    ($($(#[$attribute:meta])* $kernel:ident $atomic:ident $type:ident $bits:ident: $($operation:ident)*;)*) => {
        $(
            $(#[$attribute])*
            #[kernel]
            pub unsafe fn $kernel(x: *const $bits, expected: $bits, places: *mut $bits, out: *mut $bits) {
                unsafe {
                    let x = $type::from_bits(*x.add(thread::threadIdx_x() as usize));
                    let (one, zero, expected) = ($type::from_bits(1), $type::from_bits(0), $type::from_bits(expected));
                    let places = places.cast::<$type>();
                    let order = AtomicOrdering::Relaxed;
                    let values = each!($atomic, one, zero, places, x, expected, order, $($operation)*);
                    store(out, values.map($type::to_bits));
                }
            }
        )*
    };
}

packed! {
    atomic_f16x2 DeviceAtomicF16x2 F16x2 u32: fetch_add fetch_sub fetch_min fetch_max;
    atomic_block_f16x2 BlockAtomicF16x2 F16x2 u32: fetch_add fetch_sub fetch_min fetch_max;
    atomic_system_f16x2 SystemAtomicF16x2 F16x2 u32: fetch_add fetch_sub fetch_min fetch_max;
    atomic_bf16x2 DeviceAtomicBf16x2 Bf16x2 u32: fetch_min fetch_max;
    atomic_block_bf16x2 BlockAtomicBf16x2 Bf16x2 u32: fetch_min fetch_max;
    atomic_system_bf16x2 SystemAtomicBf16x2 Bf16x2 u32: fetch_min fetch_max;
    atomic_bf16 DeviceAtomicBf16 bf16 u16: fetch_min fetch_max;
    #[cfg(cuda_arch = "90")]
    atomic_add_bf16x2 DeviceAtomicBf16x2 Bf16x2 u32: fetch_add fetch_sub;
    #[cfg(cuda_arch = "90")]
    atomic_add_bf16 DeviceAtomicBf16 bf16 u16: fetch_add fetch_sub;
}

/// The additions of pairs that `cuda-device` has.
#[kernel]
pub unsafe fn atomic_function_f16x2(x: *const u32, place: *mut u32) {
    unsafe { atom_add_f16x2(place, *x.add(thread::threadIdx_x() as usize)) };
}

#[cfg(cuda_arch = "90")]
#[kernel]
pub unsafe fn atomic_function_bf16x2(x: *const u32, place: *mut u32) {
    unsafe { atom_add_bf16x2(place, *x.add(thread::threadIdx_x() as usize)) };
}

/// Block 0 writes `data`, then the flag; block 1 waits for the flag and copies the data.
#[kernel]
pub unsafe fn atomic_message(data: *mut u32, flag: *mut u32, out: *mut u32) {
    let thread = thread::threadIdx_x() as usize;
    unsafe {
        let flag = DeviceAtomicU32::from_ptr(flag);
        if thread::blockIdx_x() == 0 {
            *data.add(thread) = thread as u32 * 3;
            thread::sync_threads();
            if thread == 0 {
                flag.store(1, AtomicOrdering::Release);
            }
        } else {
            if thread == 0 {
                while flag.load(AtomicOrdering::Acquire) == 0 {}
            }
            thread::sync_threads();
            *out.add(thread) = *data.add(thread);
        }
    }
}

/// Additions whose results nobody looks at, in each scope.
#[kernel]
pub unsafe fn atomic_unused(x: *mut u32, y: *mut u32, z: *mut u32) {
    unsafe {
        let value = thread::threadIdx_x();
        DeviceAtomicU32::from_ptr(x).fetch_add(value, AtomicOrdering::Relaxed);
        SystemAtomicU32::from_ptr(y).fetch_add(value, AtomicOrdering::Relaxed);
        BlockAtomicU32::from_ptr(z).fetch_add(value, AtomicOrdering::Relaxed);
    }
}

/// An addition that releases and one that acquires.
#[kernel]
pub unsafe fn atomic_release(x: *mut u32) {
    unsafe {
        DeviceAtomicU32::from_ptr(x).fetch_add(thread::threadIdx_x(), AtomicOrdering::Release)
    };
}

#[kernel]
pub unsafe fn atomic_acquire(x: *mut u32) {
    unsafe { *x.add(1) = DeviceAtomicU32::from_ptr(x).fetch_add(1, AtomicOrdering::Acquire) };
}

/// Counts the threads' values below 64, in shared memory.
#[kernel]
pub unsafe fn atomic_histogram(x: *const u32, counts: *mut u32) {
    static mut LOCAL: SharedArray<BlockAtomicU32, 64> = SharedArray::UNINIT;
    let thread = thread::threadIdx_x() as usize;
    unsafe {
        LOCAL[thread].store(0, AtomicOrdering::Relaxed);
        thread::sync_threads();
        LOCAL[*x.add(thread) as usize].fetch_add(1, AtomicOrdering::Relaxed);
        thread::sync_threads();
        let count = LOCAL[thread].load(AtomicOrdering::Relaxed);
        DeviceAtomicU32::from_ptr(counts.add(thread)).fetch_add(count, AtomicOrdering::Relaxed);
    }
}
