//! Heartbeats: they check idle paths (RFC 9260 §8.3), verify addresses (§5.4), probe failed paths
//! (RFC 7829 §3.2), and probe the path MTU (RFC 8899 §6.2.2).
//!
//! The association calls [`AssociationPaths::start`] when it is established, [`AssociationPaths::handle_timeout`] at
//! [`AssociationPaths::next_timeout`], and [`AssociationPaths::poll_heartbeat`] whenever it produces output. A heartbeat
//! carries an unpredictable nonce, so that a peer cannot answer for an address at which it did not
//! receive it.

use alloc::boxed::Box;
use core::{net::IpAddr, num::NonZeroU64, time::Duration};

use super::{AssociationPaths, Path, PathState, verification::verification_burst};
use crate::config::AssociationConfig;
use crate::congestion::nanoseconds;
use crate::identifier::PathId;
use crate::wire::{Chunk, HeartbeatChunk};

/// The length of the heartbeat information: path and nonce.
pub(super) const HEARTBEAT_INFO: usize = 10;

/// The length of the chunk: the headers of chunk and parameter, the information, padding.
pub const HEARTBEAT_CHUNK: usize = 4 + 4 + HEARTBEAT_INFO + 2;

/// A HEARTBEAT chunk to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatToSend {
    /// The path to send it on.
    pub path: PathId,
    /// The heartbeat information.
    pub info: [u8; HEARTBEAT_INFO],
    /// For an MTU probe: the size of the SCTP packet, including the common header, to which it has
    /// to be padded with a PAD chunk. It must not be fragmented.
    pub probe: Option<usize>,
}

impl HeartbeatToSend {
    /// Returns the HEARTBEAT chunk.
    #[must_use]
    pub fn chunk(&self) -> Chunk {
        Chunk::Heartbeat(HeartbeatChunk { info: self.info.to_vec().into() })
    }

    /// Creates one that is not an MTU probe.
    pub(super) fn plain(path: PathId, nonce: u64) -> Self {
        Self { path, info: info(path, nonce), probe: None }
    }
}

/// The schedule of one path's heartbeats, and the outstanding one. Times are in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct HeartbeatTimer {
    /// When the next one is sent unless data is; `None`: to be decided.
    next: Option<u64>,
    /// How long the path may be idle.
    period: u64,
    /// The outstanding heartbeat.
    latest: Option<LatestHeartbeat>,
    /// The nonce and time of the one before, if it was repeated early and may still be answered.
    repeated: Option<Box<(u64, u64)>>,
    /// Whether one is sent even while data is in flight: the user requested it (RFC 6458 §8.1.12,
    /// `SPP_HB_DEMAND`), or only its answer shows which local address is used.
    demanded: bool,
}

#[derive(Clone, Copy, Debug)]
struct LatestHeartbeat {
    nonce: NonZeroU64,
    sent: u64,
    /// When it counts as lost; 0 once it has been counted.
    lost_at: u64,
}

impl HeartbeatTimer {
    /// Sends one as soon as possible.
    pub(super) fn send_soon(&mut self) {
        self.next = Some(0);
    }

    /// Starts a new period.
    pub(super) fn reschedule(&mut self) {
        self.next = None;
    }

    /// Prevents a second error for one outage: after another timeout, the outstanding heartbeat is
    /// not counted, and another one is due.
    pub(super) fn supersede(&mut self) {
        if self.is_waiting() {
            self.send_again();
        }
    }

    /// Sends one as soon as possible, without waiting for the answer to the outstanding one, which
    /// is not counted as lost.
    fn send_again(&mut self) {
        if let Some(latest) = &mut self.latest {
            latest.lost_at = 0;
        }
        self.send_soon();
    }

    /// Sends one as soon as possible, whatever is in flight, as this host's addresses have changed.
    pub(super) fn restart(&mut self) {
        self.demanded = true;
        self.send_again();
    }

    /// Returns whether a heartbeat is due, as far as the schedule is concerned.
    pub(super) fn is_wanted(&self, now: u64) -> bool {
        !self.is_waiting() && self.next.is_none_or(|next| next <= now)
    }

    fn is_waiting(&self) -> bool {
        self.latest.is_some_and(|latest| latest.lost_at != 0)
    }
}

impl Path {
    /// Applies a changed or confirmed MTU.
    fn apply_mtu(&mut self) {
        let mtu = self.mtu.current();
        self.congestion.on_mtu(mtu);
        self.pacer.set_mtu(mtu);
    }

    fn heartbeat(&mut self, now: u64, nonce: u64) -> HeartbeatToSend {
        let lost_at = now.saturating_add(nanoseconds(self.rto.current())).max(1);
        let nonce = NonZeroU64::new(nonce).unwrap_or(NonZeroU64::MIN);
        self.heartbeats.latest = Some(LatestHeartbeat { nonce, sent: now, lost_at });
        self.heartbeats.demanded = false;
        self.heartbeats.next = Some(u64::MAX);
        HeartbeatToSend::plain(self.id, nonce.get())
    }

    /// Returns when the outstanding heartbeat was sent.
    pub(super) fn heartbeat_sent(&self) -> Option<u64> {
        self.heartbeats.latest.map(|latest| latest.sent)
    }

    /// Returns when the heartbeat with this nonce was sent, if it may still be answered.
    fn sent_at(&self, nonce: u64) -> Option<u64> {
        let latest = self.heartbeats.latest.map(|latest| (latest.nonce.get(), latest.sent));
        let mut known = latest.into_iter().chain(self.heartbeats.repeated.as_deref().copied());
        let found = known.find(|(number, _)| *number == nonce).map(|(_, sent)| sent);
        found.or_else(|| self.additional_sent_at(nonce))
    }

    /// Returns when this path has something to do, in nanoseconds; 0 for immediately.
    fn due(&self) -> u64 {
        let waiting = self.heartbeats.latest.map(|latest| latest.lost_at).filter(|at| *at != 0);
        let heartbeats = waiting.or(self.heartbeats.next).unwrap_or(0);
        let heartbeats =
            self.additional_due().map_or(heartbeats, |additional| additional.min(heartbeats));
        let mtu = if self.wants_probe() { Some(0) } else { self.mtu.next_timeout() };
        mtu.map_or(heartbeats, |mtu| mtu.min(heartbeats))
    }

    /// Returns whether retransmitted data replaces a heartbeat: not if large packets may be lost
    /// where small ones are not (RFC 8899 §4.3).
    fn is_probed_by_data(&self) -> bool {
        (self.t3.is_some() || self.retransmits) && !self.mtu.suspects_black_hole()
    }

    /// Probes are only sent where data is sent.
    fn wants_probe(&self) -> bool {
        self.state() == PathState::Active
            && self.last_sent().is_some()
            && self.mtu.wanted_probe().is_some()
    }
}

impl AssociationPaths {
    /// Starts the heartbeats when the association is established.
    pub fn start(&mut self) {
        self.is_running = true;
        self.due = 0;
    }

    /// Stops the heartbeats when the association ends.
    pub fn stop(&mut self) {
        self.is_running = false;
    }

    /// Returns when [`Self::handle_timeout`] and [`Self::poll_heartbeat`] have something to do.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        (self.is_running && self.due != u64::MAX).then(|| Duration::from_nanos(self.due))
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
            let lost =
                |latest: &&mut LatestHeartbeat| latest.lost_at != 0 && latest.lost_at <= time;
            let Some(latest) = path.heartbeats.latest.as_mut().filter(lost) else { continue };
            latest.lost_at = 0;
            path.heartbeats.reschedule();
            if Self::is_urgent(path, config) {
                path.heartbeats.send_soon();
            }
            // One outage is one error: if data is in flight, T3 counts it and backs off.
            if path.t3.is_none() {
                path.back_off();
                let id = path.id;
                self.on_heartbeat_lost(id, config);
            }
        }
        self.due = 0;
    }

    /// Returns whether [`Self::poll_heartbeat`] has to check the paths.
    #[must_use]
    pub fn is_due(&self, now: Duration) -> bool {
        self.is_running && nanoseconds(now) >= self.due
    }

    /// Returns the next heartbeat to send now.
    pub fn poll_heartbeat(
        &mut self,
        now: Duration,
        config: &AssociationConfig,
    ) -> Option<HeartbeatToSend> {
        if !self.is_due(now) {
            return None;
        }
        let time = nanoseconds(now);
        self.probe_failed(time, config);
        for index in 0..self.paths.len() {
            if self.paths[index].heartbeats.next.is_none() {
                self.arm(index, time, config);
            }
            if self.is_heartbeat_due(index, time, config) {
                let nonce = self.nonces.number();
                self.paths[index].postpone_additional(time, config);
                return Some(self.paths[index].heartbeat(time, nonce));
            }
            if self.paths[index].wants_additional(time, config) {
                let nonce = self.nonces.number();
                return Some(self.paths[index].additional_heartbeat(time, nonce, config));
            }
            if self.paths[index].wants_probe() {
                let nonce = self.nonces.number();
                let probe = self.paths[index].probe(time, nonce);
                if probe.is_some() {
                    return probe;
                }
            }
        }
        let paths = self.paths.iter();
        let due = paths.map(Path::due).min().unwrap_or(u64::MAX);
        // Addresses that wait for verification do not shorten the interval.
        self.due = if due <= time { self.verify_after.max(time + 1) } else { due };
        None
    }

    /// Handles a HEARTBEAT ACK that arrived at our address `local`. Returns whether it answers a
    /// heartbeat of ours; otherwise it is late or forged.
    pub fn on_heartbeat_ack(&mut self, now: Duration, info: &[u8], local: Option<IpAddr>) -> bool {
        let time = nanoseconds(now);
        let Some((id, nonce)) = read_info(info) else { return false };
        let Some(path) = self.get_mut(id) else { return false };
        if path.mtu.on_answer(time, nonce) {
            path.apply_mtu();
        } else {
            let Some(sent) = path.sent_at(nonce) else { return false };
            (path.heartbeats.latest, path.heartbeats.repeated) = (None, None);
            path.on_round_trip(now, Duration::from_nanos(time.saturating_sub(sent)));
            if path.mtu.on_small_answer() {
                path.apply_mtu();
            }
            path.heartbeats.reschedule();
        }
        path.learn_local(local);
        self.due = 0;
        self.on_peer_alive();
        self.confirm(id);
        true
    }

    /// Requests an immediate heartbeat for the user (`SPP_HB_DEMAND`).
    pub fn request_heartbeat(&mut self, id: PathId) {
        if let Some(path) = self.get_mut(id) {
            path.heartbeats.demanded = true;
            path.heartbeats.send_soon();
            self.due = 0;
        }
    }

    /// Returns a heartbeat to bundle with what is sent on a path now, if its address is unconfirmed
    /// (RFC 9260 §5.4).
    pub fn verification_heartbeat(&mut self, now: Duration, id: PathId) -> Option<HeartbeatToSend> {
        if self.get(id)?.state() != PathState::Unconfirmed {
            return None;
        }
        let nonce = self.nonces.number();
        self.due = 0;
        Some(self.get_mut(id)?.heartbeat(nanoseconds(now), nonce))
    }

    /// Returns a heartbeat to bundle with the answer to one that came from an unconfirmed address.
    /// That packets come from there shows that the path is open now. Our own heartbeat may have been
    /// sent before it was, behind a NAT or where the peer had to open a DTLS session first, and
    /// would be repeated only after the initial timeout of a second. `None` if its answer can still
    /// be on the way, or one address is verified after the other as RFC 9260 §5.4 has it.
    pub fn repeated_verification(
        &mut self,
        now: Duration,
        id: PathId,
        config: &AssociationConfig,
    ) -> Option<HeartbeatToSend> {
        if verification_burst(config) == 1 {
            return None;
        }
        let usual = self.get(self.primary())?.rto.smoothed().map_or(0, nanoseconds);
        let path = self.get_mut(id).filter(|path| path.state() == PathState::Unconfirmed)?;
        let former = path.heartbeats.latest.map(|latest| (latest.nonce.get(), latest.sent));
        if former.is_some_and(|(_, sent)| nanoseconds(now) < sent.saturating_add(usual.max(1))) {
            return None;
        }
        path.heartbeats.repeated = former.map(Box::new);
        self.verification_heartbeat(now, id)
    }

    /// Verifies the unconfirmed addresses again that heartbeats may have been sent to from `added`,
    /// an address of this host that the peer has just accepted: what came from there earlier was of
    /// no association for the peer. RFC 5061 §5.3, F1: "the sender MUST NOT use the new IP address as
    /// a source for any SCTP packet except on carrying an ASCONF Chunk" until then, but it is routing
    /// that chooses the source. The answer to the former heartbeat still counts.
    pub fn verify_again_from(&mut self, added: IpAddr) {
        let may_use = |path: &&mut Path| {
            path.state() == PathState::Unconfirmed
                && path.is_suitable(added)
                && path.local.is_none_or(|local| local == added)
        };
        for path in self.paths.iter_mut().filter(may_use) {
            if path.heartbeats.is_waiting() {
                let former = path.heartbeats.latest.map(|latest| (latest.nonce.get(), latest.sent));
                path.heartbeats.repeated = former.map(Box::new);
                path.heartbeats.send_again();
            }
        }
        self.wake();
    }

    /// Handles an ICMP message that states a path MTU of `size` bytes (RFC 8899 §4.6).
    pub fn on_too_big(&mut self, now: Duration, id: PathId, size: u16) {
        if let Some(path) = self.get_mut(id)
            && path.mtu.on_too_big(nanoseconds(now), size)
        {
            path.apply_mtu();
        }
        self.due = 0;
    }

    /// Returns whether the next heartbeat is sent as soon as the previous one is lost.
    fn is_urgent(path: &Path, config: &AssociationConfig) -> bool {
        match path.state() {
            PathState::Unconfirmed => path.errors() < config.path_max_retrans,
            PathState::Active => {
                path.local.is_none() || path.errors() >= config.potentially_failed_max_retrans
            }
            PathState::PotentiallyFailed => path.errors() < config.path_max_retrans,
            PathState::Inactive => false,
        }
    }

    /// Schedules the next heartbeat of an idle path: after `HB.interval` and a timeout, plus or
    /// minus half of the timeout (RFC 9260 §8.3).
    fn arm(&mut self, index: usize, now: u64, config: &AssociationConfig) {
        let random = self.nonces.number();
        let path = &mut self.paths[index];
        let rto = nanoseconds(path.rto.current()).max(2);
        let interval = match config.hb_interval {
            Some(interval) => nanoseconds(interval),
            // Even without heartbeats, addresses have to be verified and failed paths to be probed.
            None if path.state() != PathState::Active => nanoseconds(config.rto_max),
            None => u64::MAX,
        };
        path.heartbeats.period = interval.saturating_add(rto / 2).saturating_add(random % rto);
        path.heartbeats.next = Some(now.saturating_add(path.heartbeats.period));
    }

    /// Returns whether a heartbeat of this path is due. Data postpones it; addresses are verified a
    /// few at a time (RFC 9260 §5.4, `HB.Max.Burst`).
    fn is_heartbeat_due(&mut self, index: usize, now: u64, config: &AssociationConfig) -> bool {
        let path = &mut self.paths[index];
        if path.heartbeats.is_waiting() || path.heartbeats.next.is_none_or(|next| next > now) {
            return false;
        }
        if path.is_probed_by_data() && !path.heartbeats.demanded {
            let t3 = path.t3.unwrap_or(path.rto.current() + Duration::from_nanos(now));
            path.heartbeats.next = Some(nanoseconds(t3).max(now.saturating_add(1)));
            return false;
        }
        if path.state() == PathState::Active
            && !path.heartbeats.demanded
            && path.heartbeats.next != Some(0)
        {
            let idle_since = path.last_sent().map_or(0, nanoseconds);
            let next = idle_since.saturating_add(path.heartbeats.period);
            if next > now {
                path.heartbeats.next = Some(next);
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
    /// Returns the probe of a larger MTU that is due now, if any.
    fn probe(&mut self, now: u64, nonce: u64) -> Option<HeartbeatToSend> {
        let size = self.mtu.wanted_probe()?;
        self.mtu.on_probe_sent(now, size, nonce, self.rto.current());
        let packet = (usize::from(size) - self.overhead()) & !3;
        Some(HeartbeatToSend { path: self.id, info: info(self.id, nonce), probe: Some(packet) })
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
