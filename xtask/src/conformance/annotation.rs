//! Comments above tests: what a document requires, and where.
//!
//! `//= DOCUMENT SECTION` begins one, `//#` is its sentence, and `//= KEY: TEXT` says where the test
//! shows something else than the sentence. In Python a `#` takes the place of the slashes.

use super::document::{Note, Row};
use crate::finding::Finding;

/// Folders whose sources can have such comments. Those of the checks themselves are examples.
const FOLDERS: [&str; 5] = ["crates/", "bindings/", "examples/", "fuzz/", "interop/"];

/// Returns whether comments of this file are read.
pub(super) fn is_read(file: &str) -> bool {
    FOLDERS.iter().any(|folder| file.starts_with(folder))
        && (file.ends_with(".rs") || file.ends_with(".py"))
}

/// Returns the part of a line of such a comment after its mark, `=` or `#`.
fn marked(line: &str, is_python: bool) -> Option<(char, &str)> {
    let rest = line.trim_start().strip_prefix(if is_python { "#" } else { "//" })?;
    let mark = rest.chars().next().filter(|mark| matches!(mark, '=' | '#'))?;
    Some((mark, rest[1..].strip_prefix(' ')?.trim()))
}

/// Returns whether a line belongs to such a comment of a Rust file.
pub(crate) fn is_line(line: &str) -> bool {
    marked(line, false).is_some()
}

/// Returns the rows in the comments of a file.
pub(super) fn parse(file: &str, text: &str) -> (Vec<Row>, Vec<Finding>) {
    let is_python = file.ends_with(".py");
    let lines: Vec<&str> = text.lines().collect();
    let mut rows: Vec<Row> = Vec::new();
    let mut findings = Vec::new();
    // The row that the next line of the comment continues.
    let mut open = None;
    for (index, line) in lines.iter().enumerate() {
        let error = |message: &str| Finding::error(file, index + 1, message);
        let Some((mark, body)) = marked(line, is_python) else {
            open = None;
            continue;
        };
        let row = open.and_then(|at: usize| rows.get_mut(at));
        match (mark, row, Note::parse(body)) {
            ('=', Some(row), Some(note)) if row.text.is_empty() => {
                findings.push(error("a sentence, //#, goes before this"));
                row.notes.push(note);
            }
            ('=', Some(row), Some(note)) => row.notes.push(note),
            ('=', _, None) => {
                let (document, section) = body.split_once(' ').unwrap_or((body, ""));
                let mut row = Row::new(document, section.trim(), file, index + 1);
                match test(&lines[index..], is_python) {
                    Some(name) => row.test = Some(name.to_owned()),
                    None => findings.push(error("this comment is not above a test")),
                }
                open = Some(rows.len());
                rows.push(row);
            }
            ('#', Some(row), _) => {
                let text = match row.notes.last_mut() {
                    Some(note) => &mut note.text,
                    None => &mut row.text,
                };
                text.push_str(if text.is_empty() { "" } else { " " });
                text.push_str(body);
            }
            _ => findings.push(error("//= with a document and a section goes before this")),
        }
    }
    (rows, findings)
}

/// Returns the name of the test to which a comment on the first of these lines belongs; a program in
/// Python is itself one, without a name.
fn test<'a>(lines: &[&'a str], is_python: bool) -> Option<&'a str> {
    if is_python {
        return Some("");
    }
    let mut has_attribute = false;
    for line in lines.iter().map(|line| line.trim()).take_while(|line| !line.is_empty()) {
        has_attribute |= line.starts_with("#[") && line.contains("test");
        if let Some((before, name)) = line.split_once("fn ").filter(|_| !line.starts_with("//")) {
            let is_item = before.split_whitespace().all(|word| matches!(word, "pub" | "async"));
            let name = name.split(['(', '<']).next()?;
            return (is_item && has_attribute).then_some(name);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_rust(text: &str) -> (Vec<Row>, Vec<String>) {
        let (rows, findings) = parse("crates/a/src/b.rs", text);
        (rows, findings.into_iter().map(|finding| finding.message).collect())
    }

    #[test]
    fn a_comment_has_a_section_a_sentence_and_notes() {
        let (rows, messages) = parse_rust(
            "mod tests {\n    //= rfc1 §3.1, erratum 5\n    //# it MUST\n    //# work\n    \
             //= otherwise: it does\n    //# not\n    //= rfc2 §4\n    //# twice\n    /// Why.\n    \
             #[tokio::test]\n    async fn works() {\n    }\n}\n",
        );
        assert_eq!(messages, [""; 0]);
        let [first, second] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!((&*first.document, &*first.section), ("rfc1", "§3.1, erratum 5"));
        assert_eq!((&*first.text, first.line), ("it MUST work", 2));
        assert_eq!(first.notes, [Note { key: "otherwise", text: "it does not".into() }]);
        assert_eq!(first.test.as_deref(), Some("works"));
        assert_eq!((&*second.text, second.test.as_deref()), ("twice", Some("works")));
    }

    #[test]
    fn a_comment_is_above_a_test() {
        for text in [
            "//= rfc1 §1\n//# MUST\nfn helps() {}\n",
            "//= rfc1 §1\n//# MUST\n\n#[test]\nfn works() {}\n",
            "//= rfc1 §1\n//# MUST\n#[test]\nstruct X;\n",
        ] {
            assert_eq!(parse_rust(text).1, ["this comment is not above a test"], "{text}");
        }
    }

    #[test]
    fn parts_without_their_beginning_are_reported() {
        let before = "//= with a document and a section goes before this";
        assert_eq!(parse_rust("//# MUST\n").1, [before]);
        assert_eq!(parse_rust("//= otherwise: no\n").1, [before]);
        let swapped = "//= rfc1 §1\n//= otherwise: no\n#[test]\nfn works() {}\n";
        assert_eq!(parse_rust(swapped).1, ["a sentence, //#, goes before this"]);
    }

    #[test]
    fn a_program_is_a_test() {
        let text = "\"\"\"Noise.\"\"\"\n\n#= hostile http\n## noise\n#= bound: `MOST`\n";
        let (rows, findings) = parse("interop/hostile/noise.py", text);
        assert_eq!(findings, []);
        assert_eq!((&*rows[0].text, rows[0].test.as_deref()), ("noise", Some("")));
    }

    #[test]
    fn other_comments_are_left_alone() {
        let text = "/// # Errors\n//! # A\n// = x\n//=====\n//\n";
        assert_eq!(parse_rust(text), (vec![], vec![]));
        assert!(is_line("    //# a") && !is_line("    // a"));
    }
}
