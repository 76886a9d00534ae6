//! Each page of `docs/reference/conformance/` is in the index, and each of its clauses names the test that
//! shows that it is followed, or states why there is none. `docs/reference/hostile-input.md` has the
//! same form, and does not repeat their tests.

use std::collections::BTreeMap;

use super::Finding;
use super::definitions::{Reference, definition, is_test, references, stated_bases};
use super::documents::cells;

/// The index of the pages.
pub(super) const INDEX: &str = "docs/reference/conformance.md";

/// The directory of the pages.
const PAGES: &str = "docs/reference/conformance/";

/// The page of attacks.
const HOSTILE: &str = "docs/reference/hostile-input.md";

/// How the last cell of a row may start if it names no test.
const WITHOUT_TEST: [&str; 3] = ["**not met**", "**otherwise**", "no test:"];

/// The headings of a table of clauses, and of one of attacks.
const CLAUSE: [&str; 3] = ["section", "requirement", "test"];
const ATTACK: [&str; 3] = ["attack", "bound", "test"];

/// Where the section of a clause is: it has its sign, or is a part of a draft without numbers.
const UNNUMBERED: &str = "snap.md";

/// Checks one document; documents other than these pages are ignored. `read` returns the content of a file.
pub(super) fn check(
    file: &str,
    content: &str,
    index: &str,
    read: impl Fn(&str) -> Option<String>,
) -> Vec<Finding> {
    let page = file.strip_prefix(PAGES).filter(|page| page.ends_with(".md"));
    if page.is_none() && file != HOSTILE {
        return Vec::new();
    }
    let mut findings = Vec::new();
    if page.is_some_and(|page| !index.contains(&format!("(conformance/{page})"))) {
        findings.push(Finding::error(file, 0, format!("{INDEX} does not link to this page")));
    }
    let references = references(content);
    let headings = if page.is_some() { CLAUSE } else { ATTACK };
    let mut in_table = false;
    let mut rows = 0;
    for (index, line) in content.lines().enumerate() {
        if !line.starts_with('|') {
            in_table = false;
            continue;
        }
        // A row that does not end is reported with every other document's.
        let Some(cells) = cells(line) else { continue };
        // The first row of a table has the headings, the second is the delimiter.
        if !in_table {
            in_table = true;
            if cells != headings {
                let message = format!("the headings are {}", headings.join(", "));
                findings.push(Finding::error(file, index + 1, message));
            }
            continue;
        }
        if cells.iter().all(|cell| cell.chars().all(|c| matches!(c, '-' | ':')) && !cell.is_empty())
        {
            continue;
        }
        rows += 1;
        let is_of_row = |reference: &&Reference<'_>| reference.line == index + 1;
        let named: Vec<_> = references.iter().filter(is_of_row).collect();
        let has_section = page.is_some_and(|page| page != UNNUMBERED);
        findings.extend(
            row(&cells, &named, has_section, &read)
                .map(|message| Finding::error(file, index + 1, message)),
        );
    }
    if rows == 0 {
        findings.push(Finding::error(file, 0, "the page has no row"));
    }
    findings
}

/// Returns what is wrong with a row whose cells name these tests and bounds.
fn row(
    cells: &[&str],
    named: &[&Reference<'_>],
    has_section: bool,
    read: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    let [first, second, last] = cells else {
        return Some(format!("a row has 3 cells, not {}", cells.len()));
    };
    if cells.iter().any(|cell| cell.is_empty()) {
        return Some("no cell is empty".to_owned());
    }
    if has_section && !first.contains('§') {
        return Some(format!("{first} is not a section"));
    }
    let is_named_test = |name: &str| {
        let reference = named.iter().find(|reference| reference.name == name);
        let source = reference.and_then(|reference| reference.source(&read).ok());
        source.is_some_and(|source| is_test(&source, name))
    };
    let names = |cell: &str| -> Vec<String> {
        references(cell).iter().map(|reference| reference.name.to_owned()).collect()
    };
    if let Some(name) = names(first).iter().chain(&names(second)).find(|name| is_named_test(name)) {
        return Some(format!("{name} is a test: it belongs under the last heading"));
    }
    let tests = names(last);
    if let Some(name) = tests.iter().find(|name| !is_named_test(name)) {
        return Some(format!("{name} is not a test"));
    }
    let names_program = last.contains("`interop/");
    let reason = WITHOUT_TEST.iter().any(|begin| last.starts_with(begin));
    let message = "name a test (`path.rs::name`), or state why there is none";
    (tests.is_empty() && !names_program && !reason).then(|| message.to_owned())
}

/// Returns a finding for each bound of the page of attacks that is not defined in the directories that the
/// page states, and for each test that it shares with a page of clauses.
pub(super) fn check_attacks(
    documents: &BTreeMap<String, String>,
    sources: &BTreeMap<String, String>,
) -> Vec<Finding> {
    let Some(hostile) = documents.get(HOSTILE) else { return Vec::new() };
    let pages = documents.iter().filter(|(file, _)| file.starts_with(PAGES));
    let clauses: BTreeMap<&str, &str> = pages
        .flat_map(|(file, text)| {
            references(text).into_iter().map(move |reference| (reference.name, file.as_str()))
        })
        .collect();
    let mut findings = undefined_bounds(hostile, sources);
    for reference in references(hostile) {
        if let Some(page) = clauses.get(reference.name) {
            let message = format!("{page} names {} already", reference.name);
            findings.push(Finding::error(HOSTILE, reference.line, message));
        }
    }
    findings
}

fn undefined_bounds(hostile: &str, sources: &BTreeMap<String, String>) -> Vec<Finding> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut findings = Vec::new();
    let mut bases = Vec::new();
    for (index, line) in hostile.lines().enumerate() {
        bases = stated_bases(line).unwrap_or(bases);
        let cells = cells(line).unwrap_or_default();
        let bound = cells.get(1).copied().unwrap_or_default();
        for name in bound.split('`').skip(1).step_by(2).filter(|name| name.chars().all(plain)) {
            let is_below = |file: &str| bases.iter().any(|base| file.starts_with(base));
            let mut below = sources.iter().filter(|(file, _)| is_below(file));
            if !below.any(|(_, source)| definition(source, name).is_some()) {
                let message = format!("no file in {} defines {name}", bases.join(", "));
                findings.push(Finding::error(HOSTILE, index + 1, message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "| section | requirement | test |\n| --- | --- | --- |\n";
    const INDEXED: &str = "| A | [a](conformance/a.md) |";

    fn read(path: &str) -> Option<String> {
        let source = "#[test]\nfn works() {}\n\nfn helps() {}\n\nconst MOST: u8 = 1;\n";
        (path == "crates/a/src/b.rs").then(|| source.to_owned())
    }

    fn messages(row: &str, index: &str) -> Vec<String> {
        let content = format!("{HEAD}{row}\n");
        let found = check("docs/reference/conformance/a.md", &content, index, read);
        found.into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn a_test_or_a_reason_for_none_is_evidence() {
        for evidence in [
            "`crates/a/src/b.rs::works`",
            "**not met**",
            "**otherwise**: slower",
            "no test: a note",
            "`interop/hostile/a.py`",
        ] {
            let row = format!("| §1 | at most `crates/a/src/b.rs::MOST` | {evidence} |");
            assert_eq!(messages(&row, INDEXED), [""; 0], "{evidence}");
        }
    }

    #[test]
    fn a_clause_without_evidence_is_named() {
        let neither = ["name a test (`path.rs::name`), or state why there is none"];
        assert_eq!(messages("| §1 | MUST | surely |", INDEXED), neither);
        assert_eq!(messages("text", INDEXED), ["the page has no row"]);
        let helper = messages("| §1 | MUST | `crates/a/src/b.rs::helps` |", INDEXED);
        assert_eq!(helper, ["helps is not a test"]);
        let gone = messages("| §1 | MUST | `crates/a/src/b.rs::gone` |", INDEXED);
        assert_eq!(gone, ["gone is not a test"]);
    }

    #[test]
    fn broken_rows_are_named() {
        let test = "`crates/a/src/b.rs::works`";
        for (row, message) in [
            (format!("| §1 | {test} |"), "a row has 3 cells, not 2"),
            (format!("| §1 | MUST | done | {test} |"), "a row has 3 cells, not 4"),
            (format!("| §1 | | {test} |"), "no cell is empty"),
            (format!("| | MUST | {test} |"), "no cell is empty"),
            ("| | | |".to_owned(), "no cell is empty"),
            (format!("| MUST | §1 | {test} |"), "MUST is not a section"),
            (
                format!("| §1 | {test} | **not met** |"),
                "works is a test: it belongs under the last heading",
            ),
        ] {
            assert!(messages(&row, INDEXED).iter().any(|found| found == message), "{row}");
        }
        let swapped = "| section | test | requirement |\n| --- | --- | --- |\n";
        let found = check("docs/reference/conformance/a.md", swapped, INDEXED, read);
        assert_eq!(found[0].message, "the headings are section, requirement, test");
    }

    #[test]
    fn attacks_have_the_same_form() {
        let table = "| attack | bound | test |\n| --- | --- | --- |\n";
        let found = |row: &str| check(HOSTILE, &format!("{table}{row}\n"), "", read).len();
        assert_eq!(found("| noise | `crates/a/src/b.rs::MOST` | `crates/a/src/b.rs::works` |"), 0);
        assert_eq!(found("| noise | | `crates/a/src/b.rs::works` |"), 1);
        assert_eq!(found("| noise | `crates/a/src/b.rs::works` | `crates/a/src/b.rs::MOST` |"), 1);
    }

    #[test]
    fn a_page_missing_from_the_index_is_named() {
        let row = "| §1 | MUST | `crates/a/src/b.rs::works` |";
        assert_eq!(messages(row, ""), ["docs/reference/conformance.md does not link to this page"]);
        assert_eq!(check("docs/other.md", "text", "", read), []);
    }

    #[test]
    fn bounds_of_attacks_exist_and_a_test_is_on_one_of_the_two_pages() {
        let page = |file: &str, text: &str| (file.to_owned(), text.to_owned());
        let clause = page("docs/reference/conformance/a.md", "`crates/a/src/b.rs::works`");
        let found = |text: &str| {
            let pages = [clause.clone(), page(HOSTILE, text)].into();
            let sources = [page("crates/a/src/b.rs", "const MOST: u8 = 1;\n")].into();
            let found = check_attacks(&pages, &sources).into_iter();
            found.map(|finding| finding.message).collect::<Vec<_>>()
        };
        let twice = ["docs/reference/conformance/a.md names works already"];
        assert_eq!(found("`src/b.rs::works`"), twice);
        assert_eq!(found("`src/b.rs::helps`"), [""; 0]);
        let bases = "Paths are relative to `fuzz/`, `crates/a/`.\n| noise | ";
        assert_eq!(found(&format!("{bases}`MOST`, `--all` | x |")), [""; 0]);
        let undefined = ["no file in fuzz/, crates/a/ defines MOS"];
        assert_eq!(found(&format!("{bases}`MOS` | x |")), undefined);
    }
}
