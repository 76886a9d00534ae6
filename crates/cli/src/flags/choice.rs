//! Preferences: HTTP versions, policy, preferred transport, timing.

use std::time::Duration;

use clap::{Args, ValueEnum};
use eyas::race::candidate::Transport;

use super::memory::MemoryChoice;
use super::values;

/// The versions of HTTP to try: the last of these flags wins. Without any of these, all are raced.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "HTTP versions")]
pub(crate) struct VersionFlags {
    /// Only HTTP/1.1, over TCP
    #[arg(long = "http1.1", overrides_with_all = ["http2", "http3", "http3_only"])]
    pub(crate) http1_1: bool,
    /// HTTP/2 or HTTP/1.1, over TCP
    #[arg(long, overrides_with_all = ["http1_1", "http3", "http3_only"])]
    pub(crate) http2: bool,
    /// HTTP/3 first, raced against HTTP over TCP (the default)
    #[arg(long, overrides_with_all = ["http1_1", "http2", "http3_only"])]
    pub(crate) http3: bool,
    /// Only HTTP/3, over QUIC
    #[arg(long, overrides_with_all = ["http1_1", "http2", "http3"])]
    pub(crate) http3_only: bool,
}

/// How HTTP/3 and HTTP over TCP are tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PolicyName {
    /// Race them; the first to be ready wins, and HTTP/3 takes over once it works.
    #[default]
    Race,
    /// TCP first; HTTP/3 only after the server has announced it (RFC 7838 only).
    AltSvc,
    /// One candidate after another, each until it fails.
    Serial,
    /// Race, and also use alternatives that the server announces.
    #[value(name = "race+alt-svc")]
    RaceAltSvc,
    /// Race as measured in 2016: all at once, every handshake completed, no memory.
    Naive,
}

/// How candidates are tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum RacePolicy {
    /// As eyas does by default: staggered, losers cancelled.
    #[default]
    Race,
    /// As measured in 2016: all at once, every handshake completed, no memory.
    Naive,
    /// One after another, each until it fails.
    Serial,
}

/// How to choose between candidates.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Choosing")]
pub(crate) struct ChoiceFlags {
    /// Preferred transport: quic, tcp, mptcp, sctp (over IP or UDP) or sctp-udp [default: quic]
    #[arg(long, value_name = "TRANSPORT", value_parser = values::transport)]
    pub(crate) prefer: Option<Transport>,
    /// Where to remember what works: a file, or none for a private run [env: EYAS_MEMORY]
    ///
    /// The default is $EYAS_MEMORY, then $XDG_STATE_HOME/eyas/memory.sqlite, then
    /// ~/.local/state/eyas/memory.sqlite. With none, nothing is read or written.
    #[arg(long, value_name = "FILE|none")]
    pub(crate) memory: Option<MemoryChoice>,
    /// Retry what failed once this much time has passed, instead of backing off
    ///
    /// By default, what failed is avoided for 5 minutes, then twice as long each time, up to 2
    /// days.
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub(crate) retest_after: Option<Duration>,
    /// How much earlier the preferred transport starts than the next one [default: 30ms]
    #[arg(long, value_name = "DURATION", value_parser = values::duration, hide_short_help = true)]
    pub(crate) head_start: Option<Duration>,
    /// How often an unanswered attempt is repeated by a new one beside the first [default: 3]
    ///
    /// After 250 ms, or three known round-trip times plus 10 ms; each further one waits twice as
    /// long, and none starts once there is a connection. 0 disables them.
    #[arg(long, value_name = "N", value_parser = values::second_tries(), hide_short_help = true)]
    pub(crate) second_tries: Option<u32>,
    /// Delay between two attempts when nothing is remembered [default: 250ms]
    #[arg(long, value_name = "DURATION", value_parser = values::duration, hide_short_help = true)]
    pub(crate) attempt_delay: Option<Duration>,
    /// Make each of these delays longer than the one before by this factor, from 1 to 4: with 50ms and 2, they are 50
    /// ms, 100 ms, 200 ms and so on, up to 2 s [default: 1]
    #[arg(long, value_name = "FACTOR", value_parser = values::attempt_delay_factor, hide_short_help = true)]
    pub(crate) attempt_delay_factor: Option<u32>,
    /// Seed of all random choices, to reproduce a race
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub(crate) seed: Option<u64>,
}
