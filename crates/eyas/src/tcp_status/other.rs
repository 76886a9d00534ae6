//! Systems where it is not read: FreeBSD, macOS and Windows have structures of their own, without the time of the last
//! acknowledgement.

use std::convert::Infallible;
use std::time::Duration;

use tokio::net::TcpStream;

use super::TcpReading;

/// A handle to a TCP connection that asks the kernel about it. There is none on this platform, only on Linux.
#[derive(Clone, Debug)]
pub struct TcpStatus(Infallible);

/// A keep-alive probe that was sent early. There is none on this platform, only on Linux.
#[derive(Debug)]
pub struct TcpProbe(Infallible);

impl TcpStatus {
    /// The silence after which [`probe`](Self::probe) has an effect.
    pub const PROBE_AFTER: Duration = Duration::from_secs(1);

    /// Returns what the kernel knows, or `None` if the connection is closed.
    pub fn read(&self) -> Option<TcpReading> {
        match self.0 {}
    }

    /// Has the kernel send a keep-alive probe (RFC 9293 §3.8.4) now.
    pub fn probe(&self) -> TcpProbe {
        TcpProbe(self.0)
    }
}

/// The handle kept beside a stream: there is none.
pub(crate) struct TcpGuard(Infallible);

impl TcpGuard {
    pub(crate) fn new(_: &TcpStream) -> Option<Self> {
        None
    }

    pub(crate) fn status(&self) -> TcpStatus {
        match self.0 {}
    }
}

/// Returns `None`: the kernel does not say.
pub(crate) fn undelivered(_: &TcpStream) -> Option<u64> {
    None
}
