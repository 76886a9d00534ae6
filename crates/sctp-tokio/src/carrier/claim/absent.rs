//! Systems without raw sockets for SCTP: there is nothing to claim.

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;

/// The claim to a port over raw IP: there is none.
#[derive(Debug)]
pub(crate) struct Claim(Infallible);

impl Claim {
    pub(crate) fn acquire(_: IpAddr, _: u16) -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, super::DirectAccessError::NotLinux))
    }
}
