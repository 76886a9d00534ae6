//! Flags of `eyas load`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use eyas::race::candidate::Transport;
use eyas::race::policy::SctpSecurity;
use eyas_load::{ArrivalRate, ArrivalSpacing};

use super::choice::{RacePolicy, VersionFlags};
use super::error::ValueError;
use super::reach::{ReachFlags, TrustFlags};
use super::values::{self, AddressRange, HeaderLine};

pub(super) const EXAMPLES: &str = "\
Examples:
  eyas load -k https://localhost:8443/          100 requests a second for 10 s,
                                                each on a new connection
  eyas load -r 1000 -d 60s --warm-up 10s http://localhost:8080/bytes/1024
  eyas load -r 10000 -c 50 --arrivals constant http://localhost:8080/
                                                on 50 persistent connections
  eyas load --clients 50 -c 50 URL              a closed loop: how many at most?
  eyas load -X PUT --data @body.json -u ada:secret URL
  eyas load -r 100..2000 -d 1m URL              where does latency rise?
  eyas load --transport sctp-udp,tcp --policy naive --hit-rate 80% \\
            --outcome tcp --http1.0 --source 127.0.0.1-127.0.0.50 URL
                                                the race of 2016 and its cache
  eyas load --csv run.csv --histogram run.hlog --json URL > run.json

Without --clients, requests do not wait for earlier ones: every time is measured
from the intended start, and requests that cannot start are counted as dropped.
--max-time applies to each request, --duration to the load. Ctrl-C ends the load
and prints the results so far.
'eyas man guide load' explains the numbers.";

/// Flags of `eyas load`.
#[derive(Args, Clone, Debug)]
pub(crate) struct LoadFlags {
    /// The URL to request; https:// if no scheme is given
    pub(crate) url: String,
    #[command(flatten)]
    pub(crate) arrivals: ArrivalFlags,
    #[command(flatten)]
    pub(crate) request: LoadRequestFlags,
    #[command(flatten)]
    pub(crate) connections: ConnectionFlags,
    #[command(flatten)]
    pub(crate) choice: LoadChoiceFlags,
    #[command(flatten)]
    pub(crate) files: FileFlags,
    /// HTTP/1.0 with its Keep-Alive option, as in the paper of 2016
    #[arg(long = "http1.0", help_heading = "HTTP versions",
          overrides_with_all = ["http1_1", "http2", "http3", "http3_only"])]
    pub(crate) http1_0: bool,
    #[command(flatten)]
    pub(crate) versions: VersionFlags,
    #[command(flatten)]
    pub(crate) reach: ReachFlags,
    #[command(flatten)]
    pub(crate) trust: TrustFlags,
}

/// The arrival of requests.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Arrivals")]
pub(crate) struct ArrivalFlags {
    /// Requests per second; FROM..TO changes linearly over the duration
    #[arg(short, long, value_name = "RATE", default_value = "100", value_parser = rate)]
    pub(crate) rate: RateFlag,
    /// How requests are spaced
    #[arg(long, value_name = "SPACING", default_value = "poisson")]
    pub(crate) arrivals: SpacingName,
    /// A closed loop instead: N clients, each of which waits for its response before its next request
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000),
          conflicts_with_all = ["rate", "arrivals", "max_in_flight"])]
    pub(crate) clients: Option<u32>,
    /// How long requests arrive [default: 10s, or until --requests]
    ///
    /// Requests in flight at the end have one more second; the rest counts as unfinished.
    #[arg(short, long, value_name = "DURATION", value_parser = values::duration)]
    pub(crate) duration: Option<Duration>,
    /// Maximum number of requests
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) requests: Option<u64>,
    /// Requests that arrive before this time are sent but not counted
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = values::duration)]
    pub(crate) warm_up: Duration,
    /// Request /bytes/N of eyas serve instead of the URL's path; with several sizes, each request
    /// uses one at random
    #[arg(long, value_name = "SIZE[,SIZE]", value_delimiter = ',', value_parser = values::size)]
    pub(crate) size: Vec<u64>,
    /// Maximum number of requests in flight; further ones are dropped
    #[arg(long, value_name = "N", default_value_t = 4096,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) max_in_flight: u32,
    /// Number of threads
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: u16,
    /// Seed of all random choices [default: one by chance, which the report tells]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

/// What each request is.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Request")]
pub(crate) struct LoadRequestFlags {
    /// Request method [default: GET, or POST with --data]
    #[arg(short = 'X', long = "request", value_name = "METHOD")]
    pub(crate) method: Option<http::Method>,
    /// Add a header
    #[arg(short = 'H', long, value_name = "NAME: VALUE", value_parser = values::header)]
    pub(crate) header: Vec<HeaderLine>,
    /// Send this data with each request; @FILE reads a file, unchanged
    #[arg(long, value_name = "DATA")]
    pub(crate) data: Option<String>,
    /// User and password for HTTP Basic authentication
    #[arg(short = 'u', long, value_name = "USER:PASSWORD")]
    pub(crate) user: Option<String>,
}

/// The connections that carry the requests.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Connections")]
pub(crate) struct ConnectionFlags {
    /// Keep up to N connections open; by default each request has its own
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) connections: Option<u32>,
    /// Concurrent requests on a kept HTTP/2 or HTTP/3 connection
    #[arg(long, value_name = "N", default_value_t = 100, requires = "connections",
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) streams: u32,
    /// Resume TLS sessions; by default every handshake is a full one
    #[arg(long)]
    pub(crate) resume: bool,
    /// Use these local addresses in turn: each has ports for about 28,000 connections per minute
    #[arg(long, value_name = "ADDR|FROM-TO", value_delimiter = ',', value_parser = values::addresses)]
    pub(crate) source: Vec<AddressRange>,
}

/// How connections are made.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Choosing")]
pub(crate) struct LoadChoiceFlags {
    /// Transports to race, preferred first; with a single one there is no race [default: quic,tcp]
    #[arg(long, value_name = "TRANSPORT[,..]", value_delimiter = ',',
          value_parser = values::transport)]
    pub(crate) transport: Vec<Transport>,
    /// How candidates are tried
    #[arg(long, value_name = "POLICY", default_value = "race")]
    pub(crate) policy: RacePolicy,
    /// Share of connections whose outcome is known in advance, so that they go straight to it
    #[arg(long, value_name = "SHARE", value_parser = values::share)]
    pub(crate) hit_rate: Option<f64>,
    /// Transports that should win; with several, one at random [default: whichever wins]
    #[arg(long, value_name = "TRANSPORT[,..]", value_delimiter = ',',
          value_parser = values::transport)]
    pub(crate) outcome: Vec<Transport>,
    /// Remember nothing between connections
    #[arg(long)]
    pub(crate) no_memory: bool,
    /// How much earlier the preferred transport starts than the next one [default: 30ms]
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub(crate) head_start: Option<Duration>,
    /// How often an unanswered attempt is repeated by a new one beside the first [default: 3]
    ///
    /// After 250 ms, or three known round-trip times plus 10 ms; each further one waits twice as
    /// long, and none starts once there is a connection. 0 disables them.
    #[arg(long, value_name = "N", value_parser = values::second_tries())]
    pub(crate) second_tries: Option<u32>,
    /// Delay between two attempts when nothing is remembered [default: 250ms]
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub(crate) attempt_delay: Option<Duration>,
    /// Security layer of SCTP over UDP
    #[arg(long, value_name = "SECURITY", default_value = "tls")]
    pub(crate) sctp_security: SctpSecurityName,
}

/// The files with the results over time; each is created once it is complete.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Output")]
pub(crate) struct FileFlags {
    /// Write a line per second to FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Write histograms of all times per second to FILE, in the format of HdrHistogram
    #[arg(long, value_name = "FILE")]
    pub(crate) histogram: Option<PathBuf>,
}

/// The security layer of SCTP over UDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SctpSecurityName {
    /// TLS on its streams.
    #[default]
    Tls,
    /// DTLS below it.
    Dtls,
    /// One candidate with each.
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

/// How requests are spaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SpacingName {
    /// Exponentially distributed gaps.
    #[default]
    Poisson,
    /// Equal gaps.
    Constant,
}

impl From<SpacingName> for ArrivalSpacing {
    fn from(name: SpacingName) -> Self {
        match name {
            SpacingName::Poisson => Self::Poisson,
            SpacingName::Constant => Self::Constant,
        }
    }
}

/// A constant rate, or a ramp over the duration of the load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RateFlag {
    /// A constant rate.
    Fixed(f64),
    /// From the first rate to the second.
    Ramp(f64, f64),
}

impl RateFlag {
    /// Returns the rate over this duration.
    pub(crate) fn into_rate(self, over: Duration) -> ArrivalRate {
        match self {
            Self::Fixed(rate) => ArrivalRate::Fixed(rate),
            Self::Ramp(from, to) => ArrivalRate::Ramp { from, to, over },
        }
    }
}

/// Parses `100`, `0.5` or `100..2000`.
fn rate(text: &str) -> Result<RateFlag, ValueError> {
    let form = "requests a second, such as 100, or FROM..TO";
    let one = |text: &str| match text.trim().parse::<f64>() {
        Ok(rate) if rate.is_finite() && rate >= 0.0 => Ok(rate),
        _ => Err(ValueError::part(text, "a rate", form)),
    };
    let rate = match text.split_once("..") {
        Some((from, to)) => RateFlag::Ramp(one(from)?, one(to)?),
        None => RateFlag::Fixed(one(text)?),
    };
    match rate {
        RateFlag::Fixed(0.0) | RateFlag::Ramp(0.0, 0.0) => {
            Err(ValueError::Senseless { reason: "nothing would ever arrive", form })
        }
        rate => Ok(rate),
    }
}
