//! What calls return.

/// What a call returns: EYAS_OK, or what else became of it. Codes are added over time, so treat one
/// that you do not know as a failure.
pub type Code = i32;

/// It was done.
pub const EYAS_OK: Code = 0;
/// Not now: wait until the descriptor of the handle is readable, and call again.
pub const EYAS_WOULD_BLOCK: Code = 1;
/// Nothing more will come: the peer has ended its side.
pub const EYAS_END: Code = 2;
/// The time allowed was over.
pub const EYAS_TIMEOUT: Code = 3;
/// It was cancelled or aborted here.
pub const EYAS_CANCELLED: Code = 4;
/// An argument is NULL, not UTF-8, or means nothing.
pub const EYAS_INVALID: Code = 5;
/// The call makes no sense now: what it needs was given away, is in use by another thread, or stayed
/// with the parent of a forked process.
pub const EYAS_MISUSE: Code = 6;
/// This connection, peer or machine cannot do it.
pub const EYAS_UNSUPPORTED: Code = 7;
/// The name has no address, or DNS could not be asked.
pub const EYAS_DNS: Code = 8;
/// Every way to the peer failed.
pub const EYAS_CONNECT: Code = 9;
/// TLS could not be set up, or the keys and certificates given cannot be used.
pub const EYAS_TLS: Code = 10;
/// The peer's certificate was not accepted.
pub const EYAS_CERTIFICATE: Code = 11;
/// The connection is closed or was lost.
pub const EYAS_CLOSED: Code = 12;
/// The operating system refused something.
pub const EYAS_IO: Code = 13;
/// A fault of this library: report it, with the text of the error.
pub const EYAS_BUG: Code = 14;
