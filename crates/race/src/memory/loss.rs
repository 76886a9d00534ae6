//! What a network loses: how many handshakes had to send packets again.
//!
//! A handshake that took as long as a retransmission takes has lost packets, be it of its first flight
//! or of a later one, and so has one with a
//! peer that has just worked and is silent now. That shows with any peer, and it is the network that
//! loses: so the last handshakes over each path are counted, whoever the
//! peer was, and those of all paths of a network together say whether it loses. Where it does, a more
//! wanted transport is waited for longer, what is silent is tried again soon
//! ([`Policy::lossy_head_start`](crate::policy::Policy::lossy_head_start)), and one silence that was cut
//! short is not held against anybody.

use serde::{Deserialize, Serialize};

/// The last handshakes over one path, and which of them had to send packets again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handshakes {
    /// One bit for each that had to, the latest one in the lowest.
    again: u32,
    /// How many are known, at most [`Self::MOST`].
    known: u8,
}

impl Handshakes {
    /// Handshakes kept of one path: with half as many, a network that loses one packet in ten would
    /// go unnoticed as often as not.
    pub const MOST: u8 = 32;

    /// These, and one more, if it could be told whether it sent packets again.
    #[must_use]
    pub fn and(self, sent_again: Option<bool>) -> Self {
        match sent_again {
            None => self,
            Some(again) => Self {
                again: self.again << 1 | u32::from(again),
                known: self.known.saturating_add(1).min(Self::MOST),
            },
        }
    }

    /// How many had to send packets again, of how many.
    pub fn loss(self) -> Loss {
        Loss { sent_again: self.again.count_ones(), handshakes: u32::from(self.known) }
    }
}

/// How many handshakes had to send packets again, of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// Those that had to.
    pub sent_again: u32,
    /// All that are known.
    pub handshakes: u32,
}

impl Loss {
    /// One lost packet can happen anywhere.
    const LEAST: u32 = 2;
    /// A network loses if one handshake in so many had to send packets again: one that loses 2.5 %
    /// of the packets each way, for a handshake is answered when one each way has come through. Two
    /// of as many as are kept of one path are enough, and what other paths carried meanwhile, the
    /// lesser transport beside the one that lost packets above all, does not outweigh them.
    const ONE_IN: u32 = 20;

    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            sent_again: self.sent_again.saturating_add(other.sent_again),
            handshakes: self.handshakes.saturating_add(other.handshakes),
        }
    }

    /// Whether a network with these handshakes is one that loses packets.
    pub const fn is_lossy(self) -> bool {
        self.sent_again >= Self::LEAST
            && self.sent_again.saturating_mul(Self::ONE_IN) >= self.handshakes
    }
}
