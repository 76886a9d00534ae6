//! The peer's window (RFC 9260 §6.1 rule A, §6.2.1), and probes into a closed one.

use core::time::Duration;

use super::Sender;
use super::outstanding::ChunkState;
use crate::path::Paths;
use crate::serial::Tsn;

/// The window that the peer advertised, and the probe that is under way into it.
#[derive(Debug)]
pub(super) struct PeerWindow {
    /// `a_rwnd` of the latest SACK, in bytes.
    advertised: usize,
    /// The chunk that was sent though the window had no room for it.
    probe: Option<Tsn>,
    /// Whether the peer answered since the probe was sent: then it is alive, and only slow.
    answered: bool,
}

impl PeerWindow {
    pub(super) fn new(advertised: u32) -> Self {
        Self { advertised: advertised as usize, probe: None, answered: false }
    }

    pub(super) fn on_sack(&mut self, a_rwnd: u32) {
        self.advertised = a_rwnd as usize;
        self.answered = true;
    }

    /// The probe is sent again: what answered the one before says nothing of this one.
    pub(super) fn await_answer(&mut self) {
        self.answered = false;
    }

    /// Bytes that may be sent, while so many are under way.
    #[inline]
    pub(super) fn left(&self, in_flight: usize) -> usize {
        self.advertised.saturating_sub(in_flight)
    }

    /// Whether a chunk of this length may be sent: it fits, or nothing is under way and it is a
    /// probe (RFC 9260 §6.1 rule A).
    #[inline]
    pub(super) fn admits(&self, length: usize, in_flight: usize) -> bool {
        length <= self.left(in_flight) || in_flight == 0
    }

    /// A new chunk is sent.
    #[inline]
    pub(super) fn on_sent(&mut self, tsn: Tsn, length: usize, in_flight: usize) {
        if length > self.left(in_flight) {
            self.probe = Some(tsn);
            self.answered = false;
        }
    }
}

impl Sender {
    /// The window that the peer advertised last, less what is under way; in bytes.
    #[must_use]
    pub fn peer_window(&self) -> usize {
        self.peer_window.left(self.in_flight)
    }

    /// Whether all that is under way is a probe into a closed window, and the peer lives: its
    /// silence about the chunk is no error of the path (RFC 9260 §6.1 rule A).
    pub(super) fn is_probing_window(&self) -> bool {
        let Some(probe) = self.peer_window.probe else { return false };
        self.peer_window.answered && self.outstanding.first() == probe
    }

    /// Sends a probe again as soon as the window has opened, instead of waiting for T3.
    pub(super) fn release_probe(&mut self, now: Duration, paths: &mut Paths) {
        let Some(probe) = self.peer_window.probe else { return };
        let Some(chunk) = self.outstanding.get(probe) else {
            self.peer_window.probe = None;
            return;
        };
        if usize::from(chunk.length) > self.peer_window.advertised {
            return;
        }
        self.peer_window.probe = None;
        if chunk.state == ChunkState::InFlight {
            self.forget(probe, now, paths);
        }
    }
}
