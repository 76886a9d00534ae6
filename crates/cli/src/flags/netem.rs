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
  eyas netem show                        what has become of the packets

The command is the client, at 198.18.1.1 and 2001:2:0:1::1. At the other end of
the link, at 198.18.1.2 and 2001:2:0:1::2, is the server, in a network of its
own; --server runs a command there. Neither reaches this machine's own network.
The command's exit status is passed on; 127 says that it was not found, 126 that
it cannot be run. docs/netem.md has the details.";

/// Flags of `eyas netem`.
#[derive(Args, Clone, Debug)]
pub(crate) struct NetemFlags {
    /// What to do.
    #[command(subcommand)]
    pub(crate) action: NetemAction,
}

/// What to do with the emulator.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum NetemAction {
    /// Run a command behind a bad network
    ///
    /// Needs root, or a user who may make user namespaces: the command then believes that it is root.
    #[command(after_help = EXAMPLES)]
    Run(Box<NetemRunFlags>),
    /// Change the network of a run
    Change(Box<NetemChangeFlags>),
    /// Show what has become of the packets of a run so far
    Show(NetemShowFlags),
}

/// What the link is like, in both directions.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Link")]
pub(crate) struct LinkFlags {
    /// Bits a second, such as 10mbit or '10 Mbit/s'; none takes the limit away
    #[arg(long, value_name = "RATE")]
    rate: Option<String>,
    /// Delay one way, such as 10ms
    #[arg(long, value_name = "DURATION")]
    delay: Option<String>,
    /// The most that is added to a packet's delay, evenly drawn; packets stay in order
    #[arg(long, value_name = "DURATION")]
    jitter: Option<String>,
    /// Packets lost at random, such as 5%
    #[arg(long, value_name = "SHARE")]
    loss: Option<String>,
    /// What may wait for the link: 100 (packets), '64 KiB', '1000 packets codel'
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// The largest packet of the link, in bytes; larger ones are dropped, or fragmented if they may be
    #[arg(long, value_name = "BYTES")]
    mtu: Option<String>,
    /// Packets that arrive twice, such as 1%
    #[arg(long, value_name = "SHARE")]
    duplicate: Option<String>,
    /// Packets that are held back while others pass: '5% by 10ms'; with 'jitter', those that --jitter
    /// delays may be overtaken
    #[arg(long, value_name = "HOW")]
    reorder: Option<String>,
    /// Only from the client to the server: KEY=VALUE,...
    ///
    /// The keys are the flags above, and framing, bit-errors and up. --forward
    /// rate=1mbit,delay=5ms beside --rate 10mbit gives 10 Mbit/s to the other direction alone.
    #[arg(long, value_name = "LINK")]
    pub(crate) forward: Option<String>,
    /// Only from the server to the client
    #[arg(long, value_name = "LINK")]
    pub(crate) backward: Option<String>,
}

impl LinkFlags {
    /// What is wanted in both directions: keys and values.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("rate", &self.rate),
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
    /// The command, and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
    #[command(flatten)]
    pub(crate) link: LinkFlags,
    /// One of several paths, of its own link: NAME:KEY=VALUE,...; keys may begin with 'forward.' or
    /// 'backward.'
    #[arg(long, value_name = "PATH", help_heading = "Network")]
    pub(crate) path: Vec<String>,
    /// Paths, middleboxes and what changes, from a file of TOML
    #[arg(long, value_name = "FILE", conflicts_with = "path", help_heading = "Network")]
    pub(crate) topology: Option<PathBuf>,
    /// Seed of every random choice
    #[arg(long, value_name = "N", help_heading = "Network")]
    pub(crate) seed: Option<u64>,
    /// Keep the emulator on this core
    #[arg(long, value_name = "N", help_heading = "Network")]
    pub(crate) core: Option<usize>,
    /// Run this on the far side, by sh; the command begins once it listens
    #[arg(long, value_name = "COMMAND", help_heading = "Network")]
    pub(crate) server: Option<String>,
    /// Write all packets to FILE, as sent and as received, for Wireshark
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) pcapng: Option<PathBuf>,
    /// Do not say at the end what became of the packets
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
}

/// Which direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LinkState {
    /// Packets pass.
    Up,
    /// Everything is lost.
    Down,
}

/// Flags of `eyas netem change`.
#[derive(Args, Clone, Debug)]
pub(crate) struct NetemChangeFlags {
    #[command(flatten)]
    pub(crate) link: LinkFlags,
    /// Cut the link, or mend it
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

/// Which run is meant.
#[derive(Args, Clone, Debug)]
pub(crate) struct WhichRun {
    /// The process number of the run, if there are several
    #[arg(
        long,
        value_name = "PID",
        env = "EYAS_NETEM",
        hide_env_values = true,
        help_heading = "Network"
    )]
    pub(crate) run: Option<u32>,
}
