"""PEP 517 build backend for CUDA kernels written in Rust."""
