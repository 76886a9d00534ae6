//! The option of a call, and its value.

use alloc::vec::Vec;

use crate::abi::layout::i32_at;
use crate::abi::{Errno, STORAGE};
use crate::io::SocketId;

/// The size of `SCTP_EVENTS`.
pub(super) const EVENTS: usize = 14;
/// The size of structs that contain an address: a number, padding, the address, and 8 more bytes.
pub(super) const WITH_ADDRESS: usize = 16 + STORAGE;
/// The offset of what follows the address.
pub(super) const AFTER_ADDRESS: usize = 8 + STORAGE;

/// The arguments of `getsockopt` or `setsockopt`.
#[derive(Clone, Copy)]
pub(super) struct OptionCall<'a> {
    pub(super) socket: SocketId,
    pub(super) level: i32,
    pub(super) name: i32,
    /// The content of the program's buffer.
    pub(super) value: &'a [u8],
}

impl OptionCall<'_> {
    /// Checks that the value has one of these lengths.
    pub(super) fn check_length(&self, allowed: &[usize]) -> Result<(), Errno> {
        if allowed.contains(&self.value.len()) { Ok(()) } else { Err(Errno::EINVAL) }
    }

    /// Returns the number at the start of the value, mostly that of an association. The value must
    /// have at least this length.
    pub(super) fn id_of_at_least(&self, length: usize) -> Result<i32, Errno> {
        if self.value.len() < length { Err(Errno::EINVAL) } else { Ok(i32_at(self.value, 0)) }
    }

    /// Returns the number at the start of the value; 0 if it is shorter.
    pub(super) fn id(&self) -> i32 {
        i32_at(self.value, 0)
    }

    /// Returns a result, or an error if the buffer is too small.
    pub(super) fn exact(&self, result: Vec<u8>) -> Result<Vec<u8>, Errno> {
        if self.value.len() < result.len() { Err(Errno::EINVAL) } else { Ok(result) }
    }

    /// Returns a result, truncated to the buffer.
    pub(super) fn truncated(&self, mut result: Vec<u8>) -> Vec<u8> {
        result.truncate(self.value.len());
        result
    }
}

/// Returns the bytes of 32-bit numbers.
pub(super) fn ints(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}
