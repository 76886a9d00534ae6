//! Systems where SCTP is not sent directly over IP.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;

use eyas_sctp::io::Transmit;
use socket2::Socket;

use super::{Arrivals, ReceiveBuffers};

/// The state of a raw socket: there is none.
#[derive(Debug)]
pub(super) struct RawCarrier(Infallible);

pub(super) fn open(_: SocketAddr) -> io::Result<(Socket, RawCarrier)> {
    Err(io::Error::new(io::ErrorKind::Unsupported, super::DirectAccessError::NotLinux))
}

impl RawCarrier {
    pub(super) fn send(&self, _: &Socket, _: &Transmit) -> io::Result<()> {
        match self.0 {}
    }

    pub(super) fn receive(
        &self,
        _: &Socket,
        _: &mut ReceiveBuffers,
        _: &mut Arrivals,
    ) -> io::Result<()> {
        match self.0 {}
    }
}
