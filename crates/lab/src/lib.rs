//! Experiments as plans: simulated in virtual time, judged claim by claim, shown in a report.
//!
//! A [`plan`] is a TOML file. Each of its points, with a seed, is one run: a pure function
//! ([`simulation::run`]) in which an unmodified `eyas-sctp` runs over the links of `eyas-netem`.
//! The [`runner`] executes all runs on all cores and keeps finished ones; [`results`] are
//! summarised, [`claim`]s are judged, and a [`report`] shows everything.
//!
//! ```text
//! plan ──▶ points × seeds ──▶ simulation::run ──▶ results ──▶ claims ──▶ result.json, .csv, report.html
//! ```
//!
//! | module | purpose |
//! | --- | --- |
//! | `statistics` | means, confidence intervals, regression lines |
//! | `printable` | text without what a terminal obeys |
//! | [`situation`] | what is simulated or emulated: every set-up and its check; executes nothing |
//! | [`run`] | the result of a run |
//! | [`measure`] | the measures of a run |
//! | [`claim`] | claims, as expressions with bounds |
//! | [`plan`] | experiments as data; the built-in ones |
//! | [`simulation`] | one simulated run: hosts, routers, links, a saturated sender, a measuring sink |
//! | [`live`] | one run on real sockets: hosts, servers, clients, trials |
//! | [`results`] | `result.json`, `result.csv`, finished runs |
//! | [`runner`] | all runs, on all cores, resumable, or a shard of them |
//! | [`report`] | one HTML page with figures |
//!
//! Each module uses only those above it in this table; `cargo xtask tidy` enforces this.
//!
//! Everything that a run depends on is in its set-up, which is stored beside its numbers, so runs
//! can execute on any thread, process or machine. A finished run is reused if neither the situation
//! nor the code has changed. A report is made from `result.json` alone.

pub mod claim;
pub mod live;
pub mod measure;
pub mod plan;
mod printable;
pub mod report;
pub mod results;
pub mod run;
pub mod runner;
pub mod simulation;
pub mod situation;
mod statistics;

pub use statistics::{ConfidenceInterval, IntervalMethod, SampleSummary, TrialStatistic};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
