//! Handshakes under way: who has most of them gives way to who comes.
//!
//! A peer that begins a handshake and says nothing more costs a place and, over TCP, a descriptor, for as
//! long as a handshake may take. If places were waited for, a few hundred such peers would keep
//! everybody out.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::net::IpAddr;

use nix::sys::resource::{Resource, getrlimit};
use tokio::task::{AbortHandle, JoinSet};

use crate::sockets::subscriber;

/// Handshakes of one transport under way at once, unless this process may have so few descriptors that they
/// would take more than [a share](SHARE) of them.
const MAX_HANDSHAKES: usize = 256;
/// One in this many descriptors may belong to a peer whose handshake is in progress.
const SHARE: usize = 4;
/// The minimum limit, for which there is always room.
const LEAST_HANDSHAKES: usize = 4;

/// The handshakes of one transport. Dropped, it ends them.
#[derive(Debug)]
pub(super) struct Handshakes {
    tasks: JoinSet<()>,
    most: usize,
    /// The oldest first.
    under_way: VecDeque<UnderWay>,
}

#[derive(Debug)]
struct UnderWay {
    from: IpAddr,
    task: AbortHandle,
}

impl Handshakes {
    /// None yet.
    pub(super) fn new() -> Self {
        let descriptors = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft);
        let share = usize::try_from(descriptors).unwrap_or(usize::MAX) / SHARE;
        Self::at_most(share.clamp(LEAST_HANDSHAKES, MAX_HANDSHAKES))
    }

    fn at_most(most: usize) -> Self {
        Self { tasks: JoinSet::new(), most, under_way: VecDeque::new() }
    }

    /// Begins the handshake of a peer, in the place of another one if all are taken.
    pub(super) fn begin(
        &mut self,
        from: IpAddr,
        handshake: impl Future<Output = ()> + Send + 'static,
    ) {
        self.forget_ended();
        if self.under_way.len() >= self.most {
            self.make_room();
        }
        let task = self.tasks.spawn(handshake);
        self.under_way.push_back(UnderWay { from: subscriber(from), task });
    }

    /// Ends the oldest handshake of the peer that has most of them, and says whether there was one.
    pub(super) fn make_room(&mut self) -> bool {
        self.forget_ended();
        let oldest = oldest_of_most(self.under_way.iter().map(|one| one.from));
        let gives_way = oldest.and_then(|oldest| self.under_way.remove(oldest));
        if let Some(one) = &gives_way {
            tracing::debug!(from = %one.from, "a handshake gives way");
            one.task.abort();
        }
        gives_way.is_some()
    }

    /// Whether there are so many that a peer should show that it is where it says it is: a quarter of all.
    #[cfg(feature = "quic")]
    pub(super) fn are_many(&mut self) -> bool {
        self.forget_ended();
        self.under_way.len() >= self.most / 4
    }

    fn forget_ended(&mut self) {
        while self.tasks.try_join_next().is_some() {}
        self.under_way.retain(|one| !one.task.is_finished());
    }
}

/// The place of the first of those who are there most often; of two, the one whose first came earlier.
fn oldest_of_most(all: impl Iterator<Item = IpAddr>) -> Option<usize> {
    let mut peers: HashMap<IpAddr, (usize, usize)> = HashMap::new();
    for (place, from) in all.enumerate() {
        peers.entry(from).or_insert((0, place)).0 += 1;
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
    fn the_peer_with_the_most_handshakes_loses_its_oldest() {
        let of = |numbers: &[u8]| oldest_of_most(numbers.iter().map(|number| peer(*number)));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[1, 2, 3]), Some(0));
        assert_eq!(of(&[1, 2, 3, 2]), Some(1));
        assert_eq!(of(&[1, 3, 3, 2, 2]), Some(1));
    }

    #[tokio::test]
    async fn a_flood_ends_handshakes_of_its_own() {
        const MOST: usize = 20;
        let mut handshakes = Handshakes::at_most(MOST);
        handshakes.begin(peer(1), pending());
        for _ in 0..3 * MOST {
            handshakes.begin(peer(2), pending());
            // Those that give way end when they are next run.
            tokio::task::yield_now().await;
        }
        handshakes.begin(peer(3), pending());
        let of =
            |number| handshakes.under_way.iter().filter(|one| one.from == peer(number)).count();
        assert_eq!((of(1), of(2), of(3)), (1, MOST - 2, 1));
        assert!(handshakes.tasks.len() <= MOST + 1, "{}", handshakes.tasks.len());
    }

    #[tokio::test]
    async fn finished_handshakes_free_their_slots() {
        let mut handshakes = Handshakes::new();
        handshakes.begin(peer(1), async {});
        tokio::task::yield_now().await;
        assert!(!handshakes.make_room());
        assert!(handshakes.under_way.is_empty());
    }
}
