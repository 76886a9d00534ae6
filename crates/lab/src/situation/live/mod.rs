//! Situations on real sockets, in real time.
//!
//! | file | job |
//! | --- | --- |
//! | `mod` | the list of experiments, and what they have in common |
//! | `connect` | `h3-delay`, `h3-loss`: how long until a connection can carry a request |
//! | `policies` | `h3-policies`: what a client meets as servers go over to HTTP/3 |
//! | `multipath` | `cmt-live`: what one connection gets out of several paths |
//! | `cost` | `he-cost`, `he-cache`: what racing transports costs a server |
//! | `all_transports` | `he-six`: races of all transports, through middleboxes |
//! | `clients` | `he-clients`: other programs, when names and networks fail |
//! | `link` | what is between client and server |
//! | `times`, `load_columns` | when a load on a server is looked at, and what is measured of it |
//! | `strategy` | how a client comes to its connection |
//! | `memory` | what it remembers at the start of a trial |
//!
//! A run measures some trials; what it measured is in columns, with one number for each trial. The
//! runs of a point are taken together.

mod all_transports;
mod clients;
mod connect;
mod cost;
mod link;
mod load_columns;
mod memory;
pub(crate) mod multipath;
mod policies;
mod strategy;
mod times;

use serde::{Deserialize, Serialize};

pub use all_transports::{AllTransportsSetup, Between, RaceOf, Secured};
pub use clients::{
    Answering, Behind, ClientProgram, ClientsSetup, HttpsSetup, Late, LateSetup, Scheme, Source,
    Udp, ZoneSetup,
};
pub use connect::ConnectSetup;
pub use cost::{CostSetup, Outcome, SctpIn, Trying};
pub use link::LinkSetup;
pub use memory::Memory;
pub use multipath::{MultipathSetup, Stack};
pub use policies::PoliciesSetup;
pub use strategy::ClientStrategy;
#[cfg(all(target_os = "linux", feature = "load"))]
pub(crate) use {load_columns::COLUMNS as LOAD_COLUMNS, times::Times};

/// The name of a column, and what people read at an axis.
pub(crate) type Column = (&'static str, &'static str);

/// What a reader must know where times are measured.
const CORES_ARE_AWAKE: &str = "While trials run the kernel is asked for cores that do not sleep (PM QoS), so that no time is \
     that of waking up a core; where this user may not ask, they sleep.";

/// What every live experiment says of itself.
trait Experiment {
    /// What a run measures.
    const COLUMNS: &'static [Column];
    /// Those of the columns that say of each trial whether it was so: 0 or 100.
    const SHARES: &'static [&'static str] = &[];
    /// Whether it measures what the machine spends, or times that are as short as what the machine
    /// makes of them: then nothing else may run meanwhile.
    const RUNS_ALONE: bool = true;

    /// What makes no sense, in words.
    fn check(&self) -> Result<(), String>;

    /// What a reader must know: what is emulated and how, and what this machine cannot show.
    fn emulated(&self) -> Vec<String>;
}

/// Makes the list of live experiments: whatever is done with all of them is made from it.
macro_rules! experiments {
    (($d:tt) $($(#[$about:meta])* $name:ident($setup:ty),)+) => {
        /// What is emulated and measured.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "experiment", rename_all = "kebab-case")]
        pub enum Setup {
            $($(#[$about])* $name(Box<$setup>),)+
        }

        /// Does the same with whichever experiment it is.
        macro_rules! with_experiment {
            ($d setup:expr, $d one:ident => $d what:expr) => {
                match $d setup {
                    $($crate::situation::live::Setup::$name($d one) => $d what,)+
                }
            };
        }

        /// What runs of all kinds measure, and what people read at an axis.
        pub(crate) fn columns() -> impl Iterator<Item = Column> {
            const ALL: &[&[Column]] = &[$(<$setup as Experiment>::COLUMNS),+];
            ALL.iter().copied().flatten().copied()
        }

        /// Whether a column says yes or no of each trial, as 100 or 0.
        pub(crate) fn is_share(column: &str) -> bool {
            [$(<$setup as Experiment>::SHARES),+].into_iter().flatten().any(|name| *name == column)
        }
    };
}

experiments! { ($)
    /// First and second requests of a client that starts with nothing.
    Connect(ConnectSetup),
    /// The same at servers of which some speak HTTP/3, and networks of which some swallow UDP.
    Policies(PoliciesSetup),
    /// One connection over several paths.
    Multipath(MultipathSetup),
    /// What the connections of a load cost the server.
    Cost(CostSetup),
    /// What a race of all transports costs, and what gets through a middlebox.
    #[serde(rename = "six")]
    AllTransports(AllTransportsSetup),
    /// How other programs come to their connections.
    Clients(ClientsSetup),
}
#[cfg(all(target_os = "linux", feature = "load"))]
pub(crate) use with_experiment;

impl Setup {
    /// What makes no sense, in words.
    pub(crate) fn check(&self) -> Result<(), String> {
        with_experiment!(self, one => one.check())
    }

    /// Whether nothing else may run meanwhile.
    pub(crate) fn runs_alone(&self) -> bool {
        const fn of<E: Experiment>(_: &E) -> bool {
            E::RUNS_ALONE
        }
        with_experiment!(self, one => of(&**one))
    }

    /// What a reader must know: what is emulated and how, and what this machine cannot show.
    pub(crate) fn emulated(&self) -> Vec<String> {
        with_experiment!(self, one => one.emulated())
    }
}
