//! The `eyas` command: race, get, pipe, plan, memory, serve, proxy, tunnel, sctp, lab, netem, replay, demo.
//!
//! | module | job |
//! | --- | --- |
//! | `flags` | every flag, once: parser, help, man pages and completions come from it |
//! | `command` | one file for each subcommand |
//! | `race_report` | a race, told: from its trace to pictures, objects and sentences |
//! | `shape` | the JSON objects that `--json` prints |
//! | `timeline` | a race as a picture |
//! | `terminal` | colours, widths, durations and sizes for people |
//! | `output` | bodies to their place, whole or not at all; progress; what is said of a failure |
//! | `failure` | kinds of failure and their exit codes |

mod command;
mod failure;
mod flags;
mod output;
mod race_report;
mod shape;
mod terminal;
mod timeline;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};

use failure::{Failure, Kind};
use flags::{Cli, Command, CommonFlags};
use terminal::Look;

fn main() -> ExitCode {
    let cli = match Cli::read(std::env::args_os(), terminal::room()) {
        Ok(cli) => cli,
        Err(refused) => return usage(&refused),
    };
    let common = cli.common.clone();
    let silent = matches!(&cli.command, Command::Get(flags) if flags.output.silent);
    match command::run(cli) {
        Ok(code) => code,
        Err(failure) => {
            report(&failure, &common, silent);
            ExitCode::from(failure.kind.exit_code())
        }
    }
}

/// Prints help, the version, or what is wrong with the command line.
fn usage(refused: &clap::Error) -> ExitCode {
    let json = std::env::args_os().any(|argument| argument == "--json");
    if refused.use_stderr() && json {
        let text = refused.to_string();
        let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        let hint = suggestion(refused).map(|meant| format!("did you mean {meant}?"));
        let hint = hint.unwrap_or_else(|| "see eyas help".to_owned());
        let failure = Failure::new(Kind::Usage, message).hint(hint);
        let _ = output::object(&failure.to_json());
        return ExitCode::from(Kind::Usage.exit_code());
    }
    let _ = refused.print();
    match refused.use_stderr() {
        true => ExitCode::from(Kind::Usage.exit_code()),
        false => ExitCode::SUCCESS,
    }
}

/// What was most likely meant by a command or a flag that does not exist.
fn suggestion(refused: &clap::Error) -> Option<String> {
    let kinds = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg];
    match kinds.into_iter().find_map(|kind| refused.get(kind))? {
        ContextValue::String(meant) => Some(meant.clone()),
        ContextValue::Strings(meant) => meant.last().cloned(),
        _ => None,
    }
}

/// Says why the run failed, once: as JSON on standard output, or in words on standard error.
fn report(failure: &Failure, common: &CommonFlags, silent: bool) {
    if failure.kind == Kind::BrokenPipe {
        return;
    }
    if common.json {
        let _ = output::object(&failure.to_json());
        return;
    }
    // Who ended the run need not be told so, unless there is more to say.
    if silent || (failure.kind.is_interruption() && failure.hint.is_none()) {
        return;
    }
    let look = Look::of_stderr(common.color);
    output::aside(&output::complaint(failure, look, std::io::stderr().is_terminal()), look);
}
