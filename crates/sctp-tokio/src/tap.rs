//! Observes packets that pass.

use std::fmt;
use std::net::SocketAddr;

use eyas_sctp::io::Ecn;

/// Packets of one size that pass a socket together, without IP and UDP headers.
#[derive(Clone, Copy, Debug)]
pub struct Train<'a> {
    /// The source address. The port is that of the UDP encapsulation, 0 without.
    pub source: SocketAddr,
    /// The destination address.
    pub destination: SocketAddr,
    /// The ECN codepoint of their IP headers.
    pub ecn: Ecn,
    /// The packets, back to back.
    pub contents: &'a [u8],
    /// The size in bytes of each packet but the last, which may be shorter.
    pub segment_size: usize,
}

/// Observes packets as they pass. It is called inline, so a slow implementation delays them.
pub trait Tap: fmt::Debug + Send + Sync {
    /// Called when these packets have been sent or received.
    fn passed(&self, train: &Train<'_>);
}
