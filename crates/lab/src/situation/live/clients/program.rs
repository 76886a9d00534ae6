//! A client under test: a command, and what it needs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::units::Time;

/// A program that fetches a URL. In its texts `{url}` stands for what is to be fetched, `{ca}` for a file
/// with the root certificate (PEM), `{home}` for its home directory, `{source}` for the file of its
/// source, `{build}` for the directory in which `prepare` ran, and `{eyas}` for this program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientProgram {
    /// What fetches, for `sh`.
    pub command: String,
    /// What prints its version, for `sh`. Where it fails the client is not there, and left out.
    pub version: String,
    /// Variables of its environment beside `HOME`, `PATH` and `LANG`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// What it is made of, if it is a few lines for an interpreter or a compiler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// What is run once before the trials, outside of the emulated network, with the user's
    /// environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepare: Option<String>,
    /// How long it may take before it asks for a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_within: Option<Time>,
}

/// A file that a client is made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Its name.
    pub file: String,
    /// What is in it.
    pub text: String,
}

impl ClientProgram {
    /// What makes no sense, in words.
    pub(super) fn check(&self) -> Result<(), String> {
        if !self.command.contains("{url}") {
            return Err("client.command: {url} is missing, which is the URL to fetch".to_owned());
        }
        if self.version.trim().is_empty() {
            return Err(
                "client.version: a command that prints the version, such as \"curl --version\""
                    .to_owned(),
            );
        }
        match &self.source {
            Some(source) if source.file.is_empty() || source.file.contains('/') => {
                Err("client.source.file: a name without directories, such as \"fetch.py\""
                    .to_owned())
            }
            _ => Ok(()),
        }
    }
}
