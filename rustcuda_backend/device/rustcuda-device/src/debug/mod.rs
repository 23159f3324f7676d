//! Looking into a kernel that runs: printing, assertions, clocks.
//!
//! What kernels print comes out at the end of the launch's stream or of the context at the latest;
//! `torch.cuda.synchronize()` waits for it. It goes to the process's own standard output, which
//! notebooks do not show.

use crate::intrinsics::{intrinsics, ptx};

intrinsics! {
    "__assertfail" fn assert_fail(message: *const u8, file: *const u8, line: u32, function: *const u8, character_size: usize);
    "llvm.trap" fn llvm_trap();
}

/// Ends the launch with an error where the condition does not hold, and prints it with place, block and
/// thread, or a message instead of it.
///
/// `assert!` is less to carry, as it prints nothing unless the feature `panic-message` is on.
///
/// ```
/// use rustcuda_device::prelude::*;
///
/// #[kernel]
/// pub fn check(x: &[f32]) {
///     let i = thread::index_1d().get();
///     gpu_assert!(i >= x.len() || x[i] >= 0.0, "no square root of a negative number");
/// }
/// ```
#[macro_export]
macro_rules! gpu_assert {
    ($condition:expr $(,)?) => {
        $crate::gpu_assert!(@ $condition, ::core::stringify!($condition))
    };
    ($condition:expr, $message:literal $(,)?) => {
        $crate::gpu_assert!(@ $condition, $message)
    };
    ($condition:expr, $message:literal, $($argument:expr),+ $(,)?) => {
        ::core::compile_error!(
            "gpu_assert! prints its message as it stands; print values by gpu_printf! before it"
        )
    };
    (@ $condition:expr, $message:expr) => {
        if !$condition {
            $crate::debug::fail(
                ::core::concat!($message, "\0"),
                ::core::concat!(::core::file!(), "\0"),
                ::core::line!(),
                ::core::concat!(::core::module_path!(), "\0"),
            );
        }
    };
}

mod format;
mod printf;

pub use gpu_assert;
pub use printf::*;

/// What `gpu_assert!` calls; all texts end in a zero byte.
#[doc(hidden)]
#[cold]
#[inline(never)]
pub fn fail(message: &str, file: &str, line: u32, function: &str) -> ! {
    // SAFETY: the texts end in a zero byte.
    unsafe { assert_fail(message.as_ptr(), file.as_ptr(), line, function.as_ptr(), 1) };
    trap()
}

/// Ends the launch with an error.
#[inline(always)]
pub fn trap() -> ! {
    // SAFETY: has no requirements.
    unsafe { llvm_trap() };
    // Never reached. `unreachable_unchecked` would be checked in debug builds, by a panic, which comes here
    // again: ptxas crashes on that.
    #[allow(clippy::empty_loop)]
    loop {}
}

/// Stops here where a debugger watches; ends the launch with an error where none does.
#[inline(always)]
pub fn breakpoint() {
    // SAFETY: has no requirements.
    unsafe { ptx!("brkpt;", options(nomem, nostack, preserves_flags)) }
}

macro_rules! clocks {
    ($($(#[doc = $doc:literal])* $name:ident = $instruction:literal;)*) => {
        $(
            $(#[doc = $doc])*
            #[inline(always)]
            pub fn $name() -> u64 {
                let ticks: u64;
                // SAFETY: reads a special register; not `nomem`, so that it stays between the accesses
                // whose time is wanted.
                unsafe { ptx!($instruction, out(reg64) ticks, options(nostack, preserves_flags)) };
                ticks
            }
        )*
    };
}

clocks! {
    /// The multiprocessor's clock, in cycles; differences count.
    clock64 = "mov.u64 {}, %clock64;";
    /// Nanoseconds of the GPU's global clock, which ticks every microsecond or so.
    globaltimer = "mov.u64 {}, %globaltimer;";
}

/// Counts one up in the profiler's counter `N`, 0 to 15.
#[inline(always)]
pub fn prof_trigger<const N: u32>() {
    const { assert!(N < 16, "the profiler's counters are 0 to 15") };
    // SAFETY: has no requirements.
    unsafe { ptx!("pmevent {};", const N, options(nomem, nostack, preserves_flags)) }
}
