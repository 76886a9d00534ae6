//! HTTP/3 (RFC 9114) and QPACK (RFC 9204) without I/O.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod capsule;
pub mod code;
pub mod connection;
pub mod datagram;
pub mod fault;
pub mod frame;
pub mod frame_type;
pub mod message;
pub mod misuse;
pub mod priority;
pub mod qpack;
pub mod request;
pub mod settings;
pub mod stream;
pub mod varint;
pub mod whole;

pub use code::ErrorCode;
pub use fault::{ConnectionFault, Fault, StreamFault};
pub use misuse::Misuse;
pub use stream::{Role, StreamId};
