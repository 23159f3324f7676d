//! A kernel that needs each part of the sysroot; the backend compiles it to see whether all are linked.
#![no_std]
#![feature(abi_ptx, stdarch_nvptx)]

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    unsafe { core::arch::nvptx::trap() }
}

unsafe extern "C" {
    fn __nv_expf(x: f32) -> f32;
    fn __rustcuda_shared_to_generic(address: u64) -> *mut u8;
    fn __rustcuda_constant_to_generic(address: u64) -> *const f32;
}

#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn probe(x: *mut f32, bytes: *const u8, count: usize, address: u64) {
    unsafe {
        *x = __nv_expf(*x) + *__rustcuda_constant_to_generic(address);
        *__rustcuda_shared_to_generic(address) = 1;
        if core::slice::from_raw_parts(bytes, count) == b"sixteen bytes or more of them" {
            *x.add(1) = 0.0;
        }
    }
}
