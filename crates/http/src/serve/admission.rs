//! Decides whether another connection may be opened.
//!
//! When all places are taken, a connection on which no request has begun gives its place to the next one: the
//! oldest of the peer that has the most of them. So peers that only connect keep nobody out.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use eyas::sockets::subscriber;
use tokio::sync::Notify;

use super::{Limits, activity::Activity};

/// The limit on connections that have given their place to others, and are not closed yet: they still have a
/// descriptor.
const MAX_EVICTED: usize = 8;

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
    fn count_mut(&mut self, transport: Transport) -> &mut usize {
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
    /// Notified when a connection that was evicted is closed.
    closed: Notify,
}

#[derive(Debug, Default)]
struct Open {
    total: usize,
    by_transport: OpenByTransport,
    by_peer: HashMap<IpAddr, usize>,
    /// Connections that may have nothing to keep their places for, oldest first.
    silent: BTreeMap<u64, SilentConnection>,
    /// Connections that were evicted, and are not closed yet.
    evicted: usize,
    /// The number of the next connection.
    next: u64,
}

#[derive(Debug)]
struct SilentConnection {
    peer: IpAddr,
    transport: Transport,
    activity: Arc<Activity>,
}

/// The right to one connection, released on drop.
#[derive(Debug)]
pub(super) struct Permit {
    admission: Arc<Admission>,
    peer: IpAddr,
    transport: Transport,
    number: u64,
    activity: Arc<Activity>,
}

impl Admission {
    pub(super) fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            connections: limits.connections,
            per_peer: limits.connections_per_peer,
            open: Mutex::default(),
            closed: Notify::new(),
        })
    }

    /// Waits until those that were evicted are closed, except for a few.
    pub(super) async fn evicted_leave(&self) {
        loop {
            let closed = self.closed.notified();
            if self.open.lock().unwrap_or_else(PoisonError::into_inner).evicted < MAX_EVICTED {
                return;
            }
            closed.await;
        }
    }

    /// Admits one more connection from `peer`, if the limits allow it.
    pub(super) fn admit(self: &Arc<Self>, peer: IpAddr, transport: Transport) -> Option<Permit> {
        let peer = subscriber(peer);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // The place of another connection is free once it is known that this peer may have one.
        let free = (self.connections - open.total).max(1);
        // Scarce connections are shared: a peer may have at most as many as it leaves to others.
        let allowed =
            if free > self.connections / 2 { self.per_peer } else { self.per_peer.min(free + 1) };
        let of_peer = open.by_peer.get(&peer).copied().unwrap_or_default();
        // Who has as many as it may only gets the place of a connection of its own.
        let own = (of_peer >= allowed).then_some(peer);
        let is_full = open.total >= self.connections;
        if (own.is_some() && !is_full) || (is_full && !open.evict(own)) {
            return None;
        }
        *open.by_peer.entry(peer).or_default() += 1;
        open.total += 1;
        *open.by_transport.count_mut(transport) += 1;
        let number = open.next;
        open.next += 1;
        let activity = Arc::<Activity>::default();
        let silent = SilentConnection { peer, transport, activity: Arc::clone(&activity) };
        open.silent.insert(number, silent);
        Some(Permit { admission: Arc::clone(self), peer, transport, number, activity })
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

impl Open {
    /// Frees the place of a connection without a request, of this peer or of any, if there is one.
    fn evict(&mut self, own: Option<IpAddr>) -> bool {
        self.silent.retain(|_, one| !one.activity.is_settled());
        if self.evicted >= MAX_EVICTED {
            return false;
        }
        let mut by_peer = HashMap::<IpAddr, usize>::new();
        for one in self.silent.values().filter(|one| one.activity.may_be_evicted()) {
            *by_peer.entry(one.peer).or_default() += 1;
        }
        let most = by_peer.values().copied().max();
        // One that has just begun a request keeps its place.
        let evicted = self.silent.iter().find(|(_, one)| {
            let is_meant = match own {
                Some(own) => one.peer == own,
                None => by_peer.get(&one.peer).copied() == most,
            };
            is_meant && one.activity.evict()
        });
        let Some(number) = evicted.map(|(number, _)| *number) else { return false };
        let Some(one) = self.silent.remove(&number) else { return false };
        self.release(one.peer, one.transport);
        self.evicted += 1;
        true
    }

    fn release(&mut self, peer: IpAddr, transport: Transport) {
        self.total -= 1;
        *self.by_transport.count_mut(transport) -= 1;
        if let Some(of_peer) = self.by_peer.get_mut(&peer) {
            *of_peer -= 1;
            if *of_peer == 0 {
                self.by_peer.remove(&peer);
            }
        }
    }
}

impl Permit {
    /// Returns the activity of the connection, by which it shows that it has a request, and learns that another
    /// connection has got its place.
    pub(super) fn activity(&self) -> Arc<Activity> {
        Arc::clone(&self.activity)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut open = self.admission.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.silent.remove(&self.number);
        // It is evicted under the lock.
        if self.activity.is_evicted() {
            open.evicted -= 1;
            self.admission.closed.notify_waiters();
        } else {
            open.release(self.peer, self.transport);
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
        assert!(first.as_ref().expect("a place").activity().begin());
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
    fn silent_connections_make_room_first_those_of_who_has_most() {
        let admission = admission(4, 4);
        let peer = |host| IpAddr::from([192, 0, 2, host]);
        let admit = |host| admission.admit(peer(host), Transport::Tcp);
        let mut open: Vec<_> = [1, 2, 2, 3].into_iter().map(|host| admit(host).unwrap()).collect();
        // The first of the second peer has a request.
        assert!(open[1].activity().begin());
        let newcomer = admit(4).expect("a place");
        assert_eq!(
            open.iter().map(|one| one.activity().is_evicted()).collect::<Vec<_>>(),
            [true, false, false, false]
        );
        assert_eq!(admission.open(), 4);
        // It gave up its place before it closed.
        drop(open.remove(0));
        assert_eq!(admission.open(), 4);
        for one in open.iter().chain([&newcomer]) {
            assert!(one.activity().begin());
        }
        assert!(admit(5).is_none(), "all have requests");
        drop((open, newcomer));
        assert_eq!(admission.open(), 0);
        assert!(admission.open.lock().unwrap().silent.is_empty());
    }

    #[test]
    fn only_a_few_that_were_evicted_remain_open() {
        let admission = admission(MAX_EVICTED + 4, MAX_EVICTED + 4);
        let admit = |host| admission.admit(IpAddr::from([192, 0, 2, host]), Transport::Tcp);
        let silent: Vec<_> = (0..12).filter_map(admit).collect();
        let newcomers: Vec<_> = (100..112).filter_map(admit).collect();
        assert_eq!((silent.len(), newcomers.len()), (MAX_EVICTED + 4, MAX_EVICTED));
        drop(silent);
        assert!(admit(200).is_some());
    }

    #[test]
    fn a_mapped_address_counts_as_its_ipv4_address() {
        let admission = admission(10, 1);
        let mapped = admission.admit("::ffff:192.0.2.1".parse().unwrap(), Transport::Tcp);
        assert!(mapped.is_some());
        assert!(admission.admit(IpAddr::from([192, 0, 2, 1]), Transport::Tcp).is_none());
    }
}
