//! The peer's window (RFC 9260 §6.1 rule A, §6.2.1), and zero window probes.

use super::outstanding::{ChunkState, OutstandingData};
use crate::serial::Tsn;

/// The window that the peer advertised, and the outstanding zero window probe.
#[derive(Debug)]
pub(super) struct PeerWindow {
    /// `a_rwnd` of the latest SACK, in bytes.
    advertised: usize,
    /// The chunk that was sent although the window had no room for it.
    probe: Option<Tsn>,
    /// Whether the peer has responded since the probe was sent: then it is alive, and only slow.
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

    /// Waits for a new response, as the probe is retransmitted.
    pub(super) fn await_answer(&mut self) {
        self.answered = false;
    }

    /// Returns the bytes that may be sent while `in_flight` bytes are outstanding.
    #[inline]
    pub(super) fn available(&self, in_flight: usize) -> usize {
        self.advertised.saturating_sub(in_flight)
    }

    /// Returns whether a chunk of this length may be sent: it fits, or nothing is in flight and it
    /// is a probe (RFC 9260 §6.1 rule A).
    #[inline]
    pub(super) fn admits(&self, length: usize, in_flight: usize) -> bool {
        length <= self.available(in_flight) || in_flight == 0
    }

    /// Records a new chunk that is sent.
    #[inline]
    pub(super) fn on_sent(&mut self, tsn: Tsn, length: usize, in_flight: usize) {
        if length > self.available(in_flight) {
            self.probe = Some(tsn);
            self.answered = false;
        }
    }

    /// Returns whether only a zero window probe is in flight, and the peer is alive: then its
    /// silence about the chunk is no path error (RFC 9260 §6.1 rule A).
    pub(super) fn is_probing(&self, outstanding: &OutstandingData) -> bool {
        self.answered && self.probe.is_some_and(|probe| outstanding.first() == probe)
    }

    /// Returns the probe to retransmit as the window has opened, instead of waiting for T3.
    pub(super) fn take_probe(&mut self, outstanding: &OutstandingData) -> Option<Tsn> {
        let probe = self.probe?;
        let chunk = outstanding.get(probe);
        if chunk.is_some_and(|chunk| usize::from(chunk.length) > self.advertised) {
            return None;
        }
        self.probe = None;
        chunk.filter(|chunk| chunk.state == ChunkState::InFlight).map(|_| probe)
    }
}
