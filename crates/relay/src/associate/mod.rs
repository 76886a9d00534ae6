//! UDP for clients of SOCKS5: UDP ASSOCIATE (RFC 1928 §7).
//!
//! | module or type | job |
//! | --- | --- |
//! | [`datagram`] | the header before each datagram of a client; pure |
//! | [`Association`] | whose datagrams are taken, where they go, by which address; pure |
//! | [`Tunnels`] | the same where another proxy sends them on; pure |

mod address_selection;
mod association;
#[cfg(test)]
mod association_tests;
pub mod datagram;
mod owner;
mod resolve;
mod serve;
mod sockets;
mod through;
mod tunnels;

pub(crate) use address_selection::{AddressSelection, Sent};
pub use address_selection::{MAX_ADDRESSES, PATIENCE};
pub use association::{Association, MAX_WAITING, Output};
pub use owner::{Dropped, Setup};
pub(crate) use resolve::resolve;
pub(crate) use serve::serve;
pub(crate) use sockets::{PeerSockets, bind};
pub(crate) use through::serve_through;
pub use tunnels::{REFUSAL_HOLDS, TUNNEL_IDLE, TunnelOutput, Tunnels};
