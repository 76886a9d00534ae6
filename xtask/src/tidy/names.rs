//! The words in names of public types and modules are in the glossary, or the type or its module names the
//! source of the word.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;

/// The crates that are checked, by the names of their directories.
const CORE: [&str; 9] =
    ["race", "sctp", "sctp-tokio", "netem", "eyas", "http", "sockets", "host", "h3"];

/// The glossary.
pub(super) const GLOSSARY: &str = "GLOSSARY.md";

/// Texts that identify a line of documentation that names a source.
const SOURCES: [&str; 6] = ["RFC ", "draft-", "HEv3", "et al.", "§", "Linux"];

/// The beginnings of definitions.
const DEFINITIONS: [&str; 5] = ["pub struct ", "pub enum ", "pub trait ", "pub type ", "pub mod "];

/// Checks the names in these sources against the glossary.
pub(super) fn check(sources: &BTreeMap<String, String>, glossary: &str) -> Vec<Finding> {
    let known = words_of_glossary(glossary);
    let is_core =
        |file: &str| CORE.iter().any(|name| file.starts_with(&format!("crates/{name}/src/")));
    let is_test = |file: &str| file.contains("/tests/") || file.ends_with("tests.rs");
    sources
        .iter()
        .filter(|(file, _)| is_core(file) && !is_test(file))
        .flat_map(|(file, source)| check_file(file, source, &known))
        .collect()
}

fn check_file(file: &str, source: &str, known: &BTreeSet<String>) -> Vec<Finding> {
    let has_source = |line: &str| SOURCES.iter().any(|word| line.contains(word));
    if source.lines().take_while(|line| line.starts_with("//!")).any(has_source) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let mut is_sourced = false;
    for (index, line) in source.lines().enumerate() {
        let line = line.trim_start();
        if line.starts_with("#[cfg(test)]") {
            break;
        }
        if line.starts_with("///") {
            is_sourced |= has_source(line);
        } else if !line.starts_with("#[") {
            for word in name_of(line).into_iter().filter(|_| !is_sourced).flat_map(words) {
                if !is_known(&word, known) {
                    let message = format!(
                        "the word {word} in a public name is not in {GLOSSARY}, and no source is named"
                    );
                    findings.push(Finding::error(file, index + 1, message));
                }
            }
            is_sourced = false;
        }
    }
    findings
}

/// Returns the name of the public item that a line defines.
fn name_of(line: &str) -> Option<&str> {
    let rest = DEFINITIONS.iter().find_map(|begin| line.strip_prefix(begin))?;
    rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()
}

/// Returns the words of a name in lower case: the same for `SackPath`, `sack_path` and `SACK path`.
fn words(name: &str) -> Vec<String> {
    let mut spaced = String::new();
    let mut was_capital = true;
    for c in name.chars() {
        if c.is_ascii_uppercase() && !was_capital {
            spaced.push(' ');
        }
        was_capital = c.is_ascii_uppercase();
        spaced.push(c.to_ascii_lowercase());
    }
    let parts = spaced.split(|c: char| !c.is_ascii_alphanumeric());
    parts.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Returns the words that the table explains, and those of the list after it, which need no explanation.
fn words_of_glossary(glossary: &str) -> BTreeSet<String> {
    let explained = glossary.lines().filter_map(|line| line.strip_prefix("| ")?.split('|').next());
    let plain = glossary.split("## Plain words").nth(1).into_iter();
    explained.chain(plain).flat_map(words).collect()
}

fn is_known(word: &str, known: &BTreeSet<String>) -> bool {
    known.contains(word) || word.strip_suffix('s').is_some_and(|singular| known.contains(singular))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: &str = "| word | meaning |\n| --- | --- |\n| head start | what a transport gets |\n\
                         | ServiceMode | a record |\n\n## Plain words\n\nerror, config.\n";

    fn messages(file: &str, source: &str) -> usize {
        let sources = BTreeMap::from([(file.to_owned(), source.to_owned())]);
        check(&sources, WORDS).len()
    }

    #[test]
    fn words_of_the_glossary_are_known() {
        let source =
            "/// One.\npub struct HeadStarts;\npub enum ServiceError {}\npub mod config;\n";
        assert_eq!(messages("crates/race/src/x.rs", source), 0);
    }

    #[test]
    fn other_words_are_reported_only_in_core_crates() {
        let source = "/// One.\n#[derive(Debug)]\npub struct Mishap;\npub(crate) struct Other;\n";
        assert_eq!(messages("crates/race/src/x.rs", source), 1);
        assert_eq!(messages("crates/cli/src/x.rs", source), 0);
        assert_eq!(messages("crates/race/src/tests/x.rs", source), 0);
    }

    #[test]
    fn a_source_explains_a_name() {
        let below = "/// Of RFC 9260 §3.\npub struct Mishap;\n";
        assert_eq!(messages("crates/sctp/src/x.rs", below), 0);
        let above = "//! A mishap (RFC 9260).\npub struct Mishap;\n";
        assert_eq!(messages("crates/sctp/src/x.rs", above), 0);
        let other = "/// Of RFC 9260 §3.\npub struct Error;\npub struct Mishap;\n";
        assert_eq!(messages("crates/sctp/src/x.rs", other), 1);
    }

    #[test]
    fn names_are_split_into_words() {
        assert_eq!(words("SackPath"), ["sack", "path"]);
        assert_eq!(words("alt_svc"), ["alt", "svc"]);
        assert_eq!(words("DNSName"), ["dnsname"]);
    }
}
