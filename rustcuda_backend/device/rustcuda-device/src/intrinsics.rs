//! LLVM's names for what the GPU does.
//!
//! Barriers, shuffles and votes must be these and never `asm!`: only of intrinsics does LLVM know
//! that all threads of a warp have to reach them together, so that it neither copies nor moves them.

/// Declares intrinsics; on a target that is no GPU, functions that panic.
macro_rules! intrinsics {
    ($($link_name:literal fn $name:ident($($parameter:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        // What LLVM defines takes and returns values as they are, pairs among them.
        #[cfg(target_arch = "nvptx64")]
        #[allow(improper_ctypes, missing_docs)]
        unsafe extern "unadjusted" {
            $(#[link_name = $link_name] pub fn $name($($parameter: $type),*) $(-> $result)?;)*
        }
        $(
            #[cfg(not(target_arch = "nvptx64"))]
            pub(crate) unsafe fn $name($(_: $type),*) $(-> $result)? {
                unreachable!("this function runs on a GPU only")
            }
        )*
    };
}
pub(crate) use intrinsics;

/// `core::arch::asm!`; on a target that is no GPU, an expression that panics.
#[cfg(target_arch = "nvptx64")]
macro_rules! ptx {
    ($($tokens:tt)*) => { core::arch::asm!($($tokens)*) };
}
#[cfg(not(target_arch = "nvptx64"))]
macro_rules! ptx {
    ($($tokens:tt)*) => {
        unreachable!("this function runs on a GPU only")
    };
}
pub(crate) use ptx;

intrinsics! {
    "llvm.nvvm.barrier.cta.sync.aligned.all" fn barrier_all(barrier: u32);

    "llvm.nvvm.read.ptx.sreg.tid.x" fn thread_x() -> u32;
    "llvm.nvvm.read.ptx.sreg.tid.y" fn thread_y() -> u32;
    "llvm.nvvm.read.ptx.sreg.tid.z" fn thread_z() -> u32;
    "llvm.nvvm.read.ptx.sreg.ctaid.x" fn block_x() -> u32;
    "llvm.nvvm.read.ptx.sreg.ctaid.y" fn block_y() -> u32;
    "llvm.nvvm.read.ptx.sreg.ctaid.z" fn block_z() -> u32;
    "llvm.nvvm.read.ptx.sreg.ntid.x" fn block_size_x() -> u32;
    "llvm.nvvm.read.ptx.sreg.ntid.y" fn block_size_y() -> u32;
    "llvm.nvvm.read.ptx.sreg.ntid.z" fn block_size_z() -> u32;
    "llvm.nvvm.read.ptx.sreg.nctaid.x" fn grid_size_x() -> u32;
    "llvm.nvvm.read.ptx.sreg.nctaid.y" fn grid_size_y() -> u32;
    "llvm.nvvm.read.ptx.sreg.nctaid.z" fn grid_size_z() -> u32;

    "llvm.sqrt.f32" fn sqrt_f32(x: f32) -> f32;
    "llvm.sqrt.f64" fn sqrt_f64(x: f64) -> f64;
    "llvm.fma.f32" fn fma_f32(x: f32, y: f32, z: f32) -> f32;
    "llvm.fma.f64" fn fma_f64(x: f64, y: f64, z: f64) -> f64;
}
