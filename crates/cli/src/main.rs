//! The `eyas` command: race, get, pipe, plan, perf, memory, doctor, serve, proxy, tunnel, sctp, lab, netem, replay, demo.
//!
//! | module | purpose |
//! | --- | --- |
//! | `flags` | the definitions of all flags, for the parser, help, man pages and completions |
//! | `command` | one file for each subcommand |
//! | `race_report` | descriptions of a race from its trace: pictures, objects and sentences |
//! | `shape` | the JSON objects that `--json` prints |
//! | `timeline` | a race as a picture |
//! | `terminal` | colours, widths, and formatting of durations and sizes |
//! | `output` | writing bodies completely or not at all; progress; messages about failures |
//! | `version` | what `--version --verbose` says |
//! | `failure` | kinds of failure and their exit codes |

#![warn(clippy::print_stdout, clippy::print_stderr, reason = "they panic if nobody reads them")]

mod command;
mod failure;
mod flags;
mod output;
mod private_file;
mod race_report;
mod shape;
mod terminal;
mod timeline;
mod version;

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use failure::{Failure, FailureKind};
use flags::{Cli, Command};

fn main() -> ExitCode {
    let cli = match Cli::read(std::env::args_os(), terminal::current_width()) {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let common = cli.common.clone();
    let silent = matches!(&cli.command, Command::Get(flags) if flags.output.hides_errors());
    match command::run(cli) {
        Ok(code) => code,
        Err(failure) => {
            output::report(&failure, &common, silent);
            ExitCode::from(failure.kind.exit_code())
        }
    }
}

/// Prints help, the version, or what is wrong with the command line.
fn usage(error: &clap::Error) -> ExitCode {
    let json = std::env::args_os().any(|argument| argument == "--json");
    if error.kind() == ErrorKind::DisplayVersion {
        return print_version(error, json);
    }
    if error.use_stderr() && json {
        let text = error.to_string();
        let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        let hint = suggestion(error).map(|suggestion| format!("did you mean {suggestion}?"));
        let hint = hint.unwrap_or_else(|| "see eyas help".to_owned());
        let failure = Failure::new(FailureKind::Usage, message).hint(hint);
        let _ = output::object(&failure.to_json());
        return ExitCode::from(FailureKind::Usage.exit_code());
    }
    let _ = error.print();
    match error.use_stderr() {
        true => ExitCode::from(FailureKind::Usage.exit_code()),
        false => ExitCode::SUCCESS,
    }
}

/// Prints the version, or with `--verbose` or `--json` what the build depended on as well.
fn print_version(error: &clap::Error, json: bool) -> ExitCode {
    let arguments = std::env::args_os().skip(1).filter_map(|argument| argument.into_string().ok());
    let printed = match json {
        true => output::object(&version::to_json()),
        false if version::is_verbose(arguments) => output::text(&version::description()),
        false => output::text(&error.to_string()),
    };
    if printed.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns the most likely correction of a command or flag that does not exist.
fn suggestion(error: &clap::Error) -> Option<String> {
    let kinds = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg];
    match kinds.into_iter().find_map(|kind| error.get(kind))? {
        ContextValue::String(suggestion) => Some(suggestion.clone()),
        ContextValue::Strings(suggestion) => suggestion.last().cloned(),
        _ => None,
    }
}
