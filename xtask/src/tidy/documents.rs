//! Paths and sources that documents name exist, and the rows of a table have as many cells as it has headings.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;

/// Directories whose files are named relative to the root of the repository.
const ROOTS: [&str; 9] =
    ["crates/", "bindings/", "xtask/", "interop/", "bench/", "fuzz/", "docs/", ".ci/", ".cargo/"];

/// The most bytes of all documents together. What is added has to replace something.
const MAX_BYTES: usize = 350_000;

/// Checks the size of all documents, which are given with their paths.
pub(super) fn check_size(documents: &BTreeMap<String, String>) -> Option<Finding> {
    let bytes: usize = documents.values().map(String::len).sum();
    if bytes > MAX_BYTES {
        let message = format!("all documents have {bytes} bytes, at most {MAX_BYTES}");
        return Some(Finding::error("docs/", 0, message));
    }
    let lower = bytes + bytes / 20 < MAX_BYTES;
    let message = || format!("all documents have {bytes} bytes: lower MAX_BYTES, {MAX_BYTES}");
    lower.then(|| Finding::warning("docs/", 0, message()))
}

/// Returns every file that git knows, and every directory above one.
pub(super) fn paths(files: &[String]) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for file in files {
        for (at, _) in file.match_indices('/') {
            paths.insert(file[..at].to_owned());
        }
        paths.insert(file.clone());
    }
    paths
}

/// Checks the paths in one document.
pub(super) fn check(file: &str, content: &str, paths: &BTreeSet<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut fenced = false;
    let mut headings = None;
    for (index, line) in content.lines().enumerate() {
        fenced ^= line.trim_start().starts_with("```");
        if fenced {
            headings = None;
            continue;
        }
        for quoted in line.split('`').skip(1).step_by(2) {
            let is_missing_path = is_path(quoted) && !paths.contains(quoted.trim_end_matches('/'));
            if is_missing_path || is_source(quoted) && !ends_a_path(quoted, paths) {
                findings.push(Finding::error(file, index + 1, format!("{quoted} does not exist")));
            }
        }
        let cells = cells(line).map(|cells| cells.len());
        if line.starts_with('|') && cells.is_none() {
            findings.push(Finding::error(file, index + 1, "a row of a table ends with |"));
        }
        if let (Some(headings), Some(cells)) = (headings, cells)
            && headings != cells
        {
            let message = format!("{cells} cells under {headings} headings");
            findings.push(Finding::error(file, index + 1, message));
        }
        headings = cells.map(|cells| headings.unwrap_or(cells));
    }
    findings
}

/// Returns the cells of a row of a table, or `None` if the line is none. A `|` inside a cell is escaped.
fn cells(line: &str) -> Option<Vec<&str>> {
    let mut rest = line.strip_prefix('|')?.trim_end().strip_suffix('|')?;
    let mut cells = Vec::new();
    let mut from = 0;
    while let Some(at) = rest[from..].find('|').map(|at| from + at) {
        if rest[..at].ends_with('\\') {
            from = at + 1;
            continue;
        }
        cells.push(rest[..at].trim());
        (rest, from) = (&rest[at + 1..], 0);
    }
    cells.push(rest.trim());
    Some(cells)
}

/// Checks the tables at the top of a crate, which map documents to files. Their paths are relative to the
/// file that contains them.
pub(super) fn check_map(file: &str, content: &str, paths: &BTreeSet<String>) -> Vec<Finding> {
    let Some(source) = file.strip_suffix("lib.rs").filter(|_| file.starts_with("crates/")) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for (index, line) in content.lines().enumerate().filter(|(_, line)| line.starts_with("//! |")) {
        for quoted in line.split('`').skip(1).step_by(2) {
            let is_path = quoted.ends_with(".rs") || quoted.ends_with('/');
            let path = format!("{source}{}", quoted.trim_end_matches('/'));
            if is_path && !paths.contains(&path) && !paths.contains(quoted) {
                findings.push(Finding::error(file, index + 1, format!("{path} does not exist")));
            }
        }
    }
    findings
}

/// Returns whether the text between two backticks is a path of this repository. Paths that git ignores
/// (cache directories, which start with a dot) are not checked.
fn is_path(quoted: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    ROOTS.iter().any(|root| quoted.starts_with(root))
        && quoted.chars().all(plain)
        && !quoted.contains("/.")
}

/// Returns whether the text between two backticks is the name of a source, or the end of its path.
fn is_source(quoted: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "/._-".contains(c);
    [".rs", ".py"].iter().any(|ending| quoted.len() > ending.len() && quoted.ends_with(ending))
        && quoted.chars().all(plain)
}

fn ends_a_path(name: &str, paths: &BTreeSet<String>) -> bool {
    let name = name.trim_start_matches("../");
    paths.iter().any(|path| {
        let before = path.strip_suffix(name);
        before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(content: &str) -> Vec<String> {
        let files = ["crates/race/src/lib.rs".to_owned(), "xtask/src/main.rs".to_owned()];
        let found = check("A.md", content, &paths(&files));
        found.into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn existing_paths_are_accepted() {
        let content = "`crates/race/src/lib.rs`, `crates/race/src`, `crates/race/` and `xtask/src`";
        assert_eq!(messages(content), [""; 0]);
    }

    #[test]
    fn missing_files_are_named() {
        assert_eq!(
            messages("see `crates/race/src/rase.rs`"),
            ["crates/race/src/rase.rs does not exist"]
        );
    }

    #[test]
    fn sources_may_be_named_by_the_end_of_their_paths() {
        assert_eq!(messages("`lib.rs`, `src/main.rs` and `NAME.py`"), [""; 0]);
        assert_eq!(messages("`ib.rs`"), ["ib.rs does not exist"]);
        assert_eq!(messages("`race/lib.rs`"), ["race/lib.rs does not exist"]);
        assert_eq!(messages("`a.py`"), ["a.py does not exist"]);
    }

    #[test]
    fn rows_have_as_many_cells_as_there_are_headings() {
        let table = "| a | b |\n| --- | --- |\n| `x \\| y` | |\n\n| c |\n| --- |\n| d |\n";
        assert_eq!(messages(table), [""; 0]);
        assert_eq!(messages("| a | b |\n| --- | --- |\n| c |\n"), ["1 cells under 2 headings"]);
        let unfinished = "| a | b |\n| --- | --- |\n| c | d\n";
        assert_eq!(messages(unfinished), ["a row of a table ends with |"]);
        let fenced = "| a |\n| --- |\n```\n| b | c |\n```\n| d | e |\n";
        assert_eq!(messages(fenced), [""; 0]);
    }

    #[test]
    fn paths_in_the_map_of_a_crate_are_checked() {
        let files = ["crates/a/src/lib.rs".to_owned(), "crates/a/src/b/c.rs".to_owned()];
        let paths = paths(&files);
        let map = "//! | chapter | `b/c.rs`, `b/` |\n//! | other | `b/d.rs` |\n//! `x.rs`\n";
        let found = check_map("crates/a/src/lib.rs", map, &paths);
        assert_eq!(
            found,
            [Finding::error("crates/a/src/lib.rs", 2, "crates/a/src/b/d.rs does not exist")]
        );
        assert_eq!(check_map("xtask/src/lib.rs", map, &paths), []);
    }

    #[test]
    fn documents_do_not_grow() {
        let size = |bytes: usize| check_size(&[("A.md".to_owned(), "x".repeat(bytes))].into());
        assert_eq!(size(MAX_BYTES), None);
        assert!(!size(MAX_BYTES + 1).expect("it is too much").warning);
        assert!(size(MAX_BYTES / 2).expect("the ceiling is too high").warning);
    }

    #[test]
    fn commands_and_patterns_are_not_paths() {
        assert_eq!(
            messages("`interop/run --only x` `crates/*` `interop/.peers` `src/nowhere`"),
            [""; 0]
        );
        assert_eq!(messages("```\n`crates/nowhere`\n```\n"), [""; 0]);
    }
}
