//! Flags of `eyas memory`, and the choice of a memory that other subcommands share.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

pub(super) const EXAMPLES: &str = "\
Examples:
  eyas memory                      everything, newest first
  eyas memory list example.org     one host
  eyas memory forget example.org   as if eyas had never been there
  eyas memory clear                everything
  eyas memory path                 where the file is

The memory says which hosts you have connected to: it is a browsing history,
readable by you alone. Good news lasts 10 minutes; bad news 5 minutes, doubling
up to 2 days, and is tested again in the background of a connection that works.
'--memory none' runs without it.";

/// Flags of `eyas memory`.
#[derive(Args, Clone, Debug)]
pub(crate) struct MemoryFlags {
    /// The memory file, instead of the usual one [env: EYAS_MEMORY]
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) memory: Option<MemoryChoice>,
    /// What to do; list if nothing is said.
    #[command(subcommand)]
    pub(crate) action: Option<MemoryAction>,
}

/// What to do with the memory.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum MemoryAction {
    /// Show what is remembered, of one host or of all
    #[command(visible_alias = "show")]
    List {
        /// Only this host
        host: Option<String>,
    },
    /// Forget one host
    Forget {
        /// The host to forget, by name or address
        host: String,
    },
    /// Forget everything
    Clear,
    /// Print where the memory file is
    Path,
}

/// Which memory to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MemoryChoice {
    /// None: nothing is read, nothing is written.
    None,
    /// This file.
    File(PathBuf),
}

impl MemoryChoice {
    /// What the environment says, for who says nothing else. It is read here and not with the flags,
    /// for what the environment says would stand in what is said of a wrong command line.
    pub(crate) fn from_env() -> Option<Self> {
        std::env::var_os("EYAS_MEMORY").filter(|said| !said.is_empty()).map(Self::from)
    }
}

impl From<OsString> for MemoryChoice {
    fn from(said: OsString) -> Self {
        if said == "none" { Self::None } else { Self::File(PathBuf::from(said)) }
    }
}
