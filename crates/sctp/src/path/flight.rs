//! Data under way on a path, and what its acknowledgement or loss means for the window.
//!
//! For each packet the sender calls [`Path::on_sent`], after it took [`Path::next_packet`] into
//! the records of the packet's chunks. For each SACK it calls [`Path::on_chunk_acknowledged`] for
//! what was acknowledged for the first time, [`Path::on_chunk_lost`] for what it now takes for
//! lost, then once [`Path::on_sack`], and [`Path::on_congestion`] if a recovery begins.

use core::time::Duration;

use super::Path;
use crate::congestion::{
    Acknowledged, CongestionEvent, CongestionKind, Lost, PacketNumber, Sent, Siblings,
};
use crate::identifier::PathId;

/// What a SACK said of a path, beside its bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Whether the cumulative TSN advanced; on several paths, the path's own one.
    pub cumulative_advanced: bool,
    /// The round trip of the newest chunk that it acknowledged and that was sent only once
    /// (RFC 9260 §6.3.1, C5).
    pub rtt: Option<Duration>,
    /// The path that the SACK came back on, and how long after that chunk was sent.
    pub answered: Option<(PathId, Duration)>,
}

impl Path {
    /// Bytes of user data under way.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Bytes of user data that were ever acknowledged here.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.rates.delivered()
    }

    /// Bytes of user data that were ever taken for lost here.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.rates.lost()
    }

    /// The part of what was sent that was lost, in millionths.
    #[must_use]
    pub fn loss_rate(&self) -> u64 {
        let (lost, delivered) = (self.lost(), self.delivered());
        lost.saturating_mul(1_000_000) / lost.saturating_add(delivered).max(1)
    }

    /// The number of the next packet with user data, for the records of its chunks.
    #[must_use]
    pub fn next_packet(&self) -> PacketNumber {
        self.rates.next_number()
    }

    /// A packet with `bytes` of user data leaves. `app_limited`: there is nothing more to send.
    pub fn on_sent(&mut self, now: Duration, bytes: usize, app_limited: bool) {
        if bytes == 0 {
            return;
        }
        self.decay(now);
        self.pay(now, bytes);
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
        self.congestion.on_sent(&Sent { now, bytes, outstanding, app_limited });
    }

    /// The path could carry more now than there is for it: what it delivers says little of it.
    pub fn note_unused(&mut self) {
        self.rates.on_app_limited(self.outstanding);
    }

    /// `bytes` of a chunk that was under way in this packet were acknowledged, for the first time.
    pub fn on_chunk_acknowledged(&mut self, now: Duration, packet: PacketNumber, bytes: usize) {
        self.note_fullness();
        self.probing = false;
        self.outstanding = self.outstanding.saturating_sub(bytes);
        self.rates.on_acknowledged(now, packet, bytes);
    }

    /// `bytes` of a chunk were acknowledged that was taken for lost and had not been sent again.
    pub fn on_late_chunk(&mut self, now: Duration, bytes: usize) {
        self.note_fullness();
        self.probing = false;
        self.rates.on_late(now, bytes);
    }

    /// `bytes` of a chunk that was under way in this packet are taken for lost.
    pub fn on_chunk_lost(&mut self, now: Duration, packet: PacketNumber, bytes: usize) {
        self.note_fullness();
        self.outstanding = self.outstanding.saturating_sub(bytes);
        let sent = self.rates.on_lost(packet, bytes);
        self.congestion.on_lost(&Lost {
            now,
            bytes,
            sent,
            total_lost: self.rates.lost(),
            total_delivered: self.rates.delivered(),
        });
    }

    /// `bytes` of a chunk that was under way in this packet are no longer waited for: given up, or
    /// moved to another path.
    pub fn on_chunk_forgotten(&mut self, packet: PacketNumber, bytes: usize) {
        self.outstanding = self.outstanding.saturating_sub(bytes);
        self.rates.on_forgotten(packet, bytes);
    }

    /// `bytes` that were acknowledged are under way again, as the peer dropped them. They count to
    /// the latest packet, whose number this gives.
    pub fn take_back(&mut self, bytes: usize) -> PacketNumber {
        self.outstanding += bytes;
        PacketNumber(self.rates.next_number().0.wrapping_sub(1))
    }

    /// All that a SACK says of the path was told. Call it for every path that it acknowledged or
    /// lost something on.
    pub fn on_sack(&mut self, now: Duration, progress: Progress, siblings: Siblings) {
        // Only a measurement ends a back-off (RFC 9260 §6.3.3): where round trips are longer than
        // the timeout, everything would be retransmitted for ever.
        if let Some(rtt) = progress.rtt {
            self.rto.on_sample(now, rtt);
        }
        let (bytes, largest) = (self.rates.acknowledged(), self.rates.largest());
        self.acknowledged = false;
        let window_was_full = core::mem::take(&mut self.window_was_full);
        let quickest = self.rto.least().into_iter().chain(self.estimates.return_rtts.least()).min();
        let delivery = self.rates.sample(quickest);
        self.note_estimates(now, &progress, delivery.as_ref());
        self.note_plateau(now);
        self.note_doubt(now, &progress);
        if bytes == 0 {
            return;
        }
        self.mtu.on_data_acknowledged(largest + self.overhead());
        self.ecn.on_data_acknowledged();
        self.pacer.on_acknowledged(bytes);
        self.congestion.on_acknowledged(&Acknowledged {
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

    /// A recovery begins: what was lost was told by [`Self::on_chunk_lost`] before.
    pub fn on_congestion(&mut self, now: Duration, kind: CongestionKind, siblings: Siblings) {
        let outstanding = self.outstanding;
        self.congestion.on_congestion(&CongestionEvent { now, kind, outstanding, siblings });
    }

    /// The recovery has ended: all that was sent before it began has been acknowledged.
    pub fn on_recovered(&mut self, now: Duration) {
        self.congestion.on_recovered(now);
    }

    /// T3 ran out: the timeout doubles and the window falls. The path's error count is
    /// [`super::Paths::on_error`]'s.
    pub fn on_timeout(&mut self, now: Duration, siblings: Siblings) {
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

    /// The path was silent for as long as its timeout, which doubles (RFC 9260 §6.3.3 E2). A
    /// heartbeat that is unanswered by now says the same, and does not double it again.
    pub fn back_off(&mut self) {
        self.rto.back_off();
        self.beat.overtake();
    }

    /// Before the first word of a SACK: whether the window was in use.
    fn note_fullness(&mut self) {
        if !self.acknowledged {
            self.acknowledged = true;
            self.window_was_full |= self.outstanding >= self.congestion.window();
        }
    }

    /// Cuts the window for each timeout in which nothing was sent (RFC 9260 §7.2.1).
    fn decay(&mut self, now: Duration) {
        let Some(last) = self.last_sent else { return };
        if self.outstanding > 0 {
            return;
        }
        let timeout = self.rto.current();
        let mut idle_since = last.max(self.decayed);
        // More than this many halvings change nothing.
        for _ in 0..usize::BITS {
            if now.saturating_sub(idle_since) < timeout {
                break;
            }
            idle_since += timeout;
            self.decayed = idle_since;
            self.congestion.on_idle(now);
        }
    }
}

#[cfg(test)]
mod tests;
