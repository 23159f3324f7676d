use rustcuda_device::prelude::*;

/// The coefficients of a polynomial, the highest first.
#[constant]
pub static COEFFICIENTS: ConstantMemory<[f32; 4]> = ConstantMemory::UNINIT;

/// A factor and an offset.
#[constant]
static LINE: ConstantMemory<(f32, u32)> = ConstantMemory::UNINIT;

#[constant]
static TABLE: ConstantMemory<[[u16; 8]; 4]> = ConstantMemory::UNINIT;

/// A factor and an offset, of 16 bits.
#[constant]
static WEIGHTS: ConstantMemory<[bf16; 2]> = ConstantMemory::UNINIT;

/// The polynomial, in place.
#[kernel]
pub fn constant_polynomial(mut x: DisjointSlice<f32>) {
    if let Some((x, _)) = x.get_mut_indexed() {
        let at = *x;
        *x = COEFFICIENTS.get().iter().fold(0.0, |sum, &c| sum * at + c);
    }
}

/// `factor * x + offset`, in place.
#[kernel]
pub fn constant_line(mut x: DisjointSlice<f32>) {
    if let Some((x, _)) = x.get_mut_indexed() {
        let (factor, offset) = LINE.get();
        *x = factor * *x + offset as f32;
    }
}

/// Looks each element up.
#[kernel]
pub fn constant_table(mut x: DisjointSlice<u32>) {
    if let Some((x, _)) = x.get_mut_indexed() {
        let at = *x as usize;
        *x = u32::from(TABLE.get_ref()[at / 8][at % 8]);
    }
}

/// `factor * x + offset`, in place.
#[kernel]
pub fn constant_weights(mut x: DisjointSlice<f32>) {
    if let Some((x, _)) = x.get_mut_indexed() {
        let [factor, offset] = WEIGHTS.get();
        *x = factor.to_f32() * *x + offset.to_f32();
    }
}
