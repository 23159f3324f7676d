"""Kernel crates that the tests build, and where the repository is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]

MakeProject = Callable[..., Path]

# A kernel crate that needs nothing but rustc.
PLAIN_HEAD = """\
#![no_std]
#![feature(abi_ptx, stdarch_nvptx)]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! { unsafe { core::arch::nvptx::trap() } }
"""
PLAIN_KERNEL = """\
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn store(out: *mut u32, value: u32) { unsafe { *out = value } }
"""
MANIFEST = """\
[package]
name = "some-kernels"
version = "0.1.0"
edition = "2024"
[workspace]
"""
