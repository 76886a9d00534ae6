//! Flags of `eyas lab`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use eyas_lab::runner::PlanShard;

pub(super) const EXAMPLES: &str = "\
Examples:
  eyas lab list                      the experiments that come with eyas
  eyas lab run cmt-delay --quick     the shape of one, in about a minute
  eyas lab run cmt-delay             all of it: claims, numbers, report.html
  eyas lab run h3-loss --standard    on real sockets, in real time
  eyas lab run cmt-delay --set path.B.delay='100 ms' --runs 4
  eyas lab run cmt-delay --format parquet       every run, for data frames
  eyas lab run he-clients --client mine.toml    your HTTP client beside others
  eyas lab show cmt-delay > my.toml  a template for a plan
  eyas lab run my.toml               your own
  eyas lab report eyas-lab/my        write the report of finished runs again
  eyas lab results eyas-lab/my       the claims of finished runs as Markdown
  eyas lab run cmt-delay --shard 1/4 --out a    a quarter of the runs, here
  eyas lab merge a b c d             merge four quarters into the result

Finished runs are kept: after Ctrl-C, the same command runs the rest.
'eyas man guide lab' explains how to write a plan.";

/// Flags of `eyas lab`.
#[derive(Args, Clone, Debug)]
pub(crate) struct LabFlags {
    /// The action.
    #[command(subcommand)]
    pub(crate) action: LabAction,
}

/// The actions of the lab.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum LabAction {
    /// List the experiments that come with eyas
    List,
    /// Print the plan of an experiment, as a template for your own
    Show {
        /// Its name; 'keys' is a plan with every key
        name: String,
    },
    /// Run an experiment, simulated or live: run all points, judge the claims, write the report
    Run(LabRunFlags),
    /// Merge the shards of a run: judge the claims, write the report
    Merge(LabMergeFlags),
    /// Write the report of an output directory again, and print its claims
    Report {
        /// The output directory of an earlier run
        directory: PathBuf,
    },
    /// Print the results of runs as Markdown, or put them into a page
    Results(LabResultsFlags),
}

/// Flags of `eyas lab results`.
#[derive(Args, Clone, Debug)]
pub(crate) struct LabResultsFlags {
    /// The output directories of finished runs
    #[arg(value_name = "DIR", required_unless_present = "into")]
    pub(crate) directories: Vec<PathBuf>,
    /// Replace the chapters of this page, with pictures, tables and compact results beside it
    ///
    /// The chapter of a plan is between the lines '<!-- NAME: eyas lab results -->' and '<!-- end -->'.
    /// For a page results.md the other files are in the directory results beside it. Without DIR, the
    /// page is written again from the compact results there.
    #[arg(long, value_name = "FILE")]
    pub(crate) into: Option<PathBuf>,
}

/// Flags of `eyas lab run`.
#[derive(Args, Clone, Debug)]
pub(crate) struct LabRunFlags {
    /// The name of a built-in plan, or a plan file
    pub(crate) plan: String,
    /// Only the shape, in about a minute: fewer points, fewer and shorter runs
    #[arg(long)]
    pub(crate) quick: bool,
    /// Enough runs to judge the claims, instead of as many as in the publication
    #[arg(long, conflicts_with = "quick")]
    pub(crate) standard: bool,
    /// Number of runs per point, each with its own seed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) runs: Option<u32>,
    /// The seed of the first run; the others use the following ones
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Number of concurrent runs, instead of one per core; some live runs always run alone
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Output directory, instead of eyas-lab/NAME
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Format of the table of all runs
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: TableFormat,
    /// Change a parameter of all points, such as path.B.delay='50 ms'
    #[arg(long, value_name = "PARAM=VALUE")]
    pub(crate) set: Vec<String>,
    /// Also test the client described by this file; he-clients only
    ///
    /// 'eyas lab show he-clients' describes the format. With --set 'clients=[]' only this client is
    /// tested.
    #[arg(long, value_name = "FILE")]
    pub(crate) client: Vec<PathBuf>,
    /// Run one of several shards, such as 1/4, to be merged later; simulated experiments only
    ///
    /// Shards can run on different machines, each with its own output directory:
    /// eyas-lab/NAME-shard-1-of-4 by default. The merged result is identical to that of a single
    /// run. All shards must be run by the same build of eyas.
    #[arg(long, value_name = "I/N", conflicts_with_all = ["check", "format"])]
    pub(crate) shard: Option<PlanShard>,
    /// Fail if a claim is refused (exit code 112) or undecided (114), or none is judged (115)
    #[arg(long)]
    pub(crate) check: bool,
}

/// Flags of `eyas lab merge`.
#[derive(Args, Clone, Debug)]
pub(crate) struct LabMergeFlags {
    /// The output directories of all shards
    #[arg(required = true, value_name = "DIR")]
    pub(crate) directories: Vec<PathBuf>,
    /// Output directory, instead of eyas-lab/NAME
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Format of the table of all runs
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: TableFormat,
    /// Fail if a claim is refused (exit code 112) or undecided (114), or none is judged (115)
    #[arg(long)]
    pub(crate) check: bool,
}

/// How the table of all runs is written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(crate) enum TableFormat {
    /// CSV, as runs.csv
    #[default]
    Csv,
    /// CSV, and Apache Parquet as runs.parquet
    Parquet,
}
