//! Why a live set-up cannot be run, in the terms of a plan.

use eyas_emulator::MiddleboxSpecError;

use crate::situation::error::{AssociationSetupError, RandomSetupError, SetupError};

/// A set-up that cannot be emulated or measured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LiveSetupError {
    #[error("live.link: a link is always up")]
    LinkState,
    #[error("live.link: {0}")]
    Middlebox(#[from] MiddleboxSpecError),
    /// A number of trials or fetches.
    #[error("live.{key}: from 1 to {most}")]
    Count { key: &'static str, most: u32 },
    #[error("live.rate: above 0 requests a second")]
    Rate,
    #[error("live.duration: at least one live.sample")]
    Duration,
    #[error("live.candidates: 1, or an even number to {most}")]
    Candidates { most: usize },
    #[error("live.second_after: name at least one pause")]
    SecondAfter,
    #[error("live.memory: must be empty or network, because each visitor is new to its server")]
    Memory,
    #[error("live.outcome: the naive race with TLS needs an explicit outcome")]
    Outcome,
    #[error("live.patience: above 0 and at most {most} s")]
    Patience { most: u64 },
    #[error("live.swallowed: then the outcome can only be TCP")]
    Swallowed,
    #[error("live.ipv6 and live.ipv4: at least one address, and at most {most} of a family")]
    Addresses { most: usize },
    #[error("live.give_up: longer than nothing")]
    GiveUp,
    #[error("client.command: {{url}} is missing, which is the URL to fetch")]
    ClientCommand,
    #[error("client.version: a command that prints the version, such as \"curl --version\"")]
    ClientVersion,
    #[error("client.source.file: a name without directories, such as \"fetch.py\"")]
    ClientSource,
    #[error("live.{key} names path {name:?}, which does not exist")]
    UnknownPath { key: &'static str, name: String },
    #[error("live.path: through and joins are for simulations; see live.comes")]
    PathOfSimulation,
    #[error("live.application.keystrokes: only eyas's SCTP has a stream for them")]
    Keystrokes,
    #[error("live.application.both_ways: usrsctp's programs send one way")]
    BothWays,
    #[error("live.association.only leaves no path")]
    NoPath,
    #[error("live.stack: drawn networks are for eyas and eyas-udp")]
    DrawnStack,
    #[error("live.network.changing: lines change in simulations alone")]
    ChangingNetwork,
    #[error(transparent)]
    Association(#[from] AssociationSetupError),
    /// The simulation of the same is invalid.
    #[error(transparent)]
    Simulation(#[from] SetupError),
    #[error(transparent)]
    Network(#[from] RandomSetupError),
}
