//! What a client meets while the servers go over to HTTP/3.
//!
//! A share of the servers speaks HTTP/3, and a share of the networks swallows UDP. Each trial is one
//! visitor of one server: two requests, with nothing remembered of the server before. Some of what
//! its races try comes to nothing: a refused or swallowed QUIC, a TCP that was not needed. And some
//! choices are wrong: the second request goes over the old HTTP where HTTP/3 works.

use serde::{Deserialize, Serialize};

use super::{CORES_ARE_AWAKE, ClientStrategy, Column, Experiment, LinkSetup, Memory, link};
use crate::units::{Part, Time};

/// One situation: a way to connect, and what there is to connect to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoliciesSetup {
    /// The link.
    #[serde(default)]
    pub link: LinkSetup,
    /// How the client comes to its connection.
    pub way: ClientStrategy,
    /// Servers that speak HTTP/3.
    pub http3: Part,
    /// Visitors whose network swallows UDP.
    pub swallowed: Part,
    /// What a visitor remembers at the start.
    #[serde(default)]
    pub memory: Memory,
    /// Trials of a run.
    pub trials: u32,
    /// From the start of one trial to the start of the next.
    pub pace: Time,
    /// From the first response to the second request.
    pub second_after: Time,
    /// When a trial is given up.
    pub give_up: Time,
}

/// The most trials of one run: each keeps some sockets open.
const MAX_TRIALS: u32 = 500;

impl Experiment for PoliciesSetup {
    // Beside those of `connect`.
    const COLUMNS: &'static [Column] = &[
        ("wrong", "second request not over the best working protocol [%]"),
        ("wasted", "attempts of a trial that carried nothing"),
    ];
    const SHARES: &'static [&'static str] = &["wrong"];

    fn check(&self) -> Result<(), String> {
        if self.memory == Memory::Warm {
            return Err(
                "live.memory: empty or network; each visitor is new to its server".to_owned()
            );
        }
        match (1..=MAX_TRIALS).contains(&self.trials) {
            true => Ok(()),
            false => Err(format!("live.trials: from 1 to {MAX_TRIALS}")),
        }
    }

    fn emulated(&self) -> Vec<String> {
        let own = [
            format!(
                "Each trial draws its server and its network: {} of the networks swallow UDP, \
                 except DNS. A server without HTTP/3 refuses UDP with ICMP.",
                self.swallowed,
            ),
            "Four servers of eyas-http stand for all: with and without HTTP/3, and both behind a \
             network that swallows UDP. Their name is looked up at a name server beside them, by \
             all; it has HTTPS records for one curve alone."
                .to_owned(),
            CORES_ARE_AWAKE.to_owned(),
            "The clock runs from the call until the race hands over the connection, lookup \
             included. Nothing is remembered from one trial to the next; what some \
             remember of the network comes from 32 connections before, to a server with HTTP/3."
                .to_owned(),
        ];
        link::emulated().into_iter().chain(own).collect()
    }
}
