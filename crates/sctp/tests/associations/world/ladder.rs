//! The packets sent over the networks, as a ladder diagram.

use bytes::Bytes;
use eyas_sctp::io::Ecn;

use super::{A, Wiretap, names};
use crate::network::{OutgoingPacket, Tap};

/// Records packets, and drops some.
pub(crate) struct Ladder {
    /// One line for each packet that was sent.
    pub(crate) ladder: Vec<String>,
    /// Keeps the last packet whose line contains this.
    pub(crate) keep: Option<&'static str>,
    /// See [`Self::keep`].
    pub(crate) kept: Option<Bytes>,
    /// A digest of all bytes sent and their times.
    pub(crate) digest: u64,
    /// Knows the tags of both sides, if it is listening.
    pub(crate) wiretap: Option<Wiretap>,
    /// Whether ECN-capable packets are marked CE.
    pub(crate) congested: bool,
    /// Drops the next packet whose line contains this.
    pub(super) lose: Vec<&'static str>,
    /// Drops this many per thousand of the packets whose line contains this. Only the first that
    /// matches counts.
    pub(crate) lossy: Vec<(&'static str, u64)>,
}

impl Default for Ladder {
    fn default() -> Self {
        Self {
            ladder: Vec::new(),
            keep: None,
            kept: None,
            // The FNV-1a offset basis.
            digest: 0xcbf2_9ce4_8422_2325,
            wiretap: None,
            congested: false,
            lose: Vec::new(),
            lossy: Vec::new(),
        }
    }
}

impl Tap for Ladder {
    fn on_sent(&mut self, packet: &mut OutgoingPacket) -> bool {
        let contents = &packet.datagram.contents;
        let time = packet.now.as_nanos().to_be_bytes();
        for byte in time.iter().chain(contents) {
            self.digest = (self.digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        if let Some(wiretap) = &mut self.wiretap {
            wiretap.record(packet.from, contents);
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
        let chance = (self.digest >> 32) % 1000;
        let loss = self.lossy.iter().find(|(what, _)| line.contains(what)).map_or(0, |it| it.1);
        self.ladder.push(line);
        named.map(|at| self.lose.remove(at)).is_none() && chance >= loss
    }

    fn on_lost(&mut self) {
        if let Some(line) = self.ladder.last_mut().filter(|line| !line.ends_with("(nowhere)")) {
            line.push_str(" (lost)");
        }
    }
}
