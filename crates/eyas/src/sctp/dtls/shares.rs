//! Limits the sessions and handshakes of one peer, so that it cannot take all of them.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use crate::sockets::subscriber;

/// Sessions that clients opened at one socket.
const MAX_SESSIONS: usize = 16_384;
/// Of them, those of one peer.
const MAX_SESSIONS_PER_PEER: usize = 2_048;
/// Handshakes that clients have begun and not finished: the oldest of the peer that has most goes
/// when another comes.
pub(super) const MAX_HANDSHAKES: usize = 256;
/// Of them, those of one peer: its oldest goes when it begins another.
pub(super) const MAX_HANDSHAKES_PER_PEER: usize = 64;

/// Counts sessions and handshakes by peer. The tables hold a row for each peer that has one.
#[derive(Debug, Default)]
pub(super) struct Shares {
    sessions: usize,
    sessions_of: BTreeMap<IpAddr, usize>,
    handshakes: usize,
    /// Handshakes under way, oldest first.
    handshakes_of: BTreeMap<IpAddr, VecDeque<SocketAddr>>,
}

impl Shares {
    /// Counts a handshake that begins, and a session with it. Gives the one that goes for it, if one
    /// must; `None` if there may be no more sessions.
    pub(super) fn begin(&mut self, remote: SocketAddr) -> Option<Option<SocketAddr>> {
        let peer = subscriber(remote.ip());
        let has = self.sessions_of.get(&peer).copied().unwrap_or_default();
        if self.sessions >= MAX_SESSIONS || has >= MAX_SESSIONS_PER_PEER {
            return None;
        }
        let own = self.handshakes_of.get(&peer).map_or(0, VecDeque::len);
        let from = if own >= MAX_HANDSHAKES_PER_PEER {
            Some(peer)
        } else if self.handshakes >= MAX_HANDSHAKES {
            let most = self.handshakes_of.iter().max_by_key(|(_, begun)| begun.len());
            most.map(|(peer, _)| *peer)
        } else {
            None
        };
        let gone = from.and_then(|peer| self.handshakes_of.get(&peer)?.front().copied());
        self.sessions += 1;
        *self.sessions_of.entry(peer).or_default() += 1;
        self.handshakes += 1;
        self.handshakes_of.entry(peer).or_default().push_back(remote);
        Some(gone)
    }

    /// Records that a handshake is complete, if it was not counted as such before.
    pub(super) fn finish(&mut self, remote: SocketAddr) {
        let peer = subscriber(remote.ip());
        let Some(begun) = self.handshakes_of.get_mut(&peer) else { return };
        let Some(place) = begun.iter().position(|one| *one == remote) else { return };
        begun.remove(place);
        self.handshakes -= 1;
        if begun.is_empty() {
            self.handshakes_of.remove(&peer);
        }
    }

    /// Records that a session is over.
    pub(super) fn end(&mut self, remote: SocketAddr) {
        self.finish(remote);
        let peer = subscriber(remote.ip());
        let Some(has) = self.sessions_of.get_mut(&peer) else { return };
        self.sessions -= 1;
        *has -= 1;
        if *has == 0 {
            self.sessions_of.remove(&peer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(network: u16, port: u16) -> SocketAddr {
        SocketAddr::from(([0x2001, 0xdb8, 0, network, 0, 0, port, 1], port))
    }

    #[test]
    fn a_peer_takes_the_place_of_its_own_oldest_handshake() {
        let mut shares = Shares::default();
        let honest = from(1, 1);
        assert_eq!(shares.begin(honest), Some(None));
        for port in 1..=1_000 {
            let gone = shares.begin(from(2, port)).expect("there is room for sessions");
            assert_ne!(gone, Some(honest), "one /64 is one peer");
            gone.into_iter().for_each(|gone| shares.end(gone));
        }
        assert_eq!(shares.handshakes, 1 + MAX_HANDSHAKES_PER_PEER);
        assert_eq!(shares.sessions, shares.handshakes);
    }

    #[test]
    fn the_source_with_the_most_handshakes_is_evicted_first() {
        let mut shares = Shares::default();
        let honest = from(1, 1);
        shares.begin(honest);
        for network in 2..=100 {
            for port in 1..=8 {
                let gone = shares.begin(from(network, port)).expect("there is room for sessions");
                assert_ne!(gone, Some(honest));
                gone.into_iter().for_each(|gone| shares.end(gone));
            }
        }
        assert_eq!(shares.handshakes, MAX_HANDSHAKES);
    }

    #[test]
    fn ended_sessions_and_handshakes_leave_nothing_behind() {
        let mut shares = Shares::default();
        for port in 1..=50 {
            shares.begin(from(1, port));
        }
        (1..=25).for_each(|port| shares.finish(from(1, port)));
        (1..=50).for_each(|port| shares.end(from(1, port)));
        assert_eq!((shares.sessions, shares.handshakes), (0, 0));
        assert!(shares.sessions_of.is_empty() && shares.handshakes_of.is_empty());
    }
}
