//! UDP for SOCKS5 clients: UDP ASSOCIATE (RFC 1928 §7).
//!
//! | module or type | job |
//! | --- | --- |
//! | [`datagram`] | the header of each datagram between client and proxy; pure |
//! | [`Association`] | which datagrams are accepted, and the addresses to which they go; pure |
//! | [`Tunnels`] | the same for datagrams through another proxy; pure |

mod association;
#[cfg(test)]
mod association_tests;
pub mod datagram;
mod owner;
mod serve;
mod serve_via;
mod tunnels;

pub use association::{Association, MAX_WAITING, Output};
pub use owner::Setup;
pub(crate) use serve::serve;
pub(crate) use serve_via::serve_via;
pub use tunnels::{REFUSAL_TIME, TUNNEL_IDLE, TunnelOutput, Tunnels};

pub use crate::peers::{ATTEMPT_DELAY, MAX_ADDRESSES};
