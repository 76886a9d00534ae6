//! Reads and writes fields at their offsets, in native byte order.

/// Returns `N` bytes at `offset`, or zeros if `bytes` is too short.
pub(crate) fn array<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    let mut field = [0; N];
    if let Some(found) = bytes.get(offset..offset + N) {
        field.copy_from_slice(found);
    }
    field
}

/// Returns a 16-bit number.
pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_ne_bytes(array(bytes, offset))
}

/// Returns a 32-bit number.
pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_ne_bytes(array(bytes, offset))
}

/// Returns a signed 32-bit number, such as an association identifier.
pub(crate) fn i32_at(bytes: &[u8], offset: usize) -> i32 {
    i32::from_ne_bytes(array(bytes, offset))
}

/// Writes `field` at `offset`, unless `bytes` is too short.
pub(crate) fn write_field(bytes: &mut [u8], offset: usize, field: &[u8]) {
    if let Some(target) = bytes.get_mut(offset..offset + field.len()) {
        target.copy_from_slice(field);
    }
}

/// Writes a 16-bit number.
pub(crate) fn put_u16(bytes: &mut [u8], offset: usize, value: u16) {
    write_field(bytes, offset, &value.to_ne_bytes());
}

/// Writes a 32-bit number.
pub(crate) fn put_u32(bytes: &mut [u8], offset: usize, value: u32) {
    write_field(bytes, offset, &value.to_ne_bytes());
}

/// Writes a signed 32-bit number.
pub(crate) fn put_i32(bytes: &mut [u8], offset: usize, value: i32) {
    write_field(bytes, offset, &value.to_ne_bytes());
}

/// Writes a 64-bit number.
pub(crate) fn put_u64(bytes: &mut [u8], offset: usize, value: u64) {
    write_field(bytes, offset, &value.to_ne_bytes());
}
