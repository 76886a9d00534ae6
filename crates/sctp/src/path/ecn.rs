//! Explicit congestion notification (RFC 9260 appendix A): a mark on a packet comes back as ECNE,
//! the sender cuts its window once for each window of data and says so with CWR.
//!
//! Some networks drop what says that it can be marked. As in RFC 9000 §13.4.2.1, a path on which
//! nothing of that kind ever arrived goes on without; one that only clears the marks does no harm,
//! and ECNE has no counts by which it could be told.

use core::time::Duration;

use super::{Path, Paths};
use crate::congestion::CongestionKind;
use crate::identifier::PathId;
use crate::io::Ecn;
use crate::serial::Tsn;

/// Timeouts of data that could be marked, with none of it acknowledged ever, after which no more of
/// it is sent on a path.
const MAX_TIMEOUTS: u8 = 2;

/// What one path knows of marks, in both directions.
#[derive(Clone, Debug, Default)]
pub(super) struct PathEcn {
    /// The lowest TSN of the first marked packet that the peer has not said CWR for.
    echo: Option<Tsn>,
    /// The first TSN that was not sent yet when the window was last cut for a mark.
    reacted: Option<Tsn>,
    /// Whether data that could be marked was sent.
    tried: bool,
    /// Whether some of it was acknowledged.
    proven: bool,
    /// Timeouts of data until then.
    timeouts: u8,
}

impl PathEcn {
    /// Data on the path was acknowledged.
    pub(super) fn on_data_acknowledged(&mut self) {
        self.proven |= self.tried && self.timeouts < MAX_TIMEOUTS;
    }

    /// Data on the path ran into its timeout.
    pub(super) fn on_data_timeout(&mut self) {
        if self.tried && !self.proven {
            self.timeouts = self.timeouts.saturating_add(1);
        }
    }
}

impl Path {
    /// What a packet with data says that it can bear, where both sides know ECN.
    pub fn offer_ecn(&mut self) -> Ecn {
        if self.ecn.timeouts >= MAX_TIMEOUTS {
            return Ecn::NotCapable;
        }
        self.ecn.tried = true;
        Ecn::Capable0
    }

    /// A packet came with the mark of congestion; `tsn` is the lowest of its DATA chunks.
    pub fn on_marked(&mut self, tsn: Tsn) {
        self.ecn.echo.get_or_insert(tsn);
    }

    /// The TSN for the ECNE chunk that goes along with each SACK, while there is one.
    #[must_use]
    pub fn ecn_echo(&self) -> Option<Tsn> {
        self.ecn.echo
    }
}

impl Paths {
    /// An ECNE chunk came: the packet with `tsn` was marked; it had been sent on `path`. `next` is
    /// the next TSN that will be sent. Cuts the window unless that was done for the same window of
    /// data. A CWR chunk with `tsn` is to be sent in any case: the last one may have been lost.
    pub fn on_ecne(&mut self, now: Duration, path: PathId, tsn: Tsn, next: Tsn) {
        let siblings = self.siblings(path);
        let Some(path) = self.get_mut(path) else { return };
        if path.ecn.reacted.is_some_and(|reacted| tsn.is_before(reacted)) {
            return;
        }
        path.ecn.reacted = Some(next);
        path.on_congestion(now, CongestionKind::Ecn, siblings);
    }

    /// A CWR chunk came: the peer has cut its window for marks up to `tsn`.
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
