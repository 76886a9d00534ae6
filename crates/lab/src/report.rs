//! The report: one self-contained HTML page with claims, figures, numbers, choices and sources.
//!
//! | file | purpose |
//! | --- | --- |
//! | `mod` | the page |
//! | `claims` | the table of claims |
//! | `bound` | the derivation of the bound at each place |
//! | `picture` | a figure of the plan: its lines and their legend |
//! | `chart` | lines as SVG |
//! | `bars` | groups of bars as SVG |
//! | `frame` | the axes of bars and boxes |
//! | `medians` | medians of live runs as bars with whiskers |
//! | `stacked` | bars that are made of parts |
//! | `trials` | single trials of live runs: boxes, distributions |
//! | `outliers` | the networks drawn at random that miss what is wanted |
//! | `published` | the publication's tables next to the measurements |
//! | `markdown` | a chapter of a page about several plans |
//! | `tables` | the tables beside such a page |
//! | `standalone` | pictures as files of their own |
//! | `matrix` | the table of all curves, and the packets behind its cells |
//! | `numbers` | figures as tables |
//! | `scale` | the unit of the axis |
//! | `markup` | escaping for HTML; formatting of numbers |
//! | `style.css` | the style sheet: for paper and phones, light and dark |

mod bars;
mod bound;
mod chart;
mod claims;
mod frame;
mod markdown;
mod markup;
mod matrix;
mod medians;
mod numbers;
mod outliers;
mod picture;
mod published;
mod scale;
mod stacked;
mod standalone;
mod tables;
mod trials;

#[cfg(test)]
mod tests;

use std::path::Path;

use crate::plan::PlanExtent;
use crate::results::{ResultsDocument, ResultsError};
use markup::{escape, row};

pub use markdown::{NoChapterError, ResultsPage, chapter};
pub use markup::{estimate, number, short};

/// The style sheet.
const STYLE: &str = include_str!("report/style.css");
/// The name of the page in the output directory.
const FILE: &str = "report.html";

/// Writes the page to an output directory.
///
/// # Errors
/// If the file cannot be written.
pub fn write(document: &ResultsDocument, out: &Path) -> Result<(), ResultsError> {
    crate::results::write_atomically(&out.join(FILE), page(document))
}

/// Returns the page as HTML.
#[must_use]
pub fn page(document: &ResultsDocument) -> String {
    let document = &*scale::readable(document);
    let sections: String = [
        head(document),
        matrix::section(document),
        claims::section(document),
        published::section(document),
        figures_section(document),
        outliers::section(document),
        bound::section(document),
        choices(document),
        emulated(document),
        numbers::section(document),
        sources(document),
        matrix::packets(document),
    ]
    .concat();
    html(&document.plan, &sections)
}

/// Returns each figure of the plan: its title, and a page that contains only the figure, for
/// display in a notebook.
#[must_use]
pub fn figures(document: &ResultsDocument) -> Vec<(String, String)> {
    let document = &*scale::readable(document);
    let drawn = document.figures.iter().map(|figure| {
        let body = picture::section(document, figure);
        (figure.title.clone(), html(&format!("{} – {}", document.plan, figure.title), &body))
    });
    drawn.collect()
}

/// Returns a page with this title and body.
fn html(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title} – eyas lab</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         {body}</main>\n</body>\n</html>\n",
        title = escape(title),
    )
}

fn head(document: &ResultsDocument) -> String {
    let run = &document.run;
    let seeds = match (run.seeds.first(), run.seeds.last()) {
        (Some(first), Some(last)) if first != last => format!("{first} to {last}"),
        (Some(first), _) => first.to_string(),
        _ => String::new(),
    };
    let mut facts = vec![
        row("plan", &escape(&document.plan)),
        row("runs per point", &run.runs.to_string()),
        row(if run.seeds.len() == 1 { "seed" } else { "seeds" }, &seeds),
        row("eyas", &escape(&format!("{} ({})", run.version, run.commit))),
    ];
    if !run.set.is_empty() {
        facts.push(row("set", &format!("<code>{}</code>", escape(&run.set.join(" ")))));
    }
    let quick = match run.extent {
        PlanExtent::Quick => {
            let open =
                document.claims_without_verdict().map_or_else(String::new, |open| open + " ");
            format!(
                "<p class=\"warning\">This is the quick version: few, short runs, which show only the shape \
                 of the curves. {}The claims are meant for the full version.</p>\n",
                escape(&open),
            )
        }
        PlanExtent::Standard | PlanExtent::Full => String::new(),
    };
    let notes: String =
        document.notes.iter().map(|note| format!("<p>{}</p>\n", escape(note))).collect();
    format!(
        "<header>\n<p class=\"kicker\">eyas lab</p>\n<h1>{}</h1>\n<p>{}</p>\n{notes}{quick}\
         <dl class=\"facts\">{}</dl>\n</header>\n",
        escape(&document.title),
        escape(&document.about),
        facts.concat(),
    )
}

fn figures_section(document: &ResultsDocument) -> String {
    let pictures: String =
        document.figures.iter().map(|figure| picture::section(document, figure)).collect();
    match pictures.is_empty() {
        true => pictures,
        false => format!("<section>\n<h2>Figures</h2>\n{pictures}</section>\n"),
    }
}

fn choices(document: &ResultsDocument) -> String {
    if document.choices.is_empty() {
        return String::new();
    }
    let rows: String = document
        .choices
        .iter()
        .map(|choice| {
            let mark = if choice.fitted { " <b title=\"fitted\">†</b>" } else { "" };
            format!(
                "<tr><th scope=\"row\">{}{mark}</th><td data-label=\"choice\">{}</td>\
                 <td data-label=\"source\">{}</td></tr>\n",
                escape(&choice.name),
                escape(&choice.value),
                escape(&choice.source),
            )
        })
        .collect();
    format!(
        "<section>\n<h2>The published profile</h2>\n<p>The paper leaves some choices open. \
         These are the choices of the profile; those with † are based only on their fit to the \
         published numbers.</p>\n<table class=\"cards\">\n<thead><tr><th>option</th><th>choice</th>\
         <th>source</th></tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</section>\n"
    )
}

fn emulated(document: &ResultsDocument) -> String {
    let items: String =
        document.emulated.iter().map(|item| format!("<li>{}</li>\n", escape(item))).collect();
    format!("<section>\n<h2>What was emulated, and how</h2>\n<ul>\n{items}</ul>\n</section>\n")
}

fn sources(document: &ResultsDocument) -> String {
    let items: String =
        document.sources.iter().map(|source| format!("<li>{}</li>\n", escape(source))).collect();
    format!(
        "<section>\n<h2>Sources</h2>\n<ul>\n{items}</ul>\n<p>Error bars and ranges are 95 % \
         confidence intervals ({}). All numbers are in <code>result.json</code> and \
         <code>result.csv</code> beside this page.</p>\n</section>\n",
        escape(&document.methods().join("; ")),
    )
}
