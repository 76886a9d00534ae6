//! SCTP (RFC 9260) on tokio: messages on streams over several paths, inside UDP, inside DTLS or over
//! IP, by [`eyas_sctp`] or by the kernel's implementation.
//!
//! | type | purpose | source |
//! | --- | --- | --- |
//! | [`SctpConnector`], [`SctpPeer`], [`SctpCarrier`] | opens associations | RFC 9260 §5 |
//! | [`PendingAssociation`], [`PendingDtlsAssociation`] | one that waits at its INIT ACK, where a client can still drop it unnoticed | RFC 9260 §5.1 |
//! | [`SctpListener`], [`SctpListenParameters`] | accepts associations | RFC 9260 §5 |
//! | [`SctpAssociation`] | messages, paths, state, notifications | RFC 6458 |
//! | [`SctpStream`] | one stream in each direction as bytes, such as for TLS | RFC 3436 §4 |
//! | [`SctpMessages`] | messages that are useless once they are late | RFC 7496 |
//! | [`DtlsIdentity`], [`DtlsTrust`] | who this end is inside DTLS, and whom it trusts | RFC 8261 |
//! | [`UnannouncedAddresses`] | addresses of this host that peers are not told | RFC 5061 |
//! | `AssociationJson`, `EventJson` | the state and the notifications of an association as JSON (feature `json`) | |
//! | [`Wires`], [`Tap`] | the sockets without an endpoint, for programs with their own | |
//! | [`protocol`] | configuration, messages, events: the protocol itself, without sockets and clock | RFC 9260 |
//!
//! ```
//! use eyas_sctp_tokio::protocol::message::SendInfo;
//! use eyas_sctp_tokio::{
//!     SctpCarrier, SctpConnector, SctpListenParameters, SctpListener, SctpOverIp,
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A server at SCTP port 5000, inside UDP at a free port.
//! let mut parameters = SctpListenParameters::new("127.0.0.1:5000".parse()?);
//! parameters.encapsulation_port = Some(0);
//! parameters.over_ip = SctpOverIp::No;
//! let listener = SctpListener::bind(&parameters)?;
//! let udp = listener.encapsulation_port().ok_or("SCTP is inside UDP")?;
//! let echo = tokio::spawn(async move {
//!     let association = listener.accept().await;
//!     while let Some(message) = association.receive().await? {
//!         let info = SendInfo { stream: message.stream, ..SendInfo::default() };
//!         association.send(&info, message.into_bytes()).await?;
//!     }
//!     association.shutdown().await
//! });
//!
//! // A client of it.
//! let connector = SctpConnector::new(udp, Default::default());
//! let address: std::net::SocketAddr = "127.0.0.1:5000".parse()?;
//! let association = connector.connect(SctpCarrier::Udp, address).await?;
//! association.send(&SendInfo::default(), "hello".into()).await?;
//! let answer = association.receive().await?.ok_or("the server has finished")?;
//! assert_eq!(answer.into_bytes(), "hello");
//! association.shutdown().await?;
//! echo.await??;
//! # Ok(())
//! # }
//! ```
//!
//! # From an association to the wire
//!
//! ```text
//! SctpConnector ──────────────────┐                                          ┌─ carrier/udp, carrier/dtls
//! SctpListener ───────────────────┼─▶ shared_endpoint ◀──────── task ◀───────┤  GSO, GRO, ICMP
//! SctpAssociation, SctpStream ────┘   eyas_sctp::Endpoint                    └─ carrier/raw   protocol 132
//! ```
//!
//! A shared endpoint is one `eyas_sctp::Endpoint` behind a lock, with its IPv4 and IPv6 sockets.
//! Its task is the only place that takes packets out and sends them, so nothing is reordered. A
//! connector has an endpoint for UDP and one for raw IP, each opened on first use; a listener has one
//! for all its sockets. SCTP inside DTLS has an endpoint of its own, so an unencrypted packet can
//! never be taken for a protected one. `stack` is what an association needs of an implementation:
//! `own` is ours, `kernel` the kernel's.
//!
//! A [`PendingAssociation`] is dropped before its COOKIE ECHO, so the server never holds state for it.
//! An association that is dropped later shuts down once its data has been delivered, or once its peer
//! has accepted nothing for long; what must count it until then, such as a server's permit, is held by
//! [`SctpAssociation::keep_until_ended`]. All associations of an endpoint share a memory budget.
//!
//! # Addresses and paths
//!
//! Every address of this host in the right scope for a peer is announced to it
//! (`addresses::may_be_announced` of `eyas-sctp` has the rules), so an association between
//! multihomed hosts starts with a path to each address. Changes are followed by netlink and
//! announced by ASCONF where that was negotiated. A path is one peer address, and routing selects
//! the source address, so hosts that want disjoint paths need an address in each network. A
//! client's UDP sockets use one port number on all addresses, because a peer sends to further
//! addresses at the port that it already knows.
//! [`AssociationConfig::multipath`](eyas_sctp::config::AssociationConfig::multipath) selects whether
//! data uses one path or all; the sockets are unaware of it.
//!
//! # Security
//!
//! An association is protected by DTLS below it (RFC 8261), or a pair of its streams by TLS above it
//! (RFC 3436): [`SctpStream`] is a byte stream that tokio-rustls takes. TLS cannot protect messages that
//! are unordered or given up (RFC 7496). Certificates are verified by rustls's verifiers, such as those
//! of [`DtlsTrust`] and [`SctpListenParameters::dtls_clients`].
//!
//! Inside DTLS, an anonymous client opens one socket for each session, because DTLS tells sessions
//! apart by address; its association has one path. A client with a certificate, and a listener with
//! `dtls_clients`, have a session for each path, in which both ends show their certificates; the
//! top of `src/dtls/mod.rs` describes this extension. Every packet carries the identity of its
//! sender, the hash of its key ([`PeerIdentity`](eyas_sctp::io::PeerIdentity)): the core accepts
//! packets for an association from one identity only, and each `Transmit` names the identity that
//! it is for, so neither direction depends on addresses. DTLS over SCTP (RFC 6083) is missing: no
//! well-maintained library exports keys the way that it needs.
//!
//! # Platforms
//!
//! The crate runs inside a tokio runtime. SCTP inside UDP and inside DTLS runs everywhere; directly over IP, by raw
//! sockets or through the kernel, on Linux only ([`direct_access`] says why not elsewhere). There too, packets have no
//! DSCP, hop limit or mark of their own, and ICMP errors are not heard, so a path fails by its timers alone.

pub use eyas_sctp as protocol;

mod association;
mod carrier;
mod connector;
mod dtls;
mod error;
#[cfg(feature = "json")]
mod json;
// Android's kernels have no SCTP.
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(not(target_os = "linux"))]
#[path = "kernel/absent.rs"]
mod kernel;
mod listener;
mod messages;
mod outbox;
mod own;
mod own_addresses;
mod path_sessions;
mod ports;
mod shared_endpoint;
mod slot;
mod stack;
mod stream;
mod tap;
mod task;
mod wires;

#[cfg(test)]
#[path = "../../eyas/tests/ports/mod.rs"]
mod test_ports;
#[cfg(test)]
mod tests;

pub use association::SctpAssociation;
pub use carrier::{
    DirectAccess, DirectAccessError, ENCAPSULATION_PORT, ReceiveBuffers, direct_access,
};
pub use connector::{
    PendingAssociation, PendingDtlsAssociation, SctpCarrier, SctpConnectError, SctpConnector,
    SctpPeer,
};
pub use dtls::{DtlsEndReason, DtlsIdentity, DtlsIdentityError, DtlsTrust};
pub use error::SctpError;
#[cfg(feature = "json")]
pub use json::{AssociationJson, EventJson};
pub use listener::{SctpListenParameters, SctpListener, SctpOverIp};
pub use messages::SctpMessages;
pub use own_addresses::UnannouncedAddresses;
pub use stream::SctpStream;
pub use tap::{Tap, Train};
pub use wires::{AddressChanges, Wires};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
