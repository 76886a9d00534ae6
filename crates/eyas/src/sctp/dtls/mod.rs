//! SCTP over DTLS over UDP (RFC 8261): sessions of DTLS, with certificates verified as for TLS.
//!
//! | file | job | source |
//! | --- | --- | --- |
//! | `identity` | the certificate and key to show | |
//! | `session` | one session: handshake, verification, packets in and out | RFC 6347, RFC 9147 |
//! | `sessions` | the sessions of one socket, bounded, with their timers | |
//!
//! The DTLS library hands over the certificate of the peer alone, not the chain that came with it:
//! a certificate verifies if it is a trust anchor itself or was issued by one directly. It speaks
//! ECDSA (P-256, P-384) only.

mod identity;
mod session;
mod sessions;

#[cfg(test)]
mod tests;

pub(crate) use identity::Identity;
pub(crate) use session::{Ending, Outcome, Trust};
pub(crate) use sessions::{Acceptance, Sessions, State};

/// Bytes that a record adds to a packet: header, explicit nonce and tag of DTLS 1.2 (RFC 6347
/// §4.1, RFC 5288 §3), which needs more than DTLS 1.3.
pub(crate) const MAX_OVERHEAD: u16 = 13 + 8 + 16;

/// The content type of a handshake record (RFC 9147 §4).
const HANDSHAKE: u8 = 22;

/// Whether a datagram from somebody unknown opens a session: a handshake record of DTLS 1.0 to
/// 1.3. As an SCTP packet it would have the source port 5886 or 5887 and a destination port of at
/// least 64768, which nobody listens at.
pub(crate) fn opens_session(datagram: &[u8]) -> bool {
    matches!(datagram, [HANDSHAKE, 0xfe, 0xfd | 0xff, ..])
}
