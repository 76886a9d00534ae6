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
//! | [`plan`] | experiments as data; the shipped ones |
//! | [`simulation`] | one run: hosts, routers, links, a saturated sender, a sink that measures |
//! | [`runner`] | all runs, on all cores, resumed where they stood |
//! | [`measure`] | the numbers of a run |
//! | [`statistics`] | means, confidence intervals, straight lines |
//! | [`live`] | one run on real sockets: hosts, servers, clients, trials |
//! | `emulator` | bad networks in real time, between network namespaces (Linux) |
//! | `load` | load on real servers: open-loop arrivals over any transport (Linux, feature `load`) |
//! | [`claim`] | what is claimed, as expressions with bounds |
//! | [`results`] | `result.json`, `result.csv`, finished runs |
//! | [`report`] | one HTML page with pictures |

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
pub mod runner;
pub mod simulation;
pub mod statistics;
