//! Return codes.

/// The result of a call: EYAS_OK or another code. Codes may be added, so treat an unknown one as a
/// failure.
pub type Code = i32;

/// Success.
pub const EYAS_OK: Code = 0;
/// Not now: wait until the descriptor of the handle is readable, and call again.
pub const EYAS_WOULD_BLOCK: Code = 1;
/// There will be nothing more: the peer has ended its side.
pub const EYAS_END: Code = 2;
/// The timeout expired.
pub const EYAS_TIMEOUT: Code = 3;
/// It was cancelled or aborted locally.
pub const EYAS_CANCELLED: Code = 4;
/// An argument is NULL, not UTF-8, or invalid.
pub const EYAS_INVALID: Code = 5;
/// The call is not valid now: what it needs was given away, is in use by another thread, or belongs
/// to the parent of a forked process.
pub const EYAS_MISUSE: Code = 6;
/// This connection, peer or machine does not support it.
pub const EYAS_UNSUPPORTED: Code = 7;
/// The name has no address, or DNS could not be queried.
pub const EYAS_DNS: Code = 8;
/// All connection attempts failed.
pub const EYAS_CONNECT: Code = 9;
/// TLS could not be established, or the given keys and certificates cannot be used.
pub const EYAS_TLS: Code = 10;
/// The peer's certificate was not accepted.
pub const EYAS_CERTIFICATE: Code = 11;
/// The connection is closed or was lost.
pub const EYAS_CLOSED: Code = 12;
/// An error of the operating system.
pub const EYAS_IO: Code = 13;
/// A bug in this library: please report it, with the error message.
pub const EYAS_BUG: Code = 14;
