//! Experiments as plans: simulated in virtual time, judged claim by claim, drawn as a report.
//!
//! A [`plan`] is a TOML file. Each of its points and a seed make one run, a pure function
//! ([`simulation::run`]) in which `eyas-sctp`, unchanged, meets the links of `eyas-netem`. The
//! [`runner`] does all runs on all cores and keeps what is finished; [`results`] sum up,
//! [`claim`]s are judged, a [`report`] shows it all.
//!
//! ```text
//! plan ──▶ points × seeds ──▶ simulation::run ──▶ results ──▶ claims ──▶ result.json, .csv, report.html
//! ```
//!
//! | module | job |
//! | --- | --- |
//! | [`units`] | amounts with units, queues and losses, as people write them |
//! | [`statistics`] | means, confidence intervals, straight lines |
//! | `emulator` | bad networks in real time, between network namespaces (Linux) |
//! | `load` | load on real servers: open-loop arrivals over any transport (Linux, feature `load`) |
//! | [`situation`] | what is simulated or emulated: every set-up and its check; runs nothing |
//! | [`run`] | what a run gives back |
//! | [`measure`] | the numbers of a run |
//! | [`claim`] | what is claimed, as expressions with bounds |
//! | [`plan`] | experiments as data; the shipped ones |
//! | [`simulation`] | one run: hosts, routers, links, a saturated sender, a sink that measures |
//! | [`live`] | one run on real sockets: hosts, servers, clients, trials |
//! | [`results`] | `result.json`, `result.csv`, finished runs |
//! | [`runner`] | all runs, on all cores, resumed where they stood, or a shard of them |
//! | [`report`] | one HTML page with pictures |
//!
//! Each module knows only those above it in this table; `cargo xtask tidy` holds them to it.

pub mod claim;
#[cfg(target_os = "linux")]
pub mod emulator;
pub mod live;
#[cfg(all(target_os = "linux", feature = "load"))]
pub mod load;
pub mod measure;
pub mod plan;
pub mod report;
pub mod results;
pub mod run;
pub mod runner;
pub mod simulation;
pub mod situation;
pub mod statistics;
pub mod units;
