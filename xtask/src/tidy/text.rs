//! Rules about lines: their number, and what they must not contain.

use super::Finding;
use crate::conformance::annotation;

/// The maximum number of lines of a Rust file, without those that say what a document requires.
const MAX_LINES: usize = 600;
/// A Rust file with more lines causes a warning.
const WARN_LINES: usize = 500;
/// Files that are generated or come from others.
const FOREIGN: [&str; 4] = ["Cargo.lock", "LICENSE-APACHE", "LICENSE-MIT", "go.sum"];
/// Extensions of files with binary or generated content, or with terminal output and its spaces.
const RAW_ENDINGS: [&str; 5] = [".snap", ".bin", ".jsonl", ".svg", ".lock"];
/// Seeds of the fuzzers, in which a newline would be one more byte of input.
const RAW_FOLDER: &str = "fuzz/seeds/";

/// Words that mark unfinished work. They are split in two, because this file is checked as well.
const MARKS: [&str; 3] = [concat!("FIX", "ME"), concat!("TO", "DO"), concat!("XX", "X")];
/// Paths that exist on one machine only.
const MACHINE_PATHS: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];

/// Checks one file.
pub(super) fn check(file: &str, content: &str) -> Vec<Finding> {
    let name = file.rsplit('/').next().unwrap_or(file);
    let is_raw =
        file.starts_with(RAW_FOLDER) || RAW_ENDINGS.iter().any(|ending| name.ends_with(ending));
    if FOREIGN.contains(&name) || is_raw {
        return Vec::new();
    }
    let mut findings = Vec::new();
    if name.ends_with(".rs") {
        let counted = content.lines().filter(|line| !annotation::is_line(line)).count();
        findings.extend(length(file, counted));
    }
    let tabs_allowed = name == "Makefile" || name.ends_with(".go") || name == "go.mod";
    for (index, line) in content.lines().enumerate() {
        let number = index + 1;
        if line.ends_with([' ', '\t', '\r']) {
            findings.push(Finding::error(file, number, "space at the end of the line"));
        }
        if !tabs_allowed && line.contains('\t') {
            findings.push(Finding::error(file, number, "a tab; use spaces"));
        }
        for mark in MARKS.iter().filter(|mark| has_word(line, mark)) {
            let message = format!("{mark}: do it now, or open an issue and refer to it");
            findings.push(Finding::error(file, number, message));
        }
        for path in MACHINE_PATHS.iter().filter(|path| has_path(line, path)) {
            let message = format!("{path} is a path of one machine");
            findings.push(Finding::error(file, number, message));
        }
    }
    if !content.is_empty() && !content.ends_with('\n') {
        findings.push(Finding::error(file, content.lines().count(), "no newline at the end"));
    }
    findings
}

fn length(file: &str, lines: usize) -> Option<Finding> {
    if lines > MAX_LINES {
        let message = format!("{lines} lines, at most {MAX_LINES}; split it by responsibility");
        Some(Finding::error(file, 0, message))
    } else if lines > WARN_LINES {
        Some(Finding::warning(file, 0, format!("{lines} lines, more than {WARN_LINES}")))
    } else {
        None
    }
}

/// Returns whether the line contains the word with no letter, digit or underscore next to it.
fn has_word(line: &str, word: &str) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(part_of_word) && !after.is_some_and(part_of_word)
    })
}

/// Returns whether the line contains an absolute path that starts with `path`, not as part of a URL or of
/// a longer path.
fn has_path(line: &str, path: &str) -> bool {
    let continues = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '}' | ']' | '~');
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(continues)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(file: &str, content: &str) -> Vec<String> {
        check(file, content).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn long_files_are_split() {
        let lines = |count: usize| "x\n".repeat(count);
        assert_eq!(check("a.rs", &lines(WARN_LINES)), []);
        assert!(check("a.rs", &lines(WARN_LINES + 1))[0].warning);
        assert!(check("a.rs", &lines(MAX_LINES))[0].warning);
        assert!(!check("a.rs", &lines(MAX_LINES + 1))[0].warning);
        assert_eq!(check("a.md", &lines(MAX_LINES + 1)), []);
    }

    #[test]
    fn trailing_spaces_and_tabs_are_found() {
        assert_eq!(messages("a.rs", "let a; \n").len(), 1);
        assert_eq!(messages("a.rs", "\tlet a;\n").len(), 1);
        assert_eq!(messages("a.rs", "let a;\r\n"), [""; 0], "lines() takes the pair as one end");
        assert_eq!(messages("main.go", "\treturn\n"), [""; 0]);
        assert_eq!(messages("a.rs", "let a;").len(), 1);
        assert_eq!(messages("a.rs", ""), [""; 0]);
    }

    #[test]
    fn to_do_markers_are_words() {
        for mark in MARKS {
            assert_eq!(messages("a.md", &format!("// {mark}: later\n")).len(), 1, "{mark}");
            assert_eq!(messages("a.md", &format!("A{mark}S\n")).len(), 0, "{mark}");
            assert_eq!(messages("a.md", &format!("{mark}_A\n")).len(), 0, "{mark}");
        }
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        for path in MACHINE_PATHS {
            assert_eq!(messages("a.sh", &format!("cd {path}x\n")).len(), 1, "{path}");
            assert_eq!(messages("a.sh", &format!("cd \"{path}x\"\n")).len(), 1, "{path}");
            assert_eq!(messages("a.sh", &format!("https://a.test{path}x\n")).len(), 0, "{path}");
            assert_eq!(messages("a.sh", &format!("\"${{HERE}}{path}x\"\n")).len(), 0, "{path}");
        }
    }

    #[test]
    fn generated_files_are_left_alone() {
        assert_eq!(messages("Cargo.lock", "\tx \n"), [""; 0]);
        assert_eq!(messages("crates/race/snapshots/a.snap", "x \n"), [""; 0]);
        assert_eq!(messages("fuzz/seeds/alt_svc/clear", "clear"), [""; 0]);
    }
}
