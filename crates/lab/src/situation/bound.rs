//! The maximum payload that a situation allows, given the rates of its paths and its buffer.
//!
//! A byte stays in the send buffer until it is acknowledged irrevocably, so a buffer of σ bytes
//! carries at most σ divided by this holding time. The holding time differs between paths, so it
//! matters which paths the buffer is assigned to. This is a small linear programme:
//!
//! ```text
//! maximise Σ r_p   with   r_p ≤ payload rate of path p,   Σ r_p · (holding time of path p) ≤ σ
//! ```
//!
//! Its solution is to fill the paths with the shortest holding times first. If packets are lost, the
//! receive buffer, which is as large as the send buffer, also holds the data that waits for them in
//! the order of its stream.

use std::collections::BTreeMap;

use super::queue_info::QueueInfo;
use super::setup::{PathSetup, SimulationSetup};

/// The size of the IPv4 header, SCTP header and DATA header of a message that has its own packet.
const HEADERS: usize = 20 + 12 + 16;
/// The size of an IP packet.
const MTU: usize = 1500;
/// Packets per acknowledgement (RFC 9260 §6.2).
const PACKETS_PER_SACK: f64 = 2.0;
/// The smallest fraction of the bound that is worth reporting.
const LEAST_SHOWN: f64 = 1e-3;
/// Bisection steps until the remaining buffer is known precisely enough.
const STEPS: usize = 50;

/// The maximum payload that a situation allows, and its derivation.
#[derive(Clone, Debug, PartialEq)]
pub struct PayloadBound {
    /// The rate in bit/s, averaged over all phases.
    pub rate: f64,
    /// The effective buffer in bytes: whole messages, minus what waits for every second packet to
    /// be acknowledged. `None` if it is not limited.
    pub buffer: Option<f64>,
    /// The periods without changes, in order.
    pub phases: Vec<SteadyPhase>,
}

/// A period without changes.
#[derive(Clone, Debug, PartialEq)]
pub struct SteadyPhase {
    /// The measured part of it, in seconds.
    pub seconds: f64,
    /// The maximum that each bottleneck carries, those that make the best use of the buffer first.
    pub links: Vec<LinkBound>,
}

/// The maximum that one bottleneck carries.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkBound {
    /// The path that it belongs to.
    pub path: String,
    /// The payload rate, less its losses, in bit/s.
    pub capacity: f64,
    /// The minimum time that a byte stays in the send buffer, in seconds: the transmission time of
    /// its packet, the delay of the path, and the delay of the acknowledgement over the path with
    /// the lowest one; with losses, the same again for the lost fraction.
    pub holding: f64,
    /// The rate that the buffer allows, in bit/s.
    pub carried: f64,
}

impl LinkBound {
    /// Returns the buffer in bytes that fills it.
    #[must_use]
    pub fn wanted(&self) -> f64 {
        self.capacity * self.holding / 8.0
    }

    /// Returns the buffer in bytes that is left for it.
    #[must_use]
    pub fn given(&self) -> f64 {
        self.carried * self.holding / 8.0
    }
}

impl SimulationSetup {
    /// Returns the maximum payload rate over the paths of the association, in bit/s: one message
    /// per packet, only data, no loss, and no changes.
    #[must_use]
    pub fn ceiling(&self) -> f64 {
        self.links().map(|link| self.payload_rate(&self.path[link])).sum()
    }

    /// Returns the maximum payload with this send buffer, these losses and these changes.
    #[must_use]
    pub fn bound(&self) -> PayloadBound {
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
                event.apply(path);
            }
            if let Some(up) = event.up {
                down.retain(|path| *path != event.path);
                down.extend((!up).then_some(event.path.as_str()));
            }
        }
        if end > from {
            phases.push(self.phase(&paths, &down, (end - from).as_secs_f64(), buffer));
        }
        let carried =
            |phase: &SteadyPhase| phase.links.iter().map(|link| link.carried).sum::<f64>();
        let sum: f64 = phases.iter().map(|phase| carried(phase) * phase.seconds).sum();
        PayloadBound { rate: sum / self.time.duration.0.as_secs_f64(), buffer, phases }
    }

    /// Returns the same if the application keeps an unsent message on each stream
    /// ([`QueueInfo::Unsent`]): all but the one that is just being sent occupy the buffer. `None`
    /// if it does not, or if that makes no difference.
    #[must_use]
    pub fn bound_with_unsent(&self) -> Option<f64> {
        let unsent =
            self.application.message * usize::from(self.application.streams.saturating_sub(1));
        let mut less = self.clone();
        let buffer = less.association.buffer.as_mut()?;
        buffer.0 = buffer.0.checked_sub(unsent)?;
        let rate = less.bound().rate;
        let is_lower = rate < self.bound().rate * (1.0 - LEAST_SHOWN);
        (self.application.queue_info == QueueInfo::Unsent && is_lower).then_some(rate)
    }

    fn phase(
        &self,
        paths: &BTreeMap<String, PathSetup>,
        down: &[&str],
        seconds: f64,
        buffer: Option<f64>,
    ) -> SteadyPhase {
        let up = || self.links().filter(|link| !down.contains(link));
        let return_delay = up()
            .map(|link| paths[link].reversed().delay.0.as_secs_f64())
            .fold(f64::INFINITY, f64::min);
        let mut links: Vec<LinkBound> = up()
            .map(|link| {
                let path = &paths[link];
                let sending = (MTU + path.framing.0.0) as f64 * 8.0 / path.rate().0 as f64;
                let arriving = 1.0 - path.loss.average(MTU);
                LinkBound {
                    path: link.to_owned(),
                    capacity: self.payload_rate(path) * arriving,
                    holding: (sending + path.delay.0.as_secs_f64() + return_delay)
                        / arriving.max(1e-9),
                    carried: 0.0,
                }
            })
            .collect();
        links.sort_by(|left, right| left.holding.total_cmp(&right.holding));
        let bits = buffer.map_or(f64::INFINITY, |bytes| bytes * 8.0);
        fill(&mut links, bits);
        let (mut low, mut high) = (0.0, bits);
        // Data that waits at the receiver for retransmissions occupies its buffer, which is as
        // large as ours.
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
        SteadyPhase { seconds, links }
    }

    /// Returns the minimum average time that a message waits at the receiver for a lost and
    /// retransmitted one of its stream, in seconds. The retransmission arrives a holding time T
    /// later. Losses of a stream are random, λ per second; so the wait exceeds w with probability 1
    /// − e^(−λ(T − w)), and is T − (1 − e^(−λT)) / λ on average.
    fn wait_for_lost(&self, paths: &BTreeMap<String, PathSetup>, links: &[LinkBound]) -> f64 {
        let message = self.application.message as f64 * 8.0;
        let lost = |link: &LinkBound| {
            let part = paths[&link.path].loss.average(MTU);
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

    /// Returns the bottlenecks that the association uses, by the paths that they belong to.
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

    /// Returns the maximum payload rate of one path, in bit/s.
    #[must_use]
    pub fn payload_rate(&self, path: &PathSetup) -> f64 {
        let room = MTU - HEADERS;
        let message = self.application.message;
        // Small messages share a packet, large ones are fragmented.
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
        path.rate().0 as f64 * payload as f64 / framed as f64
    }
}

/// Assigns this amount of buffer, in bits, to links, the first ones first.
fn fill(links: &mut [LinkBound], mut bits: f64) {
    for link in links {
        link.carried = link.capacity.min(bits / link.holding);
        bits -= link.carried * link.holding;
    }
}

#[cfg(test)]
mod tests;
