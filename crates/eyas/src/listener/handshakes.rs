//! Limits the handshakes in progress: the peer with the most of them loses one to a new peer.
//!
//! A peer that begins a handshake and then stays silent occupies a slot and, over TCP, a descriptor
//! until the handshake times out. If new peers had to wait for a slot, a few hundred such peers
//! would lock everyone else out.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::net::IpAddr;

use eyas_host::limits;
use tokio::task::{AbortHandle, JoinSet};

use crate::sockets::subscriber;

/// The maximum number of handshakes in progress over one transport, unless the descriptor limit of
/// this process is so low that they would use more than [a share](SHARE) of it.
const MAX_HANDSHAKES: usize = 256;
/// One in this many descriptors may belong to a peer whose handshake is in progress.
const SHARE: usize = 4;
/// The minimum of that limit.
const MIN_HANDSHAKES: usize = 4;

/// The handshakes of one transport. Dropping it ends them.
#[derive(Debug)]
pub(super) struct ListenerHandshakes {
    tasks: JoinSet<()>,
    limit: usize,
    /// Oldest first.
    in_progress: VecDeque<InProgress>,
}

#[derive(Debug)]
struct InProgress {
    from: IpAddr,
    task: AbortHandle,
}

impl ListenerHandshakes {
    /// Creates the limit for one transport.
    pub(super) fn new() -> Self {
        let descriptors = limits::descriptors().unwrap_or(u64::MAX);
        let share = usize::try_from(descriptors).unwrap_or(usize::MAX) / SHARE;
        Self::with_limit(share.clamp(MIN_HANDSHAKES, MAX_HANDSHAKES))
    }

    fn with_limit(limit: usize) -> Self {
        Self { tasks: JoinSet::new(), limit, in_progress: VecDeque::new() }
    }

    /// Begins the handshake of a peer; evicts another one if the limit is reached.
    pub(super) fn begin(
        &mut self,
        from: IpAddr,
        handshake: impl Future<Output = ()> + Send + 'static,
    ) {
        self.remove_finished();
        if self.in_progress.len() >= self.limit {
            self.evict_one();
        }
        let task = self.tasks.spawn(handshake);
        self.in_progress.push_back(InProgress { from: subscriber(from), task });
    }

    /// Ends the oldest handshake of the peer with the most of them. Returns whether there was one.
    pub(super) fn evict_one(&mut self) -> bool {
        self.remove_finished();
        let oldest =
            first_of_most_frequent(self.in_progress.iter().map(|handshake| handshake.from));
        let evicted = oldest.and_then(|oldest| self.in_progress.remove(oldest));
        if let Some(handshake) = &evicted {
            tracing::debug!(from = %handshake.from, "a handshake was evicted");
            handshake.task.abort();
        }
        evicted.is_some()
    }

    /// Returns whether there are so many that new peers should have their addresses validated: a
    /// quarter of the limit.
    #[cfg(feature = "quic")]
    pub(super) fn is_busy(&mut self) -> bool {
        self.remove_finished();
        self.in_progress.len() >= self.limit / 4
    }

    fn remove_finished(&mut self) {
        while self.tasks.try_join_next().is_some() {}
        self.in_progress.retain(|handshake| !handshake.task.is_finished());
    }
}

/// Returns the index of the first entry of the address that occurs most often; in a tie, of the one
/// whose first entry is earlier.
fn first_of_most_frequent(addresses: impl Iterator<Item = IpAddr>) -> Option<usize> {
    let mut peers: HashMap<IpAddr, (usize, usize)> = HashMap::new();
    for (index, from) in addresses.enumerate() {
        peers.entry(from).or_insert((0, index)).0 += 1;
    }
    let most = peers.into_values().max_by_key(|&(count, first)| (count, usize::MAX - first));
    most.map(|(_, first)| first)
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    fn peer(number: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, number])
    }

    #[test]
    fn the_oldest_handshake_of_the_busiest_peer_is_evicted() {
        let of =
            |numbers: &[u8]| first_of_most_frequent(numbers.iter().map(|number| peer(*number)));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[1, 2, 3]), Some(0));
        assert_eq!(of(&[1, 2, 3, 2]), Some(1));
        assert_eq!(of(&[1, 3, 3, 2, 2]), Some(1));
    }

    #[tokio::test]
    async fn a_flood_evicts_only_handshakes_of_the_same_peer() {
        const LIMIT: usize = 20;
        let mut handshakes = ListenerHandshakes::with_limit(LIMIT);
        handshakes.begin(peer(1), pending());
        for _ in 0..3 * LIMIT {
            handshakes.begin(peer(2), pending());
            // Evicted tasks end when they are next polled.
            tokio::task::yield_now().await;
        }
        handshakes.begin(peer(3), pending());
        let of = |number| {
            handshakes.in_progress.iter().filter(|handshake| handshake.from == peer(number)).count()
        };
        assert_eq!((of(1), of(2), of(3)), (1, LIMIT - 2, 1));
        assert!(handshakes.tasks.len() <= LIMIT + 1, "{}", handshakes.tasks.len());
    }

    #[tokio::test]
    async fn finished_handshakes_free_their_slots() {
        let mut handshakes = ListenerHandshakes::new();
        handshakes.begin(peer(1), async {});
        tokio::task::yield_now().await;
        assert!(!handshakes.evict_one());
        assert!(handshakes.in_progress.is_empty());
    }
}
