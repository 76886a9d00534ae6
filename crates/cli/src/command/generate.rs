//! `eyas completions` and `eyas man`: what a package installs beside the binary.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::failure::Failure;
use crate::flags::Cli;

/// Prints the completions of a shell.
pub(crate) fn completions(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "eyas", &mut script);
    let mut out = io::stdout().lock();
    out.write_all(&script)
        .and_then(|()| out.flush())
        .map_err(|cause| Failure::write("standard output", &cause))
}

/// Writes `eyas.1` and one page for each subcommand, or the main page to standard output.
pub(crate) fn man(directory: Option<&Path>) -> Result<(), Failure> {
    let Some(directory) = directory else {
        let mut page = Vec::new();
        let rendered = clap_mangen::Man::new(Cli::command()).render(&mut page);
        return rendered
            .and_then(|()| io::stdout().lock().write_all(&page))
            .map_err(|cause| Failure::write("standard output", &cause));
    };
    let place = directory.display().to_string();
    fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), directory))
        .map_err(|cause| Failure::write(&place, &cause))
}
