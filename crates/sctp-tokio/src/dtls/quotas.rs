//! Limits the sessions and handshakes of each peer, so that none can exhaust them.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};

use super::session_path::SessionPath;

/// The maximum number of sessions that clients may open at one socket.
const MAX_SESSIONS: usize = 16_384;
/// The maximum for one peer.
const MAX_SESSIONS_PER_PEER: usize = 2_048;
/// The maximum number of unfinished handshakes that clients began. When another one begins, the
/// oldest of the peer with the most handshakes is evicted.
pub(super) const MAX_HANDSHAKES: usize = 256;
/// The maximum for one peer: its oldest is evicted when it begins another.
pub(super) const MAX_HANDSHAKES_PER_PEER: usize = 64;

/// Returns the address that counts as one peer: the /64 prefix of an IPv6 address, since a subscriber
/// has at least that, and the IPv4 address of an IPv4-mapped one. Loopback addresses are returned
/// unchanged.
fn subscriber(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        other => other,
    }
}

/// Counts sessions and handshakes by peer. The tables have entries only for peers with sessions.
#[derive(Debug, Default)]
pub(super) struct Quotas {
    sessions: usize,
    sessions_of: BTreeMap<IpAddr, usize>,
    handshakes: usize,
    /// Handshakes in progress, oldest first.
    handshakes_of: BTreeMap<IpAddr, VecDeque<SessionPath>>,
}

impl Quotas {
    /// Counts a handshake that begins, and its session. Returns the session to evict for it, if one
    /// must be; `None` if no more sessions are allowed.
    pub(super) fn begin(&mut self, path: impl Into<SessionPath>) -> Option<Option<SessionPath>> {
        let path = path.into();
        let peer = subscriber(path.remote.ip());
        let count = self.sessions_of.get(&peer).copied().unwrap_or_default();
        if self.sessions >= MAX_SESSIONS || count >= MAX_SESSIONS_PER_PEER {
            return None;
        }
        let handshakes = self.handshakes_of.get(&peer).map_or(0, VecDeque::len);
        let evict_from = if handshakes >= MAX_HANDSHAKES_PER_PEER {
            Some(peer)
        } else if self.handshakes >= MAX_HANDSHAKES {
            let largest = self.handshakes_of.iter().max_by_key(|(_, begun)| begun.len());
            largest.map(|(peer, _)| *peer)
        } else {
            None
        };
        let evicted = evict_from.and_then(|peer| self.handshakes_of.get(&peer)?.front().copied());
        self.sessions += 1;
        *self.sessions_of.entry(peer).or_default() += 1;
        self.handshakes += 1;
        self.handshakes_of.entry(peer).or_default().push_back(path);
        Some(evicted)
    }

    /// Records that a handshake is complete, if it was not counted as such before.
    pub(super) fn finish(&mut self, path: impl Into<SessionPath>) {
        let path = path.into();
        let peer = subscriber(path.remote.ip());
        let Some(begun) = self.handshakes_of.get_mut(&peer) else { return };
        let Some(index) = begun.iter().position(|handshake_path| *handshake_path == path) else {
            return;
        };
        begun.remove(index);
        self.handshakes -= 1;
        if begun.is_empty() {
            self.handshakes_of.remove(&peer);
        }
    }

    /// Records that a session is over.
    pub(super) fn end(&mut self, path: impl Into<SessionPath>) {
        let path = path.into();
        self.finish(path);
        let peer = subscriber(path.remote.ip());
        let Some(count) = self.sessions_of.get_mut(&peer) else { return };
        self.sessions -= 1;
        *count -= 1;
        if *count == 0 {
            self.sessions_of.remove(&peer);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn client(network: u16, port: u16) -> SocketAddr {
        SocketAddr::from(([0x2001, 0xdb8, 0, network, 0, 0, port, 1], port))
    }

    //= hostile dtls
    //# many sessions
    //= bound: `MAX_SESSIONS`, `MAX_SESSIONS_PER_PEER`
    #[test]
    fn a_peer_that_exceeds_its_quota_evicts_its_own_oldest_handshake() {
        let mut quotas = Quotas::default();
        let honest = client(1, 1);
        assert_eq!(quotas.begin(honest), Some(None));
        for port in 1..=1_000 {
            let evicted = quotas.begin(client(2, port)).expect("the session limit is not reached");
            assert_ne!(evicted, Some(honest.into()), "one /64 is one peer");
            evicted.into_iter().for_each(|evicted| quotas.end(evicted));
        }
        assert_eq!(quotas.handshakes, 1 + MAX_HANDSHAKES_PER_PEER);
        assert_eq!(quotas.sessions, quotas.handshakes);
    }

    #[test]
    fn the_source_with_the_most_handshakes_is_evicted_first() {
        let mut quotas = Quotas::default();
        let honest = client(1, 1);
        quotas.begin(honest);
        for network in 2..=100 {
            for port in 1..=8 {
                let evicted =
                    quotas.begin(client(network, port)).expect("the session limit is not reached");
                assert_ne!(evicted, Some(honest.into()));
                evicted.into_iter().for_each(|evicted| quotas.end(evicted));
            }
        }
        assert_eq!(quotas.handshakes, MAX_HANDSHAKES);
    }

    #[test]
    fn ended_sessions_and_handshakes_leave_nothing_behind() {
        let mut quotas = Quotas::default();
        for port in 1..=50 {
            quotas.begin(client(1, port));
        }
        (1..=25).for_each(|port| quotas.finish(client(1, port)));
        (1..=50).for_each(|port| quotas.end(client(1, port)));
        assert_eq!((quotas.sessions, quotas.handshakes), (0, 0));
        assert!(quotas.sessions_of.is_empty() && quotas.handshakes_of.is_empty());
    }
}
