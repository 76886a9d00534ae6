//! Data in flight on a path, and the effects of its acknowledgement or loss on the window.
//!
//! For each packet the sender calls [`Path::on_sent`], after it has stored [`Path::next_packet`]
//! with the packet's chunks. For each SACK it calls [`Path::on_chunk_acknowledged`] for newly
//! acknowledged chunks, [`Path::on_chunk_lost`] for lost ones, then [`Path::on_sack`] once, and
//! [`Path::on_congestion`] if a recovery starts.

use core::time::Duration;

use super::Path;
use crate::congestion::{
    AcknowledgedData, CongestionEvent, CongestionKind, LostData, PacketNumber, SentData,
    SiblingPaths, nanoseconds,
};
use crate::identifier::PathId;

/// What a SACK reported about a path, besides bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct PathProgress {
    /// Whether the cumulative TSN ack advanced; with several paths, the path's pseudo-cumulative
    /// one.
    pub cumulative_advanced: bool,
    /// The RTT of the newest acknowledged chunk that was sent only once (RFC 9260 §6.3.1, C5).
    pub rtt: Option<Duration>,
    /// The path that the SACK returned on, and how long after that chunk was sent.
    pub answered: Option<(PathId, Duration)>,
    /// Whether the peer sends data, too, so that acknowledgements may wait behind it.
    pub peer_sends: bool,
}

impl Path {
    /// Returns the bytes of user data in flight.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Returns the total bytes of user data that were acknowledged.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.rates.delivered()
    }

    /// Returns the total bytes of user data that were lost.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.rates.lost()
    }

    /// Returns the loss rate in millionths.
    #[must_use]
    pub fn loss_rate(&self) -> u64 {
        let (lost, delivered) = (self.lost(), self.delivered());
        lost.saturating_mul(1_000_000) / lost.saturating_add(delivered).max(1)
    }

    /// Returns the number of the next packet with user data, to be stored with its chunks.
    #[must_use]
    pub fn next_packet(&self) -> PacketNumber {
        self.rates.next_number()
    }

    /// Records a packet with `bytes` of user data. `app_limited`: there is nothing more to send.
    pub fn on_sent(&mut self, now: Duration, bytes: usize, app_limited: bool) {
        if bytes == 0 {
            return;
        }
        self.decay(now);
        self.consume(now, bytes);
        self.rates.on_sent(now, bytes, self.outstanding);
        self.outstanding += bytes;
        self.last_sent = Some(now);
        self.mtu.on_data_sent(bytes + self.overhead());
        let window = self.congestion.window();
        self.window_was_full |= self.outstanding >= window;
        if app_limited && self.outstanding < window {
            self.rates.on_app_limited(self.outstanding);
        }
        let outstanding = self.outstanding;
        self.congestion.on_sent(&SentData { now, bytes, outstanding, app_limited });
    }

    /// Records that the path could carry more than there is to send: its delivery rate is limited
    /// by the application.
    pub fn on_app_limited(&mut self) {
        self.rates.on_app_limited(self.outstanding);
    }

    /// Records that `bytes` of a chunk in flight in this packet were newly acknowledged.
    pub fn on_chunk_acknowledged(&mut self, now: Duration, packet: PacketNumber, bytes: usize) {
        self.update_fullness();
        self.probing = false;
        self.outstanding = self.outstanding.saturating_sub(bytes);
        self.rates.on_acknowledged(now, packet, bytes);
    }

    /// Records that `bytes` of a chunk were acknowledged that was marked as lost and had not been
    /// retransmitted.
    pub fn on_late_chunk(&mut self, now: Duration, bytes: usize) {
        self.update_fullness();
        self.probing = false;
        self.rates.on_late(now, bytes);
    }

    /// Records that the peer skipped abandoned data at the request of a FORWARD-TSN that was sent
    /// here: the path works, and more than one packet may be in flight again after T3 (RFC 9260
    /// §7.2.3, RFC 3758 §3.5).
    pub fn on_forward_tsn_acknowledged(&mut self) {
        self.probing = false;
    }

    /// Records that `bytes` of a chunk in flight in this packet are lost.
    pub fn on_chunk_lost(&mut self, now: Duration, packet: PacketNumber, bytes: usize) {
        self.update_fullness();
        self.outstanding = self.outstanding.saturating_sub(bytes);
        let sent = self.rates.on_lost(packet, bytes);
        self.congestion.on_lost(&LostData {
            now,
            bytes,
            sent,
            total_lost: self.rates.lost(),
            total_delivered: self.rates.delivered(),
        });
    }

    /// Records that `bytes` of a chunk in flight in this packet are no longer waited for:
    /// abandoned, or moved to another path.
    pub fn on_chunk_forgotten(&mut self, packet: PacketNumber, bytes: usize) {
        self.outstanding = self.outstanding.saturating_sub(bytes);
        self.rates.on_forgotten(packet, bytes);
    }

    /// Records that the peer reneged on `bytes`, which are in flight again. They count as part of
    /// the latest packet, whose number is returned.
    pub fn on_reneged(&mut self, bytes: usize) -> PacketNumber {
        self.outstanding += bytes;
        PacketNumber(self.rates.next_number().0.wrapping_sub(1))
    }

    /// Completes a SACK. Call it for every path with acknowledged or lost data.
    pub fn on_sack(&mut self, now: Duration, progress: PathProgress, siblings: SiblingPaths) {
        // Only a measurement ends a back-off (RFC 9260 §6.3.3): if RTTs are longer than the
        // timeout, everything would be retransmitted forever.
        if let Some(rtt) = progress.rtt {
            self.rto.on_sample(now, rtt);
        }
        let (bytes, largest) = (self.rates.acknowledged(), self.rates.largest());
        self.acknowledged = false;
        let window_was_full = core::mem::take(&mut self.window_was_full);
        let min_response_time =
            self.rto.min_rtt().into_iter().chain(self.estimates.return_rtts.minimum()).min();
        let delivery = self.rates.sample(min_response_time);
        self.update_estimates(now, &progress, delivery.as_ref(), bytes);
        self.note_acknowledged_at_once(bytes);
        self.update_plateau(now);
        self.update_doubt(now, &progress);
        self.update_return_wait(now, progress.peer_sends);
        if bytes == 0 {
            return;
        }
        self.mtu.on_data_acknowledged(largest + self.overhead());
        self.ecn.on_data_acknowledged();
        self.pacer.on_acknowledged(bytes);
        self.congestion.on_acknowledged(&AcknowledgedData {
            now,
            bytes,
            cumulative_advanced: progress.cumulative_advanced,
            window_was_full,
            rtt: progress.rtt,
            smoothed_rtt: self.rto.smoothed(),
            outstanding: self.outstanding,
            delivery,
            siblings,
        });
    }

    /// Handles the start of a recovery; losses were reported by [`Self::on_chunk_lost`] before.
    pub fn on_congestion(&mut self, now: Duration, kind: CongestionKind, siblings: SiblingPaths) {
        let outstanding = self.outstanding;
        self.congestion.on_congestion(&CongestionEvent { now, kind, outstanding, siblings });
    }

    /// Handles the end of a recovery: all data sent before it started has been acknowledged.
    pub fn on_recovered(&mut self, now: Duration) {
        self.congestion.on_recovered(now);
    }

    /// Handles the expiry of T3: doubles the timeout and reduces the window. Errors are counted by
    /// [`super::AssociationPaths::on_error`].
    pub fn on_timeout(&mut self, now: Duration, siblings: SiblingPaths) {
        self.back_off();
        self.probing = true;
        self.mtu.on_data_timeout();
        self.ecn.on_data_timeout();
        self.granted = 0;
        self.window_was_full = false;
        let outstanding = self.outstanding;
        let kind = CongestionKind::Loss;
        self.congestion.on_timeout(&CongestionEvent { now, kind, outstanding, siblings });
    }

    /// Doubles the timeout after it expired (RFC 9260 §6.3.3 E2). A heartbeat that is unanswered by
    /// now does not double it again.
    pub fn back_off(&mut self) {
        self.rto.back_off();
        self.heartbeats.supersede();
    }

    /// Records whether the window was full before a SACK is processed.
    fn update_fullness(&mut self) {
        if !self.acknowledged {
            self.acknowledged = true;
            self.window_was_full |= self.outstanding >= self.congestion.window();
            self.note_full_flight();
        }
    }

    /// Reduces the window for each timeout in which nothing was sent (RFC 9260 §7.2.1).
    fn decay(&mut self, now: Duration) {
        let Some(last) = self.last_sent else { return };
        if self.outstanding > 0 {
            return;
        }
        let timeout = self.rto.current();
        let mut idle_since = last.max(Duration::from_nanos(self.decayed));
        // More than this many halvings change nothing.
        for _ in 0..usize::BITS {
            if now.saturating_sub(idle_since) < timeout {
                break;
            }
            idle_since += timeout;
            self.decayed = nanoseconds(idle_since);
            self.congestion.on_idle(now);
        }
    }
}

#[cfg(test)]
mod tests;
