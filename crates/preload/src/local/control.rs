//! Control messages for a program, as many as fit.

use core::mem::size_of;

/// The size of `cmsghdr`: the length, the level, the type.
const HEAD: usize = size_of::<usize>() + 8;

/// What was copied to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// The bytes used.
    pub length: usize,
    /// Whether some did not fit.
    pub is_cut: bool,
}

/// Copies as many control messages as fit, the last one truncated; `put` is passed bytes and their
/// offset.
pub fn give(mut control: &[u8], room: usize, mut put: impl FnMut(usize, &[u8])) -> Given {
    let mut given = Given { length: 0, is_cut: false };
    while let (Some(head), Some(said)) = (control.get(..HEAD), control.first_chunk()) {
        let length = usize::from_ne_bytes(*said).clamp(HEAD, control.len());
        let left = room - given.length;
        if left < HEAD {
            given.is_cut = true;
            break;
        }
        let part = length.min(left);
        given.is_cut |= part < length;
        let says = if part < length { part.to_ne_bytes() } else { *said };
        put(given.length, &says);
        put(given.length + size_of::<usize>(), &head[size_of::<usize>()..]);
        put(given.length + HEAD, &control[HEAD..part]);
        let padded = length.next_multiple_of(size_of::<usize>());
        given.length = (given.length + padded).min(room);
        control = control.get(padded..).unwrap_or_default();
    }
    given
}
