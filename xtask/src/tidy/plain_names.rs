//! Names that say little, as `cargo xtask names` counts them, become fewer, and never more.

use std::collections::BTreeMap;

use super::Finding;
use crate::names::{NameCounts, count};

/// This file, for messages.
const FILE: &str = "xtask/src/tidy/plain_names.rs";

/// The most of each kind.
const CEILING: NameCounts =
    NameCounts { one_word_types: 13, one_word_functions: 28, prepositions: 0, light_verbs: 1 };

/// Counts the names of these sources, which are given with their paths.
pub(super) fn check(sources: &BTreeMap<String, String>) -> Vec<Finding> {
    let of_crates = sources.iter().filter(|(file, _)| file.starts_with("crates/"));
    compare(count(of_crates.map(|(file, text)| (file.as_str(), text.as_str()))), CEILING)
}

fn compare(found: NameCounts, ceiling: NameCounts) -> Vec<Finding> {
    [
        ("% of the types' names are one word", found.one_word_types, ceiling.one_word_types),
        (
            "% of the functions' names are one word",
            found.one_word_functions,
            ceiling.one_word_functions,
        ),
        ("functions are called by a preposition", found.prepositions, ceiling.prepositions),
        ("functions are called by a light verb", found.light_verbs, ceiling.light_verbs),
    ]
    .into_iter()
    .filter_map(|(what, count, most)| match count {
        _ if count > most => {
            let message = format!("{count} {what}, at most {most}: see `cargo xtask names`");
            Some(Finding::error("crates/", 0, message))
        }
        _ if count < most => {
            let message = format!("{count} {what}: {FILE} allows {most}, lower it");
            Some(Finding::warning("crates/", 0, message))
        }
        _ => None,
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTS: NameCounts =
        NameCounts { one_word_types: 30, one_word_functions: 29, prepositions: 2, light_verbs: 3 };

    fn messages(found: NameCounts) -> Vec<(bool, String)> {
        let found = compare(found, COUNTS);
        found.into_iter().map(|finding| (finding.warning, finding.message)).collect()
    }

    #[test]
    fn names_that_say_little_may_only_become_fewer() {
        assert_eq!(messages(COUNTS), []);
        let more = NameCounts { one_word_types: 31, prepositions: 3, ..COUNTS };
        let expected = [
            "31 % of the types' names are one word, at most 30: see `cargo xtask names`",
            "3 functions are called by a preposition, at most 2: see `cargo xtask names`",
        ];
        assert_eq!(messages(more), expected.map(|message| (false, message.to_owned())));
        let fewer = NameCounts { one_word_functions: 28, light_verbs: 0, ..COUNTS };
        let expected = [
            format!("28 % of the functions' names are one word: {FILE} allows 29, lower it"),
            format!("0 functions are called by a light verb: {FILE} allows 3, lower it"),
        ];
        assert_eq!(messages(fewer), expected.map(|message| (true, message)));
    }
}
