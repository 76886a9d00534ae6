//! The number of public items that a crate's README states is that of its `api.txt`.

use super::Finding;

/// Compares the README of a crate with its list of public items, if it has both. `read` returns a file's text by
/// its path from the root of the repository.
pub(super) fn check(
    file: &str,
    content: &str,
    read: impl Fn(&str) -> Option<String>,
) -> Vec<Finding> {
    let Some(folder) = file.strip_suffix("README.md").filter(|_| file.starts_with("crates/"))
    else {
        return Vec::new();
    };
    let Some(list) = read(&format!("{folder}api.txt")) else { return Vec::new() };
    let count = list.lines().count();
    let lines = content.lines().enumerate().filter(|(_, line)| line.contains("api.txt"));
    lines
        .filter_map(|(index, line)| {
            let stated: usize = word_before(line, "items")?.parse().ok()?;
            let message = format!("api.txt lists {count} items, not {stated}");
            (stated != count).then(|| Finding::error(file, index + 1, message))
        })
        .collect()
}

/// Returns the word before the first occurrence of this one, without punctuation.
fn word_before<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let bare = |word: &'a str| word.trim_matches(|c: char| !c.is_alphanumeric());
    let words: Vec<&str> = line.split_whitespace().map(bare).collect();
    let index = words.iter().position(|candidate| *candidate == word)?;
    words.get(index.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(readme: &str) -> Vec<String> {
        let list =
            |path: &str| (path == "crates/a/api.txt").then(|| "pub mod a\npub fn a::b()\n".into());
        check("crates/a/README.md", readme, list)
            .into_iter()
            .map(|finding| finding.message)
            .collect()
    }

    #[test]
    fn the_stated_number_is_that_of_the_list() {
        assert_eq!(found("[api.txt](api.txt) lists 2 items; more.\n"), [""; 0]);
        assert_eq!(found("`api.txt` lists what is public: 2 items; more.\n"), [""; 0]);
        let wrong = "api.txt lists 2 items, not 3";
        assert_eq!(found("# A\n[api.txt](api.txt) lists 3 items; more.\n"), [wrong]);
    }

    #[test]
    fn a_crate_without_a_list_or_a_number_has_nothing_to_compare() {
        assert_eq!(found("[api.txt](api.txt) lists all items.\n"), [""; 0]);
        let none = |_: &str| None;
        assert_eq!(check("crates/b/README.md", "api.txt lists 3 items\n", none), []);
        assert_eq!(check("README.md", "api.txt lists 3 items\n", none), []);
    }
}
