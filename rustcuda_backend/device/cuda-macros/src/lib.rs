//! The attributes of cuda-oxide's `cuda-device`, for the stock compiler; use them from there.
//!
//! Most are those of `rustcuda-macros`, whose files this crate compiles once more: here their
//! expansions name `cuda_device`, the only one of the two that such a kernel crate depends on.

#[path = "../../rustcuda-macros/src/bounds.rs"]
#[allow(dead_code)] // `hand_to_kernel`, whose place that of `kernel` takes
mod bounds;
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
/// Of a generic function it makes one kernel for each type that it is given, `scale_f32` of
/// `#[kernel(f32)] fn scale<T>`; without types none.
#[proc_macro_attribute]
pub fn kernel(arguments: TokenStream, item: TokenStream) -> TokenStream {
    kernel::kernel(arguments, item).unwrap_or_else(error::Error::into_tokens)
}

/// Marks a function that runs on the GPU, or a block of foreign ones.
#[proc_macro_attribute]
pub fn device(_: TokenStream, item: TokenStream) -> TokenStream {
    kernel::device(item)
}

/// Promises how a kernel is launched; see `rustcuda_device::launch_bounds`.
#[proc_macro_attribute]
pub fn launch_bounds(arguments: TokenStream, item: TokenStream) -> TokenStream {
    kernel::hand_to_kernel("launch_bounds", arguments, item)
}

/// Describes a kernel's launches. Of it the block's size is in the PTX; the rest is for the host.
#[proc_macro_attribute]
pub fn launch_contract(arguments: TokenStream, item: TokenStream) -> TokenStream {
    kernel::hand_to_kernel("launch_contract", arguments, item)
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
