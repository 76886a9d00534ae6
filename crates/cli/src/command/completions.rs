//! `eyas completions`: scripts for shells, which know transports, plans, files, hosts and commands.

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory, ValueHint};
use clap_complete::Shell;
use eyas::race::candidate::Transport;
use eyas_lab::plan::shipped;

use crate::failure::Failure;
use crate::flags::Cli;
use crate::output;

/// Completes what follows `--` as a command line of its own. The function of bash-completion knows
/// the arguments of that command, too.
const BASH_COMMAND: &str = "\
_eyas_or_command() {
    local i
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == -- ]]; then
            if declare -F _comp_command_offset > /dev/null; then
                _comp_command_offset $((i + 1))
            elif declare -F _command_offset > /dev/null; then
                _command_offset $((i + 1))
            elif ((COMP_CWORD == i + 1)); then
                COMPREPLY=($(compgen -c -- \"${COMP_WORDS[COMP_CWORD]}\" | sort -u))
            fi
            return
        fi
    done
    _eyas \"$@\"
}

";

/// Prints the completions of a shell.
pub(crate) fn run(shell: Shell) -> Result<(), Failure> {
    output::text(&script(shell))
}

fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut with_hints(Cli::command()), "eyas", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Bash => {
            let script = script.replace("complete -F _eyas -", "complete -F _eyas_or_command -");
            format!("{BASH_COMMAND}{script}")
        }
        // The generated list is of fixed words, and a plan may be a file, too.
        Shell::Zsh => {
            let plans = plans().join(" ");
            script.replace(&format!(":({plans})'"), &format!(":{{compadd -- {plans}; _files}}'"))
        }
        // The generator leaves positional arguments out.
        Shell::Fish => script + &fish_positionals(),
        _ => script,
    }
}

fn fish_positionals() -> String {
    let within = |command: &str, action: &str, arguments: &str| {
        format!(
            "complete -c eyas -n \"__fish_eyas_using_subcommand {command}; and \
             __fish_seen_subcommand_from {action}\" -a \"{arguments}\"\n"
        )
    };
    let plans = plans().join(" ");
    let subcommand = "(__fish_complete_subcommand --commandline)";
    let commands = ["netem", "proxy", "sctp"].map(|command| within(command, "run", subcommand));
    format!("{}{}", within("lab", "run show", &plans), commands.concat())
}

fn plans() -> Vec<&'static str> {
    shipped().iter().map(|plan| plan.name).collect()
}

/// Returns the command with what each argument may be.
fn with_hints(command: Command) -> Command {
    let is_show = command.get_name() == "show";
    command
        .mut_args(|argument| match argument.get_id().as_str() {
            "plan" => argument.value_parser(PossibleValuesParser::new(plans())),
            "name" if is_show => argument.value_parser(PossibleValuesParser::new(plans())),
            _ => with_hint(argument),
        })
        .mut_subcommands(with_hints)
}

fn with_hint(argument: Arg) -> Arg {
    let kind = argument.get_value_names().and_then(|names| names.first());
    let kind = kind.map(ToString::to_string).unwrap_or_default();
    let hint = match (kind.as_str(), argument.get_id().as_str()) {
        ("TRANSPORT" | "TRANSPORT[,..]", _) => {
            let names = Transport::ALL.map(Transport::name);
            return argument.value_parser(PossibleValuesParser::new(names));
        }
        ("DIR", _) | (_, "directory" | "directories") => ValueHint::DirPath,
        ("FILE", _) => ValueHint::FilePath,
        ("COMMAND", _) if argument.is_trailing_var_arg_set() => ValueHint::CommandWithArguments,
        ("COMMAND", "command") if argument.is_last_set() => ValueHint::CommandName,
        ("URL", _) | (_, "url" | "target") => ValueHint::Url,
        ("HOST", _) | (_, "host" | "server") => ValueHint::Hostname,
        _ => return argument,
    };
    argument.value_hint(hint)
}

#[cfg(test)]
mod tests {
    use std::process::Command as Process;

    use super::*;

    #[test]
    fn every_shell_knows_transports_and_plans() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell);
            for word in plans().into_iter().chain(Transport::ALL.map(Transport::name)) {
                assert!(script.contains(word), "{shell}: {word}");
            }
        }
        let zsh = script(Shell::Zsh);
        for part in ["; _files}'", ":_files -/'", ":_urls'", ":_cmdambivalent'", ":_command_names"]
        {
            assert!(zsh.contains(part), "{part}");
        }
        let fish = script(Shell::Fish);
        assert!(
            fish.contains("__fish_complete_subcommand") && fish.contains("-a \"cmt-"),
            "{fish}"
        );
    }

    /// Returns what bash offers for the last word.
    fn offered(words: &str) -> Option<String> {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("eyas.bash");
        std::fs::write(&file, script(Shell::Bash)).expect("writes");
        let test = format!(
            "source {}; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _eyas_or_command eyas \"${{COMP_WORDS[COMP_CWORD]}}\" \
             \"${{COMP_WORDS[COMP_CWORD - 1]}}\"; echo \"${{COMPREPLY[@]}}\"",
            file.display()
        );
        let run = Process::new("bash").args(["--norc", "-c", &test]).output().ok()?;
        Some(String::from_utf8_lossy(&run.stdout).trim().to_owned())
    }

    #[test]
    fn bash_completes_plans_transports_and_commands() {
        let Some(offer) = offered("eyas lab run cmt-del") else { return };
        assert_eq!(offer, "cmt-delay");
        assert_eq!(offered("eyas get --prefer sctp-").as_deref(), Some("sctp-udp"));
        assert_eq!(offered("eyas netem run --delay 1ms -- basenam").as_deref(), Some("basename"));
    }
}
