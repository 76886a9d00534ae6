//! A client under test: a command, and what it needs.

use std::collections::BTreeMap;

use eyas_emulator::units::TimeSpan;
use serde::{Deserialize, Serialize};

use crate::situation::live::LiveSetupError;

/// A program that fetches a URL. In its texts `{url}` stands for the URL, `{ca}` for a file with
/// the root certificate (PEM), `{home}` for its home directory, `{source}` for its source file,
/// `{build}` for the directory in which `prepare` ran, and `{eyas}` for this program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientProgram {
    /// The command that fetches, for `sh`.
    pub command: String,
    /// The command that prints its version, for `sh`. If it fails, the client is not installed and
    /// is left out.
    pub version: String,
    /// Environment variables in addition to `HOME`, `PATH` and `LANG`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Its source, if it consists of a few lines for an interpreter or a compiler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<ClientSource>,
    /// A command that is run once before the trials, outside the emulated network, with the user's
    /// environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepare: Option<String>,
    /// How long it may take before it queries a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_within: Option<TimeSpan>,
}

/// The source file of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientSource {
    /// The name of the file.
    pub file: String,
    /// The content of the file.
    pub text: String,
}

impl ClientProgram {
    /// Returns what is invalid.
    pub(super) fn check(&self) -> Result<(), LiveSetupError> {
        if !self.command.contains("{url}") {
            return Err(LiveSetupError::ClientCommand);
        }
        if self.version.trim().is_empty() {
            return Err(LiveSetupError::ClientVersion);
        }
        match &self.source {
            Some(source) if source.file.is_empty() || source.file.contains('/') => {
                Err(LiveSetupError::ClientSource)
            }
            _ => Ok(()),
        }
    }
}
