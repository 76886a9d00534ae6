//! SCTP over DTLS over UDP (RFC 8261): DTLS sessions, with certificates verified as for TLS.
//!
//! | file | purpose | source |
//! | --- | --- | --- |
//! | `identity` | the certificate and key to present | |
//! | `aead` | the ciphers of records | RFC 8446 §B.4 |
//! | `client_hello` | the first message of a client, parsed before any state is kept | RFC 6347 §4.2, RFC 9147 §5 |
//! | `cookie_exchange` | checking a client's address by a cookie, without state | RFC 6347 §4.2.1, RFC 9147 §5.1 |
//! | `on_demand` | sessions that a client opens for each path that it sends on | |
//! | `quotas` | how many sessions one peer may have | |
//! | `session` | one session: handshake, verification, packets in and out | RFC 6347, RFC 9147 |
//! | `session_path` | the addresses of a session | |
//! | `sessions` | the sessions of one socket, bounded, with their timers | |
//!
//! The DTLS library exposes only the end-entity certificate of the peer, not the chain sent with
//! it: a certificate verifies if it is a trust anchor itself or was issued directly by one. Only
//! ECDSA (P-256, P-384) is supported.
//!
//! # Several paths
//!
//! SCTP packets are the application data of DTLS records in UDP datagrams, one in each. RFC 8261 has one path and
//! one session; what follows is an extension of it between two ends that both have a key, as those of the tunnel.
//!
//! - **A session for each path.** A path is an address of the client and one of the server, with the UDP ports: the
//!   server's is the one of SCTP inside UDP, and the client has one port number for all of its addresses. Packets
//!   between two addresses are sent and accepted only in the session of these addresses.
//! - **The client opens all sessions.** The first one precedes the INIT. Further ones follow when SCTP at the client
//!   first sends to an address that it has learnt from INIT ACK or ASCONF, usually a HEARTBEAT; up to four packets
//!   wait until the handshake is complete. The client also opens sessions from each of its other addresses that it
//!   announces, because the server can send to an address only in a session that was opened from there. A server's
//!   HEARTBEAT to an address without a session is lost, so that path is confirmed by a later one. Where the server's
//!   routing chooses a source address to which there is no session, it uses the one that was last heard of with that
//!   address of the client.
//! - **All sessions have the same two keys.** In each, the server requests a certificate, and both ends prove that
//!   they hold the keys that the other end accepts, in a full handshake. The identity of a peer is the first 128
//!   bits of the SHA-256 hash of its SubjectPublicKeyInfo. An association belongs to the identity of the session in
//!   which its INIT ACK (at the client) or its COOKIE ECHO (at the server) came. Packets from any other identity are
//!   dropped before SCTP looks at them, like packets with a wrong verification tag, even if that identity may
//!   connect, too; and its own packets are sent in no session but those of its identity. A client ends a session on
//!   a further path that has another key than the first.
//! - **Failures.** A client whose path becomes inactive opens a new session when SCTP next sends there, after a
//!   pause of 1 s that doubles up to 16 s, and so it does after a failed handshake. If the server has lost the
//!   association as well, it answers there with an ABORT (RFC 9260 §8.4). A server keeps the old session until the
//!   client has returned a cookie. Sessions end with close_notify when a path is removed, when the association has
//!   ended, and after 120 s without a valid record. A client that the server refuses learns of it by close_notify
//!   right after the handshake.
//! - **The association** is configured as without DTLS, except that packets are smaller by [`MAX_OVERHEAD`], have no
//!   CRC32c once the association is up (RFC 9653), and that there is no ECN, which DTLS hides from SCTP.

mod aead;
mod client_hello;
mod cookie_exchange;
mod identity;
mod on_demand;
mod quotas;
mod session;
mod session_path;
mod sessions;

#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;

pub use identity::{DtlsIdentity, DtlsIdentityError};
pub(crate) use on_demand::Opening;
pub(crate) use session::Outcome;
pub use session::{DtlsEndReason, DtlsTrust};
pub(crate) use session_path::SessionPath;
pub(crate) use sessions::{Role, Sessions, State};

/// Bytes that a record adds to a packet: header, explicit nonce and tag of DTLS 1.2 (RFC 6347
/// §4.1, RFC 5288 §3), which needs more than DTLS 1.3.
pub(crate) const MAX_OVERHEAD: u8 = 13 + 8 + 16;

/// The first bytes that a record can have: content types (RFC 9147 §4.1), and the unified header
/// of DTLS 1.3 (RFC 9147 §4).
const FIRST_BYTES: RangeInclusive<u8> = 20..=63;

/// Returns whether a datagram can be a record. An SCTP packet can look the same: its first two
/// bytes are a port.
pub(crate) fn looks_like_record(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| FIRST_BYTES.contains(first))
}
