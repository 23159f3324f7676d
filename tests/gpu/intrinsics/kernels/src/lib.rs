//! A kernel for every function of rustcuda-device: a module here for a module there.

mod constant;
mod debug;
mod disjoint;
mod shared;
mod thread;
