//! Formats help for the width of the terminal, in a single column if two do not fit.

use clap::Command;

/// The maximum line width of text: longer lines are hard to read.
const MAX_WIDTH: usize = 100;
/// The minimum width for showing flags beside their descriptions, and examples unchanged.
const MIN_TWO_COLUMN_WIDTH: usize = 60;
/// The separator between an example and its description.
const GAP: &str = "  ";
/// The indentation of descriptions below an example.
const INDENT: &str = "      ";

/// Returns the command with help for this number of columns.
pub(super) fn fit(command: Command, columns: usize) -> Command {
    let command = command.term_width(columns.min(MAX_WIDTH));
    match columns < MIN_TWO_COLUMN_WIDTH {
        true => in_one_column(command.next_line_help(true)),
        false => command,
    }
}

fn in_one_column(command: Command) -> Command {
    let command = match command.get_after_help().map(ToString::to_string) {
        Some(text) => command.after_help(descriptions_below(&text)),
        None => command,
    };
    command.mut_subcommands(in_one_column)
}

/// Moves the descriptions of examples below them.
fn descriptions_below(text: &str) -> String {
    let line = |line: &str| {
        let Some(example) = line.strip_prefix(GAP) else { return line.to_owned() };
        match example.trim_start().split_once(GAP) {
            _ if example.starts_with(GAP) => format!("{INDENT}{}", example.trim_start()),
            Some((example, description)) => {
                format!("{GAP}{example}\n{INDENT}{}", description.trim_start())
            }
            None => line.to_owned(),
        }
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::flags::Cli;

    #[test]
    fn the_description_of_an_example_goes_below_it() {
        let text = "Examples:\n  eyas get URL     a page\n                   and more\n\nThe end.";
        let expected = "Examples:\n  eyas get URL\n      a page\n      and more\n\nThe end.";
        assert_eq!(descriptions_below(text), expected);
    }

    #[test]
    fn no_column_of_single_words_on_a_narrow_screen() {
        let mut command = fit(Cli::command(), 40);
        command.build();
        let mut get = command.find_subcommand("get").expect("there is get").clone();
        for help in [get.render_help(), get.render_long_help()] {
            let help = help.to_string();
            let is_deep =
                |line: &&str| line.starts_with(&" ".repeat(20)) && !line.trim().is_empty();
            assert_eq!(help.lines().find(is_deep), None, "{help}");
        }
    }

    #[test]
    fn wide_screens_are_not_filled() {
        let mut command = fit(Cli::command(), 200);
        let help = command.render_long_help().to_string();
        assert!(help.lines().all(|line| line.len() <= MAX_WIDTH), "{help}");
    }
}
