//! The local addresses that connections are opened from, if the caller has set any.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use socket2::Socket;

use crate::kernel_tcp;

/// Addresses of both families, used in turn. For a family without any, routing decides.
#[derive(Debug, Default)]
pub(crate) struct LocalAddresses {
    v4: RoundRobin,
    v6: RoundRobin,
}

#[derive(Debug, Default)]
struct RoundRobin {
    addresses: Vec<IpAddr>,
    next: AtomicUsize,
}

impl RoundRobin {
    fn next(&self) -> Option<IpAddr> {
        let index = self.next.fetch_add(1, Relaxed).checked_rem(self.addresses.len())?;
        self.addresses.get(index).copied()
    }
}

impl LocalAddresses {
    pub(crate) fn new(addresses: &[IpAddr]) -> Self {
        let (v4, v6) = addresses.iter().partition(|address| address.is_ipv4());
        let round_robin = |addresses| RoundRobin { addresses, next: AtomicUsize::new(0) };
        Self { v4: round_robin(v4), v6: round_robin(v6) }
    }

    /// Binds a socket of TCP or MPTCP that is about to connect to `peer` to the next address.
    pub(crate) fn bind(&self, socket: &Socket, peer: SocketAddr) -> io::Result<()> {
        let Some(address) = self.for_peer(peer).next() else { return Ok(()) };
        // The port is chosen when the peer is known, so that a connection to another peer may
        // already use it. Kernels without support for that (MPTCP before Linux 6.0, and others than Linux) choose it
        // now.
        kernel_tcp::choose_port_late(socket);
        socket.bind(&SocketAddr::new(address, 0).into())
    }

    /// Returns the address for transports that use one socket for all peers.
    #[cfg(feature = "quic")]
    pub(crate) fn first_for(&self, peer: SocketAddr) -> Option<IpAddr> {
        self.for_peer(peer).addresses.first().copied()
    }

    fn for_peer(&self, peer: SocketAddr) -> &RoundRobin {
        if peer.is_ipv4() { &self.v4 } else { &self.v6 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_used_in_turn_by_family() {
        let parse = |text: &str| text.parse::<IpAddr>().expect("an address");
        let all = ["127.0.0.1", "::1", "127.0.0.2"].map(parse);
        let local = LocalAddresses::new(&all);
        let v4: SocketAddr = ([192, 0, 2, 1], 80).into();
        let used: Vec<_> = (0..3).filter_map(|_| local.for_peer(v4).next()).collect();
        assert_eq!(used, [all[0], all[2], all[0]]);
        assert_eq!(
            local.for_peer("[2001:db8::1]:80".parse().expect("an address")).next(),
            Some(all[1])
        );
        assert_eq!(LocalAddresses::new(&[]).for_peer(v4).next(), None);
    }
}
