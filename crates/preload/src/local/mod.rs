//! What the preloaded library and its supervisor say to each other, byte by byte.
//!
//! The supervisor is compiled from these very files (`#[path]`), so they use nothing but `core`
//! and the numbers of `libc`.
//!
//! | file | job |
//! | --- | --- |
//! | `request` | a call of a program, as the library hands it over |
//! | `response` | what the call comes to |
//! | `name` | how a descriptor says which socket it is |
//! | `subject` | which calls are the supervisor's |
//! | `control` | control messages, as many as a program has room for |
//!
//! A connection is a stream socket of this machine; both ends have the same byte order. Each request
//! gets one response, in order, but for [`Op::Cancel`], which gets none of its own.

pub mod control;
mod name;
mod request;
mod response;
pub mod subject;

pub use name::{Descriptor, MAX_NAME, key_of};
pub use request::{Op, REQUEST, Request, blocks};
pub use response::{MAX_CONTROL, MAX_PEER, RESPONSE, Response, mark};

/// What both must agree on: changed with any change to what is said.
pub const VERSION: u32 = 1;

/// The variable that names the supervisor's socket: a path, or `@` and an abstract name; behind a
/// blank the key, in hexadecimal digits.
pub const ENVIRONMENT: &str = "EYAS_SCTP_SOCKET";

/// The most bytes of addresses, or of control messages, that a request carries.
pub const MAX_SIDE: usize = 64 * 1024;

/// The most bytes of data that a request carries; more than any send buffer can be set to
/// (`net.core.wmem_max` is 212,992, and twice that is given).
pub const MAX_DATA: usize = 8 * 1024 * 1024;

/// What hides `POLLOUT`: a message of this size leaves less than a quarter free of the send buffer of a
/// descriptor that was made as small as the kernel makes them.
pub const FILLER: usize = 1800;

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn i32_at(bytes: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + value.len()) {
        place.copy_from_slice(value);
    }
}
