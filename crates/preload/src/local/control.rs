//! Copies control messages to a program, as many as fit.

use core::mem::size_of;

/// The size of `cmsghdr`: the length, the level, the type.
const HEADER_BYTES: usize = size_of::<usize>() + 8;

/// The result of copying control messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The number of bytes written.
    pub length: usize,
    /// Whether some did not fit.
    pub is_truncated: bool,
}

/// Copies as many control messages as fit, the last one truncated; `write` is passed bytes and their
/// offset.
pub fn copy_control(
    mut control: &[u8],
    room: usize,
    mut write: impl FnMut(usize, &[u8]),
) -> Copied {
    let mut copied = Copied { length: 0, is_truncated: false };
    while let (Some(header), Some(length_bytes)) =
        (control.get(..HEADER_BYTES), control.first_chunk())
    {
        let length = usize::from_ne_bytes(*length_bytes).clamp(HEADER_BYTES, control.len());
        let left = room - copied.length;
        if left < HEADER_BYTES {
            copied.is_truncated = true;
            break;
        }
        let part = length.min(left);
        copied.is_truncated |= part < length;
        let length_field = if part < length { part.to_ne_bytes() } else { *length_bytes };
        write(copied.length, &length_field);
        write(copied.length + size_of::<usize>(), &header[size_of::<usize>()..]);
        write(copied.length + HEADER_BYTES, &control[HEADER_BYTES..part]);
        let padded = length.next_multiple_of(size_of::<usize>());
        copied.length = (copied.length + padded).min(room);
        control = control.get(padded..).unwrap_or_default();
    }
    copied
}
