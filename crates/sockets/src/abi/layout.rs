//! Fields at their offsets, in the machine's byte order.

/// `N` bytes at `offset`; zeros where `bytes` ends before.
#[must_use]
pub fn array<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    let mut field = [0; N];
    if let Some(found) = bytes.get(offset..offset + N) {
        field.copy_from_slice(found);
    }
    field
}

/// A number of 16 bits.
#[must_use]
pub fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_ne_bytes(array(bytes, offset))
}

/// A number of 32 bits.
#[must_use]
pub fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_ne_bytes(array(bytes, offset))
}

/// A number of 32 bits with a sign, such as an association identifier.
#[must_use]
pub fn i32_at(bytes: &[u8], offset: usize) -> i32 {
    i32::from_ne_bytes(array(bytes, offset))
}

/// Writes `field` at `offset`, as far as `bytes` reaches.
pub fn put(bytes: &mut [u8], offset: usize, field: &[u8]) {
    if let Some(place) = bytes.get_mut(offset..offset + field.len()) {
        place.copy_from_slice(field);
    }
}

/// Writes a number of 16 bits.
pub fn put_u16(bytes: &mut [u8], offset: usize, value: u16) {
    put(bytes, offset, &value.to_ne_bytes());
}

/// Writes a number of 32 bits.
pub fn put_u32(bytes: &mut [u8], offset: usize, value: u32) {
    put(bytes, offset, &value.to_ne_bytes());
}

/// Writes a number of 32 bits with a sign.
pub fn put_i32(bytes: &mut [u8], offset: usize, value: i32) {
    put(bytes, offset, &value.to_ne_bytes());
}

/// Writes a number of 64 bits.
pub fn put_u64(bytes: &mut [u8], offset: usize, value: u64) {
    put(bytes, offset, &value.to_ne_bytes());
}
