//! Detects peers that have vanished while their connection is being closed.

use std::time::Duration;

use quinn::ConnectionStats;
use tokio::time::sleep;

use super::CLOSING_TIME;
use crate::http3::frames_received;

/// The time without an answer after which a peer has vanished, in round trips: a probe timeout is
/// about three of them, and doubles for each of three probes (RFC 9002 §6.2).
const ROUND_TRIPS: u32 = 20;

/// The shortest such time, for peers and hosts that are merely busy.
const MIN_SILENCE: Duration = Duration::from_secs(1);

/// How often it is checked within that time.
const CHECKS: u32 = 4;

/// Resolves once the peer has left what it was sent unanswered for several probe timeouts. While
/// nothing has to be acknowledged, as during a slow service, silence is no sign of anything.
pub(super) async fn vanished(conn: &quinn::Connection) {
    let silence = (conn.rtt() * ROUND_TRIPS).clamp(MIN_SILENCE, CLOSING_TIME);
    let mut watch = Watch::new(&conn.stats());
    while watch.unanswered <= CHECKS {
        sleep(silence / CHECKS).await;
        watch.check(&conn.stats());
    }
    tracing::debug!(remote = %conn.remote_address(), "the peer has vanished");
}

/// Counts checks in a row without an answer.
struct Watch {
    received: u64,
    sent: u64,
    unanswered: u32,
}

impl Watch {
    fn new(stats: &ConnectionStats) -> Self {
        Self { received: frames_received(stats), sent: sent(stats), unanswered: 0 }
    }

    fn check(&mut self, stats: &ConnectionStats) {
        let has_sent = sent(stats) > self.sent;
        if frames_received(stats) > self.received {
            *self = Self::new(stats);
        } else if has_sent || self.unanswered > 0 {
            self.unanswered += 1;
        }
    }
}

/// Whoever receives nothing sends only what has to be acknowledged.
fn sent(stats: &ConnectionStats) -> u64 {
    stats.udp_tx.datagrams
}
