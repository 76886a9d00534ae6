//! UDP for SOCKS5 clients: UDP ASSOCIATE (RFC 1928 §7).
//!
//! | module or type | job |
//! | --- | --- |
//! | `datagram` | the header of each datagram between client and proxy; pure |
//! | `UdpAssociation` | which datagrams are accepted, and the addresses to which they go; pure |
//! | `AssociationTunnels` | the same for datagrams through another proxy; pure |

mod association;
#[cfg(test)]
mod association_tests;
pub mod datagram;
mod owner;
mod serve;
mod serve_via;
mod tunnels;

pub(crate) use owner::AssociationSetup;
pub(crate) use serve::serve;
pub(crate) use serve_via::serve_via;
