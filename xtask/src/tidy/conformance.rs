//! Each page of `docs/reference/conformance/` is in the index, and each of its clauses names the evidence that it is
//! followed, or states that it is not.

use super::Finding;
use super::documents::cells;

/// The index of the pages.
pub(super) const INDEX: &str = "docs/reference/conformance.md";

/// The directory of the pages.
const PAGES: &str = "docs/reference/conformance/";

/// How the last cell of a clause may start if it names no test.
const WITHOUT_TEST: [&str; 3] = ["**not met**", "**otherwise**", "no test:"];

/// Cells of a clause: section, requirement, what is done here, evidence.
const CELLS: usize = 4;

/// Checks one document; documents other than pages are ignored.
pub(super) fn check(file: &str, content: &str, index: &str) -> Vec<Finding> {
    let Some(page) = file.strip_prefix(PAGES).filter(|page| page.ends_with(".md")) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    if !index.contains(&format!("(conformance/{page})")) {
        findings.push(Finding::error(file, 0, format!("{INDEX} does not link to this page")));
    }
    let mut in_table = false;
    let mut clauses = 0;
    for (index, line) in content.lines().enumerate() {
        let Some(cells) = cells(line) else {
            in_table = false;
            continue;
        };
        // The first row of a table has the headings, the second is the delimiter.
        if !in_table {
            in_table = true;
            continue;
        }
        if cells.iter().all(|cell| cell.chars().all(|c| matches!(c, '-' | ':'))) {
            continue;
        }
        clauses += 1;
        if cells.len() != CELLS || cells.iter().any(|cell| cell.is_empty()) {
            let message = format!("a clause has {CELLS} cells, none of them empty");
            findings.push(Finding::error(file, index + 1, message));
        } else if !is_evidence(cells[CELLS - 1]) {
            let message = "name a test (`path.rs::name`), or state why there is none";
            findings.push(Finding::error(file, index + 1, message));
        }
    }
    if clauses == 0 {
        findings.push(Finding::error(file, 0, "the page has no clause"));
    }
    findings
}

fn is_evidence(cell: &str) -> bool {
    let names_test = cell.split('`').skip(1).step_by(2).any(|quoted| quoted.contains(".rs::"));
    names_test || WITHOUT_TEST.iter().any(|begin| cell.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "| section | requirement | here | evidence |\n| --- | --- | --- | --- |\n";

    fn messages(row: &str, index: &str) -> Vec<String> {
        let found = check("docs/reference/conformance/a.md", &format!("{HEAD}{row}\n"), index);
        found.into_iter().map(|finding| finding.message).collect()
    }

    const INDEXED: &str = "| A | [a](conformance/a.md) |";

    #[test]
    fn a_test_or_a_reason_for_none_is_evidence() {
        for evidence in [
            "`crates/a/src/b.rs::works`",
            "**not met**",
            "**otherwise**: slower",
            "no test: a note",
        ] {
            let row = format!("| §1 | MUST | done | {evidence} |");
            assert_eq!(messages(&row, INDEXED), [""; 0], "{evidence}");
        }
    }

    #[test]
    fn a_clause_without_evidence_is_named() {
        let neither = ["name a test (`path.rs::name`), or state why there is none"];
        assert_eq!(messages("| §1 | MUST | done | surely |", INDEXED), neither);
        let cells = ["a clause has 4 cells, none of them empty"];
        assert_eq!(messages("| §1 | MUST | done |", INDEXED), cells);
        assert_eq!(messages("| §1 | MUST |  | `a.rs::b` |", INDEXED), cells);
        assert_eq!(messages("| §1 | MUST | | done | `a.rs::b` |", INDEXED), cells);
        assert_eq!(messages("text", INDEXED), ["the page has no clause"]);
    }

    #[test]
    fn a_page_missing_from_the_index_is_named() {
        let row = "| §1 | MUST | done | `a.rs::b` |";
        assert_eq!(messages(row, ""), ["docs/reference/conformance.md does not link to this page"]);
        assert_eq!(check("docs/other.md", "text", ""), []);
    }
}
