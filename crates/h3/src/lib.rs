//! HTTP/3 (RFC 9114) and QPACK (RFC 9204) without I/O.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod qpack;
