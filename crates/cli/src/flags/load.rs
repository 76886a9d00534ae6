//! Flags of `eyas load`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use eyas::race::candidate::Transport;
use eyas::race::policy::SctpSecurity;
use eyas_lab::load::{Rate, Spacing};

use super::choice::{RacePolicy, VersionFlags};
use super::reach::{ReachFlags, TrustFlags};
use super::values::{self, AddressRange, HeaderLine};

pub(super) const EXAMPLES: &str = "\
Examples:
  eyas load -k https://localhost:8443/          100 requests a second for 10 s,
                                                each on a connection of its own
  eyas load -r 1000 -d 60s --warm-up 10s http://localhost:8080/bytes/1024
  eyas load -r 10000 -c 50 --arrivals constant http://localhost:8080/
                                                on 50 connections that are kept
  eyas load -r 100..2000 -d 1m URL              where does it bend?
  eyas load --transport sctp-udp,tcp --policy naive --hit-rate 80% \\
            --outcome tcp --http1.0 --source 127.0.0.1-127.0.0.50 URL
                                                the race of 2016 and its cache
  eyas load --csv run.csv --histogram run.hlog --json URL > run.json

An arrival waits for nobody: every time counts from the intended start, and
what cannot begin is counted as dropped. --max-time holds for each request.
Ctrl-C ends the load and prints what has happened so far. docs/load.md explains
the numbers.";

/// Flags of `eyas load`.
#[derive(Args, Clone, Debug)]
pub(crate) struct LoadFlags {
    /// The URL to ask for; https:// if no scheme is given
    pub(crate) url: String,
    #[command(flatten)]
    pub(crate) arrivals: ArrivalFlags,
    #[command(flatten)]
    pub(crate) connections: ConnectionFlags,
    #[command(flatten)]
    pub(crate) choice: LoadChoiceFlags,
    #[command(flatten)]
    pub(crate) files: FileFlags,
    /// HTTP/1.0 with its Keep-Alive option, as in the paper of 2016
    #[arg(long = "http1.0", group = "version_choice", help_heading = "HTTP versions")]
    pub(crate) http1_0: bool,
    #[command(flatten)]
    pub(crate) versions: VersionFlags,
    #[command(flatten)]
    pub(crate) reach: ReachFlags,
    #[command(flatten)]
    pub(crate) trust: TrustFlags,
}

/// When what is asked for.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Arrivals")]
pub(crate) struct ArrivalFlags {
    /// Requests a second; FROM..TO rises or falls in a straight line over the duration
    #[arg(short, long, value_name = "RATE", default_value = "100", value_parser = rate)]
    pub(crate) rate: RateWanted,
    /// How they are spaced
    #[arg(long, value_name = "SPACING", default_value = "poisson")]
    pub(crate) arrivals: SpacingName,
    /// How long requests arrive [default: 10s, or until --requests]
    #[arg(short, long, value_name = "DURATION", value_parser = values::duration)]
    pub(crate) duration: Option<Duration>,
    /// How many requests arrive at most
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) requests: Option<u64>,
    /// What arrives before this time is done and not counted
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = values::duration)]
    pub(crate) warm_up: Duration,
    /// Ask for /bytes/N of eyas serve instead of the URL's path; of several sizes, each request takes
    /// one at random
    #[arg(long, value_name = "SIZE[,SIZE]", value_delimiter = ',', value_parser = values::size)]
    pub(crate) size: Vec<u64>,
    /// Add a header
    #[arg(short = 'H', long, value_name = "NAME: VALUE", value_parser = values::header)]
    pub(crate) header: Vec<HeaderLine>,
    /// Requests in flight at most; what arrives beyond is dropped
    #[arg(long, value_name = "N", default_value_t = 4096,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) max_in_flight: u32,
    /// Threads that share the load
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: u16,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}

/// On which connections.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Connections")]
pub(crate) struct ConnectionFlags {
    /// Keep up to N connections; without this each request has one of its own
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) connections: Option<u32>,
    /// Requests at once on a kept connection of HTTP/2 or 3
    #[arg(long, value_name = "N", default_value_t = 100, requires = "connections",
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) streams: u32,
    /// Resume TLS sessions; without this every handshake is a full one
    #[arg(long)]
    pub(crate) resume: bool,
    /// Leave from these addresses in turn: each has ports for some 28,000 connections a minute
    #[arg(long, value_name = "ADDR|FROM-TO", value_delimiter = ',', value_parser = values::addresses)]
    pub(crate) source: Vec<AddressRange>,
}

/// How connections come about.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Choosing")]
pub(crate) struct LoadChoiceFlags {
    /// Transports to race, most wanted first; one alone is no race [default: quic,tcp]
    #[arg(long, value_name = "TRANSPORT[,..]", value_delimiter = ',',
          value_parser = values::transport)]
    pub(crate) transport: Vec<Transport>,
    /// How candidates are tried
    #[arg(long, value_name = "POLICY", default_value = "race")]
    pub(crate) policy: RacePolicy,
    /// Share of connections whose outcome is made known beforehand: they go straight there
    #[arg(long, value_name = "SHARE", value_parser = values::share)]
    pub(crate) hit_rate: Option<f64>,
    /// Transports that are to win; of several, one at random [default: whichever does]
    #[arg(long, value_name = "TRANSPORT[,..]", value_delimiter = ',',
          value_parser = values::transport)]
    pub(crate) outcome: Vec<Transport>,
    /// Remember nothing from one connection to the next
    #[arg(long)]
    pub(crate) no_memory: bool,
    /// What the most wanted transport gets before the next one starts [default: 30ms]
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub(crate) head_start: Option<Duration>,
    /// How often what nobody answers is tried again, by a new attempt beside the first [default: 3]
    ///
    /// After 250 ms, or three of the round trips that are known and 10 ms; each further one waits
    /// twice as long, and none starts once there is a connection. 0 switches them off.
    #[arg(long, value_name = "N", value_parser = values::second_tries())]
    pub(crate) second_tries: Option<u32>,
    /// Time between two attempts when nothing is remembered [default: 250ms]
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub(crate) attempt_delay: Option<Duration>,
    /// What protects SCTP inside UDP
    #[arg(long, value_name = "SECURITY", default_value = "tls")]
    pub(crate) sctp_security: SctpSecurityName,
}

/// Where the course of the load is written; each file appears when it is whole.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Output")]
pub(crate) struct FileFlags {
    /// A line for each second into FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Histograms of all times, second by second, into FILE, as HdrHistogram's tools read them
    #[arg(long, value_name = "FILE")]
    pub(crate) histogram: Option<PathBuf>,
}

/// What protects SCTP inside UDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SctpSecurityName {
    /// TLS on its streams.
    #[default]
    Tls,
    /// DTLS below it.
    Dtls,
    /// A candidate of each.
    Both,
}

impl From<SctpSecurityName> for SctpSecurity {
    fn from(name: SctpSecurityName) -> Self {
        match name {
            SctpSecurityName::Tls => Self::Tls,
            SctpSecurityName::Dtls => Self::Dtls,
            SctpSecurityName::Both => Self::Both,
        }
    }
}

/// How arrivals are spaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SpacingName {
    /// Exponential gaps.
    #[default]
    Poisson,
    /// Even gaps.
    Constant,
}

impl From<SpacingName> for Spacing {
    fn from(name: SpacingName) -> Self {
        match name {
            SpacingName::Poisson => Self::Poisson,
            SpacingName::Constant => Self::Constant,
        }
    }
}

/// One rate, or two of a ramp whose time is that of the load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RateWanted {
    /// Always this.
    Fixed(f64),
    /// From one to the other.
    Ramp(f64, f64),
}

impl RateWanted {
    /// Over this time.
    pub(crate) fn over(self, over: Duration) -> Rate {
        match self {
            Self::Fixed(rate) => Rate::Fixed(rate),
            Self::Ramp(from, to) => Rate::Ramp { from, to, over },
        }
    }
}

/// `100`, `0.5` or `100..2000`.
fn rate(text: &str) -> Result<RateWanted, String> {
    let wanted = "expected requests a second, such as 100, or FROM..TO";
    let one = |text: &str| match text.trim().parse::<f64>() {
        Ok(rate) if rate.is_finite() && rate >= 0.0 => Ok(rate),
        _ => Err(format!("{text:?} is no rate; {wanted}")),
    };
    let rate = match text.split_once("..") {
        Some((from, to)) => RateWanted::Ramp(one(from)?, one(to)?),
        None => RateWanted::Fixed(one(text)?),
    };
    match rate {
        RateWanted::Fixed(0.0) | RateWanted::Ramp(0.0, 0.0) => {
            Err(format!("nothing would ever arrive; {wanted}"))
        }
        rate => Ok(rate),
    }
}
