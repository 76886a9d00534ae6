//! Looking on where packets pass.

use std::fmt;
use std::net::SocketAddr;

use eyas_sctp::io::Ecn;

/// Packets of one size that pass a socket together, without IP and UDP headers.
#[derive(Clone, Copy, Debug)]
pub struct Train<'a> {
    /// Where they come from. The port is that of the UDP encapsulation, 0 without.
    pub source: SocketAddr,
    /// Where they go.
    pub destination: SocketAddr,
    /// The congestion mark of their IP headers.
    pub ecn: Ecn,
    /// The packets, one after the other.
    pub contents: &'a [u8],
    /// Bytes of each packet but the last, which may be shorter.
    pub segment_size: usize,
}

/// Sees packets pass. It is called in their way: whoever takes long delays them.
pub trait Tap: fmt::Debug + Send + Sync {
    /// These have left, or have arrived.
    fn passed(&self, train: &Train<'_>);
}
