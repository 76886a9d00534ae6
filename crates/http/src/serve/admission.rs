//! Decides whether another connection may be opened.

use std::{
    collections::HashMap,
    fmt,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use eyas::sockets::subscriber;

use super::Limits;

/// The transport of a connection to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Transport {
    /// TCP.
    Tcp,
    /// Multipath TCP (RFC 8684).
    Mptcp,
    /// QUIC.
    Quic,
    /// SCTP, directly over IP, inside UDP or inside DTLS.
    Sctp,
}

impl Transport {
    /// Returns the usual name, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Mptcp => "mptcp",
            Self::Quic => "quic",
            Self::Sctp => "sctp",
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The number of open connections by transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OpenByTransport {
    pub(super) tcp: usize,
    pub(super) mptcp: usize,
    pub(super) quic: usize,
    pub(super) sctp: usize,
}

impl OpenByTransport {
    fn of(&mut self, transport: Transport) -> &mut usize {
        match transport {
            Transport::Tcp => &mut self.tcp,
            Transport::Mptcp => &mut self.mptcp,
            Transport::Quic => &mut self.quic,
            Transport::Sctp => &mut self.sctp,
        }
    }
}

/// Counts open connections in total and by peer. The table holds at most one row per open
/// connection, so the limit on connections bounds it too.
#[derive(Debug)]
pub(super) struct Admission {
    connections: usize,
    per_peer: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    total: usize,
    by_transport: OpenByTransport,
    by_peer: HashMap<IpAddr, usize>,
}

/// The right to one connection, released on drop.
#[derive(Debug)]
pub(super) struct Permit {
    admission: Arc<Admission>,
    peer: IpAddr,
    transport: Transport,
}

impl Admission {
    pub(super) fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            connections: limits.connections,
            per_peer: limits.connections_per_peer,
            open: Mutex::default(),
        })
    }

    /// Admits one more connection from `peer`, if the limits allow it.
    pub(super) fn admit(self: &Arc<Self>, peer: IpAddr, transport: Transport) -> Option<Permit> {
        let peer = subscriber(peer);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.total >= self.connections {
            return None;
        }
        let free = self.connections - open.total;
        // Scarce connections are shared: a peer may have at most as many as it leaves to others.
        let allowed =
            if free > self.connections / 2 { self.per_peer } else { self.per_peer.min(free + 1) };
        let of_peer = open.by_peer.get(&peer).copied().unwrap_or_default();
        if of_peer >= allowed {
            return None;
        }
        open.by_peer.insert(peer, of_peer + 1);
        open.total += 1;
        *open.by_transport.of(transport) += 1;
        Some(Permit { admission: Arc::clone(self), peer, transport })
    }

    /// Returns the number of open connections.
    pub(super) fn open(&self) -> usize {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).total
    }
}

impl Admission {
    /// Returns the number of open connections by transport.
    pub(super) fn open_by_transport(&self) -> OpenByTransport {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).by_transport
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut open = self.admission.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.total -= 1;
        *open.by_transport.of(self.transport) -= 1;
        if let Some(of_peer) = open.by_peer.get_mut(&self.peer) {
            *of_peer -= 1;
            if *of_peer == 0 {
                open.by_peer.remove(&self.peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(connections: usize, per_peer: usize) -> Arc<Admission> {
        Admission::new(&Limits { connections, connections_per_peer: per_peer, ..Limits::default() })
    }

    #[test]
    fn a_dropped_permit_makes_room() {
        let admission = admission(1, 1);
        let peer = IpAddr::from([192, 0, 2, 1]);
        let first = admission.admit(peer, Transport::Tcp);
        assert!(first.is_some());
        assert!(admission.admit(peer, Transport::Tcp).is_none());
        drop(first);
        assert_eq!(admission.open(), 0);
        assert_eq!(admission.open_by_transport(), OpenByTransport::default());
        assert!(admission.admit(peer, Transport::Tcp).is_some());
    }

    #[test]
    fn one_peer_leaves_room_for_others() {
        let admission = admission(10, 2);
        let hostile: Vec<_> = (1..=5u16)
            .filter_map(|host| {
                admission.admit(IpAddr::from([0x2001, 0xdb8, 0, 7, 0, 0, 0, host]), Transport::Quic)
            })
            .collect();
        assert_eq!(hostile.len(), 2, "one /64 is one peer");
        assert!(admission.admit(IpAddr::from([192, 0, 2, 1]), Transport::Tcp).is_some());
    }

    #[test]
    fn a_few_peers_cannot_take_all_connections() {
        let admission = admission(4096, 2048);
        let hostile: Vec<_> = (1..=3u8)
            .flat_map(|host| {
                let peer = IpAddr::from([192, 0, 2, host]);
                std::iter::from_fn(|| admission.admit(peer, Transport::Tcp)).collect::<Vec<_>>()
            })
            .collect();
        assert!((3000..3700).contains(&hostile.len()), "{}", hostile.len());
        let honest = IpAddr::from([198, 51, 100, 1]);
        let admitted: Vec<_> =
            (0..100).filter_map(|_| admission.admit(honest, Transport::Quic)).collect();
        assert_eq!(admitted.len(), 100);
    }

    #[test]
    fn a_mapped_address_counts_as_its_ipv4_address() {
        let admission = admission(10, 1);
        let mapped = admission.admit("::ffff:192.0.2.1".parse().unwrap(), Transport::Tcp);
        assert!(mapped.is_some());
        assert!(admission.admit(IpAddr::from([192, 0, 2, 1]), Transport::Tcp).is_none());
    }
}
