//! The most payload that a situation allows: what its paths carry, and what its buffer lets them.
//!
//! A byte stays in the send buffer until it is acknowledged for good, so a buffer of σ bytes carries
//! no more than σ by the time that a byte stays. That time is another one on each path, so which
//! paths the buffer is spent on matters, a small linear programme:
//!
//! ```text
//! maximise Σ r_p   with   r_p ≤ payload rate of path p,   Σ r_p · (holding time of path p) ≤ σ
//! ```
//!
//! Its solution is to fill the paths of the shortest holding times first. Where packets are lost, the
//! receiver's buffer, as large as the sender's, holds besides what waits for them in the order of its
//! stream.

use std::collections::BTreeMap;

use super::queue_info::QueueInfo;
use super::setup::{PathSetup, Setup};
use crate::units::Loss;

/// Bytes of IPv4 header, SCTP header and DATA header before a message in a packet of its own.
const HEADERS: usize = 20 + 12 + 16;
/// Bytes of an IP packet.
const MTU: usize = 1500;
/// Packets for which there is one acknowledgement (RFC 9260 §6.2).
const PACKETS_PER_SACK: f64 = 2.0;
/// A part of the bound that is worth a word.
const LEAST_SHOWN: f64 = 1e-3;
/// Halvings until the buffer that is left is known well enough.
const STEPS: usize = 50;

/// The most payload that a situation allows, and how that comes about.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// In bit/s, the average over all phases.
    pub rate: f64,
    /// The buffer that counts, in bytes: whole messages, without what waits for every second packet
    /// to be acknowledged. None if it is not limited.
    pub buffer: Option<f64>,
    /// Times between which nothing changes, in their order.
    pub phases: Vec<Phase>,
}

/// A time in which nothing changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// How long it is measured.
    pub seconds: f64,
    /// What each bottleneck carries at most, those first on which the buffer does most.
    pub links: Vec<LinkBound>,
}

/// What one bottleneck carries at most.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkBound {
    /// The path that it belongs to.
    pub path: String,
    /// The payload that it can carry, less what it loses, in bit/s.
    pub capacity: f64,
    /// How long a byte stays in the send buffer at least, in seconds: its packet is sent, goes there
    /// with the path's delay, and its acknowledgement comes back with the shortest one; with losses,
    /// all that again for the part that is lost.
    pub holding: f64,
    /// What the buffer lets it carry, in bit/s.
    pub carried: f64,
}

impl LinkBound {
    /// Bytes of the buffer that fill it.
    #[must_use]
    pub fn wanted(&self) -> f64 {
        self.capacity * self.holding / 8.0
    }

    /// Bytes of the buffer that are left for it.
    #[must_use]
    pub fn given(&self) -> f64 {
        self.carried * self.holding / 8.0
    }
}

impl Setup {
    /// The most payload that can pass over the paths of the association, in bit/s: a message to a
    /// packet, nothing but data, no loss, nothing that changes.
    #[must_use]
    pub fn ceiling(&self) -> f64 {
        self.links().map(|link| self.payload_rate(&self.path[link])).sum()
    }

    /// The most payload that can pass with this send buffer, these losses and these changes.
    #[must_use]
    pub fn bound(&self) -> Bound {
        let message = self.application.message as f64;
        let buffer = self.association.buffer.map(|buffer| {
            let whole = (buffer.0 as f64 / message).floor() * message;
            (whole - message * (1.0 - 1.0 / PACKETS_PER_SACK)).max(message / PACKETS_PER_SACK)
        });
        let end = self.time.warm_up.0 + self.time.duration.0;
        let mut events: Vec<_> = self.event.iter().collect();
        events.sort_by_key(|event| event.at);
        let mut paths = self.path.clone();
        let mut down: Vec<&str> = Vec::new();
        let (mut from, mut phases) = (self.time.warm_up.0, Vec::new());
        for event in events {
            let at = event.at.0.min(end);
            if at > from {
                phases.push(self.phase(&paths, &down, (at - from).as_secs_f64(), buffer));
                from = at;
            }
            if let Some(path) = paths.get_mut(&event.path) {
                path.rate = event.rate.unwrap_or(path.rate);
                path.delay = event.delay.unwrap_or(path.delay);
            }
            if let Some(up) = event.up {
                down.retain(|path| *path != event.path);
                down.extend((!up).then_some(event.path.as_str()));
            }
        }
        if end > from {
            phases.push(self.phase(&paths, &down, (end - from).as_secs_f64(), buffer));
        }
        let carried = |phase: &Phase| phase.links.iter().map(|link| link.carried).sum::<f64>();
        let sum: f64 = phases.iter().map(|phase| carried(phase) * phase.seconds).sum();
        Bound { rate: sum / self.time.duration.0.as_secs_f64(), buffer, phases }
    }

    /// The same where the application keeps a message of each stream unsent
    /// ([`QueueInfo::Unsent`]): all but the one that is just being sent take of the buffer. None where
    /// it does not, or where that takes nothing.
    #[must_use]
    pub fn bound_with_unsent(&self) -> Option<f64> {
        let unsent =
            self.application.message * usize::from(self.application.streams.saturating_sub(1));
        let mut less = self.clone();
        let buffer = less.association.buffer.as_mut()?;
        buffer.0 = buffer.0.checked_sub(unsent)?;
        let rate = less.bound().rate;
        let takes = rate < self.bound().rate * (1.0 - LEAST_SHOWN);
        (self.application.queue_info == QueueInfo::Unsent && takes).then_some(rate)
    }

    fn phase(
        &self,
        paths: &BTreeMap<String, PathSetup>,
        down: &[&str],
        seconds: f64,
        buffer: Option<f64>,
    ) -> Phase {
        let up = || self.links().filter(|link| !down.contains(link));
        let back = up().map(|link| paths[link].delay.0.as_secs_f64()).fold(f64::INFINITY, f64::min);
        let mut links: Vec<LinkBound> = up()
            .map(|link| {
                let path = &paths[link];
                let sending = (MTU + path.framing.0.0) as f64 * 8.0 / path.rate.0 as f64;
                let arriving = 1.0 - path.loss.average();
                LinkBound {
                    path: link.to_owned(),
                    capacity: self.payload_rate(path) * arriving,
                    holding: (sending + path.delay.0.as_secs_f64() + back) / arriving.max(1e-9),
                    carried: 0.0,
                }
            })
            .collect();
        links.sort_by(|one, other| one.holding.total_cmp(&other.holding));
        let bits = buffer.map_or(f64::INFINITY, |bytes| bytes * 8.0);
        fill(&mut links, bits);
        let (mut low, mut high) = (0.0, bits);
        // What waits at the receiver for what is sent again takes of its buffer, as large as ours.
        let taken = |links: &[LinkBound]| {
            let bits = |link: &LinkBound| link.carried * link.holding;
            let rate: f64 = links.iter().map(|link| link.carried).sum();
            links.iter().map(bits).sum::<f64>() + rate * self.wait_for_lost(paths, links)
        };
        if taken(&links) > bits {
            for _ in 0..STEPS {
                let middle = (low + high) / 2.0;
                fill(&mut links, middle);
                if taken(&links) > bits { high = middle } else { low = middle }
            }
            fill(&mut links, low);
        }
        Phase { seconds, links }
    }

    /// How long a message waits at the receiver, on average and at least, for one of its stream that
    /// was lost and sent again, in seconds. That one comes a holding time T later. Losses of a stream
    /// come at random, λ a second; so the wait is more than w with probability 1 − e^(−λ(T − w)), and
    /// T − (1 − e^(−λT)) / λ on average.
    fn wait_for_lost(&self, paths: &BTreeMap<String, PathSetup>, links: &[LinkBound]) -> f64 {
        let message = self.application.message as f64 * 8.0;
        let lost = |link: &LinkBound| {
            let part = paths[&link.path].loss.average();
            (link.carried / message * part, link.holding * (1.0 - part))
        };
        let all: f64 = links.iter().map(|link| lost(link).0).sum();
        if all <= 0.0 {
            return 0.0;
        }
        let late = links.iter().map(|link| lost(link).0 * lost(link).1).sum::<f64>() / all;
        let rate = all / f64::from(self.application.streams);
        late - (1.0 - (-rate * late).exp()) / rate
    }

    /// The bottlenecks that the association uses, by the paths that they belong to.
    fn links(&self) -> impl Iterator<Item = &str> {
        let mut links: Vec<&str> = Vec::new();
        for (name, path) in self.used_paths() {
            let link = path.through.as_deref().unwrap_or(name);
            if !links.contains(&link) {
                links.push(link);
            }
        }
        links.into_iter()
    }

    /// The most payload that can pass over one path, in bit/s.
    #[must_use]
    pub fn payload_rate(&self, path: &PathSetup) -> f64 {
        let room = MTU - HEADERS;
        let message = self.application.message;
        // Small messages share a packet, large ones are cut.
        let (payload, packet) = match message <= room {
            true => {
                let chunk = 16 + message.div_ceil(4) * 4;
                let count = ((MTU - 32) / chunk).max(1);
                (count * message, 32 + count * chunk)
            }
            false => {
                let packets = message.div_ceil(room);
                (message, message + packets * HEADERS)
            }
        };
        let packets = message.div_ceil(room).max(1);
        let framed = packet + packets * path.framing.0.0;
        path.rate.0 as f64 * payload as f64 / framed as f64
    }
}

/// Spends so many bits of buffer on links, on the first ones first.
fn fill(links: &mut [LinkBound], mut bits: f64) {
    for link in links {
        link.carried = link.capacity.min(bits / link.holding);
        bits -= link.carried * link.holding;
    }
}

impl Loss {
    /// The part of all full packets that is lost on average.
    #[must_use]
    pub fn average(&self) -> f64 {
        let (worsens, recovers) = (self.worsens.0, self.recovers.0);
        let bad = if worsens > 0.0 { worsens / (worsens + recovers) } else { 0.0 };
        let while_bad = self.while_bad.map_or(self.probability.0, |part| part.0);
        let drawn = self.probability.0 * (1.0 - bad) + while_bad * bad;
        let whole = (1.0 - self.bit_errors).powi(MTU as i32 * 8);
        1.0 - (1.0 - drawn) * whole
    }
}

#[cfg(test)]
mod tests;
