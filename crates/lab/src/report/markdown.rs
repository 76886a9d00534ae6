//! A chapter of a document with the results of several plans: pictures, published tables, claims.
//!
//! A page such as `docs/results/experiments.md` has a marked part for each plan, which is replaced; what is
//! written around these parts stays. There a chapter has the pictures and the verdicts, and files beside
//! the page have every check and the published points.

use super::markup::estimate;
use super::picture::axis_label;
use super::{standalone, tables};
use crate::claim::{CheckVerdict, ClaimOutcome, ClaimVerdict};
use crate::plan::{PlanExtent, PublishedTable};
use crate::results::ResultsDocument;

/// The number of pictures of a plan on a page.
const PICTURES: usize = 3;
/// The head of the table of claims.
const CLAIMS: &str = "| claim | published | measured | |\n| --- | --- | --- | --- |\n";

/// A page with the results of several plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultsPage {
    /// Its text, as Markdown.
    pub text: String,
    /// The names and contents of its pictures and tables.
    pub files: Vec<(String, String)>,
}

/// A page without a part for a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no chapter for {plan}: add the lines '<!-- {plan}: eyas lab results -->' and '<!-- end -->'"
)]
pub struct NoChapterError {
    /// The name of the plan.
    pub plan: String,
}

impl ResultsPage {
    /// Replaces the parts of a page that belong to these documents. `folder` is the directory of
    /// its pictures and tables, relative to the page.
    ///
    /// # Errors
    /// If a plan has no part in it.
    pub fn new(
        page: &str,
        folder: &str,
        documents: &[ResultsDocument],
    ) -> Result<Self, NoChapterError> {
        let mut new = Self { text: page.to_owned(), files: Vec::new() };
        for document in documents {
            let plan = &document.plan;
            let drawn = standalone::pictures(document, PICTURES).into_iter().zip(1..);
            let drawn: Vec<_> = drawn
                .map(|((title, svg), number)| (title, format!("{plan}-{number}.svg"), svg))
                .collect();
            let tables = tables::files(document);
            let chapter = brief_chapter(document, folder, &drawn, &tables);
            new.text = replace_chapter(&new.text, plan, &chapter)
                .ok_or_else(|| NoChapterError { plan: plan.clone() })?;
            new.files.extend(drawn.into_iter().map(|(_, name, svg)| (name, svg)));
            new.files.extend(tables.into_iter().map(|(_, name, text)| (name, text)));
        }
        Ok(new)
    }
}

/// Returns the whole chapter, without pictures.
#[must_use]
pub fn chapter(document: &ResultsDocument) -> String {
    let mut text = facts(document);
    document.tables.iter().for_each(|table| text.push_str(&published(document, table)));
    text.push_str(CLAIMS);
    document.claims.iter().for_each(|verdict| {
        let checks: Vec<String> = verdict.checks.iter().map(check).collect();
        text.push_str(&claim(verdict, &verdict.text, &verdict.note, &checks));
    });
    text + &not_judged(document)
}

/// Returns the chapter of a page: the pictures and tables are links to files in a folder, given by their
/// titles and names. Of the checks of a claim it has those that decide against it, or else the first.
fn brief_chapter(
    document: &ResultsDocument,
    folder: &str,
    pictures: &[(String, String, String)],
    tables: &[(String, String, String)],
) -> String {
    let mut text = facts(document);
    for (title, name, _) in pictures {
        text.push_str(&format!("![{}]({folder}/{name})\n\n", inline(title)));
    }
    let links = tables.iter().map(|(title, name, _)| format!("[{title}]({folder}/{name})"));
    text.push_str(&format!("Tables: {}.\n\n{CLAIMS}", links.collect::<Vec<_>>().join(", ")));
    let mut before = "";
    for verdict in &document.claims {
        // Claims such as "10/10 and 10/50: at least 97 %" differ in what they are about.
        let (about, rest) = verdict.text.rsplit_once(": ").unwrap_or(("", &verdict.text));
        let said = match rest == before && !about.is_empty() {
            true => &format!("{about}: the same"),
            false => &verdict.text,
        };
        before = rest;
        let is_fine = |check: &&CheckVerdict| {
            matches!(check.outcome, ClaimOutcome::Accepted | ClaimOutcome::ShownOnly)
        };
        let mut against: Vec<String> =
            verdict.checks.iter().filter(|check| !is_fine(check)).map(check).collect();
        if against.is_empty() {
            against.extend(verdict.checks.first().map(check));
        }
        text.push_str(&claim(verdict, said, "", &against));
    }
    text + &not_judged(document)
}

fn not_judged(document: &ResultsDocument) -> String {
    let notes = document.notes.iter().filter(|note| note.starts_with("Not judged"));
    notes.map(|note| format!("\n{}\n", inline(note))).collect()
}

/// Replaces the part of a page that belongs to a plan; `None` if the page has no such part.
fn replace_chapter(page: &str, plan: &str, chapter: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- {plan}: eyas lab results -->\n"), "<!-- end -->");
    let (before, rest) = page.split_once(&begin)?;
    let (_, after) = rest.split_once(end)?;
    Some(format!("{before}{begin}\n{chapter}\n{end}{after}"))
}

fn facts(document: &ResultsDocument) -> String {
    let run = &document.run;
    let extent = match run.extent {
        PlanExtent::Quick => ", with `--quick`",
        PlanExtent::Standard => ", with `--standard`",
        PlanExtent::Full => "",
    };
    let seeds = match (run.seeds.first(), run.seeds.last()) {
        (Some(first), Some(last)) if first != last => format!("seeds {first} to {last}"),
        (Some(first), _) => format!("seed {first}"),
        _ => "no seed".to_owned(),
    };
    let set: String = run.set.iter().map(|set| format!(", `{set}`")).collect();
    format!(
        "{title}. {points} {of_points}, {runs} {word} of each ({seeds}){extent}{set}, at commit {commit}.\n\n",
        title = inline(&document.title),
        points = document.points.len(),
        of_points = if document.points.len() == 1 { "point" } else { "points" },
        runs = run.runs,
        word = if run.runs == 1 { "run" } else { "runs" },
        commit = run.commit,
    )
}

/// Returns the row of a claim with this text, a note and these checks.
fn claim(verdict: &ClaimVerdict, text: &str, note: &str, checks: &[String]) -> String {
    let separator = if note.is_empty() { "" } else { ". " };
    format!(
        "| {}: {}{separator}{} | {} | {} | {} |\n",
        cell(&verdict.id),
        cell(text),
        cell(note),
        cell(&verdict.published),
        checks.join("<br>"),
        outcome(verdict.outcome),
    )
    .replace(".. ", ". ")
}

fn check(check: &CheckVerdict) -> String {
    let about = if check.about.is_empty() { &check.value } else { &check.about };
    let measured = check
        .measured
        .map_or_else(|| "–".to_owned(), |value| estimate(value, check.interval, &check.unit));
    let wanted = match check.accept.is_empty() {
        true => String::new(),
        false => format!(" ({})", cell(&check.accept.describe())),
    };
    let verdict = match check.outcome {
        ClaimOutcome::Accepted | ClaimOutcome::ShownOnly => String::new(),
        other => format!(", {}", outcome(other)),
    };
    format!("{}: {}{wanted}{verdict}", cell(about), cell(&measured))
}

fn outcome(outcome: ClaimOutcome) -> String {
    match outcome {
        ClaimOutcome::Accepted | ClaimOutcome::ShownOnly => outcome.describe().to_owned(),
        other => format!("**{}**", other.describe()),
    }
}

/// Returns a publication's table with the numbers measured at its places.
fn published(document: &ResultsDocument, table: &PublishedTable) -> String {
    let measures: Vec<String> =
        table.measures.iter().map(|measure| cell(&measure.label())).collect();
    let mut text = format!(
        "{}: published, measured.\n\n| {} | {} |\n|{}\n",
        inline(&table.title),
        cell(&axis_label(&document.axis)),
        measures.join(" | "),
        " --- |".repeat(measures.len() + 1),
    );
    for (x, cells) in tables::rows(document, table) {
        let cells: Vec<String> =
            cells.iter().map(|(theirs, ours)| cell(&format!("{theirs}, {ours}"))).collect();
        text.push_str(&format!("| {x} | {} |\n", cells.join(" | ")));
    }
    text + "\n"
}

/// Returns text for a cell of a table.
fn cell(text: &str) -> String {
    inline(text).replace('|', "\\|")
}

/// Returns text without what Markdown would interpret.
fn inline(text: &str) -> String {
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    ['\\', '<', '[', '*', '_', '`'].iter().fold(text, |text, special| match special {
        '<' => text.replace('<', "&lt;"),
        special => text.replace(*special, &format!("\\{special}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_not_interpreted() {
        assert_eq!(cell("a | b\n < *c* `d` [e]"), "a \\| b &lt; \\*c\\* \\`d\\` \\[e]");
    }

    #[test]
    fn only_the_part_of_the_plan_is_replaced() {
        let page = "# R\n<!-- p: eyas lab results -->\nold\n<!-- end -->\nmore\n";
        let new = replace_chapter(page, "p", "new\n").unwrap();
        assert_eq!(new, "# R\n<!-- p: eyas lab results -->\n\nnew\n\n<!-- end -->\nmore\n");
        assert_eq!(replace_chapter(&new, "p", "new\n").as_ref(), Some(&new), "again");
        assert_eq!(replace_chapter(page, "q", "new"), None);
    }
}
