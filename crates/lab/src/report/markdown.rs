//! A chapter of a document with the results of several plans: pictures, published tables, claims.
//!
//! A page such as `docs/results/experiments.md` has a marked part for each plan, which is replaced; what is
//! written around these parts stays.

use super::markup::{estimate, number};
use super::picture::axis_label;
use super::standalone;
use crate::claim::{CheckVerdict, ClaimOutcome, ClaimVerdict};
use crate::plan::{PlanExtent, PublishedTable};
use crate::results::ResultsDocument;

/// The number of pictures of a plan on a page.
const PICTURES: usize = 3;

/// A page with the results of several plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultsPage {
    /// Its text, as Markdown.
    pub text: String,
    /// The names and contents of its pictures.
    pub pictures: Vec<(String, String)>,
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
    /// its pictures, relative to the page.
    ///
    /// # Errors
    /// If a plan has no part in it.
    pub fn new(
        page: &str,
        folder: &str,
        documents: &[ResultsDocument],
    ) -> Result<Self, NoChapterError> {
        let mut new = Self { text: page.to_owned(), pictures: Vec::new() };
        for document in documents {
            let drawn = standalone::pictures(document, PICTURES);
            let name = |number: usize| format!("{}-{number}.svg", document.plan);
            let shown = drawn.iter().zip(1..);
            let shown = shown
                .map(|((title, _), number)| (title.clone(), format!("{folder}/{}", name(number))));
            let chapter = chapter(document, &shown.collect::<Vec<_>>());
            new.text = replace_chapter(&new.text, &document.plan, &chapter)
                .ok_or_else(|| NoChapterError { plan: document.plan.clone() })?;
            let files = drawn.into_iter().zip(1..).map(|((_, svg), number)| (name(number), svg));
            new.pictures.extend(files);
        }
        Ok(new)
    }
}

/// Returns the chapter; `pictures` are the titles of its pictures and the paths of their files.
#[must_use]
pub fn chapter(document: &ResultsDocument, pictures: &[(String, String)]) -> String {
    let mut text = facts(document);
    for (title, path) in pictures {
        text.push_str(&format!("![{}]({path})\n\n", inline(title)));
    }
    document.tables.iter().for_each(|table| text.push_str(&published(document, table)));
    text.push_str("| claim | published | measured | |\n| --- | --- | --- | --- |\n");
    document.claims.iter().for_each(|verdict| text.push_str(&claim(verdict)));
    let not_judged = document.notes.iter().filter(|note| note.starts_with("Not judged"));
    not_judged.for_each(|note| text.push_str(&format!("\n{}\n", inline(note))));
    text
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

fn claim(verdict: &ClaimVerdict) -> String {
    let checks: Vec<String> = verdict.checks.iter().map(check).collect();
    let note = if verdict.note.is_empty() { "" } else { ". " };
    format!(
        "| {}: {}{note}{} | {} | {} | {} |\n",
        cell(&verdict.id),
        cell(&verdict.text),
        cell(&verdict.note),
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
    for row in &table.row {
        let is_there = |x: f64| (x - row.x).abs() <= row.x.abs() * 1e-9;
        let point =
            document.points_of_curve(&table.scene, &table.curve).find(|point| is_there(point.x));
        let Some(point) = point else { continue };
        let cells = table.measures.iter().enumerate().map(|(column, measure)| {
            let ours = point.measures.get(measure).map_or_else(
                || "–".to_owned(),
                |summary| estimate(summary.value, summary.interval, &measure.unit()),
            );
            let theirs = row.published.get(column).map_or("–".to_owned(), |value| number(*value));
            cell(&format!("{theirs}, {ours}"))
        });
        let cells: Vec<String> = cells.collect();
        text.push_str(&format!("| {} | {} |\n", number(row.x), cells.join(" | ")));
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
