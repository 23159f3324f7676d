//! What lanes ask one another: votes, equal values, and who goes first.

use super::FULL_MASK;
use crate::intrinsics::intrinsics;
use crate::requires::{Gpu, Has90};

mod nvvm {
    super::intrinsics! {
        "llvm.nvvm.vote.ballot.sync" fn ballot(mask: u32, predicate: bool) -> u32;
        "llvm.nvvm.vote.all.sync" fn all(mask: u32, predicate: bool) -> bool;
        "llvm.nvvm.vote.any.sync" fn any(mask: u32, predicate: bool) -> bool;
        "llvm.nvvm.match.any.sync.i32" fn match_any(mask: u32, value: u32) -> u32;
        "llvm.nvvm.match.any.sync.i64" fn match_any_i64(mask: u32, value: u64) -> u32;
        "llvm.nvvm.match.all.sync.i32p" fn match_all(mask: u32, value: u32) -> (u32, bool);
        "llvm.nvvm.match.all.sync.i64p" fn match_all_i64(mask: u32, value: u64) -> (u32, bool);
        "llvm.nvvm.elect.sync" fn elect(mask: u32) -> (u32, bool);
    }
}

/// The lanes whose `predicate` holds, as a bit mask.
#[inline(always)]
pub fn ballot(predicate: bool) -> u32 {
    ballot_sync(FULL_MASK, predicate)
}

/// The lanes of `mask` whose `predicate` holds, as a bit mask.
#[inline(always)]
pub fn ballot_sync(mask: u32, predicate: bool) -> u32 {
    // SAFETY: see the documentation of `warp`; a wrong mask hangs.
    unsafe { nvvm::ballot(mask, predicate) }
}

/// In how many lanes `predicate` holds.
#[inline(always)]
pub fn popc(predicate: bool) -> u32 {
    ballot(predicate).count_ones()
}

/// Whether `predicate` holds in every lane.
#[inline(always)]
pub fn all(predicate: bool) -> bool {
    all_sync(FULL_MASK, predicate)
}

/// Whether `predicate` holds in every lane of `mask`.
#[inline(always)]
pub fn all_sync(mask: u32, predicate: bool) -> bool {
    // SAFETY: see the documentation of `warp`; a wrong mask hangs.
    unsafe { nvvm::all(mask, predicate) }
}

/// Whether `predicate` holds in any lane.
#[inline(always)]
pub fn any(predicate: bool) -> bool {
    any_sync(FULL_MASK, predicate)
}

/// Whether `predicate` holds in any lane of `mask`.
#[inline(always)]
pub fn any_sync(mask: u32, predicate: bool) -> bool {
    // SAFETY: see the documentation of `warp`; a wrong mask hangs.
    unsafe { nvvm::any(mask, predicate) }
}

/// The lanes of `mask` that have the same `value` as this one, itself among them.
#[inline(always)]
pub fn match_any_sync(mask: u32, value: u32) -> u32 {
    // SAFETY: see the documentation of `warp`; a wrong mask hangs.
    unsafe { nvvm::match_any(mask, value) }
}

/// The lanes of `mask` that have the same `value` as this one, itself among them.
#[inline(always)]
pub fn match_any_i64_sync(mask: u32, value: u64) -> u32 {
    // SAFETY: see the documentation of `warp`; a wrong mask hangs.
    unsafe { nvvm::match_any_i64(mask, value) }
}

/// The lanes of `mask` if all of them have the same `value`, else 0.
#[inline(always)]
pub fn match_all_sync(mask: u32, value: u32) -> u32 {
    // SAFETY: see the documentation of `warp`; a wrong mask hangs.
    unsafe { nvvm::match_all(mask, value).0 }
}

/// The lanes of `mask` if all of them have the same `value`, else 0.
#[inline(always)]
pub fn match_all_i64_sync(mask: u32, value: u64) -> u32 {
    // SAFETY: see the documentation of `warp`; a wrong mask hangs.
    unsafe { nvvm::match_all_i64(mask, value).0 }
}

/// Chooses one lane of `mask`, the same each time: its number, and whether it is this one.
#[inline(always)]
pub fn elect_sync(mask: u32) -> (u32, bool)
where
    for<'pass> Gpu<'pass>: Has90,
{
    // SAFETY: see the documentation of `warp`; a wrong mask hangs.
    unsafe { nvvm::elect(mask) }
}

/// Whether this is the lane of `mask` that [`elect_sync`] chooses: for what one lane does for all.
#[inline(always)]
pub fn is_elected_sync(mask: u32) -> bool
where
    for<'pass> Gpu<'pass>: Has90,
{
    elect_sync(mask).1
}
