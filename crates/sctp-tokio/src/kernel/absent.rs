//! Systems whose kernel's SCTP is not used: the sockets of FreeBSD's differ from those of Linux, and Android, macOS and
//! Windows have none.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;

use eyas_sctp::config::AssociationConfig;

use super::SctpAssociation;

fn absent() -> io::Error {
    let what = "the SCTP of a kernel is used on Linux only; SCTP inside UDP needs nothing";
    io::Error::new(io::ErrorKind::Unsupported, what)
}

/// A listening socket: there is none.
#[derive(Debug)]
pub(super) struct KernelListener(Infallible);

impl KernelListener {
    pub(super) fn bind(_: &[SocketAddr], _: &AssociationConfig) -> io::Result<Self> {
        Err(absent())
    }

    pub(super) fn port(&self) -> u16 {
        match self.0 {}
    }

    pub(super) async fn accept(&self) -> SctpAssociation {
        match self.0 {}
    }
}

/// Returns the error that there is none.
pub(crate) async fn connect(_: SocketAddr, _: &AssociationConfig) -> io::Result<SctpAssociation> {
    Err(absent())
}
