//! Failed paths are probed more often than errors are counted, if configured
//! ([`AssociationConfig::max_probe_interval`]): the timeout of a heartbeat doubles with each that
//! is lost, up to `RTO.Max`, but a path that recovers is useful immediately.
//!
//! These heartbeats are independent of those of [`super::heartbeat`]. If one is not answered, no
//! error is counted and no timeout backs off: the time until a path or the association is given up
//! does not depend on them.

use alloc::boxed::Box;

use super::heartbeat::HeartbeatToSend;
use super::{AssociationPaths, Path, PathState};
use crate::config::AssociationConfig;
use crate::congestion::nanoseconds;

/// The minimum time between two heartbeats of one path in nanoseconds, however often paths come and
/// go.
const MIN_GAP: u64 = 100_000_000;

/// The number of heartbeats whose responses are awaited: RTTs may have grown.
const MAX_TRACKED: usize = 4;

/// The additional heartbeats of a failed path. Times are in nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct AdditionalHeartbeats {
    next: u64,
    /// The nonces and times of the latest ones, the newest first.
    sent: [(u64, u64); MAX_TRACKED],
}

impl Path {
    fn has_failed(&self) -> bool {
        matches!(self.state(), PathState::PotentiallyFailed | PathState::Inactive)
    }

    /// Returns when the next of these heartbeats is due.
    pub(super) fn additional_due(&self) -> Option<u64> {
        self.additional.as_ref().map(|additional| additional.next)
    }

    /// Postpones the next one after another heartbeat.
    pub(super) fn postpone_additional(&mut self, now: u64, config: &AssociationConfig) {
        let interval = self.probe_interval(config);
        if let (Some(additional), Some(interval)) = (&mut self.additional, interval) {
            additional.next = now.saturating_add(interval);
        }
    }

    /// Returns the interval, at least the usual response time.
    fn probe_interval(&self, config: &AssociationConfig) -> Option<u64> {
        let wanted = nanoseconds(config.max_probe_interval?).max(MIN_GAP);
        let smoothed = self.rto.smoothed().map_or(0, nanoseconds);
        let answer = smoothed.saturating_add(nanoseconds(self.rto.variance()).saturating_mul(4));
        Some(wanted.max(answer))
    }

    /// Starts or stops these heartbeats, and returns whether one is due now.
    pub(super) fn wants_additional(&mut self, now: u64, config: &AssociationConfig) -> bool {
        let interval = self.probe_interval(config).filter(|_| self.has_failed());
        let Some(interval) = interval else {
            self.additional = None;
            return false;
        };
        let additional = self.additional.get_or_insert_with(|| {
            let next = now.saturating_add(interval);
            Box::new(AdditionalHeartbeats { next, sent: [(0, 0); MAX_TRACKED] })
        });
        additional.next <= now
    }

    /// Creates one.
    pub(super) fn additional_heartbeat(
        &mut self,
        now: u64,
        nonce: u64,
        config: &AssociationConfig,
    ) -> HeartbeatToSend {
        if let Some(additional) = &mut self.additional {
            additional.sent.rotate_right(1);
            additional.sent[0] = (nonce, now.max(1));
        }
        self.postpone_additional(now, config);
        HeartbeatToSend::plain(self.id, nonce)
    }

    /// Returns when the one with this nonce was sent, if it is one of these.
    pub(super) fn additional_sent_at(&self, nonce: u64) -> Option<u64> {
        let sent = self.additional.as_ref()?.sent;
        sent.iter().find(|(number, at)| *number == nonce && *at != 0).map(|(_, at)| *at)
    }

    fn send_additional_soon(&mut self, now: u64) {
        let last = self.heartbeat_sent().unwrap_or(0);
        if let Some(additional) = &mut self.additional {
            let last = additional.sent[0].1.max(last);
            let soon = if last == 0 { now } else { last.saturating_add(MIN_GAP).max(now) };
            additional.next = additional.next.min(soon);
        }
    }
}

impl AssociationPaths {
    /// Probes the failed paths once no path works, as they may have recovered.
    pub(super) fn probe_failed(&mut self, now: u64, config: &AssociationConfig) {
        if core::mem::take(&mut self.last_active_failed) {
            for path in &mut self.paths {
                path.wants_additional(now, config);
                path.send_additional_soon(now);
            }
        }
    }
}

#[cfg(test)]
mod tests;
