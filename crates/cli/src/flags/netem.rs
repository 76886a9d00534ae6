//! Flags of `eyas netem`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

pub(super) const EXAMPLES: &str = "\
Examples:
  eyas netem run --delay 10ms --loss 5% --rate 10mbit --queue 100 -- COMMAND
  eyas netem run --delay 40ms --server 'iperf3 -s' -- iperf3 -c 198.18.1.2
  eyas netem run --rate 20mbit --backward rate=50mbit -- bash
  eyas netem run --path wifi:rate=20mbit,delay=10ms \\
                 --path lte:rate=5mbit,delay=40ms,forward.loss=1% -- bash
  eyas netem run --topology bad.toml --pcapng all.pcapng -- COMMAND
  eyas netem change --loss 20%           while one runs, from anywhere
  eyas netem show                        what happened to the packets

The command is the client, at 198.18.1.1 and 2001:2:0:1::1. At the other end of
the link, at 198.18.1.2 and 2001:2:0:1::2, is the server, in its own network;
--server runs a command there. Neither reaches this machine's own network.
The exit status is the command's, 127 if it was not found, or 126 if it cannot
be run. 'eyas man guide netem' has the details.";

/// Flags of `eyas netem`.
#[derive(Args, Clone, Debug)]
pub(crate) struct NetemFlags {
    /// The action.
    #[command(subcommand)]
    pub(crate) action: NetemAction,
}

/// The actions of the emulator.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum NetemAction {
    /// Run a command behind a bad network
    ///
    /// Requires root, or permission to create user namespaces: the command then believes that it is
    /// root.
    #[command(after_help = EXAMPLES)]
    Run(Box<NetemRunFlags>),
    /// Change the network of a run
    Change(Box<NetemChangeFlags>),
    /// Show what has happened to the packets of a run so far
    Show(NetemShowFlags),
}

/// The properties of the link, in both directions.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Link")]
pub(crate) struct LinkFlags {
    /// Bits per second, such as 10mbit or '10 Mbit/s'; 'none' removes the limit
    #[arg(long, value_name = "RATE")]
    rate: Option<String>,
    /// Recorded rate instead: a trace file of mahimahi
    #[arg(long, value_name = "FILE", conflicts_with = "rate")]
    trace: Option<String>,
    /// One-way delay, such as 10ms
    #[arg(long, value_name = "DURATION")]
    delay: Option<String>,
    /// Random part of the delay, as in tc: '10ms', added and at most this; '10ms 25% normal', with
    /// correlation and distribution (uniform, normal, pareto, paretonormal); packets stay in order
    #[arg(long, value_name = "JITTER")]
    jitter: Option<String>,
    /// Random packet loss, such as 5%
    #[arg(long, value_name = "SHARE")]
    loss: Option<String>,
    /// Queue of the link: 100 (packets), '64 KiB', '1000 packets codel'
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Largest packet of the link, in bytes; larger ones are dropped, or fragmented if allowed
    #[arg(long, value_name = "BYTES")]
    mtu: Option<String>,
    /// Packets that arrive twice, such as 1%
    #[arg(long, value_name = "SHARE")]
    duplicate: Option<String>,
    /// Packets that are delayed while others pass: '5% by 10ms'; with 'jitter', packets delayed by
    /// --jitter may be overtaken
    #[arg(long, value_name = "HOW")]
    reorder: Option<String>,
    /// Only from the client to the server: KEY=VALUE,...
    ///
    /// The keys are the flags above, and framing, bit-errors and up. With --rate 10mbit --forward
    /// rate=1mbit,delay=5ms, only the other direction has 10 Mbit/s.
    #[arg(long, value_name = "LINK")]
    pub(crate) forward: Option<String>,
    /// Only from the server to the client
    #[arg(long, value_name = "LINK")]
    pub(crate) backward: Option<String>,
}

impl LinkFlags {
    /// Returns the keys and values for both directions.
    #[cfg(target_os = "linux")]
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("rate", &self.rate),
            ("trace", &self.trace),
            ("delay", &self.delay),
            ("jitter", &self.jitter),
            ("loss", &self.loss),
            ("queue", &self.queue),
            ("mtu", &self.mtu),
            ("duplicate", &self.duplicate),
            ("reorder", &self.reorder),
        ];
        all.into_iter().filter_map(|(key, value)| Some((key, value.as_deref()?)))
    }
}

/// Flags of `eyas netem run`.
#[derive(Args, Clone, Debug)]
pub(crate) struct NetemRunFlags {
    /// The command and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
    #[command(flatten)]
    pub(crate) link: LinkFlags,
    /// One of several paths, with a link of its own: NAME:KEY=VALUE,...; keys may begin with
    /// 'forward.' or 'backward.'
    #[arg(long, value_name = "PATH", help_heading = "Network")]
    pub(crate) path: Vec<String>,
    /// Read paths, middleboxes and changes from a TOML file
    #[arg(long, value_name = "FILE", conflicts_with = "path", help_heading = "Network")]
    pub(crate) topology: Option<PathBuf>,
    /// Seed of all random choices
    #[arg(long, value_name = "N", help_heading = "Network")]
    pub(crate) seed: Option<u64>,
    /// Pin the emulator to this core
    #[arg(long, value_name = "N", help_heading = "Network")]
    pub(crate) core: Option<usize>,
    /// Run this on the server side, with sh; the command starts once it listens
    #[arg(long, value_name = "COMMAND", help_heading = "Network")]
    pub(crate) server: Option<String>,
    /// Write all packets to FILE, as sent and as received, for Wireshark
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) pcapng: Option<PathBuf>,
    /// Do not print at the end what happened to the packets
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
}

/// The state of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LinkState {
    /// Packets pass.
    Up,
    /// All packets are lost.
    Down,
}

/// Flags of `eyas netem change`.
#[derive(Args, Clone, Debug)]
pub(crate) struct NetemChangeFlags {
    #[command(flatten)]
    pub(crate) link: LinkFlags,
    /// Cut or restore the link
    #[arg(long, value_name = "STATE", help_heading = "Link")]
    pub(crate) state: Option<LinkState>,
    /// Only this path
    #[arg(long, value_name = "NAME", help_heading = "Network")]
    pub(crate) path: Option<String>,
    #[command(flatten)]
    pub(crate) which: WhichRun,
}

/// Flags of `eyas netem show`.
#[derive(Args, Clone, Debug)]
pub(crate) struct NetemShowFlags {
    #[command(flatten)]
    pub(crate) which: WhichRun,
}

/// Selects a run.
#[derive(Args, Clone, Debug)]
pub(crate) struct WhichRun {
    /// The process ID of the run, if there are several
    #[arg(
        long,
        value_name = "PID",
        env = "EYAS_NETEM",
        hide_env_values = true,
        help_heading = "Network"
    )]
    pub(crate) run: Option<u32>,
}
