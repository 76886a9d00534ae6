//! Flags of `eyas lab`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use eyas_lab::runner::Shard;

pub(super) const EXAMPLES: &str = "\
Examples:
  eyas lab list                      the experiments that come with eyas
  eyas lab run cmt-delay --quick     the shape of one, in about a minute
  eyas lab run cmt-delay             all of it: claims, numbers, report.html
  eyas lab run h3-loss --standard    on real sockets, in real time
  eyas lab run cmt-delay --set path.B.delay='100 ms' --runs 4
  eyas lab run cmt-delay --format parquet       every run, for data frames
  eyas lab run he-clients --client mine.toml    your HTTP client beside others
  eyas lab show cmt-delay > my.toml  a plan to begin with
  eyas lab run my.toml               your own
  eyas lab report eyas-lab/my        write the report of finished runs again
  eyas lab run cmt-delay --shard 1/4 --out a    a quarter of the runs, here
  eyas lab merge a b c d             four quarters make the whole result

Runs are kept: after Ctrl-C, the same command goes on where it stood.
docs/lab.md explains how to write a plan.";

/// Flags of `eyas lab`.
#[derive(Args, Clone, Debug)]
pub(crate) struct LabFlags {
    /// What to do.
    #[command(subcommand)]
    pub(crate) action: LabAction,
}

/// What to do in the lab.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum LabAction {
    /// Show the experiments that come with eyas
    List,
    /// Print the plan of an experiment, to begin a plan of your own with
    Show {
        /// Its name
        name: String,
    },
    /// Run an experiment: all its points, simulated or live; judge its claims, write its report
    Run(LabRunFlags),
    /// Put the shards of a run together: judge the claims, write the report
    Merge(LabMergeFlags),
    /// Write the report of an output directory again, and print its claims
    Report {
        /// The output directory of an earlier run
        directory: PathBuf,
    },
}

/// Flags of `eyas lab run`.
#[derive(Args, Clone, Debug)]
pub(crate) struct LabRunFlags {
    /// The name of a shipped plan, or the file of another one
    pub(crate) plan: String,
    /// The shape alone, in about a minute: fewer points, fewer and shorter runs
    #[arg(long)]
    pub(crate) quick: bool,
    /// Enough to judge by, instead of all that the publication did
    #[arg(long, conflicts_with = "quick")]
    pub(crate) standard: bool,
    /// Runs of each point, each with a seed of its own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) runs: Option<u32>,
    /// The seed of the first run; the others follow it
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Runs at a time, instead of one for each core; some live ones run alone in any case
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Where results go, instead of eyas-lab/NAME
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// How the table of all runs is written: runs.csv, or runs.parquet as well
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: TableFormat,
    /// Change a parameter of all points, such as path.B.delay='50 ms'
    #[arg(long, value_name = "PARAM=VALUE")]
    pub(crate) set: Vec<String>,
    /// Try this client as well, described by a file; he-clients only
    ///
    /// docs/he-clients.md says what such a file holds. With --set 'clients=[]' it alone is tried.
    #[arg(long, value_name = "FILE")]
    pub(crate) client: Vec<PathBuf>,
    /// Run one shard of several, such as 1/4, to be merged later; simulated experiments only
    ///
    /// Each shard runs wherever there is a machine for it, in an output directory of its own:
    /// eyas-lab/NAME-shard-1-of-4 without --out. The merged result is that of a single run, byte for
    /// byte. All shards must be run by the same build of eyas.
    #[arg(long, value_name = "I/N", conflicts_with_all = ["check", "format"])]
    pub(crate) shard: Option<Shard>,
    /// Fail if a claim is refused (exit code 112) or undecided (114)
    #[arg(long)]
    pub(crate) check: bool,
}

/// Flags of `eyas lab merge`.
#[derive(Args, Clone, Debug)]
pub(crate) struct LabMergeFlags {
    /// The output directories of all shards
    #[arg(required = true, value_name = "DIR")]
    pub(crate) directories: Vec<PathBuf>,
    /// Where results go, instead of eyas-lab/NAME
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// How the table of all runs is written: runs.csv, or runs.parquet as well
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: TableFormat,
    /// Fail if a claim is refused (exit code 112) or undecided (114)
    #[arg(long)]
    pub(crate) check: bool,
}

/// How the table of all runs is written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(crate) enum TableFormat {
    /// runs.csv
    #[default]
    Csv,
    /// runs.csv, and runs.parquet
    Parquet,
}
