//! The local addresses that connections leave from, if the caller has set any.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use nix::sys::socket::{setsockopt, sockopt::IpBindAddressNoPort};
use socket2::Socket;

/// Addresses of both families, taken in turn. Without any of a family the routing decides.
#[derive(Debug, Default)]
pub(crate) struct LocalAddresses {
    v4: Turns,
    v6: Turns,
}

#[derive(Debug, Default)]
struct Turns {
    addresses: Vec<IpAddr>,
    next: AtomicUsize,
}

impl Turns {
    fn next(&self) -> Option<IpAddr> {
        let turn = self.next.fetch_add(1, Relaxed).checked_rem(self.addresses.len())?;
        self.addresses.get(turn).copied()
    }
}

impl LocalAddresses {
    pub(crate) fn new(addresses: &[IpAddr]) -> Self {
        let (v4, v6) = addresses.iter().partition(|address| address.is_ipv4());
        let turns = |addresses| Turns { addresses, next: AtomicUsize::new(0) };
        Self { v4: turns(v4), v6: turns(v6) }
    }

    /// Binds a socket of TCP or MPTCP that is about to connect to `peer` to the next address.
    pub(crate) fn bind(&self, socket: &Socket, peer: SocketAddr) -> io::Result<()> {
        let Some(address) = self.towards(peer).next() else { return Ok(()) };
        // The port is chosen when the peer is known, so that it can be one that another peer's
        // connection has. A kernel that cannot (MPTCP before Linux 6.0) chooses it now.
        let _ = setsockopt(socket, IpBindAddressNoPort, &true);
        socket.bind(&SocketAddr::new(address, 0).into())
    }

    /// Returns the address for transports that use one socket for all peers.
    #[cfg(feature = "quic")]
    pub(crate) fn first_towards(&self, peer: SocketAddr) -> Option<IpAddr> {
        self.towards(peer).addresses.first().copied()
    }

    fn towards(&self, peer: SocketAddr) -> &Turns {
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
        let taken: Vec<_> = (0..3).filter_map(|_| local.towards(v4).next()).collect();
        assert_eq!(taken, [all[0], all[2], all[0]]);
        assert_eq!(local.towards("[2001:db8::1]:80".parse().expect("one")).next(), Some(all[1]));
        assert_eq!(LocalAddresses::new(&[]).towards(v4).next(), None);
    }
}
