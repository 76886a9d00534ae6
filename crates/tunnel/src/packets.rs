//! IP packets between interfaces, one at each end of a tunnel.
//!
//! | module or type | job | source |
//! | --- | --- | --- |
//! | `PacketHeader` | source and destination of a packet; pure | RFC 791, RFC 8200 |
//! | `PeerRoutes` | the peers that have networks; pure | RFC 1812 §5.2.4.3 |
//! | `PacketQueue` | packets that wait, until they are late; pure | |
//! | `framing` | packets in a byte stream; pure | [`tunnel`](super) |
//! | `datagrams` | packets as QUIC datagrams, or as SCTP messages | RFC 9221, RFC 7496 |
//! | `exchange` | exchanges packets over a channel and beside it | |
//! | [`PacketCounts`] | the counts of packets | |
//! | [`TunnelInterface`] | a device, and the peers that its packets go to | |
//!
//! A packet from the other end must have a source address that the other end has. The routes decide, like
//! AllowedIPs in WireGuard. A packet that waits for longer than `LIFETIME` is useless, and is dropped.

mod datagrams;
mod exchange;
pub mod framing;
mod header;
mod interface;
mod queue;
mod routes;
#[cfg(test)]
mod tests;

pub(crate) use exchange::exchange_packets;
#[cfg(feature = "internals")]
pub use header::PacketHeader;
pub(crate) use interface::InterfaceAttachment;
pub use interface::{InterfaceConfig, TunnelInterface};
#[cfg(feature = "internals")]
pub use queue::{LIFETIME, MAX_BYTES, MAX_PACKETS, PacketQueue};
#[cfg(feature = "internals")]
pub use routes::{PeerRoutes, TakenNetwork};
