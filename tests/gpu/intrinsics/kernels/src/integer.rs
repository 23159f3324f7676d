//! rustcuda_device::integer and rustcuda_device::dotprod.

use rustcuda_device::dotprod::*;
use rustcuda_device::integer::*;
use rustcuda_device::prelude::*;

use crate::rows::kernels;

kernels! {
    integer_bits(x): u32 => u32 = [brev(x), clz(x), popc(x), ffs(x)];
    integer_bits_64(x): u64 => u64 = [brevll(x), clzll(x).into(), popcll(x).into(), ffsll(x).into()];
    integer_byte_perm(x, y, selector): u32 => u32 = [byte_perm(x, y, selector)];
    integer_funnelshift(low, high, shift): u32 => u32 = [
        funnelshift_l(low, high, shift), funnelshift_r(low, high, shift),
        funnelshift_lc(low, high, shift), funnelshift_rc(low, high, shift)
    ];
    integer_signed(x, y): i32 => i32 = [mul24(x, y), mulhi(x, y), hadd(x, y), rhadd(x, y), sad(x, y, 5) as i32];
    integer_unsigned(x, y): u32 => u32 = [umul24(x, y), umulhi(x, y), uhadd(x, y), urhadd(x, y), usad(x, y, 5)];
    integer_mul64hi(x, y): i64 => i64 = [mul64hi(x, y)];
    integer_umul64hi(x, y): u64 => u64 = [umul64hi(x, y)];
    dotprod_signed(x, y, sum): u32 => i32 = [
        dp4a_s32(x, y, sum as i32), dp2a_s32(x, y, sum as i32), dp2a_hi_s32(x, y, sum as i32)
    ];
    dotprod_unsigned(x, y, sum): u32 => u32 = [dp4a_u32(x, y, sum), dp2a_u32(x, y, sum), dp2a_hi_u32(x, y, sum)];
}
