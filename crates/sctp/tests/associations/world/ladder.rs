//! What went over the networks, as one would draw it.

use bytes::Bytes;
use eyas_sctp::io::Ecn;

use super::{A, Wiretap, names};
use crate::network::{Leaving, Tap};

/// Writes packets down, and takes some away.
pub(crate) struct Ladder {
    /// One line for each packet that was sent.
    pub(crate) ladder: Vec<String>,
    /// The last packet with such a chunk in its line is kept.
    pub(crate) keep: Option<&'static str>,
    /// See [`Self::keep`].
    pub(crate) kept: Option<Bytes>,
    /// Stands for every byte that was sent, and when.
    pub(crate) digest: u64,
    /// Who knows the tags of both sides, if somebody listens.
    pub(crate) wiretap: Option<Wiretap>,
    /// Whether packets that can be are marked as having met congestion.
    pub(crate) congested: bool,
    /// The next packet with such a chunk in its line is taken away.
    pub(super) lose: Vec<&'static str>,
}

impl Default for Ladder {
    fn default() -> Self {
        Self {
            ladder: Vec::new(),
            keep: None,
            kept: None,
            // The basis of FNV-1a.
            digest: 0xcbf2_9ce4_8422_2325,
            wiretap: None,
            congested: false,
            lose: Vec::new(),
        }
    }
}

impl Tap for Ladder {
    fn leaves(&mut self, packet: &mut Leaving) -> bool {
        let contents = &packet.datagram.contents;
        let time = packet.now.as_nanos().to_be_bytes();
        for byte in time.iter().chain(contents) {
            self.digest = (self.digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        if let Some(wiretap) = &mut self.wiretap {
            wiretap.hear(packet.from, contents);
        }
        let arrow = if packet.from == A { "->" } else { "<-" };
        let mut line = format!("A {arrow} B  {}", names(contents));
        if self.keep.is_some_and(|what| line.contains(what)) {
            self.kept = Some(contents.clone());
        }
        match packet.network {
            Some(0) => {}
            Some(over) => line.push_str(&format!(" (network {over})")),
            None => line.push_str(" (nowhere)"),
        }
        if self.congested && packet.datagram.ecn != Ecn::NotCapable {
            packet.datagram.ecn = Ecn::CongestionExperienced;
        }
        let named = self.lose.iter().position(|what| line.contains(what));
        self.ladder.push(line);
        named.map(|at| self.lose.remove(at)).is_none()
    }

    fn is_lost(&mut self) {
        if let Some(line) = self.ladder.last_mut().filter(|line| !line.ends_with("(nowhere)")) {
            line.push_str(" (lost)");
        }
    }
}
