//! What to prefer: HTTP versions, the policy, the preferred transport, timing.

use std::time::Duration;

use clap::{Args, ValueEnum};
use eyas::race::candidate::Transport;

use super::remember::MemoryChoice;
use super::values;

/// Which versions of HTTP to try. Without any of these all are raced.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "HTTP versions")]
pub(crate) struct VersionFlags {
    /// Only HTTP/1.1, over TCP
    #[arg(long = "http1.1", group = "version_choice")]
    pub(crate) http1_1: bool,
    /// HTTP/2 or HTTP/1.1, over TCP
    #[arg(long, group = "version_choice")]
    pub(crate) http2: bool,
    /// HTTP/3 first, raced against what runs over TCP (the default)
    #[arg(long, group = "version_choice")]
    pub(crate) http3: bool,
    /// Only HTTP/3, over QUIC
    #[arg(long, group = "version_choice")]
    pub(crate) http3_only: bool,
}

/// How HTTP/3 and HTTP over TCP come to be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PolicyName {
    /// Race them; the first that is ready wins, HTTP/3 takes over when it turns out to work.
    #[default]
    Race,
    /// TCP first; HTTP/3 only after the server has announced it (RFC 7838 alone).
    AltSvc,
    /// One candidate after another, each to its end.
    Serial,
    /// Race, and also follow what the server announces.
    #[value(name = "race+alt-svc")]
    RaceAltSvc,
    /// Race as it was measured in 2016: all at once, every handshake to its end, no memory.
    Naive,
}

/// How candidates are tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum RacePolicy {
    /// As eyas does: staggered, losers cancelled.
    #[default]
    Race,
    /// As it was measured in 2016: all at once, every handshake to its end, no memory.
    Naive,
    /// One after another, each to its end.
    Serial,
}

/// How to choose among candidates.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Choosing")]
pub(crate) struct ChoiceFlags {
    /// Transport wanted most: quic, tcp, mptcp, sctp (in IP or UDP) or sctp-udp [default: quic]
    #[arg(long, value_name = "TRANSPORT", value_parser = values::transport)]
    pub(crate) prefer: Option<Transport>,
    /// Where to remember what works: a file, or none for a private run [env: EYAS_MEMORY]
    ///
    /// Without it $EYAS_MEMORY, then $XDG_STATE_HOME/eyas/memory.sqlite, then
    /// ~/.local/state/eyas/memory.sqlite. With none nothing is read and nothing is written.
    #[arg(long, value_name = "FILE|none")]
    pub(crate) memory: Option<MemoryChoice>,
    /// Try again what failed before once this much time has passed, instead of backing off
    ///
    /// What failed is left alone for 5 minutes, then twice as long each time, up to 2 days.
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub(crate) retest_after: Option<Duration>,
    /// What the most wanted transport gets before the next one starts [default: 30ms]
    #[arg(long, value_name = "DURATION", value_parser = values::duration, hide_short_help = true)]
    pub(crate) head_start: Option<Duration>,
    /// How often what nobody answers is tried again, by a new attempt beside the first [default: 3]
    ///
    /// After 250 ms, or three of the round trips that are known and 10 ms; each further one waits
    /// twice as long, and none starts once there is a connection. 0 switches them off.
    #[arg(long, value_name = "N", value_parser = values::second_tries(), hide_short_help = true)]
    pub(crate) second_tries: Option<u32>,
    /// Time between two attempts when nothing is remembered [default: 250ms]
    #[arg(long, value_name = "DURATION", value_parser = values::duration, hide_short_help = true)]
    pub(crate) attempt_delay: Option<Duration>,
    /// Seed of every random choice, to see the same race twice
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub(crate) seed: Option<u64>,
}
