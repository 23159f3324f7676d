//! A kernel for every function of rustcuda-device: a module here for a module there.

mod thread;
