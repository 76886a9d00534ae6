//! The packet loss of a network: how many handshakes had to retransmit.
//!
//! A handshake that took as long as a retransmission timeout has lost a packet of one of its
//! flights; so has one with a peer that worked a moment ago and is silent now. Loss is a property
//! of the network, whichever the peer: so the most recent handshakes over each path are counted
//! regardless of the peer, and those of all paths of a network together show whether it loses
//! packets. On a lossy network, a more preferred transport gets a longer head start, silent
//! candidates are retried soon
//! ([`Policy::lossy_head_start`](crate::policy::Policy::lossy_head_start)), and a single silence
//! that was cut short is not held against a candidate.

use serde::{Deserialize, Serialize};

/// The most recent handshakes over one path, and which of them had to retransmit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathHandshakes {
    /// One bit per handshake, set if it had to retransmit; the lowest bit is the latest.
    #[serde(rename = "again")]
    retransmitted: u32,
    /// The number of handshakes, at most [`Self::MAX`].
    known: u8,
}

impl PathHandshakes {
    /// The maximum number of handshakes per path: with half as many, a network with a loss rate of
    /// 10 % would go unnoticed half of the time.
    pub const MAX: u8 = 32;

    /// Adds one handshake, if it is known whether it had to retransmit.
    #[must_use]
    pub fn and(self, retransmitted: Option<bool>) -> Self {
        match retransmitted {
            None => self,
            Some(retransmitted) => Self {
                retransmitted: self.retransmitted << 1 | u32::from(retransmitted),
                known: self.known.saturating_add(1).min(Self::MAX),
            },
        }
    }

    /// Returns how many had to retransmit, out of how many.
    pub fn loss(self) -> HandshakeLoss {
        HandshakeLoss {
            sent_again: self.retransmitted.count_ones(),
            handshakes: u32::from(self.known),
        }
    }
}

/// How many handshakes had to retransmit, out of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandshakeLoss {
    /// The number of handshakes that had to retransmit.
    pub sent_again: u32,
    /// The number of known handshakes.
    pub handshakes: u32,
}

impl HandshakeLoss {
    /// A single lost packet can occur on any network.
    const MIN_RETRANSMITTED: u32 = 2;
    /// A network is lossy if one handshake in this many had to retransmit, which corresponds to a
    /// loss of 2.5 % in each direction, since a handshake needs one packet each way to be answered.
    /// Two among the handshakes kept for one path are enough, so that successes over other paths,
    /// such as those of the less preferred transport, do not outweigh them.
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
        self.sent_again >= Self::MIN_RETRANSMITTED
            && self.sent_again.saturating_mul(Self::ONE_IN) >= self.handshakes
    }
}
