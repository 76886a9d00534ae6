//! Packets of IP between interfaces, one at each end of a tunnel.
//!
//! | module or type | job | source |
//! | --- | --- | --- |
//! | [`Header`] | where a packet comes from and goes to; pure | RFC 791, RFC 8200 |
//! | [`Routes`] | who has which addresses; pure | RFC 1812 §5.2.4.3 |
//! | [`PacketQueue`] | packets that wait, until they are late; pure | |
//! | [`framing`] | packets in a stream of bytes; pure | `docs/tunnel.md` |
//! | `datagrams` | packets as QUIC datagrams, and their turns; as SCTP messages | RFC 9221, RFC 7496 |
//! | [`PacketCounts`] | what became of packets | |
//! | [`Interface`] | a device, and whom its packets go to | |
//!
//! What an end takes from another one has to come from an address that the other one has: what the routes
//! say of its source is asked, as WireGuard's AllowedIPs are. A packet that waits for longer than
//! [`LIFETIME`] is worth nothing any more, and is dropped.

mod carry;
mod counts;
mod datagrams;
pub mod framing;
mod header;
mod interface;
mod queue;
mod routes;
#[cfg(test)]
mod tests;

pub(super) use carry::carry;
pub use counts::PacketCounts;
pub(super) use counts::Tally;
pub use header::Header;
pub(super) use interface::Attachment;
pub use interface::{Interface, InterfaceConfig, MAX_ADDRESSES};
pub use queue::{LIFETIME, MAX_BYTES, MAX_PACKETS, PacketQueue};
pub use routes::{Routes, Taken};
