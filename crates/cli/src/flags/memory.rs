//! Flags of `eyas memory`, and the choice of a memory that other subcommands share.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

pub(super) const EXAMPLES: &str = "\
Examples:
  eyas memory                      everything, newest first
  eyas memory list example.org     one host
  eyas memory forget example.org   as if eyas had never connected to it
  eyas memory clear                everything
  eyas memory path                 where the file is

The memory contains the hosts you have connected to: it is a browsing history,
readable only by you. Successes count for 10 minutes, failures for 5 minutes,
doubling up to 2 days; they are retested in the background of a connection that
works.
'--memory none' runs without it.";

/// Flags of `eyas memory`.
#[derive(Args, Clone, Debug)]
pub(crate) struct MemoryFlags {
    /// The memory file, instead of the usual one [env: EYAS_MEMORY]
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) memory: Option<MemoryChoice>,
    /// The action; the default is to list.
    #[command(subcommand)]
    pub(crate) action: Option<MemoryAction>,
}

/// The actions on the memory.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum MemoryAction {
    /// Show what is remembered, for one host or for all
    #[command(visible_alias = "show")]
    List {
        /// Only this host
        host: Option<String>,
    },
    /// Delete what is remembered about one host
    Forget {
        /// The host, by name or address
        host: String,
    },
    /// Delete everything
    Clear,
    /// Print the path of the memory file
    Path,
}

/// The memory to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MemoryChoice {
    /// No memory: nothing is read or written.
    None,
    /// This file.
    File(PathBuf),
}

impl MemoryChoice {
    /// Returns the choice of the environment. It is not read with the flags, because the value of
    /// the environment would then appear in error messages about the command line.
    pub(crate) fn from_env() -> Option<Self> {
        std::env::var_os("EYAS_MEMORY").filter(|value| !value.is_empty()).map(Self::from)
    }
}

impl From<OsString> for MemoryChoice {
    fn from(value: OsString) -> Self {
        if value == "none" { Self::None } else { Self::File(PathBuf::from(value)) }
    }
}
