//! A kernel for every function of rustcuda-device: a module here for a module there.

mod async_copy;
mod fast;
mod half;
mod integer;
mod math;
mod memory;
mod packed;
mod rounding;
mod rows;
mod thread;
