//! Reductions and scans of groups.

use super::{ThreadBlock, ThreadGroup, WarpCollective, WarpTile};
use crate::block::{before_warp, reduce_warps};
use crate::ops::ReduceOp;
use crate::shared::SharedArray;
use crate::warp::{self, WarpShuffle, butterfly, inclusive};

/// The values of the tile's threads combined, in each of them.
#[inline(always)]
pub fn warp_reduce<T, Op, const N: u32>(tile: &WarpTile<N>, value: T) -> T
where
    T: WarpShuffle,
    Op: ReduceOp<T>,
{
    if N == 32 {
        warp::reduce::<T, Op>(value)
    } else {
        butterfly::<T, Op, N>(tile.mask(), value)
    }
}

/// The values of the tile's threads up to and with this one combined.
#[inline(always)]
pub fn warp_scan<T, Op, const N: u32>(tile: &WarpTile<N>, value: T) -> T
where
    T: WarpShuffle,
    Op: ReduceOp<T>,
{
    inclusive::<T, Op, N>(tile.mask(), value)
}

/// The values of the block's threads combined, in each of them; costs one barrier.
///
/// All threads must come. The block has `NUM_WARPS` times 32 threads, in any shape. `shared` is in use
/// until the next barrier: two calls in a row take two arrays, or a [`sync`](ThreadGroup::sync) between.
///
/// That it is no `unsafe fn` is cuda-device's choice, whose shape it has: `shared` must lead to shared memory
/// of the block, and a block with more warps than `NUM_WARPS` writes beyond it.
/// [`block::reduce`](crate::block::reduce) is the same as an `unsafe fn`.
#[inline(always)]
#[allow(clippy::not_unsafe_ptr_arg_deref)] // as in `cuda-device`
pub fn block_reduce<T, Op, const NUM_WARPS: usize>(
    block: &ThreadBlock,
    value: T,
    shared: *mut SharedArray<T, NUM_WARPS>,
) -> T
where
    T: WarpShuffle,
    Op: ReduceOp<T>,
{
    let (warp, total) = (block.thread_rank() / 32, warp::reduce::<T, Op>(value));
    // SAFETY: promised by the caller: this function is safe only to have the shape it has elsewhere.
    unsafe { reduce_warps::<T, Op, NUM_WARPS>(total, warp, NUM_WARPS as u32, shared) }
}

/// The values of the block's threads up to and with this one combined, by their rank; otherwise as
/// [`block_reduce`].
#[inline(always)]
#[allow(clippy::not_unsafe_ptr_arg_deref)] // as in `cuda-device`
pub fn block_scan<T, Op, const NUM_WARPS: usize>(
    block: &ThreadBlock,
    value: T,
    shared: *mut SharedArray<T, NUM_WARPS>,
) -> T
where
    T: WarpShuffle,
    Op: ReduceOp<T>,
{
    let inclusive = warp::inclusive_scan::<T, Op>(value);
    let warp = block.thread_rank() / 32;
    // SAFETY: as for `block_reduce`.
    Op::combine(
        unsafe { before_warp::<T, Op, NUM_WARPS>(inclusive, warp, shared) },
        inclusive,
    )
}
