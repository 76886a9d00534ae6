//! The load generator: requests that arrive on schedule, independently of the previous ones, or
//! clients that each wait for their response before they send the next request ([`Load::clients`]).
//!
//! An open loop (Schroeder, Wierman, Harchol-Balter 2006): arrivals are an independent process, and
//! every time is measured from the intended start, so that nothing is hidden behind a slow response
//! (Tene's "coordinated omission"). Requests that cannot be started, because too many are in
//! flight, are counted as dropped.
//!
//! | module | purpose |
//! | --- | --- |
//! | `arrivals`, `draw` | when requests arrive, and their random choices: pure |
//! | `load_tally` | the counters: pure, of bounded size |
//! | `attempts` | the outcomes of attempts |
//! | `outcome` | the summary of a run, also as data |
//! | `load` | the description of a load, and what makes it impossible |
//! | `run` | runs a load on its threads |
//! | `prepare` | values derived from a load |
//! | `closed_loop` | clients that wait for their responses |
//! | `worker`, `request` | one thread: starts requests, executes them, counts their outcomes |
//! | `pool` | persistent connections |
//! | `timer` | a timer with microsecond resolution |
//! | `series`, `histogram_log` | results second by second, as CSV and as an HDR histogram log |
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use eyas_load::{run, ArrivalProcess, Load, LoadExtent, LoadStop};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut load = Load::new("http://127.0.0.1:8080/bytes/1024".parse()?);
//! load.arrivals = ArrivalProcess::poisson(400.0);
//! load.extent = LoadExtent::lasting(Duration::from_secs(60));
//! let outcome = run(&load, &LoadStop::default(), |_| {})?;
//! println!("{:.1}/s answered", outcome.answered_per_second());
//! # Ok(())
//! # }
//! ```
//!
//! [`run()`] creates threads, which start in the network namespace of its caller and on the cores
//! that the caller is pinned to: an experiment enters a namespace on a thread and runs the load
//! there.

mod arrivals;
mod attempts;
mod closed_loop;
mod draw;
mod histogram_log;
mod load;
mod load_tally;
mod outcome;
mod pool;
mod prepare;
mod request;
mod run;
mod series;
mod timer;
mod worker;

pub use arrivals::{ArrivalProcess, ArrivalRate, ArrivalSchedule, ArrivalSpacing, LoadExtent};
pub use attempts::TransportAttempts;
pub use draw::{RequestDraw, RequestDraws};
pub use histogram_log::HistogramLog;
pub use load::{ConnectionUse, Load, LoadError, LoadProgress, LoadStop};
pub use load_tally::{
    CompleteResponse, ErrorGroup, LoadExchange, LoadTally, OpeningTimes, RequestError,
    ResponseCarrier, TimeHistograms,
};
pub use outcome::{ErrorRow, LoadOutcome, LoadSummary, TimePercentiles, WinnerRow};
pub use run::run;
pub use series::SeriesWriter;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
