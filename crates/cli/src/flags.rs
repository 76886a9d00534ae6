//! All flags of the command: the parser, `--help`, the man pages and the completions are generated
//! from the definitions in this module. Flags that curl has too have curl's names.

mod choice;
mod doctor;
mod error;
mod form;
mod generate;
mod get;
mod implicit_get;
mod lab;
mod load;
mod memory;
mod multipath;
mod netem;
mod paths;
mod perf;
mod pipe;
mod proxy;
mod reach;
mod sctp;
mod serve;
mod tunnel;
mod typo;
mod values;
mod width;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

pub(crate) use choice::{ChoiceFlags, PolicyName, RacePolicy, VersionFlags};
pub(crate) use doctor::DoctorFlags;
pub(crate) use form::{FieldContent, FormField};
pub(crate) use generate::ManFlags;
#[cfg(test)]
pub(crate) use get::OutputTargets;
pub(crate) use get::{
    BodyFlags, ContinueAt, DataForm, DataPiece, GetFlags, HeaderSource, OutputTarget, RequestFlags,
    RetryFlags, SourceFlag,
};
pub(crate) use lab::{
    LabAction, LabFlags, LabMergeFlags, LabResultsFlags, LabRunFlags, TableFormat,
};
pub(crate) use load::{FileFlags, LoadChoiceFlags, LoadFlags, LoadRequestFlags};
pub(crate) use memory::{MemoryAction, MemoryChoice, MemoryFlags};
pub(crate) use multipath::MultipathOptions;
pub(crate) use netem::NetemFlags;
#[cfg(target_os = "linux")]
pub(crate) use netem::{
    LinkFlags, LinkState, NetemAction, NetemChangeFlags, NetemRunFlags, WhichRun,
};
pub(crate) use paths::PathFlags;
pub(crate) use perf::{PerfAction, PerfFlags, PerfServeFlags};
pub(crate) use pipe::{MessageFlags, PipeFlags};
pub(crate) use proxy::{ProxyAction, ProxyDestinationFlags, ProxyFlags, ProxyRunFlags};
pub(crate) use reach::{NameServerFlags, PassphraseFlags, ReachFlags, TrustFlags};
pub(crate) use sctp::SctpFlags;
#[cfg(target_os = "linux")]
pub(crate) use sctp::{
    SctpAction, SctpCarrierFlags, SctpRunFlags, SctpServeFlags, SctpStatusFlags,
};
pub(crate) use serve::{LogFormat, ServeFlags};
#[cfg(target_os = "linux")]
pub(crate) use tunnel::TunnelStatusFlags;
pub(crate) use tunnel::{TunFlags, TunnelAction, TunnelFlags, TunnelKeyFlags, TunnelServeFlags};
pub(crate) use typo::nearest;
pub(crate) use values::{ConnectTo, DnsServer, HeaderLine, ListenAddresses, ResolveFlag, header};

/// Connect over the best transport that works on the network.
///
/// eyas asks DNS for HTTPS, AAAA and A records, races HTTP/3 over QUIC against HTTP over TCP on
/// both address families, and remembers what worked: the next connection uses it right away and
/// does not wait for what does not work.
#[derive(Debug, Parser)]
#[command(
    name = "eyas",
    version,
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true,
    args_override_self = true,
    after_help = TOP_EXAMPLES
)]
pub(crate) struct Cli {
    /// The flags of all subcommands.
    #[command(flatten)]
    pub(crate) common: CommonFlags,
    /// The subcommand.
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Parses a command line, including the program's name. Help is formatted for this number of
    /// columns.
    pub(crate) fn read(
        line: impl IntoIterator<Item = OsString>,
        columns: usize,
    ) -> Result<Self, clap::Error> {
        let line: Vec<OsString> = line.into_iter().collect();
        Self::read_get(&line).map_or_else(|| Self::read_any(line, columns), Ok)
    }

    /// Parses `eyas get`, or `eyas URL`, with the flags of `get` alone: those of the other subcommands are 300 kB that such a
    /// run would touch for nothing. What this does not accept, help and errors among it, is left to the whole parser.
    fn read_get(line: &[OsString]) -> Option<Self> {
        let (program, words) = line.split_first()?;
        let words = words.strip_prefix(&["get".into()]).unwrap_or(words);
        if words.len() + 1 == line.len() && !implicit_get::is_url(words.first()?) {
            return None;
        }
        let line = [program.clone(), "get".into()].into_iter().chain(words.iter().cloned());
        let get = get::with_negations(GetFlags::augment_args(clap::Command::new("get")));
        let root = CommonFlags::augment_args(clap::Command::new("eyas"));
        let root = root.args_override_self(true).subcommand(get);
        let mut matches = root.try_get_matches_from(line).ok()?;
        Self::from_arg_matches_mut(&mut matches).ok()
    }

    fn read_any(line: Vec<OsString>, columns: usize) -> Result<Self, clap::Error> {
        let root = Self::command().mut_subcommand("get", get::with_negations);
        let mut root = width::fit(root, columns);
        let line = implicit_get::with_get(&root, line);
        let read = root.try_get_matches_from_mut(line);
        let read = read.and_then(|mut matches| {
            Self::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut root))
        });
        read.map_err(|error| typo::presentable(error, &root))
    }
}

const TOP_EXAMPLES: &str = "\
Examples:
  eyas demo                         races on this machine, in ten seconds
  eyas https://example.org/         fetch a page, as curl would: short for
                                    eyas get https://example.org/
  eyas get -v https://example.org/  the same, and draw how the race ran
  eyas race --all example.org       which transports get through, and why
                                    not the others?
  eyas doctor example.org           what is broken on this machine and
                                    network, and what to do about it
  eyas pipe sctp+tcp://host:5000    standard input and output over what works
  eyas plan example.org             what would be tried, when, and why
  eyas memory                       what eyas has learnt about your networks
  eyas lab run cmt-delay --quick    a published experiment, simulated
  eyas load -k https://localhost/   how much load can the server take?
  eyas perf -k server.example       throughput and latency of each transport,
                                    to an 'eyas perf serve'
  eyas netem run --delay 40ms --loss 5% -- COMMAND
                                    a command behind a bad network
  eyas serve                        an HTTP/1.1, 2 and 3 server to try it on
  eyas proxy run COMMAND            any program, over what really works
  eyas tunnel HOST -L 8080:localhost:80
                                    another host's web server, here
  eyas sctp run COMMAND             SCTP for a program on a kernel without it

'eyas help COMMAND' explains one command, with examples. Exit codes are curl's
where curl has one: 6 DNS, 7 connect, 28 timeout, 35 TLS, 60 certificate.";

/// The flags of all subcommands.
#[derive(Args, Clone, Debug)]
pub(crate) struct CommonFlags {
    /// Print one JSON object on standard output, including errors
    ///
    /// 'eyas man guide json' describes the objects of all subcommands.
    #[arg(long, global = true, help_heading = "Output")]
    pub(crate) json: bool,
    /// When to use colours; NO_COLOR in the environment disables them as well
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Output",
        visible_alias = "colour"
    )]
    pub(crate) color: ColorChoice,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always, even when writing to a pipe.
    Always,
    /// Never.
    Never,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Race against a server on this machine, and draw each race
    ///
    /// Nine small networks on loopback: everything works, UDP dropped, TCP slow, QUIC slow, HTTP/3
    /// only, a wrong certificate on one transport, SCTP over UDP, protocol 132 dropped, and a program
    /// that goes through eyas proxy. Each is raced without memory and then with what was learnt.
    ///
    /// Needs no network, writes no files, and ends within ten seconds.
    #[command(after_help = DEMO_EXAMPLES)]
    Demo(DemoFlags),
    /// Find out what this machine and network let through, and what to do about the rest
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(Box<DoctorFlags>),
    /// Fetch a URL over the best transport that works
    #[command(after_help = get::EXAMPLES)]
    Get(Box<GetFlags>),
    /// Race to a URL or host:port and show how it went, without fetching anything
    #[command(after_help = RACE_EXAMPLES)]
    Race(Box<RaceFlags>),
    /// Connect standard input and output to a peer over any transport
    #[command(after_help = pipe::EXAMPLES)]
    Pipe(Box<PipeFlags>),
    /// Show what would be tried, in which order and why, without connecting
    ///
    /// DNS is queried; nothing else is sent.
    #[command(after_help = PLAN_EXAMPLES)]
    Plan(Box<PlanFlags>),
    /// Show or delete what eyas has learnt about your networks
    #[command(after_help = memory::EXAMPLES)]
    Memory(MemoryFlags),
    /// Serve files, test data or another web server over HTTP/1.1, 2 and 3
    #[command(after_help = serve::EXAMPLES)]
    Serve(Box<ServeFlags>),
    /// Let any program connect like eyas: a SOCKS and HTTP proxy
    #[command(after_help = proxy::EXAMPLES)]
    Proxy(Box<ProxyFlags>),
    /// Tunnel connections to and from another host, like ssh -L, -R and -D
    #[command(after_help = tunnel::EXAMPLES)]
    Tunnel(Box<TunnelFlags>),
    /// Give programs SCTP sockets where the kernel has none (Linux only)
    ///
    /// Their calls are served through the dynamic linker of glibc or musl, or by seccomp notifications, which other
    /// systems lack: there it fails with exit code 4.
    #[command(after_help = sctp::EXAMPLES)]
    Sctp(SctpFlags),
    /// Generate load on a server at a given rate, over any transport
    #[command(after_help = load::EXAMPLES)]
    Load(Box<LoadFlags>),
    /// Measure throughput and latency to another eyas over each transport
    #[command(after_help = perf::EXAMPLES)]
    Perf(Box<PerfFlags>),
    /// Run simulated or live experiments, and judge published claims
    #[command(after_help = lab::EXAMPLES)]
    Lab(LabFlags),
    /// Run any command behind a bad network: delay, loss, rate, middleboxes (Linux only)
    ///
    /// Its hosts are network namespaces, which other systems lack: there it fails with exit code 4.
    #[command(after_help = netem::EXAMPLES)]
    Netem(NetemFlags),
    /// Replay a recorded race and check that every decision is the same
    #[command(after_help = REPLAY_EXAMPLES)]
    Replay(ReplayFlags),
    /// Print shell completions
    #[command(after_help = generate::COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print a man page, or write all of them to a directory
    #[command(after_help = generate::MAN_EXAMPLES)]
    Man(ManFlags),
}

const DEMO_EXAMPLES: &str = "\
Examples:
  eyas demo            all nine networks
  eyas demo --explain  and why each candidate is ranked where it is
  eyas demo --json     the same as data, one object";

/// Flags of `eyas demo`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DemoFlags {
    /// Explain for each candidate why it is ranked where it is
    #[arg(long)]
    pub(crate) explain: bool,
}

const RACE_EXAMPLES: &str = "\
Examples:
  eyas race example.org                 who wins, drawn as a timeline
  eyas race --all example.org           let every candidate finish: what works,
                                        how fast, and why the others fail
  eyas race --count 100 --interval 2s example.org
                                        which fail how often, and how long
                                        the others take
  eyas race --explain example.org       why each candidate is ranked where it is
  eyas race --alpn imap mail.example.org:993
  eyas race --plain localhost:8080      without TLS
  eyas race sctp+tcp://localhost:8443 --prefer sctp
                                        does SCTP get through, and how?
  eyas race --trace bug.jsonl example.org
                                        record it; 'eyas replay bug.jsonl'
                                        runs it again

A TARGET is an https:// or http:// URL, host:port, or a host alone (port 443).
host:port is raced as https unless --plain or --alpn says that something else
is used there. TRANSPORT[+TRANSPORT]://host:port names the transports to race;
sctp means directly over IP and inside UDP.";

/// Flags of `eyas race`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RaceFlags {
    /// URL, host:port or host to race to
    pub(crate) target: String,
    /// Let every candidate finish, and print which work and why the others fail
    #[arg(long)]
    pub(crate) all: bool,
    /// Explain for each candidate why it is ranked where it is, or why it was dropped
    #[arg(long)]
    pub(crate) explain: bool,
    /// Race N times, with --all, and print losses and percentiles for each transport and family
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000),
          conflicts_with_all = ["trace", "explain"])]
    pub(crate) count: Option<u32>,
    /// Time from one race of --count to the next [default: 1s]
    #[arg(long, value_name = "DURATION", value_parser = values::duration, requires = "count")]
    pub(crate) interval: Option<Duration>,
    #[command(flatten)]
    pub(crate) service: ServiceFlags,
    /// Record the race in FILE, for 'eyas replay'
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) versions: VersionFlags,
    /// How candidates are tried
    #[arg(long, value_name = "POLICY", default_value = "race", help_heading = "Choosing")]
    pub(crate) policy: RacePolicy,
    #[command(flatten)]
    pub(crate) choice: ChoiceFlags,
    #[command(flatten)]
    pub(crate) reach: ReachFlags,
    #[command(flatten)]
    pub(crate) trust: TrustFlags,
}

/// The service at a target that is not a URL.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ServiceFlags {
    /// Disable TLS, and therefore QUIC
    #[arg(long, conflicts_with = "alpn")]
    pub(crate) plain: bool,
    /// Application protocols to offer (ALPN), preferred first, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) alpn: Vec<String>,
}

const PLAN_EXAMPLES: &str = "\
Examples:
  eyas plan example.org                  what 'eyas get' would try now
  eyas plan --memory none example.org    as if nothing had been learnt
  eyas plan -4 --http3 example.org       with fewer candidates
  eyas plan --json example.org           as data";

/// Flags of `eyas plan`.
#[derive(Args, Clone, Debug)]
pub(crate) struct PlanFlags {
    /// URL, host:port or host to plan for
    pub(crate) target: String,
    #[command(flatten)]
    pub(crate) service: ServiceFlags,
    #[command(flatten)]
    pub(crate) versions: VersionFlags,
    /// How candidates are tried
    #[arg(long, value_name = "POLICY", default_value = "race", help_heading = "Choosing")]
    pub(crate) policy: RacePolicy,
    #[command(flatten)]
    pub(crate) choice: ChoiceFlags,
    #[command(flatten)]
    pub(crate) reach: ReachFlags,
    #[command(flatten)]
    pub(crate) trust: TrustFlags,
}

const REPLAY_EXAMPLES: &str = "\
Examples:
  eyas race --trace bug.jsonl example.org   record
  eyas replay bug.jsonl                     draw it again, and check it
  eyas replay --svg race.svg bug.jsonl      the picture for a page

A trace contains names and addresses that you connected to, and so does the
picture: check them before you share them.";

/// Flags of `eyas replay`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReplayFlags {
    /// The trace file, or - for standard input
    pub(crate) file: PathBuf,
    /// Explain for each candidate why it was ranked where it was
    #[arg(long)]
    pub(crate) explain: bool,
    /// Also write the picture as SVG to FILE, with colours for light and dark pages
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}
