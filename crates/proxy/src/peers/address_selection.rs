//! Selects the address of a destination for the next datagram; pure.

use std::net::SocketAddr;
use std::time::Duration;

/// How long an address may stay silent while the client keeps sending before the next one is tried: the
/// Connection Attempt Delay of Happy Eyeballs (RFC 8305 §5).
pub(super) const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// The limit on the addresses of a name that are tried.
pub(super) const MAX_ADDRESSES: usize = 8;

/// The addresses of a destination, best first.
#[derive(Debug)]
pub(crate) struct AddressSelection {
    addresses: Vec<SocketAddr>,
    at: usize,
    since: Duration,
    stage: SelectionStage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SelectionStage {
    /// Nothing has been received, and this many addresses have been tried.
    Trying(usize),
    /// The address is kept: it has answered, or none has.
    Settled,
}

/// The address for a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DatagramTarget {
    pub(crate) to: SocketAddr,
    /// How many other addresses remain to be tried.
    pub(crate) remaining: usize,
}

impl AddressSelection {
    /// Creates a selection from these addresses, of which at most [`MAX_ADDRESSES`] are tried.
    pub(crate) fn new(now: Duration, mut addresses: Vec<SocketAddr>) -> Self {
        addresses.truncate(MAX_ADDRESSES);
        let stage =
            if addresses.len() == 1 { SelectionStage::Settled } else { SelectionStage::Trying(0) };
        Self { addresses, at: 0, since: now, stage }
    }

    /// Returns the address for the next datagram. As long as none answers, each address is tried once; after
    /// that the best one is kept, since many datagrams are never answered.
    pub(crate) fn next(&mut self, now: Duration) -> Option<DatagramTarget> {
        let Self { addresses, at, since, stage } = self;
        if let SelectionStage::Trying(given_up) = stage
            && now.saturating_sub(*since) >= ATTEMPT_DELAY
        {
            *given_up += 1;
            (*at, *since) = ((*at + 1) % addresses.len().max(1), now);
            if *given_up == addresses.len() {
                *stage = SelectionStage::Settled;
            }
        }
        Some(DatagramTarget { to: *addresses.get(*at)?, remaining: addresses.len() - 1 })
    }

    /// Moves on to the next address, if this one is in use, and returns it.
    pub(crate) fn next_after(&mut self, now: Duration, refused: SocketAddr) -> Option<SocketAddr> {
        if self.addresses.get(self.at) != Some(&refused) {
            return None;
        }
        (self.at, self.since) = ((self.at + 1) % self.addresses.len(), now);
        self.addresses.get(self.at).copied()
    }

    /// Returns whether this is one of the addresses. If none has answered before, it is kept.
    pub(crate) fn answered(&mut self, from: SocketAddr) -> bool {
        let Some(place) = self.addresses.iter().position(|one| *one == from) else { return false };
        if let SelectionStage::Trying(_) = self.stage {
            (self.at, self.stage) = (place, SelectionStage::Settled);
        }
        true
    }

    /// Returns all addresses.
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}
