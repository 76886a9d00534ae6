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

pub(crate) use identity::Identity;
pub(crate) use on_demand::Opening;
pub(crate) use session::{EndReason, Outcome, Trust};
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
