//! The 32 threads that run together, called lanes.
//!
//! Functions without `mask` are for the whole warp: all 32 lanes must come to the same call.
//! Those that end in `_sync` take the lanes that come as a bit mask, and each must name itself.
//! Those that end in `_partial` are for warps whose upper lanes were never launched.
//! A lane that names others which never come waits for ever.
//!
//! ```
//! use rustcuda_device::prelude::*;
//!
//! /// In each element, how many of its warp's elements are above 0.
//! #[kernel]
//! fn count_positive(x: &[f32], mut counts: DisjointSlice<u32>) {
//!     let index = thread::index_1d();
//!     let value = x.get(index.get()).copied().unwrap_or(0.0);
//!     let count = warp::popc(value > 0.0);
//!     if let Some(place) = counts.get_mut(index) {
//!         *place = count;
//!     }
//! }
//! ```

mod lane;
mod reduce;
mod redux;
mod scan;
mod shuffle;
mod vote;

pub use lane::*;
pub(crate) use reduce::butterfly;
pub use reduce::*;
pub use redux::*;
pub use scan::*;
pub(crate) use scan::{exclusive_of, inclusive};
pub(crate) use shuffle::segment;
pub use shuffle::*;
pub use vote::*;

/// The mask that names every lane.
pub const FULL_MASK: u32 = u32::MAX;
