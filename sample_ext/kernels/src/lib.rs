//! Five kernels, one a file; all are bound by the speed of memory, so all load and store 16 bytes at
//! a time where addresses allow it.

mod block;
mod element;
mod reduce_sum;
mod rmsnorm;
mod row;
mod saxpy;
mod sgemm;
mod silu_and_mul;
mod softmax;
mod transpose;
