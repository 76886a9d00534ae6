//! Peers that need a ClientHello of one packet.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a peer gets short ClientHellos, and the maximum number of such peers.
const REMEMBERED: Duration = Duration::from_secs(600);
const MAX_PEERS: usize = 64;

/// Peers that answer a ClientHello of one packet, and did not answer one of two.
#[derive(Debug, Default)]
pub(crate) struct ShortHelloPeers(Mutex<VecDeque<(IpAddr, Instant)>>);

impl ShortHelloPeers {
    pub(crate) fn contains(&self, peer: IpAddr, now: Instant) -> bool {
        let peers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        peers.iter().any(|(known, since)| *known == peer && now - *since < REMEMBERED)
    }

    pub(crate) fn insert(&self, peer: IpAddr, now: Instant) {
        let mut peers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        peers.retain(|(known, _)| *known != peer);
        if peers.len() >= MAX_PEERS {
            peers.pop_front();
        }
        peers.push_back((peer, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_gets_short_hellos_for_ten_minutes() {
        let (peers, start) = (ShortHelloPeers::default(), Instant::now());
        let peer = |last| IpAddr::from([192, 0, 2, last]);
        peers.insert(peer(1), start);
        assert!(peers.contains(peer(1), start + REMEMBERED - Duration::from_secs(1)));
        assert!(!peers.contains(peer(1), start + REMEMBERED));
        assert!(!peers.contains(peer(2), start));
        for last in 2..66 {
            peers.insert(peer(last), start);
        }
        assert!(!peers.contains(peer(1), start), "there is room for 64");
        assert!(peers.contains(peer(2), start));
    }
}
