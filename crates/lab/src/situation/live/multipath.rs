//! How much payload one connection gets over several paths, and the cost of a failing path.
//!
//! A saturated sender sends messages of one packet each to a receiver, which records what arrives
//! when. Between them are some paths, each with its rate, delay, queue and loss. The stack that
//! they use differs: eyas's SCTP, the kernel's MPTCP, usrsctp, or eyas's SCTP in the simulator,
//! over the same paths in virtual time. Halfway through the measurement a path may fail, or be
//! added.
//!
//! The ceiling is the maximum that the paths could carry, computed only from rates and headers:
//! full packets without gaps, only data, less random losses.

use std::collections::BTreeMap;

use eyas_emulator::units::{BitRate, TimeSpan};
use serde::{Deserialize, Serialize};

use super::error::LiveSetupError;
use super::{ColumnLabel, LiveExperiment};
use crate::situation::{
    AccessSetup, ApplicationSetup, AssociationSetup, BackEventSetup, EventSetup, PathSetup,
    SimulationSetup, SimulationTimes,
};

/// One situation: the stack and the paths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MultipathSetup {
    /// The stacks of sender and receiver.
    pub stack: MultipathStack,
    /// How long the connection may settle after its first message.
    pub warm_up: TimeSpan,
    /// The duration of the measurement.
    pub duration: TimeSpan,
    /// The paths, by name; they are numbered in the order of their names.
    pub path: BTreeMap<String, PathSetup>,
    /// The behaviour of the association, if it is eyas's.
    #[serde(default)]
    pub association: AssociationSetup,
    /// What is sent. A message that does not fit in a packet with the headers of a stack is
    /// shortened for that stack.
    #[serde(default)]
    pub application: ApplicationSetup,
    /// The congestion control of TCP, by the kernel's name.
    #[serde(default = "reno")]
    pub tcp: String,
    /// The path that fails halfway through the measurement.
    #[serde(rename = "dies", default, skip_serializing_if = "Option::is_none")]
    pub failing_path: Option<String>,
    /// The path that both hosts learn of halfway through the measurement.
    #[serde(rename = "comes", default, skip_serializing_if = "Option::is_none")]
    pub added_path: Option<String>,
}

fn reno() -> String {
    "reno".to_owned()
}

/// The stacks of sender and receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MultipathStack {
    /// eyas's SCTP on both sides, directly over IP.
    Eyas,
    /// eyas's SCTP on both sides, inside UDP (RFC 6951).
    EyasUdp,
    /// eyas's SCTP on both sides, in the simulator.
    Simulator,
    /// The kernel's Multipath TCP (RFC 8684).
    Mptcp,
    /// The kernel's TCP, over the first path only.
    Tcp,
    /// usrsctp on both sides, with CMT-SCTP switched on.
    Usrsctp,
    /// eyas sends, usrsctp receives.
    EyasToUsrsctp,
}

/// The sizes of the headers of a message that has its own packet.
const IP: usize = 20;
const UDP: usize = 8;
/// SCTP's common header and that of DATA (RFC 9260 §3.1, §3.3.1).
const SCTP: usize = 12 + 16;
/// The additional size of I-DATA compared with DATA (RFC 8260 §2.1).
const I_DATA_MORE: usize = 4;
/// TCP's header with time stamps (RFC 7323 §3.2), padded.
const TCP: usize = 20 + 12;
/// The Data Sequence Signal with an acknowledgement of 4 bytes and a mapping with a sequence number
/// of 8, without checksum (RFC 8684 §3.3.1): 4 + 4 + 8 + 4 + 2, padded. It is in every full segment.
const DSS: usize = 24;
/// The MTU of the paths.
pub(crate) const MTU: usize = 1500;

impl MultipathSetup {
    /// Returns the paths that are used, in the order of their numbers: the one that is added later
    /// is the last.
    pub(crate) fn used(&self) -> impl Iterator<Item = (&str, &PathSetup)> {
        let is_added = |name: &str| self.added_path.as_deref() == Some(name);
        let used = || self.path.iter().filter(|(name, _)| self.association.uses(name));
        let initial = used().filter(move |(name, _)| !is_added(name));
        let added = used().filter(move |(name, _)| is_added(name));
        let count = if self.stack == MultipathStack::Tcp { 1 } else { usize::MAX };
        initial.chain(added).map(|(name, path)| (name.as_str(), path)).take(count)
    }

    /// Returns the size of the headers of a full packet.
    fn headers(&self) -> usize {
        let extension = match self.association.interleaving {
            Some(false) => 0,
            _ => I_DATA_MORE,
        };
        IP + match self.stack {
            MultipathStack::Eyas | MultipathStack::Simulator => SCTP + extension,
            MultipathStack::EyasUdp => UDP + SCTP + extension,
            MultipathStack::EyasToUsrsctp | MultipathStack::Usrsctp => SCTP,
            MultipathStack::Mptcp => TCP + DSS,
            MultipathStack::Tcp => TCP,
        }
    }

    /// Returns the size of a message: that of the plan, if it fits in a packet.
    pub(crate) fn message(&self) -> usize {
        match self.stack {
            // A byte stream has no packet boundaries.
            MultipathStack::Mptcp | MultipathStack::Tcp => self.application.message,
            _ => self.application.message.min((MTU - self.headers()) / 4 * 4),
        }
    }

    /// Returns the maximum payload rate in Mbit/s, before and after the change.
    #[cfg(any(test, all(target_os = "linux", feature = "live")))]
    pub(crate) fn ceilings(&self) -> [f64; 2] {
        let headers = self.headers();
        let payload = match self.stack {
            MultipathStack::Mptcp | MultipathStack::Tcp => MTU - headers,
            _ => self.message(),
        };
        let of = |path: &PathSetup| {
            // Chunks are padded to four bytes; segments are not.
            let packet = headers + payload.next_multiple_of(4) + path.framing.0.0;
            path.rate().0 as f64 / 1e6 * payload as f64 / packet as f64
                * (1.0 - path.loss.average(MTU))
        };
        let sum = |without: &Option<String>| {
            self.used()
                .filter(|(name, _)| without.as_deref() != Some(name))
                .map(|(_, path)| of(path))
                .sum()
        };
        [sum(&self.added_path), sum(&self.failing_path)]
    }

    /// Returns the average maximum payload rate, in Mbit/s.
    #[cfg(any(test, all(target_os = "linux", feature = "live")))]
    pub(crate) fn ceiling(&self) -> f64 {
        let [before, after] = self.ceilings();
        f64::midpoint(before, after)
    }

    /// Returns the same paths, association and application for the simulator.
    pub(crate) fn simulation(&self) -> SimulationSetup {
        let time = SimulationTimes {
            start: [TimeSpan::default(); 2],
            warm_up: self.warm_up,
            duration: self.duration,
        };
        let middle = TimeSpan(self.warm_up.0 + self.duration.0 / 2);
        let mut path = self.path.clone();
        for (name, path) in &mut path {
            if self.added_path.as_ref() == Some(name) {
                path.joins = Some(middle);
            }
        }
        let event = self.failing_path.iter().map(|path| EventSetup {
            at: middle,
            path: path.clone(),
            rate: None,
            delay: None,
            back: BackEventSetup::default(),
            up: Some(false),
        });
        let message = self.message();
        SimulationSetup {
            mode: Default::default(),
            time,
            access: Self::access(),
            path,
            association: self.association.clone(),
            application: ApplicationSetup { message, ..self.application },
            rival: Default::default(),
            event: event.collect(),
        }
    }

    /// Returns access links that are fast and short enough to be negligible.
    const fn access() -> AccessSetup {
        AccessSetup { rate: BitRate(100_000_000_000), delay: TimeSpan(std::time::Duration::ZERO) }
    }
}

impl LiveExperiment for MultipathSetup {
    const COLUMNS: &'static [ColumnLabel] = &[
        ("goodput", "payload at the receiving application [Mbit/s]"),
        ("ceiling", "ceiling of the payload [Mbit/s]"),
        ("share", "payload, share of its ceiling [%]"),
        ("before", "payload before the change [Mbit/s]"),
        ("after", "payload in the last quarter [Mbit/s]"),
        ("gap", "longest time without new data [ms]"),
        ("on-A", "over path A [Mbit/s of IP packets]"),
        ("on-B", "over path B [Mbit/s of IP packets]"),
        ("on-C", "over path C [Mbit/s of IP packets]"),
        ("back-A", "back over path A [Mbit/s of IP packets]"),
        ("back-B", "back over path B [Mbit/s of IP packets]"),
        ("back-C", "back over path C [Mbit/s of IP packets]"),
        ("dropped", "packets dropped on the paths [%]"),
        ("goodput-back", "payload at the sender, if both send [Mbit/s]"),
        ("keystroke-delay", "delay of keystrokes beside the bulk [ms]"),
    ];
    // The throughput of several paths is neither of these, and takes less than half a core.
    const RUNS_ALONE: bool = false;

    fn check(&self) -> Result<(), LiveSetupError> {
        let known = |name: &Option<String>, key| match name {
            Some(name) if !self.path.contains_key(name) => {
                Err(LiveSetupError::UnknownPath { key, name: name.clone() })
            }
            _ => Ok(()),
        };
        self.association.check()?;
        known(&self.failing_path, "dies")?;
        known(&self.added_path, "comes")?;
        if self.path.values().any(|path| path.through.is_some() || path.joins.is_some()) {
            return Err(LiveSetupError::PathOfSimulation);
        }
        let is_eyas = matches!(
            self.stack,
            MultipathStack::Eyas | MultipathStack::EyasUdp | MultipathStack::Simulator
        );
        let is_tcp = matches!(self.stack, MultipathStack::Mptcp | MultipathStack::Tcp);
        if self.application.keystrokes.is_some() && !is_eyas {
            return Err(LiveSetupError::Keystrokes);
        }
        if self.application.both_ways && !is_eyas && !is_tcp {
            return Err(LiveSetupError::BothWays);
        }
        if self.used().next().is_none() {
            return Err(LiveSetupError::NoPath);
        }
        Ok(self.simulation().check()?)
    }

    fn emulated(&self) -> Vec<String> {
        vec![
            "Two network namespaces of one machine with eyas-netem between them in real time: rates \
             are those of IP packets, each path has a separate queue for each direction, and losses \
             occur in both. The MTU is 1,500 bytes. Sender, receiver and paths share the machine's \
             cores; any other load on them was not recorded."
                .to_owned(),
            format!(
                "The sender is saturated; the receiver reads at once. The measurement begins {} \
                 after the first message has arrived and lasts {}. The trials of a point are the \
                 twelve equal parts of that time.",
                self.warm_up, self.duration,
            ),
            "Ceiling: only full packets of 1,500 bytes on every path, minus random losses. Headers of \
             SCTP: 20 bytes of IP, 12 of SCTP, 16 of DATA, and 8 of UDP if encapsulated; of MPTCP: 20 \
             of IP, 20 of TCP, 12 of time stamps and 24 of the data sequence signal."
                .to_owned(),
            "MPTCP is this kernel's, with its default scheduler and path manager and automatically \
             sized buffers; the server announces its other addresses. usrsctp has CMT-SCTP, NR-SACK \
             and DAC enabled, buffers of 4 MiB and its default timers. Without its peer program \
             (named by EYAS_USRSCTP_PEER, built by interop/install) its points are left out."
                .to_owned(),
            "Simulator: the same association over the same paths, with infinitely fast hosts, opened \
             about 1 s before the warm-up begins."
                .to_owned(),
        ]
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a set-up with two paths, of 10 and 20 Mbit/s, and additional settings.
    pub(crate) fn setup(extra: &str) -> MultipathSetup {
        let text = format!(
            "stack = 'eyas'\nwarm_up = '1 s'\nduration = '12 s'\n{extra}
            association = {{ interleaving = false }}
            [path]
            A = {{ rate = '10 Mbit/s', delay = '10 ms' }}
            B = {{ rate = '20 Mbit/s', delay = '10 ms' }}"
        );
        toml::from_str(&text).unwrap()
    }

    #[test]
    fn ceilings_are_those_of_full_packets() {
        let mut setup = setup("");
        let near = |ceiling: f64, wanted: f64| (ceiling - wanted).abs() < 1e-9;
        assert!(near(setup.ceiling(), 30.0 * 1452.0 / 1500.0));
        setup.stack = MultipathStack::EyasUdp;
        assert_eq!(setup.message(), 1444);
        assert!(near(setup.ceiling(), 30.0 * 1444.0 / 1500.0));
        setup.stack = MultipathStack::Mptcp;
        assert!(near(setup.ceiling(), 30.0 * 1424.0 / 1500.0));
        setup.stack = MultipathStack::Tcp;
        assert!(near(setup.ceiling(), 10.0 * 1448.0 / 1500.0));
    }

    #[test]
    fn paths_that_fail_or_join_count_for_half_of_the_time() {
        let [before, after] = setup("dies = 'B'").ceilings();
        assert!((before / after - 3.0).abs() < 1e-9);
        let [before, after] = setup("comes = 'A'").ceilings();
        assert!((after / before - 1.5).abs() < 1e-9);
        let order = setup("comes = 'A'");
        assert_eq!(order.used().map(|(name, _)| name).collect::<Vec<_>>(), ["B", "A"]);
    }

    #[test]
    fn an_invalid_scenario_is_reported() {
        let unknown = LiveSetupError::UnknownPath { key: "dies", name: "X".to_owned() };
        assert_eq!(setup("dies = 'X'").check(), Err(unknown));
        assert_eq!(setup("").check(), Ok(()));
    }
}
