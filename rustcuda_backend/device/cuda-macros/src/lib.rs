//! The attributes of cuda-oxide's `cuda-device`, for the stock compiler; use them from there.
//!
//! Most are those of `rustcuda-macros`, whose files this crate compiles once more: here their
//! expansions name `cuda_device`, the only one of the two that such a kernel crate depends on.

#[path = "../../rustcuda-macros/src/arguments.rs"]
mod arguments;
#[path = "../../rustcuda-macros/src/constant.rs"]
mod constant;
#[path = "../../rustcuda-macros/src/device.rs"]
mod device;
mod device_only;
#[path = "../../rustcuda-macros/src/error.rs"]
mod error;
#[path = "../../rustcuda-macros/src/expand.rs"]
mod expand;
#[path = "../../rustcuda-macros/src/function.rs"]
mod function;
mod import;
mod item;
mod kernel;
#[path = "../../rustcuda-macros/src/parameter.rs"]
mod parameter;
#[path = "../../rustcuda-macros/src/promises.rs"]
mod promises;
mod ptx_asm;
#[path = "../../rustcuda-macros/src/record.rs"]
mod record;
#[path = "../../rustcuda-macros/src/shared.rs"]
mod shared;
#[path = "../../rustcuda-macros/src/template.rs"]
mod template;

use proc_macro::TokenStream;

/// The crate that expansions name.
const ROOT: &str = "cuda_device";

/// Cuts the host part out of a crate; the build sets it as an attribute of the whole crate.
///
/// Takes names of crates to be linked even if only the host part uses them: those with kernels.
#[proc_macro_attribute]
pub fn device_only(linked: TokenStream, tokens: TokenStream) -> TokenStream {
    device_only::device_only(linked, tokens)
}

/// Marks a module of kernels. Where the host part is cut away, that is all it does.
#[proc_macro_attribute]
pub fn cuda_module(_: TokenStream, module: TokenStream) -> TokenStream {
    module
}

/// Makes a function a kernel; see `rustcuda_device::kernel`.
///
/// Takes what cuda-oxide's takes: types for a generic function, `launch_context = NAME`, and
/// `unchecked_indexing`. Of a generic function without types no kernel is made, and a warning says so.
#[proc_macro_attribute]
pub fn kernel(arguments: TokenStream, item: TokenStream) -> TokenStream {
    kernel::kernel(arguments, item).unwrap_or_else(error::Error::into_tokens)
}

/// Gives a function that kernels call what their own bodies have; see `rustcuda_device::device`.
#[proc_macro_attribute]
pub fn device(_: TokenStream, item: TokenStream) -> TokenStream {
    device::device(ptx_asm::with_texts(item)).unwrap_or_else(error::Error::into_tokens)
}

/// Makes a static constant memory; see `rustcuda_device::constant`.
#[proc_macro_attribute]
pub fn constant(_: TokenStream, item: TokenStream) -> TokenStream {
    constant::constant(item).unwrap_or_else(error::Error::into_tokens)
}

/// Promises how a kernel is launched; see `rustcuda_device::launch_bounds`.
#[proc_macro_attribute]
pub fn launch_bounds(arguments: TokenStream, item: TokenStream) -> TokenStream {
    arguments::hand_to_kernel("launch_bounds", arguments, item)
        .unwrap_or_else(error::Error::into_tokens)
}

/// Makes clusters of a kernel's blocks; see `rustcuda_device::cluster_launch`.
#[proc_macro_attribute]
pub fn cluster_launch(arguments: TokenStream, item: TokenStream) -> TokenStream {
    arguments::hand_to_kernel("cluster_launch", arguments, item)
        .unwrap_or_else(error::Error::into_tokens)
}

/// Describes a kernel's launches. Of it the block's size reaches the GPU; the rest is for the host.
#[proc_macro_attribute]
pub fn launch_contract(arguments: TokenStream, item: TokenStream) -> TokenStream {
    kernel::hand_to_kernel(arguments, item)
}

/// PTX with operands as in CUDA C++: `ptx_asm!("add.u32 %0, %1, %1;", out("=r") y, in("r") x)`.
///
/// Each operand has a constraint of CUDA C++: `h`, `r`, `l` for integers of 16, 32 and 64 bits, `f` and
/// `d` for floats, `n` for a constant number, `C` for the bytes of a constant text. It touches memory
/// unless it says `options(register_only)`.
#[proc_macro]
pub fn ptx_asm(tokens: TokenStream) -> TokenStream {
    ptx_asm::ptx_asm(tokens).unwrap_or_else(error::Error::into_tokens)
}

/// Says that all blocks of a launch run at once, which the host's launch asks for.
#[proc_macro_attribute]
pub fn cooperative_launch(_: TokenStream, item: TokenStream) -> TokenStream {
    item
}

/// Implements `cuda_core::DeviceCopy`.
#[proc_macro_derive(DeviceCopy)]
pub fn device_copy(item: TokenStream) -> TokenStream {
    let (_, items) = item::split(item);
    let name = items.into_iter().flat_map(|item| item.names).next();
    let name = name.and_then(|name| name.parse().ok()).unwrap_or_default();
    template::fill(
        "unsafe impl ::cuda_core::DeviceCopy for $name {}",
        &[("name", name)],
    )
}
