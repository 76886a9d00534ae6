//! Misspelt commands, flags and values.

use clap::error::ErrorKind::{
    DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion,
};
use clap::error::{ContextKind, ContextValue};
use clap::{Command, Error};
use eyas_http::shortened;

/// The maximum number of wrong, missing, additional or transposed letters.
const MAX_TYPOS: usize = 2;

/// The letters of a flag after which an unfinished one is recognised.
const MIN_START: usize = 4;

/// Returns an error of the parser as users should see it: with suggestions only of what is really
/// similar, and without repeating long arguments.
pub(super) fn presentable(error: Error, root: &Command) -> Error {
    with_suggestion(reworded(without_far_suggestions(error)), root)
}

/// Removes suggestions that only share some letters with what was given, as clap makes them, and the
/// one that a misspelt flag was meant as a value: nothing here takes a value that begins with `-`.
fn without_far_suggestions(mut error: Error) -> Error {
    error.remove(ContextKind::Suggested);
    for (suggested, given) in [
        (ContextKind::SuggestedArg, ContextKind::InvalidArg),
        (ContextKind::SuggestedSubcommand, ContextKind::InvalidSubcommand),
        (ContextKind::SuggestedValue, ContextKind::InvalidValue),
    ] {
        let Some(ContextValue::String(given)) = error.get(given).cloned() else { continue };
        let is_near = |name: &str| is_similar(&given, name);
        let near = match error.get(suggested) {
            Some(ContextValue::String(name)) => is_near(name),
            Some(ContextValue::Strings(names)) => names.iter().any(|name| is_near(name)),
            None => continue,
            _ => true,
        };
        if !near || is_of_curl(&given) {
            error.remove(suggested);
            // It shows the suggestion, too.
            error.remove(ContextKind::Usage);
        }
    }
    if let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg)
        && is_of_curl(given)
    {
        let tip = "'eyas man guide curl' says what has become of curl's flags";
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Returns whether this is a flag that curl has and eyas has not, rather than a misspelt one.
fn is_of_curl(given: &str) -> bool {
    const PAGE: &str = include_str!("../../docs/guide/curl.md");
    let flag = given.split(['=', ' ']).next().unwrap_or_default();
    let missing = PAGE.split_once("## What eyas has not").map_or("", |(_, missing)| missing);
    let mut words =
        missing.split(|letter: char| !(letter.is_ascii_alphanumeric() || "-.".contains(letter)));
    flag.starts_with("--") && words.any(|word| word == flag)
}

/// Returns whether a flag, command or value may be meant: a few wrong letters, or only its start.
fn is_similar(given: &str, name: &str) -> bool {
    let word = |text: &str| {
        let text = text.split(['=', ' ']).next().unwrap_or_default();
        text.trim_start_matches('-').to_owned()
    };
    let (given, name) = (word(given), word(name));
    let is_start = given.len() >= MIN_START && name.starts_with(&given);
    is_start || nearest(&given, std::iter::once(name.as_str())).is_some()
}

/// What Rust says of a text that is no number, and what it means.
const NUMBERS: [(&str, &str); 5] = [
    ("invalid digit found in string", "expected a whole number"),
    ("cannot parse integer from empty string", "expected a whole number"),
    ("number too large to fit in target type", "the number is too large"),
    ("number too small to fit in target type", "the number is too small"),
    ("invalid float literal", "expected a number"),
];

/// Replaces the middle of long arguments, which the parser and the types of values quote, and what
/// only programmers know.
fn reworded(error: Error) -> Error {
    if matches!(
        error.kind(),
        DisplayHelp | DisplayHelpOnMissingArgumentOrSubcommand | DisplayVersion
    ) {
        return error;
    }
    let text = error.to_string();
    let mut words = shortened(&text).into_owned();
    for (phrase, meaning) in NUMBERS {
        words = words.replace(&format!(": {phrase}"), &format!(": {meaning}"));
    }
    match words == text {
        true => error,
        false => Error::raw(error.kind(), words.strip_prefix("error: ").unwrap_or(&words)),
    }
}

/// Adds the most similar command if clap suggests none: clap does not recognise short words with
/// transposed letters.
fn with_suggestion(mut error: Error, root: &Command) -> Error {
    if error.get(ContextKind::SuggestedSubcommand).is_some() {
        return error;
    }
    if let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand)
        && let Some(suggestion) = nearest(given, root.get_subcommands().map(Command::get_name))
    {
        let suggestion = ContextValue::Strings(vec![suggestion.to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, suggestion);
    }
    error
}

/// Returns the most similar name, if any is similar enough.
pub(crate) fn nearest<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = names.map(|name| (strsim::osa_distance(given, name), name));
    let (typos, name) = near.min()?;
    // If less than half of the word is right, it could be any command.
    (typos <= MAX_TYPOS && 2 * typos < name.len()).then_some(name)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::flags::Cli;

    fn text_of(line: &[&str]) -> String {
        let line = line.iter().map(std::ffi::OsString::from);
        Cli::read(line, 80).expect_err("wrong").to_string()
    }

    #[test]
    fn only_what_is_similar_is_suggested() {
        for (line, suggestion) in [
            (&["eyas", "get", "--insecrue", "a"], "'--insecure'"),
            (&["eyas", "get", "--connect-time=3", "a"], "'--connect-timeout'"),
            (&["eyas", "race", "--policy", "serail"], "'serial'"),
        ] as [(&[&str], &str); 3]
        {
            let text = text_of(line);
            assert!(text.contains("tip: ") && text.contains(suggestion), "{line:?}: {text}");
        }
        for line in [
            &["eyas", "get", "--egd-file", "x", "a"] as &[&str],
            &["eyas", "get", "--libcurl", "x", "a"],
            &["eyas", "--interface", "eth0"],
            &["eyas", "netem", "run", "--loose", "true"],
            &["eyas", "race", "--policy", "fair", "a"],
        ] {
            assert!(!text_of(line).contains("similar"), "{line:?}: {}", text_of(line));
        }
    }

    #[test]
    fn a_flag_that_only_curl_has_is_no_misspelt_one() {
        for flag in ["--proto", "--rate", "--max-filesize"] {
            let text = text_of(&["eyas", "get", &format!("{flag}=1"), "https://a.test/"]);
            assert!(text.contains("'eyas man guide curl'"), "{text}");
            assert!(!text.contains("similar") && !text.contains("Usage"), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_told_in_words() {
        for (line, expected) in [
            (
                &["eyas", "get", "--seed", "x", "a"] as &[&str],
                "'--seed <N>': expected a whole number",
            ),
            (&["eyas", "load", "-n", "", "a"], "'--requests <N>': expected a whole number"),
            (&["eyas", "race", "--seed", &"9".repeat(30), "a"], "the number is too large"),
            (&["eyas", "pipe", "--multipath=scheduler=1", "a"], "unknown value `1`"),
        ] {
            let text = text_of(line);
            assert!(text.contains(expected) && !text.contains("digit"), "{line:?}: {text}");
        }
    }

    #[test]
    fn a_long_argument_is_not_repeated_whole() {
        let long = "x".repeat(65_536);
        let flag = format!("--{long}");
        for line in [
            &["eyas", "get", "--doh-url", &long, "a"] as &[&str],
            &["eyas", "get", "--resolve", &format!("a:{long}:b"), "a"],
            &["eyas", "get", "--resolve", &format!("a:1:{long}"), "a"],
            &["eyas", "get", "--policy", &long, "a"],
            &["eyas", "get", "-H", &format!("{long} : a"), "a"],
            &["eyas", "load", "-r", &long, "a"],
            &["eyas", "load", "--size", &long, "a"],
            &["eyas", "load", "--source", &long, "a"],
            &["eyas", "lab", "run", "a", "--shard", &long],
            &["eyas", "netem", "run", "--delay", &long, "true"],
            &["eyas", "netem", "run", "--rate", &long, "true"],
            &["eyas", "netem", "run", "--queue", &long, "true"],
            &["eyas", "pipe", "a:1", &format!("--multipath={long}=1")],
            &["eyas", "pipe", "a:1", &format!("--multipath=mapping={long}")],
            &["eyas", "proxy", "--allow", &long],
            &["eyas", "serve", "--upstream", &long],
            &["eyas", "serve", "--names", &long],
            &["eyas", "tunnel", "a", "-L", &long],
            &["eyas", "tunnel", "a", "--server-key", &long],
            &["eyas", &flag],
            &["eyas", "get", &flag],
            &["eyas", &long, "a", "b"],
        ] {
            let text = text_of(line);
            assert!(text.len() < 2_000, "{:?}: {} bytes", &line[..2], text.len());
        }
    }

    #[test]
    fn swapped_letters_are_recognised() {
        let root = Cli::command();
        let nearest = |given: &str| nearest(given, root.get_subcommands().map(Command::get_name));
        for (given, suggestion) in
            [("gte", "get"), ("raec", "race"), ("sevre", "serve"), ("ge", "get")]
        {
            assert_eq!(nearest(given), Some(suggestion));
        }
        for given in ["xyz", "fetch", "download"] {
            assert_eq!(nearest(given), None);
        }
    }
}
