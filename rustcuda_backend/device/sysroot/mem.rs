//! Comparing memory, which `core` leaves to a C library that the GPU has not. Part of the sysroot's
//! `core`, so that comparing slices and arrays works in every kernel.

#![no_std]

/// # Safety
///
/// Both must point to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memcmp(left: *const u8, right: *const u8, length: usize) -> i32 {
    let mut at = 0;
    while at < length {
        // SAFETY: below `length`.
        let (left, right) = unsafe { (*left.add(at), *right.add(at)) };
        if left != right {
            return i32::from(left) - i32::from(right);
        }
        at += 1;
    }
    0
}

/// # Safety
///
/// Both must point to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bcmp(left: *const u8, right: *const u8, length: usize) -> i32 {
    // SAFETY: promised by the caller.
    unsafe { memcmp(left, right, length) }
}
