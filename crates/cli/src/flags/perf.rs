//! Flags of `eyas perf`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use eyas::race::candidate::Transport;
use eyas_emulator::units::BitRate;
use eyas_perf::protocol::request::{MAX_SIZE, MAX_STREAMS};

use super::error::ValueError;
use super::load::SctpSecurityName;
use super::values;
use super::{PassphraseFlags, PathFlags, ReachFlags, TrustFlags};

pub(super) const EXAMPLES: &str = "\
Examples:
  eyas perf serve -l 0.0.0.0:7117          at the server, for anybody
  eyas perf -k server.example              10 s over each transport that gets
                                           through, from here to the server
  eyas perf -k -R server.example           from the server to here
  eyas perf -k --both -t 30s --omit 3s -P 4 server.example:7117
                                           one way and then the other
  eyas perf -k --transport tcp,quic --rate 20mbit server.example
                                           latency under a load of 20 Mbit/s
  eyas perf -k --transport sctp-udp --multipath server.example
  eyas perf -k --json server.example       as data, with every interval
  eyas netem run --rate 20mbit --delay 20ms --server 'eyas perf serve -l \\
        198.18.1.2:7117' -- eyas perf -k 198.18.1.2
                                           over a link that you know

Goodput is measured at the receiver. While data flows, pings on a stream of
their own, over TCP on a connection of their own, measure the latency under
load. Ctrl-C ends the run and prints what was measured. 'eyas man guide perf'
says what is measured how.";

pub(super) const SERVE_EXAMPLES: &str = "\
Examples:
  eyas perf serve                          on port 7117 of 127.0.0.1
  eyas perf serve -l '[::]:7117'           for anybody
  eyas perf serve -l '[::]:7117' --max-tests 1 --max-test-time 30s
  eyas perf serve --save-cert ca.pem       and at the client: --cacert ca.pem

TCP, MPTCP, QUIC and SCTP are served on one port number, SCTP inside UDP on port
9899. A test ends when its time is over, whatever the client does.";

/// Flags of `eyas perf`.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct PerfFlags {
    /// The server: HOST, HOST:PORT, or TRANSPORT[+TRANSPORT]://HOST:PORT; the default port is 7117
    #[arg(required = true)]
    pub(crate) target: Option<String>,
    #[command(flatten)]
    pub(crate) test: TestFlags,
    /// Transports to measure, one after the other [default: all]
    #[arg(long, value_name = "TRANSPORT[,..]", value_delimiter = ',',
          value_parser = values::transport, help_heading = "Choosing")]
    pub(crate) transport: Vec<Transport>,
    /// Security layer of SCTP over UDP; with both, it is measured with each
    #[arg(long, value_name = "SECURITY", default_value = "tls", help_heading = "Choosing")]
    pub(crate) sctp_security: SctpSecurityName,
    /// Disable TLS, and therefore QUIC; the server must do the same
    #[arg(long, help_heading = "Security")]
    pub(crate) plain: bool,
    #[command(flatten)]
    pub(crate) paths: PathFlags,
    #[command(flatten)]
    pub(crate) reach: ReachFlags,
    #[command(flatten)]
    pub(crate) trust: TrustFlags,
    /// The action, if any.
    #[command(subcommand)]
    pub(crate) action: Option<PerfAction>,
}

/// What flows, and for how long.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct TestFlags {
    /// For how long data flows in each direction, for each transport
    #[arg(long, short = 't', value_name = "DURATION", default_value = "10s",
          value_parser = values::duration)]
    pub(crate) time: Duration,
    /// Measure from the server to this host instead
    #[arg(long, short = 'R')]
    pub(crate) reverse: bool,
    /// Measure to the server, and then from it
    #[arg(long, conflicts_with = "reverse")]
    pub(crate) both: bool,
    /// Measure in both directions at the same time
    #[arg(long, conflicts_with_all = ["reverse", "both"])]
    pub(crate) bidir: bool,
    /// Number of streams; over TCP and MPTCP, of connections
    #[arg(long, short = 'P', value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_STREAMS)))]
    pub(crate) streams: u16,
    /// Size of a message: what is passed to the transport at once
    #[arg(long, value_name = "SIZE", default_value = "128KiB", value_parser = message_size)]
    pub(crate) size: u32,
    /// Send N messages in each direction, on all streams together, and end once they have arrived,
    /// or after --time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..),
          conflicts_with = "omit")]
    pub(crate) count: Option<u64>,
    /// Send at this rate instead of as fast as possible, in bits per second of data, such as 20mbit
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) rate: Option<u64>,
    /// Length of the intervals that the confidence interval is computed from, at least 10ms
    #[arg(long, short = 'i', value_name = "DURATION", default_value = "1s",
          value_parser = values::duration)]
    pub(crate) interval: Duration,
    /// Let data flow for this long before it counts, so that slow start does not
    #[arg(long, short = 'O', value_name = "DURATION", default_value = "0s",
          value_parser = values::duration)]
    pub(crate) omit: Duration,
    /// For how long the latency is measured before data flows
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = idle)]
    pub(crate) idle: Duration,
}

/// The actions beside a measurement.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum PerfAction {
    /// Serve tests, within limits
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(Box<PerfServeFlags>),
}

/// Flags of `eyas perf serve`.
#[derive(Args, Clone, Debug)]
pub(crate) struct PerfServeFlags {
    /// Address and port, for TCP, UDP and SCTP; a port alone means 127.0.0.1, port 0 any free port
    #[arg(long, short = 'l', value_name = "ADDR:PORT", default_value = "127.0.0.1:7117",
          value_parser = values::listen)]
    pub(crate) listen: SocketAddr,
    /// The most tests at once; further clients are refused
    #[arg(long, value_name = "N", default_value_t = 4,
          value_parser = clap::value_parser!(u16).range(1..), help_heading = "Limits")]
    pub(crate) max_tests: u16,
    /// The longest that data flows in a test; clients that ask for more are told what they get
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = values::duration,
          help_heading = "Limits")]
    pub(crate) max_test_time: Duration,
    /// The most bytes in each direction of a test, which ends then
    #[arg(long, value_name = "SIZE", default_value = "65536MiB", value_parser = values::size,
          help_heading = "Limits")]
    pub(crate) max_bytes: u64,
    /// Certificate chain, PEM; by default one is generated
    #[arg(long, value_name = "FILE", requires = "key", help_heading = "Security")]
    pub(crate) cert: Option<PathBuf>,
    /// Private key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = "Security")]
    pub(crate) key: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) passphrase: PassphraseFlags,
    /// Further names in the generated certificate, separated by commas; it always has localhost,
    /// 127.0.0.1 and ::1
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "cert",
          value_parser = values::certificate_name, help_heading = "Security")]
    pub(crate) names: Vec<String>,
    /// Write the generated certificate to FILE, for --cacert on the other side
    #[arg(long, value_name = "FILE", conflicts_with = "cert", help_heading = "Security")]
    pub(crate) save_cert: Option<PathBuf>,
    /// Disable TLS, and therefore QUIC
    #[arg(long, conflicts_with_all = ["cert", "names", "save_cert"], help_heading = "Security")]
    pub(crate) plain: bool,
    #[command(flatten)]
    pub(crate) paths: PathFlags,
    /// UDP port for SCTP over UDP; by default SCTP inside UDP is disabled if the usual port is taken
    /// [default: 9899]
    #[arg(long, value_name = "PORT")]
    pub(crate) sctp_udp_port: Option<u16>,
}

/// Parses the size of a message.
fn message_size(text: &str) -> Result<u32, ValueError> {
    let size = values::size(text)?;
    let size = u32::try_from(size).ok().filter(|size| (1..=MAX_SIZE).contains(size));
    size.ok_or(ValueError::Form("1 byte to 1 MiB"))
}

/// Parses a rate in bits per second.
fn rate(text: &str) -> Result<u64, ValueError> {
    let rate: BitRate = text.parse()?;
    if rate.0 == 0 { Err(ValueError::Form("a rate above 0")) } else { Ok(rate.0) }
}

/// Parses the time for which nothing flows.
fn idle(text: &str) -> Result<Duration, ValueError> {
    let longest = Duration::from_secs(30);
    match values::duration(text)? {
        idle if idle <= longest => Ok(idle),
        _ => Err(ValueError::Form("at most 30s")),
    }
}
