//! The peer's window (RFC 9260 §6.1 rule A, §6.2.1), and probes into a closed one.

use super::outstanding::{ChunkState, Outstanding};
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

    /// Whether all that is under way is a probe into a closed window, and the peer lives: its
    /// silence about the chunk is no error of the path (RFC 9260 §6.1 rule A).
    pub(super) fn is_probing(&self, outstanding: &Outstanding) -> bool {
        self.answered && self.probe.is_some_and(|probe| outstanding.first() == probe)
    }

    /// The probe that is to be sent again as the window has opened, instead of waiting for T3.
    pub(super) fn take_probe(&mut self, outstanding: &Outstanding) -> Option<Tsn> {
        let probe = self.probe?;
        let chunk = outstanding.get(probe);
        if chunk.is_some_and(|chunk| usize::from(chunk.length) > self.advertised) {
            return None;
        }
        self.probe = None;
        chunk.filter(|chunk| chunk.state == ChunkState::InFlight).map(|_| probe)
    }
}
