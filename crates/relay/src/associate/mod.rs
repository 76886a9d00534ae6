//! UDP for clients of SOCKS5: UDP ASSOCIATE (RFC 1928 §7).
//!
//! | module or type | job |
//! | --- | --- |
//! | [`datagram`] | the header before each datagram of a client; pure |
//! | [`Association`] | whose datagrams are taken, where they go, by which address; pure |

mod association;
#[cfg(test)]
mod association_tests;
pub mod datagram;
mod serve;

pub use association::{Association, Dropped, MAX_ADDRESSES, MAX_WAITING, Output, PATIENCE, Setup};
pub(crate) use serve::{Sockets, serve};
