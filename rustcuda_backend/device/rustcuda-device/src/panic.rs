//! A panic stops the kernel: the launch ends in an error, and nothing is printed.

#[cfg(target_arch = "nvptx64")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: traps have no requirements.
    unsafe { core::arch::nvptx::trap() }
}
