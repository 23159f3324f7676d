"""Kernels that call each function of rustcuda-device."""
