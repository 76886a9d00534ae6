//! Explicit congestion notification (RFC 9260 appendix A): a mark on a packet is echoed by ECNE,
//! and the sender reduces its window once per window of data and confirms that by CWR.
//!
//! Some networks drop ECN-capable packets. As in RFC 9000 §13.4.2.1, ECN is disabled on a path on
//! which no such packet ever arrived; a network that only clears the marks does no harm, and ECNE
//! has no counts that would reveal it.

use core::time::Duration;

use super::{AssociationPaths, Path};
use crate::congestion::CongestionKind;
use crate::identifier::PathId;
use crate::io::Ecn;
use crate::serial::Tsn;

/// The number of timeouts of ECN-capable data, with none of it ever acknowledged, after which a
/// path stops sending it.
const MAX_TIMEOUTS: u8 = 2;

/// The ECN state of one path, in both directions.
#[derive(Clone, Debug, Default)]
pub(super) struct PathEcn {
    /// The lowest TSN of the first marked packet that has not been confirmed by CWR.
    echo: Option<Tsn>,
    /// The next TSN at the time of the last reduction for a mark.
    reduced_at: Option<Tsn>,
    /// Whether ECN-capable data was sent.
    tried: bool,
    /// Whether some of it was acknowledged.
    proven: bool,
    /// Timeouts of data until then.
    timeouts: u8,
}

impl PathEcn {
    /// Records an acknowledgement of data on the path.
    pub(super) fn on_data_acknowledged(&mut self) {
        self.proven |= self.tried && self.timeouts < MAX_TIMEOUTS;
    }

    /// Records a timeout of data on the path.
    pub(super) fn on_data_timeout(&mut self) {
        if self.tried && !self.proven {
            self.timeouts = self.timeouts.saturating_add(1);
        }
    }
}

impl Path {
    /// Returns the ECN codepoint for a packet with data, if ECN was negotiated.
    pub fn ecn_codepoint(&mut self) -> Ecn {
        if self.ecn.timeouts >= MAX_TIMEOUTS {
            return Ecn::NotCapable;
        }
        self.ecn.tried = true;
        Ecn::Capable0
    }

    /// Records a packet with a congestion mark; `tsn` is the lowest of its DATA chunks.
    pub fn on_marked(&mut self, tsn: Tsn) {
        self.ecn.echo.get_or_insert(tsn);
    }

    /// Returns the TSN for the ECNE chunk to send with each SACK, if any.
    #[must_use]
    pub fn ecn_echo(&self) -> Option<Tsn> {
        self.ecn.echo
    }
}

impl AssociationPaths {
    /// Handles an ECNE for the packet with `tsn`, which was sent on `path`; `next` is the next TSN.
    /// Reduces the window, unless that was done for the same window of data. A CWR with `tsn` has
    /// to be sent in any case, as the last one may have been lost.
    pub fn on_ecne(&mut self, now: Duration, path: PathId, tsn: Tsn, next: Tsn) {
        let siblings = self.siblings(path);
        let Some(path) = self.get_mut(path) else { return };
        if path.ecn.reduced_at.is_some_and(|reduced_at| tsn.is_before(reduced_at)) {
            return;
        }
        path.ecn.reduced_at = Some(next);
        path.on_congestion(now, CongestionKind::Ecn, siblings);
    }

    /// Handles a CWR: the peer has reduced its window for marks up to `tsn`.
    pub fn on_cwr(&mut self, tsn: Tsn) {
        for path in self.iter_mut() {
            if path.ecn.echo.is_some_and(|echo| echo.is_at_or_before(tsn)) {
                path.ecn.echo = None;
            }
        }
    }
}

#[cfg(test)]
mod tests;
