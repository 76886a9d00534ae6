//! Experiments on real sockets, in real time.
//!
//! A plan of `kind = "live"` has situations of this kind: two hosts, which are network namespaces
//! of this machine, and between them a link that the [`emulator`](crate::emulator) runs. Client and
//! server are the real ones, `eyas-http` over the kernel's TCP and over QUIC, each in its own
//! namespace on a thread of its own.
//!
//! | module | job |
//! | --- | --- |
//! | `mod` | the situations, and one run of each |
//! | `bed`, `link` | two hosts and the link between them (Linux) |
//! | `awake` | cores that wake up at once, where times are measured |
//! | `connect` | `h3-delay`, `h3-loss`: how long until a connection can carry a request |
//! | `policies` | `h3-policies`: what a client meets as servers go over to HTTP/3 |
//! | `multipath` | `cmt-live`: what one connection gets out of several paths |
//! | `cost` | `he-cost`, `he-cache`: what racing transports costs a server |
//! | `six` | `he-six`: races of all transports, through middleboxes |
//! | `host`, `times`, `load_columns` | a load on a server whose host is looked at, when, and what is measured of it |
//! | `way` | how a client comes to its connection |
//! | `memory`, `remembered` | what it remembers at the start of a trial |
//! | `trial` | one trial of a client: a first and a second request |
//! | `dns` | a name server with and without HTTPS records |
//! | `servers` | what the client meets: servers with and without HTTP/3 |
//!
//! A run measures some trials; what it measured is in columns, with one number for each trial
//! ([`RunResult::columns`]). The runs of a point are taken together. Dropping the bed removes its
//! namespaces, and the emulator's watchdog does after a kill.

mod awake;
#[cfg(all(target_os = "linux", feature = "load"))]
mod bed;
mod connect;
mod cost;
#[cfg(all(target_os = "linux", feature = "load"))]
mod dns;
#[cfg(all(target_os = "linux", feature = "load"))]
mod host;
mod link;
mod load_columns;
mod memory;
mod multipath;
mod policies;
#[cfg(all(target_os = "linux", feature = "load"))]
mod remembered;
#[cfg(all(target_os = "linux", feature = "load"))]
mod servers;
mod six;
mod times;
#[cfg(all(target_os = "linux", feature = "load"))]
mod trial;
mod way;

use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use crate::results::RunResult;
use crate::statistics::Statistic;

#[cfg(all(target_os = "linux", feature = "load"))]
pub use bed::Bed;
pub use connect::ConnectSetup;
pub use cost::{CostSetup, Outcome, SctpIn, Trying};
pub use link::{LinkSetup, Traffic};
pub use memory::Memory;
pub use multipath::{MultipathSetup, Stack};
pub use policies::PoliciesSetup;
pub use six::{Between, RaceOf, Secured, SixSetup};
pub use way::Way;

/// What is emulated and measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "experiment", rename_all = "kebab-case")]
pub enum Setup {
    /// First and second requests of a client that starts with nothing.
    Connect(ConnectSetup),
    /// The same at servers of which some speak HTTP/3, and networks of which some swallow UDP.
    Policies(PoliciesSetup),
    /// One connection over several paths.
    Multipath(Box<MultipathSetup>),
    /// What the connections of a load cost the server.
    Cost(CostSetup),
    /// What a race of all transports costs, and what gets through a middlebox.
    Six(SixSetup),
}

/// What runs of all kinds measure, and what people read at an axis.
pub(crate) fn columns() -> impl Iterator<Item = (&'static str, &'static str)> {
    connect::COLUMNS.into_iter().chain(multipath::COLUMNS).chain(load_columns::COLUMNS)
}

/// Whether a column says yes or no of each trial, as 100 or 0.
pub(crate) fn is_share(column: &str) -> bool {
    connect::SHARES.contains(&column)
}

/// Why a live run came to nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The hosts and the link between them.
    #[error("cannot set up the emulated network: {0}")]
    Bed(String),
    /// A server or client inside it.
    #[error("inside the emulated network: {0}")]
    Inside(String),
    /// Something that this machine does not have: what needs it is left out.
    #[error("not to be had here: {0}")]
    Missing(String),
    /// It was asked to stop.
    #[error("stopped")]
    Stopped,
}

impl Setup {
    /// What makes no sense, in words.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self {
            Self::Connect(setup) => setup.check(),
            Self::Policies(setup) => setup.check(),
            Self::Multipath(setup) => setup.check(),
            Self::Cost(setup) => setup.check(),
            Self::Six(setup) => setup.check(),
        }
    }

    /// Whether it measures what the machine spends, or times that are as short as what the machine
    /// makes of them. What several paths carry is neither, and takes less than half a core.
    pub(crate) const fn runs_alone(&self) -> bool {
        !matches!(self, Self::Multipath(_))
    }

    /// What a reader must know: what is emulated and how, and what this machine cannot show.
    pub(crate) fn emulated(&self) -> Vec<String> {
        let own = match self {
            Self::Connect(setup) => setup.emulated(),
            Self::Policies(setup) => setup.emulated(),
            Self::Cost(setup) => setup.emulated(),
            Self::Six(setup) => setup.emulated(),
            Self::Multipath(setup) => return setup.emulated(),
        };
        link::emulated().into_iter().chain(own).collect()
    }
}

/// One run of a situation. Ends early, without a result, when `stop` is set.
///
/// # Errors
/// If the network cannot be emulated here, something inside it fails, or it was stopped.
#[cfg(all(target_os = "linux", feature = "load"))]
pub fn run(setup: &Setup, seed: u64, stop: &AtomicBool) -> Result<RunResult, LiveError> {
    match setup {
        Setup::Connect(setup) => connect::run(setup, seed, stop),
        Setup::Policies(setup) => policies::run(setup, seed, stop),
        Setup::Multipath(setup) => multipath::run(setup, seed, stop),
        Setup::Cost(setup) => cost::run(setup, seed, stop),
        Setup::Six(setup) => six::run(setup, seed, stop),
    }
}

/// Says that there are no live runs here.
///
/// # Errors
/// Always.
#[cfg(not(all(target_os = "linux", feature = "load")))]
pub fn run(_: &Setup, _: u64, _: &AtomicBool) -> Result<RunResult, LiveError> {
    let needs = "live experiments need Linux, and eyas-lab with its feature load";
    Err(LiveError::Bed(needs.to_owned()))
}

/// What people read at an axis, with the unit.
pub(crate) fn column_label(statistic: Statistic, column: &str) -> String {
    let of = match statistic {
        Statistic::Mean => "mean".to_owned(),
        Statistic::Deviation => "standard deviation".to_owned(),
        Statistic::Count => "trials".to_owned(),
        Statistic::Least => "least".to_owned(),
        Statistic::Most => "most".to_owned(),
        Statistic::Percentile(50) => "median".to_owned(),
        Statistic::Percentile(percent) => format!("{percent}th percentile"),
    };
    let what = columns().find(|(name, _)| *name == column);
    match what {
        Some((_, label)) => format!("{label}, {of}"),
        None => format!("{column}, {of}"),
    }
}
