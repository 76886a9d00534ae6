//! Decides whether the end of a connection is evidence about its path.

use eyas::race::evidence::FailureCause;
use quinn::ConnectionError;

use super::{Http3, keep_alive::KeepAlive};

/// Tracks whether the peer responds while a response is expected.
pub(super) struct Watch {
    quic: quinn::Connection,
    keep_alive: KeepAlive,
    /// The number of PINGs sent when the wait for the peer began; `None` while nothing is awaited.
    waiting_since: Option<u64>,
}

impl Watch {
    pub(super) fn new(connection: &Http3) -> Self {
        let (quic, keep_alive) = (connection.quic.clone(), connection.keep_alive.clone());
        let waiting_since = Some(pings(&quic));
        Self { quic, keep_alive, waiting_since }
    }

    /// Records that something was received from the peer.
    pub(super) fn received(&mut self) {
        self.waiting_since = None;
    }

    /// Records that a reply from the peer is awaited.
    pub(super) fn awaits(&mut self) {
        if self.waiting_since.is_none() {
            self.waiting_since = Some(pings(&self.quic));
        }
    }

    /// Returns why the connection broke, unless the peer closed it.
    ///
    /// A close by the peer is its decision and not informative about the path. Neither is silence
    /// if nothing was sent: QUIC closes an idle connection (RFC 9000 §10.1), so only a peer that
    /// left a PING unanswered has fallen silent.
    pub(super) fn cause(&self) -> Option<FailureCause> {
        match self.quic.close_reason()? {
            ConnectionError::TimedOut => {
                let pinged = self.waiting_since.is_some_and(|since| pings(&self.quic) > since);
                pinged.then_some(FailureCause::Silent)
            }
            ConnectionError::LocallyClosed => {
                self.keep_alive.has_given_up().then_some(FailureCause::Silent)
            }
            ConnectionError::Reset => Some(FailureCause::Reset),
            ConnectionError::TransportError(_) => Some(FailureCause::Protocol),
            _ => None,
        }
    }
}

/// Returns the number of PINGs sent, and of the frames that take their place, except those that
/// probe for a larger MTU (RFC 8899), because a path may swallow these.
fn pings(quic: &quinn::Connection) -> u64 {
    let stats = quic.stats();
    // The keep-alive sends MAX_DATA.
    (stats.frame_tx.ping + stats.frame_tx.max_data).saturating_sub(stats.path.sent_plpmtud_probes)
}
