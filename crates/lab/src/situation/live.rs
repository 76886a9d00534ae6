//! Situations on real sockets, in real time.
//!
//! | file | purpose |
//! | --- | --- |
//! | `mod` | the list of experiments, and what they have in common |
//! | `connect` | `h3-delay`, `h3-loss`: the time until a connection can carry a request |
//! | `policies` | `h3-policies`: what a client experiences while servers migrate to HTTP/3 |
//! | `multipath` | `cmt-live`: the payload of one connection over several paths |
//! | `drawn` | `cmt-random-live`: the same in networks drawn at random |
//! | `cost` | `he-cost`, `he-cache`: the cost of racing transports for a server |
//! | `all_transports` | `he-six`: races of all transports, through middleboxes |
//! | `clients` | `he-clients`: other programs, when names and networks fail |
//! | `link` | the link between client and server |
//! | `times`, `load_columns` | when a load on a server is sampled, and its measurements |
//! | `strategy` | how a client connects |
//! | `memory` | what it remembers at the start of a trial |
//!
//! A run consists of some trials; its measurements are columns, with one number for each trial. The
//! runs of a point are pooled.

mod all_transports;
mod clients;
mod connect;
mod cost;
mod drawn;
mod error;
mod link;
mod load_columns;
mod memory;
pub(crate) mod multipath;
mod policies;
mod strategy;
mod times;

use serde::{Deserialize, Serialize};

pub use all_transports::{AllTransportsSetup, MiddleboxKind, RacePolicyName, SctpSecurityName};
pub use clients::{
    ClientProgram, ClientSource, ClientsSetup, DelaySetup, DelayedTraffic, DnsAnswer,
    HostBehaviour, HttpsSetup, UdpBehavior, UrlScheme, ZoneSetup,
};
pub use connect::ConnectSetup;
pub use cost::{ConnectMethod, CostOutcome, CostSetup, SctpCarrier};
pub use drawn::DrawnSetup;
pub(crate) use error::LiveSetupError;
pub use link::LinkSetup;
pub use memory::ClientMemory;
pub use multipath::{MultipathSetup, MultipathStack};
pub use policies::PoliciesSetup;
pub use strategy::ClientStrategy;
#[cfg(all(target_os = "linux", feature = "live"))]
pub(crate) use {load_columns::COLUMNS as LOAD_COLUMNS, times::LoadTimes};

/// The name of a column and its axis label.
pub(crate) type ColumnLabel = (&'static str, &'static str);

/// The note for readers of experiments that measure times.
const CORES_ARE_AWAKE: &str = "While trials run, the kernel is asked to keep the cores awake (PM QoS), so that no time includes \
     the wake-up of a core; if this user lacks permission, cores may sleep.";

/// The columns of every experiment: one number per run, for the whole machine.
pub(crate) const MACHINE: [ColumnLabel; 2] = [
    ("others", "CPU time of other programs and of other machines on this one [% of a core]"),
    ("others-memory", "change of the kernel's networking memory beside the run [KiB]"),
];

/// The description of a live experiment.
trait LiveExperiment {
    /// The columns of a run.
    const COLUMNS: &'static [ColumnLabel];
    /// The columns that state for each trial whether something was the case: 0 or 100.
    const SHARES: &'static [&'static str] = &[];
    /// Whether it measures the resources of the machine, or times so short that the load of the
    /// machine affects them: then nothing else may run meanwhile.
    const RUNS_ALONE: bool = true;

    /// Returns what is invalid.
    fn check(&self) -> Result<(), LiveSetupError>;

    /// Returns the notes for readers: what is emulated and how, and what this machine cannot show.
    fn emulated(&self) -> Vec<String>;
}

/// Generates the list of live experiments, from which everything that applies to all of them is
/// derived.
macro_rules! experiments {
    (($d:tt) $($(#[$about:meta])* $name:ident($setup:ty),)+) => {
        /// What is emulated and measured.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "experiment", rename_all = "kebab-case")]
        pub enum LiveSetup {
            $($(#[$about])* $name(Box<$setup>),)+
        }

        /// Does the same with any of the experiments.
        macro_rules! with_experiment {
            ($d setup:expr, $d one:ident => $d what:expr) => {
                match $d setup {
                    $($crate::situation::live::LiveSetup::$name($d one) => $d what,)+
                }
            };
        }

        /// Returns the columns of all kinds of runs, with their axis labels.
        pub(crate) fn columns() -> impl Iterator<Item = ColumnLabel> {
            const ALL: &[&[ColumnLabel]] = &[$(<$setup as LiveExperiment>::COLUMNS),+];
            ALL.iter().copied().flatten().copied().chain(MACHINE)
        }

        /// Returns whether a column is 100 or 0 for each trial.
        pub(crate) fn is_share(column: &str) -> bool {
            [$(<$setup as LiveExperiment>::SHARES),+].into_iter().flatten().any(|name| *name == column)
        }
    };
}

experiments! { ($)
    /// First and second requests of a client that starts with an empty memory.
    Connect(ConnectSetup),
    /// The same with several servers and networks: only some of the servers support HTTP/3, and some
    /// of the networks swallow UDP.
    Policies(PoliciesSetup),
    /// One connection over several paths.
    Multipath(MultipathSetup),
    /// The same in networks drawn at random.
    Drawn(DrawnSetup),
    /// The cost of a load's connections for the server.
    Cost(CostSetup),
    /// The cost of a race of all transports, and what gets through a middlebox.
    #[serde(rename = "six")]
    AllTransports(AllTransportsSetup),
    /// How other programs connect.
    Clients(ClientsSetup),
}
#[cfg(all(target_os = "linux", feature = "live"))]
pub(crate) use with_experiment;

impl LiveSetup {
    /// Returns what is invalid.
    pub(crate) fn check(&self) -> Result<(), LiveSetupError> {
        with_experiment!(self, one => one.check())
    }

    /// Returns whether nothing else may run meanwhile.
    pub(crate) fn runs_alone(&self) -> bool {
        const fn is_exclusive<E: LiveExperiment>(_: &E) -> bool {
            E::RUNS_ALONE
        }
        with_experiment!(self, one => is_exclusive(&**one))
    }

    /// Returns the notes for readers: what is emulated and how, and what this machine cannot show.
    pub(crate) fn emulated(&self) -> Vec<String> {
        with_experiment!(self, one => one.emulated())
    }
}
