//! The protocol between the preloaded library and its supervisor.
//!
//! The supervisor includes the same files (`#[path]`), so they use only `core` and the constants of
//! `libc`.
//!
//! | file | purpose |
//! | --- | --- |
//! | `request` | a call of a program, as sent by the library |
//! | `response` | the result of the call |
//! | `capability` | how a descriptor identifies its socket |
//! | `subject` | which calls concern the supervisor |
//! | `control` | copying control messages, as many as fit |
//!
//! A connection is a local stream socket, so both ends have the same byte order. Each request gets
//! one response, in order, except [`Op::Cancel`], which gets none, and an [`Op::Send`] that is
//! written to the descriptor of the socket itself, as one message with its data.

mod capability;
pub mod control;
mod request;
mod response;
pub mod subject;

pub use capability::{Capability, key_of};
pub use request::{Op, REQUEST, Request, blocks};
pub use response::{MAX_CONTROL, MAX_PEER, RESPONSE, Response, mark};

/// The version of the protocol: must be increased with any change.
pub const VERSION: u32 = 4;

/// The environment variable that contains the address of the supervisor's socket: a path, or `@`
/// and an abstract name; followed by a space and the key, in hexadecimal digits.
pub const ENVIRONMENT: &str = "EYAS_SCTP_SOCKET";

/// The maximum number of bytes of addresses, or of control messages, in a request.
pub const MAX_SIDE: usize = 64 * 1024;

/// The maximum number of bytes of data in a request; more than the largest possible send buffer
/// (`net.core.wmem_max` is 212,992 by default, and twice that is granted).
pub const MAX_DATA: usize = 8 * 1024 * 1024;

/// The maximum number of bytes of a message that is written to the descriptor.
pub const MAX_WRITTEN: usize = 64 * 1024;

/// The size of the filler, which hides `POLLOUT`: it leaves less than a quarter of the send buffer
/// of a descriptor free, which is as small as the kernel allows.
pub const FILLER: usize = 1800;

/// Returns the filler. Its content distinguishes it from what a program writes without a call.
#[must_use]
pub const fn filler() -> [u8; FILLER] {
    let mut bytes = [0; FILLER];
    let (mut at, mark) = (0, b"eyas-sctp filler");
    while at < mark.len() {
        bytes[at] = mark[at];
        at += 1;
    }
    bytes
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn i32_at(bytes: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn write_at(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(field) = bytes.get_mut(at..at + value.len()) {
        field.copy_from_slice(value);
    }
}
