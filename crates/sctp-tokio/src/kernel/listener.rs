//! Accepts associations of the kernel's SCTP.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use eyas_sctp::config::AssociationConfig;

use super::options;
use super::socket::KernelSocket;
use super::{SctpAssociation, task};

/// The maximum number of associations that the kernel establishes before they are accepted: as many as the host allows
/// (`net.core.somaxconn`), to which listen(2) reduces it.
const BACKLOG: i32 = i32::MAX;
/// The pause after the operating system ran out of descriptors or memory.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);

/// A listening socket.
#[derive(Debug)]
pub(crate) struct KernelListener {
    socket: KernelSocket,
    port: u16,
}

impl KernelListener {
    /// Listens at these addresses of this host, with the port of the first one; 0 selects a free
    /// one. `[::]` serves IPv4 too. Must be called inside a tokio runtime.
    pub(crate) fn bind(addresses: &[SocketAddr], config: &AssociationConfig) -> io::Result<Self> {
        let first = addresses.first().ok_or(io::ErrorKind::InvalidInput)?;
        // An IPv6 socket serves addresses of both families.
        let family = addresses.iter().find(|address| address.is_ipv6()).unwrap_or(first);
        let socket = KernelSocket::open(*family, config)?;
        if family.is_ipv6() {
            socket.set_only_v6(false)?;
        }
        socket.set_reuse_address(true)?;
        // The first address of the socket's own family decides the port, the others follow.
        socket.bind(&(*family).into())?;
        let bound = socket.local_addr()?.as_socket().ok_or(io::ErrorKind::Unsupported)?;
        for further in addresses.iter().filter(|address| *address != family) {
            let mut further = *further;
            further.set_port(bound.port());
            options::add_address(&socket, further)
                .map_err(|error| io::Error::new(io::ErrorKind::AddrNotAvailable, error))?;
        }
        socket.listen(BACKLOG)?;
        Ok(Self { socket: KernelSocket::new(socket)?, port: bound.port() })
    }

    /// Returns the SCTP port.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Waits for the next association. Cancel-safe.
    pub(crate) async fn accept(&self) -> SctpAssociation {
        loop {
            if self.socket.readable().await.is_err() {
                // The runtime is being shut down.
                return std::future::pending().await;
            }
            let accepted = self
                .socket
                .try_accept()
                .and_then(|(socket, remote)| Ok((KernelSocket::new(socket)?, remote)));
            match accepted {
                Ok((socket, remote)) => {
                    let association = task::start(socket, remote, true);
                    return SctpAssociation::new(association);
                }
                Err(error) if concerns_only_peer(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept SCTP at the moment");
                    tokio::time::sleep(EXHAUSTED_PAUSE).await;
                }
            }
        }
    }
}

/// Returns whether an error concerns at most one peer, and not this machine.
fn concerns_only_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{
        ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted, NotConnected,
        WouldBlock,
    };
    matches!(
        error.kind(),
        ConnectionAborted
            | ConnectionReset
            | ConnectionRefused
            | Interrupted
            | NotConnected
            | WouldBlock
    )
}
