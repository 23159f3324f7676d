//! Where to put things in shared memory so that the lanes of a warp do not meet in one bank.
//!
//! Shared memory has 32 banks of 4 bytes, and lanes that want different words of one bank wait for each
//! other. In a tile whose rows are 32 words long, a column lies in a single bank. A [`Swizzle`] moves
//! the elements of each row by bits of the row's number, so that a column is spread over the banks and
//! a row still is.
//!
//! ```
//! use rustcuda_device::prelude::*;
//! use rustcuda_device::swizzle::Swizzle;
//!
//! /// Transposes a tile of 32 by 32 with a block of that size.
//! #[kernel]
//! unsafe fn transpose_tile(x: *const f32, y: *mut f32) {
//!     static mut TILE: SharedArray<f32, 1024> = SharedArray::UNINIT;
//!     let (column, row) = (thread::threadIdx_x() as usize, thread::threadIdx_y() as usize);
//!     unsafe {
//!         TILE[Swizzle::<5, 0, 5>::apply(32 * row + column)] = *x.add(32 * row + column);
//!         thread::sync_threads();
//!         *y.add(32 * row + column) = TILE[Swizzle::<5, 0, 5>::apply(32 * column + row)];
//!     }
//! }
//! ```

/// The number of banks.
pub const BANKS: usize = 32;
/// The width of a bank in bytes.
pub const BANK_WIDTH_BYTES: usize = 4;
/// The lanes that reach for shared memory together.
pub const WARP_LANES: usize = 32;

/// Changes offsets by xor: the `B` bits from bit `S` on are put over those from bit `M` on.
///
/// With offsets in elements of 4 bytes and rows of 2^`S` of them, `Swizzle<5, 0, S>` keeps both rows and
/// columns free of conflicts. Doing it twice gives the offset back, for which `M + B` must be at most
/// `S`. `S` counts from bit 0; CuTe's counts from `M`.
pub struct Swizzle<const B: usize, const M: usize, const S: usize>;

impl<const B: usize, const M: usize, const S: usize> Swizzle<B, M, S> {
    /// The number of bits that change.
    pub const BITS: usize = B;
    /// The number of places that one offset can come to.
    pub const SPREAD: usize = 1 << B;

    const UNDOES_ITSELF: () = assert!(
        M + B <= S,
        "Swizzle<B, M, S> needs M + B <= S: it takes the bits from S on as they are"
    );

    /// Where the element at `offset` is.
    #[must_use]
    #[inline(always)]
    pub const fn apply(offset: usize) -> usize {
        let () = Self::UNDOES_ITSELF;
        offset ^ ((offset >> S) % Self::SPREAD) << M
    }

    /// The offset of the element that is there; the same as [`apply`](Self::apply).
    #[must_use]
    #[inline(always)]
    pub const fn undo(offset: usize) -> usize {
        Self::apply(offset)
    }
}

/// The bank of an element; sizes are in bytes, offsets in elements.
#[must_use]
#[inline(always)]
pub const fn bank_of(offset: usize, element_size: usize) -> usize {
    offset * element_size / BANK_WIDTH_BYTES % BANKS
}

/// How many of the lanes' elements lie in each bank.
const fn lanes_by_bank(offsets: &[usize; WARP_LANES], element_size: usize) -> [usize; BANKS] {
    let mut lanes = [0; BANKS];
    let mut lane = 0;
    while lane < WARP_LANES {
        lanes[bank_of(offsets[lane], element_size)] += 1;
        lane += 1;
    }
    lanes
}

/// The most lanes that want one bank: 1 is free of conflicts, 32 as slow as can be.
///
/// Lanes that want the same word count as well, though they need not wait for each other.
#[must_use]
pub const fn conflict_degree(offsets: &[usize; WARP_LANES], element_size: usize) -> usize {
    let lanes = lanes_by_bank(offsets, element_size);
    let mut most = 0;
    let mut bank = 0;
    while bank < BANKS {
        if lanes[bank] > most {
            most = lanes[bank];
        }
        bank += 1;
    }
    most
}

/// How many banks the lanes want.
#[must_use]
pub const fn banks_used(offsets: &[usize; WARP_LANES], element_size: usize) -> usize {
    let lanes = lanes_by_bank(offsets, element_size);
    let mut used = 0;
    let mut bank = 0;
    while bank < BANKS {
        used += (lanes[bank] > 0) as usize;
        bank += 1;
    }
    used
}

/// The offsets of the lanes where each takes a row's element in the same column.
#[must_use]
pub const fn column_offsets(row_length: usize, column: usize) -> [usize; WARP_LANES] {
    offsets(column, row_length)
}

/// The offsets of the lanes where they take a row's first elements.
#[must_use]
pub const fn row_offsets(row: usize, row_length: usize) -> [usize; WARP_LANES] {
    offsets(row * row_length, 1)
}

const fn offsets(start: usize, step: usize) -> [usize; WARP_LANES] {
    let mut offsets = [0; WARP_LANES];
    let mut lane = 0;
    while lane < WARP_LANES {
        offsets[lane] = start + lane * step;
        lane += 1;
    }
    offsets
}
