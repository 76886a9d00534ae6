//! The networks drawn at random that miss what is wanted of them, to be run again alone.

use super::markup::{escape, number};
use crate::results::{NetworkOutlier, PointRow, ResultsDocument};

/// The number of networks on the page; `result.json` has all of them.
const SHOWN: usize = 100;
/// The measures in the columns of the table.
const COLUMNS: [&str; 5] = ["best", "sum", "first-mib", "keystroke", "throughput"];

pub(super) fn section(document: &ResultsDocument) -> String {
    document.points.iter().map(|point| table(document, point)).collect()
}

fn table(document: &ResultsDocument, point: &PointRow) -> String {
    if point.outliers.is_empty() {
        return String::new();
    }
    let rows: String = point.outliers.iter().take(SHOWN).map(row).collect();
    let head: String = COLUMNS.iter().map(|name| format!("<th>{name}</th>")).collect();
    format!(
        "<section>\n<h2>Outliers</h2>\n<p>Networks that miss something, the worst first: {} of {}, of which up \
         to {SHOWN} are shown. <code>eyas lab run {} --runs 1 --seed SEED</code> runs one alone.</p>\n\
         <table class=\"cards\">\n<thead><tr><th>seed</th>{head}<th>misses</th><th>network</th>\
         </tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</section>\n",
        point.outliers.len(),
        document.run.runs,
        escape(&document.plan),
    )
}

fn row(outlier: &NetworkOutlier) -> String {
    let cell = |name: &&str| {
        let value = outlier.measured.get(*name).map_or_else(String::new, |value| number(*value));
        format!("<td data-label=\"{name}\">{value}</td>")
    };
    format!(
        "<tr><th scope=\"row\">{}</th>{}<td data-label=\"misses\">{}</td>\
         <td data-label=\"network\">{}</td></tr>\n",
        outlier.seed,
        COLUMNS.iter().map(cell).collect::<String>(),
        escape(&outlier.missed.join(", ")),
        escape(&outlier.network),
    )
}
