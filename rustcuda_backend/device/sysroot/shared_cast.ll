; What Rust cannot say: that an address is in shared (address space 3) or constant memory (4).
; Inlined by fat LTO, it makes LLVM write ld.shared, st.shared and ld.const.
; shared_cast.bc is this file as bitcode; tests/test_device_crate.py compares the two.
source_filename = "shared_cast"
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

define ptr @__rustcuda_shared_to_generic(i64 %address) alwaysinline nounwind willreturn memory(none) {
  %shared = inttoptr i64 %address to ptr addrspace(3)
  %generic = addrspacecast ptr addrspace(3) %shared to ptr
  ret ptr %generic
}

define ptr @__rustcuda_constant_to_generic(i64 %address) alwaysinline nounwind willreturn memory(none) {
  %constant = inttoptr i64 %address to ptr addrspace(4)
  %generic = addrspacecast ptr addrspace(4) %constant to ptr
  ret ptr %generic
}
