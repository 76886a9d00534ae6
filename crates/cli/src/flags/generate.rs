//! Flags of `eyas completions` and `eyas man`.

use std::path::PathBuf;

use clap::Args;

pub(super) const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  eyas completions bash > ~/.local/share/bash-completion/completions/eyas
  eyas completions fish > ~/.config/fish/completions/eyas.fish
  eyas completions zsh > _eyas           into a directory of $fpath";

pub(super) const MAN_EXAMPLES: &str = "\
Examples:
  eyas man | man -l -                     the page of eyas
  eyas man lab run | man -l -             the page of one command
  eyas man guide lab | man -l -           a guide; 'eyas man guide' lists them
  eyas man --out ~/.local/share/man/man1  all pages, each in its own file

Without --out no file is written.";

/// Flags of `eyas man`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ManFlags {
    /// The command whose man page is printed, such as get or lab run, or guide and its topic
    /// [default: eyas itself]
    pub(crate) command: Vec<String>,
    /// Write the man pages of all commands to DIR, as eyas.1, eyas-get.1 and so on
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub(crate) out: Option<PathBuf>,
}
