//! How long until a connection can carry a request, and over what (Matsuzawa and Ichikawa 2022).
//!
//! A trial starts with no connection; its clock stops when the connection can carry a request: the
//! QUIC handshake done, or those of TCP and TLS. Then the request goes out, and some time after its
//! response a second one, to see whether that goes over HTTP/3.
//!
//! Trials start one after another at a steady pace and go on side by side: where there is no queue
//! each packet is delayed and lost on its own, so they do not notice each other. Nothing but the
//! link is between client and server.

use serde::{Deserialize, Serialize};

use super::{CORES_ARE_AWAKE, ClientStrategy, Column, Experiment, LinkSetup, Memory, link};
use crate::units::Time;

/// One situation: a way to connect, over a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectSetup {
    /// The link.
    #[serde(default)]
    pub link: LinkSetup,
    /// How the client comes to its connection.
    pub way: ClientStrategy,
    /// How often the race of eyas tries again what nobody answers, instead of its default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_tries: Option<u32>,
    /// What HTTP/3 gets before the old HTTP starts in the race of eyas, instead of its default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_start: Option<Time>,
    /// What it remembers at the start.
    #[serde(default)]
    pub memory: Memory,
    /// Trials of a run.
    pub trials: u32,
    /// From the start of one trial to the start of the next.
    pub pace: Time,
    /// From the first response to the second request; trials take them in turn.
    pub second_after: Vec<Time>,
    /// When a trial is given up.
    pub give_up: Time,
}

/// The most trials of one run: each keeps some sockets open.
const MAX_TRIALS: u32 = 500;

impl Experiment for ConnectSetup {
    const COLUMNS: &'static [Column] = &[
        ("time", "time until the connection can carry a request [ms]"),
        ("adopted", "first request over HTTP/3 [%]"),
        ("failed", "no connection [%]"),
        ("second", "second request over HTTP/3 [%]"),
        ("second-10s", "second request over HTTP/3, 10 s later [%]"),
        ("second-at-once", "second request over HTTP/3, at once [%]"),
        ("arrival", "time until HTTP/3 can be used [ms]"),
        ("attempts", "connection attempts of a trial"),
        ("packets", "packets of a trial, both directions"),
        ("bytes", "bytes of a trial, both directions"),
    ];
    const SHARES: &'static [&'static str] =
        &["adopted", "failed", "second", "second-10s", "second-at-once"];

    fn check(&self) -> Result<(), String> {
        if !(1..=MAX_TRIALS).contains(&self.trials) {
            return Err(format!("live.trials: from 1 to {MAX_TRIALS}"));
        }
        if self.second_after.is_empty() {
            return Err("live.second_after: name at least one pause".to_owned());
        }
        Ok(())
    }

    fn emulated(&self) -> Vec<String> {
        let own = [
            format!(
                "Trials start {} apart and run side by side. Each has an endpoint, a UDP socket and \
                 a memory of its own. There is no queue, so each packet is delayed and lost on its \
                 own, whatever else is under way.",
                self.pace,
            ),
            "The clock of a trial runs from the call until the race hands over the connection: the \
             QUIC handshake complete, or those of TCP and TLS 1.3. Names are not looked up."
                .to_owned(),
            "Server: eyas-http with HTTP/1.1, 2 and 3 on one port; a self-signed certificate of \
             ECDSA P-256. Sessions are not resumed, and there is no 0-RTT."
                .to_owned(),
            "TCP is this kernel's: a SYN is sent again after 1 s, a segment after no less than \
             200 ms. The paper's client and server were others (Docker, NGINX with quiche), so its \
             numbers without delay and loss are not comparable to the millisecond."
                .to_owned(),
            CORES_ARE_AWAKE.to_owned(),
            "Packets and bytes are counted on the link, over the whole trial with both requests \
             and what closes the connections, IP headers included."
                .to_owned(),
        ];
        link::emulated().into_iter().chain(own).collect()
    }
}
