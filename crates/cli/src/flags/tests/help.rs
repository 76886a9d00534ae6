//! The help of every command, at every depth: width, letters, texts, examples, pages.

use std::path::Path;

use clap::{Command, CommandFactory};

use crate::flags::Cli;

/// The width of a traditional terminal.
const COLUMNS: usize = 80;

/// Returns all commands with their full names, the top-level one first.
fn all() -> Vec<(String, Command)> {
    let mut root = Cli::command().term_width(COLUMNS);
    root.build();
    let mut found = Vec::new();
    collect(&root, "eyas", &mut found);
    found
}

fn collect(command: &Command, name: &str, found: &mut Vec<(String, Command)>) {
    found.push((name.to_owned(), command.clone()));
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        collect(sub, &format!("{name} {}", sub.get_name()), found);
    }
}

/// Returns the short and the long help.
fn helps(command: &Command) -> [String; 2] {
    let mut command = command.clone();
    [command.render_help().to_string(), command.render_long_help().to_string()]
}

#[test]
fn help_fits_eighty_columns_of_ascii() {
    for (name, command) in all() {
        for line in helps(&command).iter().flat_map(|help| help.lines()) {
            assert!(line.len() <= COLUMNS && line.is_ascii(), "{name}: {line}");
        }
    }
}

/// Wrapping would destroy its layout.
#[test]
fn the_text_below_the_flags_is_never_wrapped() {
    for (name, command) in all() {
        let after_help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for line in after_help.lines() {
            assert!(line.len() <= COLUMNS && line.trim_end() == line, "{name}: {line:?}");
        }
    }
}

#[test]
fn every_command_flag_and_value_has_a_text_without_a_full_stop() {
    let reported = |what: &str, text: Option<String>| {
        let text = text.unwrap_or_default();
        assert!(!text.is_empty(), "{what} has no text");
        assert!(!text.ends_with('.') || text.ends_with("..."), "{what}: {text}");
        assert!(text.starts_with(|first: char| !first.is_lowercase()), "{what}: {text}");
    };
    for (name, command) in all() {
        reported(&name, command.get_about().map(ToString::to_string));
        for flag in command.get_arguments() {
            let name = format!("{name} {}", flag.get_id());
            reported(&name, flag.get_help().map(ToString::to_string));
            for value in
                flag.get_possible_values().iter().filter(|value| value.get_help().is_some())
            {
                reported(&name, value.get_help().map(ToString::to_string));
            }
        }
    }
}

/// Placeholders that have been replaced by others.
const SYNONYMS: [(&str, &str); 3] = [("NUMBER", "N"), ("TIME", "DURATION"), ("PART", "SHARE")];

#[test]
fn values_of_the_same_kind_have_the_same_name() {
    for (name, command) in all() {
        for flag in command.get_arguments().filter(|flag| flag.get_action().takes_values()) {
            for value in flag.get_value_names().unwrap_or_default() {
                let other = SYNONYMS.iter().find(|(word, _)| value.as_str() == *word);
                assert_eq!(other, None, "{name} {}", flag.get_id());
            }
        }
    }
}

/// Whoever installed the binary has no `docs/`.
#[test]
fn help_refers_to_guides_that_are_in_the_binary() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut count = 0;
    for (name, command) in all() {
        let help = helps(&command).concat().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(!help.contains("docs/"), "{name}");
        for rest in help.split("eyas man guide ").skip(1) {
            let topic = rest.split(|c: char| !c.is_alphanumeric() && c != '-').next();
            let topic = topic.unwrap_or_default();
            let folders = ["guide", "reference"];
            let is_there = |folder| docs.join(format!("{folder}/{topic}.md")).exists();
            assert!(folders.into_iter().any(is_there), "{name}: {topic}");
            count += 1;
        }
    }
    assert!(count > 8, "no guide is named at all");
}

#[test]
fn examples_parse() {
    for (name, command) in all() {
        let after_help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let after_help: Vec<&str> = after_help.split("\\\n").map(str::trim_start).collect();
        let after_help = after_help.join("");
        let examples: Vec<Vec<String>> = after_help.lines().filter_map(example).collect();
        assert_eq!(examples.is_empty(), !after_help.contains("Examples:"), "{name}");
        for words in examples {
            let line = words.join(" ");
            if let Err(error) = Cli::read(words.into_iter().map(Into::into), COLUMNS) {
                panic!("{name}: {line}: {error}");
            }
        }
    }
}

/// Returns the words of an example, without its description and shell syntax.
fn example(line: &str) -> Option<Vec<String>> {
    let line = line.strip_prefix("  ").filter(|line| line.starts_with("eyas"))?;
    let line = line.split_once("  ").map_or(line, |(example, _)| example);
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for letter in line.chars() {
        match (letter, words.last_mut()) {
            ('\'', _) => is_quoted = !is_quoted,
            (' ', _) if !is_quoted => words.push(String::new()),
            (letter, Some(word)) => word.push(letter),
            (_, None) => {}
        }
    }
    let shell = words.iter().position(|word| ["|", ">", "<"].contains(&word.as_str()));
    words.truncate(shell.unwrap_or(words.len()));
    Some(words)
}
