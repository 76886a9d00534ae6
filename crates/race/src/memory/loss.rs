//! The packet loss of a network: how many handshakes had to retransmit.
//!
//! A handshake that took as long as a retransmission timeout has lost a packet, be it of its first
//! flight or of a later one; so has one with a peer that worked a moment ago and is silent now.
//! This shows with any peer, and it is a property of the network: so the most recent handshakes
//! over each path are counted regardless of the peer, and those of all paths of a network together
//! tell whether it loses packets. On a lossy network, a more preferred transport gets a longer head
//! start, silent candidates are retried soon
//! ([`Policy::lossy_head_start`](crate::policy::Policy::lossy_head_start)), and a single silence
//! that was cut short is not held against a candidate.

use serde::{Deserialize, Serialize};

/// The most recent handshakes over one path, and which of them had to retransmit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handshakes {
    /// One bit for each that had to, the latest one in the lowest.
    again: u32,
    /// How many are known, at most [`Self::MOST`].
    known: u8,
}

impl Handshakes {
    /// The maximum number of handshakes per path: with half as many, a network with a loss rate of
    /// 10 % would go unnoticed half of the time.
    pub const MOST: u8 = 32;

    /// Returns these handshakes and one more, if it is known whether that one had to retransmit.
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

    /// Returns how many had to retransmit, out of how many.
    pub fn loss(self) -> Loss {
        Loss { sent_again: self.again.count_ones(), handshakes: u32::from(self.known) }
    }
}

/// How many handshakes had to retransmit, out of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// The number of handshakes that had to retransmit.
    pub sent_again: u32,
    /// The number of known handshakes.
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

    /// Returns the sum of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            sent_again: self.sent_again.saturating_add(other.sent_again),
            handshakes: self.handshakes.saturating_add(other.handshakes),
        }
    }

    /// Returns whether these handshakes indicate a lossy network.
    pub const fn is_lossy(self) -> bool {
        self.sent_again >= Self::LEAST
            && self.sent_again.saturating_mul(Self::ONE_IN) >= self.handshakes
    }
}
