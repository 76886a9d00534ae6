//! Heartbeats: whether idle paths work (RFC 9260 §8.3), whether addresses are the peer's (§5.4),
//! whether failed paths are back (RFC 7829 §3.2), and how large packets may be (RFC 8899 §6.2.2).
//!
//! The association calls [`Paths::start`] when it is up, [`Paths::handle_timeout`] when
//! [`Paths::next_timeout`] has come, and [`Paths::poll_heartbeat`] whenever it gives output. A
//! heartbeat carries a number that nobody can guess, so that a peer cannot answer for an address
//! at which it never got it.

use core::{net::IpAddr, time::Duration};

use super::{Path, PathState, Paths};
use crate::config::AssociationConfig;
use crate::congestion::nanoseconds;
use crate::identifier::PathId;
use crate::wire::{Chunk, HeartbeatChunk};

/// Bytes of heartbeat information: path, number.
pub(super) const HEARTBEAT_INFO: usize = 10;

/// Bytes of the chunk with it: the headers of chunk and parameter, the information, padding.
pub const HEARTBEAT_CHUNK: usize = 4 + 4 + HEARTBEAT_INFO + 2;

/// A HEARTBEAT chunk to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// On which path.
    pub path: PathId,
    /// The heartbeat information for it.
    pub info: [u8; HEARTBEAT_INFO],
    /// For a probe of the MTU: the bytes of SCTP packet, common header included, to which the
    /// packet is to be filled with a PAD chunk. It must not be fragmented.
    pub probe: Option<usize>,
}

impl Heartbeat {
    /// The chunk that carries it.
    #[must_use]
    pub fn chunk(&self) -> Chunk {
        Chunk::Heartbeat(HeartbeatChunk { info: self.info.to_vec().into() })
    }

    /// One that probes for no MTU.
    pub(super) fn plain(path: PathId, nonce: u64) -> Self {
        Self { path, info: info(path, nonce), probe: None }
    }
}

/// When heartbeats of one path go, and what is expected back. Times are in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Beat {
    /// When the next one goes unless data does; `None`: to be decided.
    next: Option<u64>,
    /// How long the path may be idle.
    period: u64,
    /// The latest one, until it is answered.
    latest: Option<Latest>,
    /// Whether the user asked for one (RFC 6458 §8.1.12, `SPP_HB_DEMAND`).
    demanded: bool,
}

#[derive(Clone, Copy, Debug)]
struct Latest {
    nonce: u64,
    sent: u64,
    /// When it counts as an error; 0 once it did.
    lost_at: u64,
}

impl Beat {
    /// Sends one as soon as possible.
    pub(super) fn hasten(&mut self) {
        self.next = Some(0);
    }

    /// Begins a new period.
    pub(super) fn rest(&mut self) {
        self.next = None;
    }

    /// Something else that was not answered was counted: the heartbeat that is on its way is not
    /// counted as well, and another one is due.
    pub(super) fn overtake(&mut self) {
        if let Some(latest) = self.latest.as_mut().filter(|latest| latest.lost_at != 0) {
            latest.lost_at = 0;
            self.next = Some(0);
        }
    }

    /// Whether one is to go now, for all that the beat knows.
    pub(super) fn is_wanted(&self, now: u64) -> bool {
        !self.is_waiting() && self.next.is_none_or(|next| next <= now)
    }

    fn is_waiting(&self) -> bool {
        self.latest.is_some_and(|latest| latest.lost_at != 0)
    }
}

impl Path {
    /// The path's MTU was changed to something else, or confirmed.
    fn settle_mtu(&mut self) {
        let mtu = self.mtu.current();
        self.congestion.on_mtu(mtu);
        self.pacer.set_mtu(mtu);
    }

    fn heartbeat(&mut self, now: u64, nonce: u64) -> Heartbeat {
        let lost_at = now.saturating_add(nanoseconds(self.rto.current())).max(1);
        self.beat.latest = Some(Latest { nonce, sent: now, lost_at });
        self.beat.demanded = false;
        self.beat.next = Some(u64::MAX);
        Heartbeat::plain(self.id, nonce)
    }

    /// When the latest heartbeat was sent that is not answered.
    pub(super) fn beat_sent(&self) -> Option<u64> {
        self.beat.latest.map(|latest| latest.sent)
    }

    /// When the heartbeat with this number was sent, if it may still be answered.
    fn sent_at(&self, nonce: u64) -> Option<u64> {
        let latest = self.beat.latest.filter(|latest| latest.nonce == nonce);
        latest.map(|latest| latest.sent).or_else(|| self.further_sent(nonce))
    }

    /// When this path wants attention, in nanoseconds; 0: at once.
    fn due(&self) -> u64 {
        let waiting = self.beat.latest.map(|latest| latest.lost_at).filter(|at| *at != 0);
        let beat = waiting.or(self.beat.next).unwrap_or(0);
        let beat = self.further_due().map_or(beat, |further| further.min(beat));
        let mtu = if self.wants_probe() { Some(0) } else { self.mtu.next_timeout() };
        mtu.map_or(beat, |mtu| mtu.min(beat))
    }

    /// Whether data that is sent again asks all that a heartbeat would: not if large packets may
    /// vanish where small ones do not (RFC 8899 §4.3).
    fn is_probed_by_data(&self) -> bool {
        (self.t3.is_some() || self.resends) && !self.mtu.suspects_black_hole()
    }

    /// Probes go only where data goes.
    fn wants_probe(&self) -> bool {
        self.state() == PathState::Active
            && self.last_sent().is_some()
            && self.mtu.wanted_probe().is_some()
    }
}

impl Paths {
    /// The association is up: heartbeats begin.
    pub fn start(&mut self) {
        self.running = true;
        self.due = 0;
    }

    /// The association ends: no more heartbeats.
    pub fn stop(&mut self) {
        self.running = false;
    }

    /// When [`Self::handle_timeout`] and [`Self::poll_heartbeat`] have something to do.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        (self.running && self.due != u64::MAX).then(|| Duration::from_nanos(self.due))
    }

    /// Counts heartbeats that were not answered in time as errors (RFC 9260 §8.3).
    pub fn handle_timeout(&mut self, now: Duration, config: &AssociationConfig) {
        if !self.is_due(now) {
            return;
        }
        let time = nanoseconds(now);
        for index in 0..self.paths.len() {
            let path = &mut self.paths[index];
            path.mtu.on_time(time);
            let lost = |latest: &&mut Latest| latest.lost_at != 0 && latest.lost_at <= time;
            let Some(latest) = path.beat.latest.as_mut().filter(lost) else { continue };
            latest.lost_at = 0;
            path.beat.rest();
            if Self::is_urgent(path, config) {
                path.beat.hasten();
            }
            // One silence is one error: where data is under way, T3 counts and backs off.
            if path.t3.is_none() {
                path.back_off();
                let id = path.id;
                self.on_heartbeat_lost(id, config);
            }
        }
        self.due = 0;
    }

    /// Whether [`Self::poll_heartbeat`] has something to look at.
    #[must_use]
    pub fn is_due(&self, now: Duration) -> bool {
        self.running && nanoseconds(now) >= self.due
    }

    /// The next heartbeat to send now.
    pub fn poll_heartbeat(
        &mut self,
        now: Duration,
        config: &AssociationConfig,
    ) -> Option<Heartbeat> {
        if !self.is_due(now) {
            return None;
        }
        let time = nanoseconds(now);
        self.probe_failed(time, config);
        for index in 0..self.paths.len() {
            if self.paths[index].beat.next.is_none() {
                self.arm(index, time, config);
            }
            if self.is_beat_due(index, time, config) {
                let nonce = self.draw.number();
                self.paths[index].put_further_off(time, config);
                return Some(self.paths[index].heartbeat(time, nonce));
            }
            if self.paths[index].wants_further(time, config) {
                let nonce = self.draw.number();
                return Some(self.paths[index].further_heartbeat(time, nonce, config));
            }
            if self.paths[index].wants_probe() {
                let nonce = self.draw.number();
                let probe = self.paths[index].probe(time, nonce);
                if probe.is_some() {
                    return probe;
                }
            }
        }
        let paths = self.paths.iter();
        let due = paths.map(Path::due).min().unwrap_or(u64::MAX);
        // An address that waits for its turn to be verified does not make haste.
        self.due = if due <= time { self.verify_after.max(time + 1) } else { due };
        None
    }

    /// A HEARTBEAT ACK came, to the address `local` of ours. Says whether it answers a heartbeat
    /// of ours; if not, it is late or forged.
    pub fn on_heartbeat_ack(&mut self, now: Duration, info: &[u8], local: Option<IpAddr>) -> bool {
        let time = nanoseconds(now);
        let Some((id, nonce)) = read_info(info) else { return false };
        let Some(path) = self.get_mut(id) else { return false };
        if path.mtu.on_answer(time, nonce) {
            path.settle_mtu();
        } else {
            let Some(sent) = path.sent_at(nonce) else { return false };
            path.beat.latest = None;
            path.on_round_trip(now, Duration::from_nanos(time.saturating_sub(sent)));
            if path.mtu.on_small_answer() {
                path.settle_mtu();
            }
            path.beat.rest();
        }
        path.learn_local(local);
        self.due = 0;
        self.on_peer_alive();
        self.confirm(id);
        true
    }

    /// The user wants to know now whether the path works (`SPP_HB_DEMAND`).
    pub fn request_heartbeat(&mut self, id: PathId) {
        if let Some(path) = self.get_mut(id) {
            path.beat.demanded = true;
            path.beat.hasten();
            self.due = 0;
        }
    }

    /// A heartbeat to go along with what is sent on a path at once, if the address at its end is not
    /// verified yet (RFC 9260 §5.4).
    pub fn verify_along(&mut self, now: Duration, id: PathId) -> Option<Heartbeat> {
        if self.get(id)?.state() != PathState::Unconfirmed {
            return None;
        }
        let nonce = self.draw.number();
        self.due = 0;
        Some(self.get_mut(id)?.heartbeat(nanoseconds(now), nonce))
    }

    /// An ICMP message said that `size` bytes of IP packet are the most that pass (RFC 8899 §4.6).
    pub fn on_too_big(&mut self, now: Duration, id: PathId, size: u16) {
        if let Some(path) = self.get_mut(id)
            && path.mtu.on_too_big(nanoseconds(now), size)
        {
            path.settle_mtu();
        }
        self.due = 0;
    }

    /// Whether the next heartbeat follows as soon as the one before is lost.
    fn is_urgent(path: &Path, config: &AssociationConfig) -> bool {
        match path.state() {
            PathState::Unconfirmed => path.errors() < config.path_max_retrans,
            PathState::Active => path.errors() >= config.potentially_failed_max_retrans,
            PathState::PotentiallyFailed => path.errors() < config.path_max_retrans,
            PathState::Inactive => false,
        }
    }

    /// Decides when the next heartbeat of an idle path goes: after `HB.interval` and a timeout,
    /// give or take half of that (RFC 9260 §8.3).
    fn arm(&mut self, index: usize, now: u64, config: &AssociationConfig) {
        let random = self.draw.number();
        let path = &mut self.paths[index];
        let rto = nanoseconds(path.rto.current()).max(2);
        let interval = match config.hb_interval {
            Some(interval) => nanoseconds(interval),
            // Even without heartbeats, an address has to be verified and a failed path to be
            // found back.
            None if path.state() != PathState::Active => nanoseconds(config.rto_max),
            None => u64::MAX,
        };
        path.beat.period = interval.saturating_add(rto / 2).saturating_add(random % rto);
        path.beat.next = Some(now.saturating_add(path.beat.period));
    }

    /// Whether a heartbeat of this path is due. Data sent meanwhile puts it off; addresses are
    /// verified a few at a time (RFC 9260 §5.4, `HB.Max.Burst`).
    fn is_beat_due(&mut self, index: usize, now: u64, config: &AssociationConfig) -> bool {
        let path = &mut self.paths[index];
        if path.beat.is_waiting() || path.beat.next.is_none_or(|next| next > now) {
            return false;
        }
        if path.is_probed_by_data() && !path.beat.demanded {
            let t3 = path.t3.unwrap_or(path.rto.current() + Duration::from_nanos(now));
            path.beat.next = Some(nanoseconds(t3).max(now.saturating_add(1)));
            return false;
        }
        if path.state() == PathState::Active && !path.beat.demanded && path.beat.next != Some(0) {
            let idle_since = path.last_sent().map_or(0, nanoseconds);
            let next = idle_since.saturating_add(path.beat.period);
            if next > now {
                path.beat.next = Some(next);
                return false;
            }
        }
        if path.state() == PathState::Unconfirmed {
            return self.may_verify(now, config);
        }
        true
    }
}

impl Path {
    /// The probe of a larger MTU that is wanted now.
    fn probe(&mut self, now: u64, nonce: u64) -> Option<Heartbeat> {
        let size = self.mtu.wanted_probe()?;
        self.mtu.on_probe_sent(now, size, nonce, self.rto.current());
        let packet = (usize::from(size) - self.overhead()) & !3;
        Some(Heartbeat { path: self.id, info: info(self.id, nonce), probe: Some(packet) })
    }
}

fn info(path: PathId, nonce: u64) -> [u8; HEARTBEAT_INFO] {
    let mut info = [0; HEARTBEAT_INFO];
    info[..2].copy_from_slice(&path.0.to_be_bytes());
    info[2..].copy_from_slice(&nonce.to_be_bytes());
    info
}

fn read_info(info: &[u8]) -> Option<(PathId, u64)> {
    let (path, nonce) = info.split_first_chunk::<2>()?;
    let nonce = <[u8; 8]>::try_from(nonce).ok()?;
    Some((PathId(u16::from_be_bytes(*path)), u64::from_be_bytes(nonce)))
}

#[cfg(test)]
mod tests;
