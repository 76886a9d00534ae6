//! What a client experiences while servers migrate to HTTP/3.
//!
//! A share of the servers supports HTTP/3, and a share of the networks swallows UDP. Each trial is
//! one visitor of one server: two requests, with nothing remembered about the server before. Some
//! attempts of its races are in vain: a refused or swallowed QUIC attempt, an unnecessary TCP
//! attempt. And some choices are wrong: the second request uses HTTP over TCP although HTTP/3
//! works.

use eyas_emulator::units::{PercentValue, TimeSpan};
use serde::{Deserialize, Serialize};

use super::error::LiveSetupError;
use super::{
    CORES_ARE_AWAKE, ClientMemory, ClientStrategy, ColumnLabel, LinkSetup, LiveExperiment,
};

/// One situation: a client strategy, and the population of servers and networks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoliciesSetup {
    /// The link.
    #[serde(default)]
    pub link: LinkSetup,
    /// How the client connects.
    #[serde(rename = "way")]
    pub strategy: ClientStrategy,
    /// The share of servers that support HTTP/3.
    pub http3: PercentValue,
    /// The share of visitors whose network swallows UDP.
    pub swallowed: PercentValue,
    /// What a visitor remembers at the start.
    #[serde(default)]
    pub memory: ClientMemory,
    /// The number of trials per run.
    pub trials: u32,
    /// The time between the starts of two trials.
    pub pace: TimeSpan,
    /// The time from the first response to the second request.
    pub second_after: TimeSpan,
    /// The time limit of a trial.
    pub give_up: TimeSpan,
}

/// The maximum number of trials of one run: each keeps some sockets open.
const MAX_TRIALS: u32 = 500;

impl LiveExperiment for PoliciesSetup {
    // In addition to those of `connect`.
    const COLUMNS: &'static [ColumnLabel] = &[
        ("wrong", "second request not over the best working protocol [%]"),
        ("wasted", "attempts of a trial that carried nothing"),
    ];
    const SHARES: &'static [&'static str] = &["wrong"];

    fn check(&self) -> Result<(), LiveSetupError> {
        self.link.check()?;
        if self.memory == ClientMemory::Warm {
            return Err(LiveSetupError::Memory);
        }
        match (1..=MAX_TRIALS).contains(&self.trials) {
            true => Ok(()),
            false => Err(LiveSetupError::Count { key: "trials", most: MAX_TRIALS }),
        }
    }

    fn emulated(&self) -> Vec<String> {
        let notes = [
            format!(
                "Each trial draws its server and its network: {} of the networks swallow UDP, \
                 except DNS. A server without HTTP/3 refuses UDP with ICMP.",
                self.swallowed,
            ),
            "Four eyas-http servers represent all servers: with and without HTTP/3, and each of them \
             behind a network that swallows UDP. All clients look up their name at a name server on \
             the same host, which has HTTPS records only for one curve."
                .to_owned(),
            CORES_ARE_AWAKE.to_owned(),
            "The clock runs from the call until the race hands over the connection, including the \
             name lookup. Nothing is remembered from one trial to the next; if the network is \
             remembered, this comes from 32 earlier connections to a server with HTTP/3."
                .to_owned(),
        ];
        self.link.emulated().into_iter().chain(notes).collect()
    }
}
