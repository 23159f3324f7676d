//! Kernels, one a file; beside them what several of them share. Those bound by the speed of memory load
//! and store 16 bytes at a time where addresses allow it.

mod histogram;
mod reduce_sum;
mod rmsnorm;
mod saxpy;
mod sgemm;
mod silu_and_mul;
mod softmax;
mod transpose;

mod row;
mod vector;
