//! SCTP (RFC 9260) as a transport of connections: messages on streams over several paths.
//!
//! | file | purpose | source |
//! | --- | --- | --- |
//! | `carrier/` | sockets: inside UDP, inside DTLS, raw | RFC 6951, RFC 8261, RFC 9260 |
//! | `kernel/` | the kernel's own SCTP, where it has one | RFC 6458 |
//! | `shared_endpoint` | one protocol endpoint, shared by its task and its associations | |
//! | `slot` | the state of one association that its users see | |
//! | `outbox` | outgoing packets and the choice of their sockets | |
//! | `own_addresses` | the addresses announced to peers, and their changes | RFC 5061 |
//! | `path_sessions` | the DTLS sessions of a client from each of its addresses | |
//! | `ports` | which packets of a shared socket are ours | |
//! | `tap` | observing packets that pass | |
//! | `task` | drives the endpoint with packets from the sockets and with time | |
//! | `association` | the user's handle: messages, paths, state | RFC 6458 |
//! | `stack` | the interface of an SCTP implementation below an association | |
//! | `own` | an association of our own stack, with resets of streams | RFC 6525 |
//! | `json` | the state of associations as JSON | |
//! | `stream` | one stream in each direction as bytes | RFC 3436 §4 |
//! | `secured` | TLS over a pair of streams | RFC 3436 |
//! | `streams` | further pairs of streams of an association | RFC 3436 |
//! | `messages/` | messages beside byte streams | RFC 7496 |
//! | `client` | opening associations | RFC 9260 §5, RFC 9653 |
//! | `wires` | the sockets without an endpoint, for programs with their own | |
//! | `listener` | accepting associations | RFC 9260 §5 |
//!
//! The protocol itself is [`protocol`]: pure, without sockets and clock.
//!
//! # From an association to the wire
//!
//! ```text
//! attempt/sctp ─▶ client ─────────┐                                          ┌─ carrier/udp   GSO, GRO, ICMP
//! listener/sctp ─▶ listener ──────┼─▶ shared_endpoint ◀──────── task ◀───────┤
//! SctpAssociation, SctpStream ────┘   eyas_sctp::Endpoint                    └─ carrier/raw   protocol 132
//! ```
//!
//! A shared endpoint is one `eyas_sctp::Endpoint` behind a lock, with its IPv4 and IPv6 sockets.
//! Its task is the only place that takes packets out and sends them, so nothing is reordered. A
//! client has an endpoint for UDP and one for raw IP, each opened on first use; a listener has one
//! for all its sockets. SCTP inside DTLS has an endpoint of its own, so an unencrypted packet can
//! never be taken for a protected one.
//!
//! An attempt pauses at the INIT ACK, reports `Answered` and waits for `RaceOutput::Proceed`. A loser
//! is dropped there, before its COOKIE ECHO, so the server never holds state for it. An association
//! that is dropped later shuts down once its data has been delivered, or once its peer has accepted
//! nothing for long; what must count it until then, such as a server's permit, is held by
//! `SctpAssociation::keep_until_ended`. All associations of an endpoint share a memory budget.
//!
//! # Addresses and paths
//!
//! Every address of this host in the right scope for a peer is announced to it
//! (`addresses::may_be_announced` of `eyas-sctp` has the rules), so an association between
//! multihomed hosts starts with a path to each address. Changes are followed by netlink and
//! announced by ASCONF where that was negotiated. A path is one peer address, and routing selects
//! the source address, so hosts that want disjoint paths need an address in each network. A
//! client's UDP sockets use one port number on all addresses, because a peer sends to further
//! addresses at the port that it already knows. `AssociationConfig::multipath` selects whether data
//! uses one path or all; the drivers are unaware of it.
//!
//! # Security
//!
//! TLS runs over pairs of streams (RFC 3436), with certificates verified exactly as for TCP. It
//! cannot protect messages that are unordered or given up (RFC 7496), so `SctpMessages` exist only
//! inside DTLS. When they are dropped, `slot` discards what still arrives on their stream, which
//! would otherwise close the window for all others.
//!
//! Inside DTLS (RFC 8261), an anonymous client opens one socket for each session, because DTLS
//! tells sessions apart by address; its association has one path. A client with a certificate, and
//! a listener with `client_keys`, have a session for each path, in which both ends show their
//! certificates (`docs/guide/tunnel.md` describes the extension). Every packet carries the identity
//! of its sender, the hash of its key (`PeerIdentity`): the core accepts packets for an association
//! from one identity only, and each `Transmit` names the identity that it is for, so neither
//! direction depends on addresses. DTLS over SCTP (RFC 6083) is missing: no well-maintained library
//! exports keys the way that it needs.

pub use eyas_sctp as protocol;

mod association;
pub(crate) mod carrier;
pub(crate) mod client;
pub(crate) mod dtls;
mod error;
mod json;
pub(crate) mod kernel;
mod listener;
mod messages;
mod outbox;
mod own;
mod own_addresses;
mod path_sessions;
mod ports;
pub(crate) mod secured;
mod shared_endpoint;
mod slot;
mod stack;
mod stream;
mod streams;
mod tap;
mod task;
mod wires;

#[cfg(test)]
mod dtls_paths_tests;
#[cfg(test)]
mod secured_pair;
#[cfg(test)]
mod tests;

pub use association::SctpAssociation;
pub use carrier::{ENCAPSULATION_PORT, direct_access};
pub use error::SctpError;
pub(crate) use error::attempt_failure;
pub use json::{AssociationJson, EventJson};
pub use listener::{SctpListenParameters, SctpListener, SctpOverIp};
pub use messages::SctpMessages;
pub use own_addresses::UnannouncedAddresses;
pub use stream::SctpStream;
pub use streams::SctpStreams;
// For the supervisor, which has a protocol endpoint of its own: not part of the public API.
#[doc(hidden)]
pub use tap::{Tap, Train};
#[doc(hidden)]
pub use wires::{Buffers, Changes, Wires};
