use rustcuda_device::prelude::*;

/// One line of each kind of number.
#[kernel]
pub unsafe fn debug_printf(x: *const f32, out: *mut i32) {
    let (byte, wide) = (200_u8, u64::MAX);
    // SAFETY: the launcher gives one element and one place.
    unsafe {
        let count = gpu_printf!("{} {} {} {}\n", -1_i8, byte, i64::MIN, wide);
        gpu_printf!(
            "{:x} {:#X} {:o} {:08} [{:<6}] [{:>6}] {:+}\n",
            -1_i16,
            255,
            8_u32,
            -42,
            7,
            7,
            7
        );
        gpu_printf!(
            "{:.3} {:e} {} {:8.2f} {:g}\n",
            *x,
            1234.5_f64,
            true,
            *x,
            0.25
        );
        gpu_printf!("100 % {{braces}} {}\n", c"text");
        gpu_printf!("plain\n");
        gpu_printf!("{} {}\n", x.is_null(), core::ptr::null::<u8>() as usize);
        *out = count;
    }
}

/// Each thread prints its number.
#[kernel]
pub fn debug_printf_threads() {
    gpu_printf!("thread {}\n", thread::index_1d().get());
}

/// Refuses negative elements.
#[kernel]
pub fn debug_assert(x: &[f32]) {
    let at = thread::index_1d().get();
    gpu_assert!(at < 1 << 20);
    gpu_assert!(x[at] >= 0.0, "no root of a negative number");
}

/// Ends the launch if asked to.
#[kernel]
pub fn debug_trap(now: bool) {
    if now {
        debug::trap();
    }
}

/// Stops in a debugger if asked to, and counts.
#[kernel]
pub fn debug_breakpoint(now: bool) {
    debug::prof_trigger::<3>();
    if now {
        debug::breakpoint();
    }
}

/// Cycles and nanoseconds before and after some work on `x`.
#[kernel]
pub unsafe fn debug_clocks(x: *mut f32, out: *mut u64) {
    // SAFETY: the launcher gives one element and four places.
    unsafe {
        *out = debug::clock64();
        *out.add(1) = debug::globaltimer();
        for _ in 0..1000 {
            *x = (*x).sin();
        }
        *out.add(2) = debug::clock64();
        *out.add(3) = debug::globaltimer();
    }
}

/// An index beyond the end: a trap, without a message.
#[kernel]
pub fn debug_out_of_bounds(x: &[f32], mut y: DisjointSlice<f32>, at: usize) {
    if let Some(y) = y.get_mut(thread::index_1d()) {
        *y = x[at];
    }
}

/// What C's formats do otherwise, and characters side by side.
#[kernel]
pub fn debug_printf_shapes() {
    gpu_printf!(
        "[{:c}{:c}] {:c}{}{:c}{} [{:#x}] [{:#010x}] [{:<#6o}] {:+x} {:+}\n",
        b'a',
        'b' as u32,
        b'b',
        1,
        b'c',
        -2,
        0,
        42,
        7,
        255,
        5_u8
    );
    gpu_printf!(
        "[{:8}] [{:>8}] {:.3}\n",
        c"left",
        c"right",
        bf16::from_f32(0.5)
    );
}
