//! The time until a connection can carry a request, and over which transport (Matsuzawa and
//! Ichikawa 2022).
//!
//! A trial starts without a connection; its clock stops when the connection can carry a request:
//! when the QUIC handshake is complete, or those of TCP and TLS. Then the request is sent, and some
//! time after its response a second one, to find out whether that uses HTTP/3.
//!
//! Trials start one after another at a steady pace and run concurrently: without a queue, packets
//! are delayed and lost independently, so trials do not affect one another. There is nothing but
//! the link between client and server.

use eyas_emulator::units::TimeSpan;
use serde::{Deserialize, Serialize};

use super::error::LiveSetupError;
use super::{
    CORES_ARE_AWAKE, ClientMemory, ClientStrategy, ColumnLabel, LinkSetup, LiveExperiment,
};

/// One situation: a client strategy, and a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectSetup {
    /// The link.
    #[serde(default)]
    pub link: LinkSetup,
    /// How the client connects.
    #[serde(rename = "way")]
    pub strategy: ClientStrategy,
    /// The number of second tries of eyas's race, instead of its default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_tries: Option<u32>,
    /// The head start of HTTP/3 over HTTP over TCP in eyas's race, instead of its default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_start: Option<TimeSpan>,
    /// What the client remembers at the start.
    #[serde(default)]
    pub memory: ClientMemory,
    /// The number of trials per run.
    pub trials: u32,
    /// The time between the starts of two trials.
    pub pace: TimeSpan,
    /// The time from the first response to the second request; trials use the values in turn.
    pub second_after: Vec<TimeSpan>,
    /// The time limit of a trial.
    pub give_up: TimeSpan,
}

/// The maximum number of trials of one run: each keeps some sockets open.
const MAX_TRIALS: u32 = 500;

impl LiveExperiment for ConnectSetup {
    const COLUMNS: &'static [ColumnLabel] = &[
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

    fn check(&self) -> Result<(), LiveSetupError> {
        self.link.check()?;
        if !(1..=MAX_TRIALS).contains(&self.trials) {
            return Err(LiveSetupError::Count { key: "trials", most: MAX_TRIALS });
        }
        if self.second_after.is_empty() {
            return Err(LiveSetupError::SecondAfter);
        }
        Ok(())
    }

    fn emulated(&self) -> Vec<String> {
        let notes = [
            format!(
                "Trials start {} apart and run concurrently. Each has its own endpoint, UDP socket \
                 and memory. There is no queue, so packets are delayed and lost independently of \
                 other packets in flight.",
                self.pace,
            ),
            "The clock of a trial runs from the call until the race hands over the connection: the \
             QUIC handshake complete, or those of TCP and TLS 1.3. Names are not looked up."
                .to_owned(),
            "Server: eyas-http with HTTP/1.1, 2 and 3 on one port and a self-signed ECDSA P-256 \
             certificate. Sessions are not resumed, and there is no 0-RTT."
                .to_owned(),
            "TCP is this kernel's: a SYN is retransmitted after 1 s, a segment after at least \
             200 ms. The paper used a different client and server (Docker, NGINX with quiche), so \
             its numbers without delay and loss are not comparable to the millisecond."
                .to_owned(),
            CORES_ARE_AWAKE.to_owned(),
            "Packets and bytes are counted on the link, over the whole trial with both requests \
             and the closing of the connections, including IP headers."
                .to_owned(),
        ];
        self.link.emulated().into_iter().chain(notes).collect()
    }
}
