//! What a client remembers at the start of a trial.

use serde::{Deserialize, Serialize};

/// What a client remembers at the start of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientMemory {
    /// Nothing.
    #[default]
    Empty,
    /// One connection over the same link, without loss.
    Warm,
    /// The losses of connections to other hosts over the same link, but nothing about the server
    /// itself.
    Network,
}
