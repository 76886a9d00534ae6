//! One association over all lines of networks drawn at random, beside each line alone and beside the
//! kernel's MPTCP over the same lines.
//!
//! Each run is the network of its seed. In it one stack after the other sends as much as it can, with
//! the traffic that was drawn: eyas's SCTP over all lines and over each of them alone, in real time
//! and in the simulator, MPTCP over all of them, and TCP over each.

use serde::{Deserialize, Serialize};

use super::error::LiveSetupError;
use super::multipath::{MultipathSetup, MultipathStack};
use super::{ColumnLabel, LiveExperiment};
use crate::situation::{RandomSetup, SimulationSetup};

/// The networks, and what is compared in them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrawnSetup {
    /// The stack that is measured over all lines and over each line alone.
    pub stack: MultipathStack,
    /// The congestion control of MPTCP and TCP, by the kernel's name.
    pub tcp: String,
    /// What networks are drawn from.
    pub network: RandomSetup,
}

impl DrawnSetup {
    /// Returns the experiment with a stack over all lines of a network.
    pub(crate) fn over_all(
        &self,
        network: &SimulationSetup,
        stack: MultipathStack,
    ) -> MultipathSetup {
        let has_streams = !matches!(stack, MultipathStack::Mptcp | MultipathStack::Tcp);
        let mut application = network.application;
        application.keystrokes = application.keystrokes.filter(|_| has_streams);
        MultipathSetup {
            stack,
            warm_up: network.time.warm_up,
            duration: network.time.duration,
            path: network.path.clone(),
            association: network.association.clone(),
            application,
            tcp: self.tcp.clone(),
            failing_path: None,
            added_path: None,
        }
    }

    /// Returns the same over one line, with an association or a connection that has one path.
    #[cfg(any(test, all(target_os = "linux", feature = "live")))]
    pub(crate) fn alone(
        &self,
        network: &SimulationSetup,
        line: &str,
        stack: MultipathStack,
    ) -> MultipathSetup {
        self.over_all(&network.alone(line), stack)
    }
}

impl LiveExperiment for DrawnSetup {
    const COLUMNS: &'static [ColumnLabel] = &[
        ("simulated", "payload over all lines in the simulator [Mbit/s]"),
        ("agree", "payload over all lines, relative to that in the simulator"),
        ("mptcp", "payload of MPTCP over all lines [Mbit/s]"),
        ("tcp-alone", "payload of TCP over the best single line [Mbit/s]"),
        ("mptcp-best", "payload of MPTCP, relative to TCP over the best single line"),
        ("beside-mptcp", "payload over all lines, relative to MPTCP's"),
    ];

    fn check(&self) -> Result<(), LiveSetupError> {
        self.network.check()?;
        if !matches!(self.stack, MultipathStack::Eyas | MultipathStack::EyasUdp) {
            return Err(LiveSetupError::DrawnStack);
        }
        if self.network.changing.0 > 0.0 {
            return Err(LiveSetupError::ChangingNetwork);
        }
        let network = self.network.draw(1);
        self.over_all(&network, self.stack).check()
    }

    fn emulated(&self) -> Vec<String> {
        let mut notes = vec![
            "Each run is one network, drawn from its seed: --seed and --runs 1 repeat it alone. All \
             stacks are measured in it one after the other, for the same time each; what is sent both \
             ways is measured in both directions, and the worse one counts."
                .to_owned(),
            "MPTCP and TCP send one stream of bytes, so they have no keystrokes.".to_owned(),
        ];
        notes.extend(self.over_all(&self.network.draw(1), self.stack).emulated());
        notes
    }
}
