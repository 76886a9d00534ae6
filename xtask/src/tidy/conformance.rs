//! Comments above tests that say what a document requires, and rows without a test, are complete; every
//! document is on the page `docs/reference/conformance.md`. See [`crate::conformance`].

use std::collections::BTreeMap;

use super::Finding;
use super::definitions::definition;
use crate::conformance::Tables;
use crate::conformance::document::{Document, FOLDER, Row};

/// The page with the list of documents.
pub(super) const PAGE: &str = "docs/reference/conformance.md";

/// Checks all comments and rows. `page` is the page with the list, `sources` are the Rust files.
pub(super) fn check(
    tables: &Tables,
    page: &str,
    sources: &BTreeMap<String, String>,
) -> Vec<Finding> {
    let mut findings = tables.findings.clone();
    for name in tables.documents.keys() {
        if !page.contains(&format!("| `{name}` |")) {
            findings.push(Finding::error(PAGE, 0, format!("the table does not list {name}")));
        }
        if !tables.rows.iter().any(|row| row.document == *name) {
            let message = format!("no test names {name}, and it has no row");
            findings.push(Finding::error(&format!("{FOLDER}{name}.toml"), 0, message));
        }
    }
    for row in &tables.rows {
        let problem = match tables.documents.get(&row.document) {
            Some(document) => problem(document, row, sources),
            None => Some(format!("there is no {FOLDER}{}.toml", row.document)),
        };
        findings.extend(problem.map(|message| Finding::error(&row.file, row.line, message)));
    }
    findings
}

/// Returns what is wrong with a row of a document.
fn problem(document: &Document, row: &Row, sources: &BTreeMap<String, String>) -> Option<String> {
    if row.text.is_empty() {
        return Some("the sentence is missing, //#".to_owned());
    }
    let heading = document.heading(row).and_then(|index| document.headings.get(index));
    if heading.is_none() && !document.headings.is_empty() {
        return Some(format!("{} is in no [[heading]] of {}", row.section, row.document));
    }
    let is_section = row.section.contains('§') || document.unnumbered || document.attacks;
    if row.section.is_empty() || !is_section {
        return Some(format!("\"{}\" is not a section", row.section));
    }
    if let Some(note) = row.notes.iter().find(|note| note.text.is_empty()) {
        return Some(format!("{} needs a reason", note.key));
    }
    if row.notes.iter().filter(|note| Some(*note) != row.bound()).count() > 1 {
        return Some("one of otherwise, not-met and untested is enough".to_owned());
    }
    match (&row.test, row.status()) {
        (None, None) => {
            return Some("a row without a test says otherwise, not-met or untested".to_owned());
        }
        (Some(_), Some(note)) if note.key == "untested" => {
            return Some("there is a test".to_owned());
        }
        _ => {}
    }
    match (document.attacks, row.bound()) {
        (true, None) => Some("what limits this attack? //= bound: …".to_owned()),
        (false, Some(_)) => Some(format!("{} has no attacks, and no bound", row.document)),
        (_, bound) => {
            let below = heading.map_or(&[][..], |heading| &heading.below);
            bound.and_then(|note| undefined(&note.text, below, sources))
        }
    }
}

/// Returns a message about a name in a bound that none of the folders defines.
fn undefined(bound: &str, below: &[String], sources: &BTreeMap<String, String>) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_defined = |name: &&str| {
        let is_below = |file: &str| below.iter().any(|folder| file.starts_with(folder));
        let mut files = sources.iter().filter(|(file, _)| is_below(file));
        files.any(|(_, source)| definition(source, name).is_some())
    };
    let names = bound.split('`').skip(1).step_by(2).filter(|name| name.chars().all(plain));
    let mut undefined = names.filter(|name| !is_defined(name));
    undefined.next().map(|name| format!("no file in {} defines {name}", below.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RFC: &str = "title = \"RFC 1\"\n[[heading]]\nof = [\"§1\"]\ntitle = \"One\"\n";
    const ATTACKS: &str = "title = \"Attacks\"\nattacks = true\n[[heading]]\nof = [\"http\"]\n\
                           title = \"HTTP\"\nbelow = [\"crates/a/src/\"]\n";
    const LIST: &str = "| `rfc1` | … |\n| `hostile` | … |\n";

    fn messages(comment: &str, row: &str, page: &str) -> Vec<String> {
        let file = |file: &str, text: String| (file.to_owned(), text);
        let source = format!("const MOST: u8 = 1;\n\n{comment}#[test]\nfn works() {{}}\n");
        let held = "//= rfc1 §1\n//# it works\n//= hostile http\n//# noise\n//= bound: `MOST`\n#[test]\nfn a() {}\n";
        let files: BTreeMap<String, String> = [
            file("docs/reference/conformance/rfc1.toml", format!("{RFC}{row}")),
            file("docs/reference/conformance/hostile.toml", ATTACKS.to_owned()),
            file("crates/a/src/b.rs", source),
            file("crates/a/src/held.rs", held.to_owned()),
        ]
        .into();
        let found = check(&Tables::parse(&files), page, &files).into_iter();
        found.map(|finding| finding.message).collect()
    }

    #[test]
    fn complete_rows_are_accepted() {
        for comment in [
            "//= rfc1 §1.2\n//# it works\n",
            "//= rfc1 §1\n//# it works\n//= otherwise: better\n",
            "//= hostile http\n//# noise\n//= bound: `MOST`, `--all`, the clock\n",
        ] {
            assert_eq!(messages(comment, "", LIST), [""; 0], "{comment}");
        }
        let row =
            "[[row]]\nsection = \"§1\"\ntext = \"it works\"\nuntested = \"nobody can see it\"\n";
        assert_eq!(messages("", row, LIST), [""; 0]);
    }

    #[test]
    fn incomplete_comments_are_named() {
        for (comment, message) in [
            ("//= rfc2 §1\n//# a\n", "there is no docs/reference/conformance/rfc2.toml"),
            ("//= rfc1 §1\n", "the sentence is missing, //#"),
            ("//= rfc1 §2\n//# a\n", "§2 is in no [[heading]] of rfc1"),
            ("//= rfc1\n//# a\n", " is in no [[heading]] of rfc1"),
            ("//= rfc1 §1\n//# a\n//= otherwise:\n", "otherwise needs a reason"),
            ("//= rfc1 §1\n//# a\n//= untested: it is\n", "there is a test"),
            ("//= rfc1 §1\n//# a\n//= bound: `MOST`\n", "rfc1 has no attacks, and no bound"),
            (
                "//= rfc1 §1\n//# a\n//= otherwise: a\n//= not-met: b\n",
                "one of otherwise, not-met and untested is enough",
            ),
            ("//= hostile http\n//# a\n", "what limits this attack? //= bound: …"),
            ("//= hostile http\n//# a\n//= bound: `MOS`\n", "no file in crates/a/src/ defines MOS"),
            ("//= rfc1 §1\n//# a\n\n", "this comment is not above a test"),
        ] {
            let found = messages(comment, "", LIST);
            assert!(found.iter().any(|found| found == message), "{comment}: {found:?}");
        }
    }

    #[test]
    fn rows_without_a_test_say_why() {
        let row = "[[row]]\nsection = \"§1\"\ntext = \"it works\"\n";
        let wanted = ["a row without a test says otherwise, not-met or untested"];
        assert_eq!(messages("", row, LIST), wanted);
    }

    #[test]
    fn every_document_is_on_the_page() {
        assert_eq!(messages("", "", "| `hostile` | … |"), ["the table does not list rfc1"]);
    }

    #[test]
    fn sections_have_numbers_unless_the_document_has_none() {
        let section = |unnumbered: &str| {
            let document = format!("title = \"a\"\n{unnumbered}");
            let files = [
                ("docs/reference/conformance/a.toml".to_owned(), document),
                (
                    "crates/a/src/b.rs".to_owned(),
                    "//= a offer\n//# b\n#[test]\nfn c() {}\n".to_owned(),
                ),
            ];
            let tables = Tables::parse(&files.into());
            check(&tables, "| `a` | … |", &BTreeMap::new()).len()
        };
        assert_eq!((section(""), section("unnumbered = true\n")), (1, 0));
    }
}
