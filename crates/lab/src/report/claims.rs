//! The table of claims.

use super::markup::{escape, estimate};
use crate::claim::{CheckVerdict, ClaimOutcome, ClaimVerdict};
use crate::results::ResultsDocument;

pub(super) fn section(document: &ResultsDocument) -> String {
    if document.claims.is_empty() {
        return String::new();
    }
    let count = |wanted| document.claims.iter().filter(|claim| claim.outcome == wanted).count();
    let mut summary =
        format!("{} of {} accepted", count(ClaimOutcome::Accepted), document.claims.len());
    for outcome in [
        ClaimOutcome::Refused,
        ClaimOutcome::Undecided,
        ClaimOutcome::NotJudged,
        ClaimOutcome::NotMeasured,
    ] {
        if count(outcome) > 0 {
            summary.push_str(&format!(", {} {}", count(outcome), outcome.describe()));
        }
    }
    let items: String = document.claims.iter().map(claim).collect();
    format!(
        "<section>\n<h2>Claims</h2>\n<p>{summary}.</p>\n<ol class=\"claims\">\n{items}</ol>\n{intervals}\
         </section>\n",
        intervals = intervals(document),
    )
}

/// Explains the intervals and the verdict ‘undecided’.
fn intervals(document: &ResultsDocument) -> String {
    let checks = document.claims.iter().flat_map(|claim| &claim.checks);
    let mut methods: Vec<_> =
        checks.filter_map(|check| Some(check.interval?.method.describe())).collect();
    methods.sort_unstable();
    methods.dedup();
    if methods.is_empty() {
        return String::new();
    }
    format!(
        "<p class=\"method\">Intervals are 95 % confidence intervals ({}). A claim is undecided if \
         an interval spans a bound; more runs or trials would decide it.</p>\n",
        escape(&methods.join("; ")),
    )
}

fn claim(verdict: &ClaimVerdict) -> String {
    let (class, sign) = match verdict.outcome {
        ClaimOutcome::Accepted => ("good", "✓ "),
        ClaimOutcome::Refused => ("bad", "✗ "),
        ClaimOutcome::Undecided => ("undecided", "? "),
        ClaimOutcome::NotMeasured | ClaimOutcome::NotJudged | ClaimOutcome::ShownOnly => {
            ("open", "")
        }
    };
    let word = format!("{sign}{}", verdict.outcome.describe());
    let rows: String = verdict.checks.iter().map(check).collect();
    let note = match verdict.note.is_empty() {
        true => String::new(),
        false => format!("<p class=\"note\">{}</p>\n", escape(&verdict.note)),
    };
    format!(
        "<li class=\"{class}\">\n<div class=\"claim\"><span class=\"id\">{id}</span>\
         <p>{text}</p><span class=\"verdict\">{word}</span></div>\n\
         <p class=\"published\">published: {published}</p>\n\
         <table class=\"checks cards\">\n<thead><tr><th>measured</th><th>value</th>\
         <th>accepted range</th><th></th></tr></thead>\n<tbody>\n{rows}</tbody></table>\n{note}</li>\n",
        id = escape(&verdict.id),
        text = escape(&verdict.text),
        published = escape(&verdict.published),
    )
}

fn check(check: &CheckVerdict) -> String {
    let value = match check.measured {
        Some(value) => estimate(value, check.interval, &check.unit),
        None => "–".to_owned(),
    };
    let about = if check.about.is_empty() { &check.value } else { &check.about };
    let bounds = match check.accept.is_empty() {
        true => "shown only".to_owned(),
        false => format!("{} {}", check.accept.describe(), check.unit).trim_end().to_owned(),
    };
    let mark = match check.outcome {
        ClaimOutcome::Accepted => "<b class=\"good\">✓</b>",
        ClaimOutcome::Refused => "<b class=\"bad\">✗</b>",
        ClaimOutcome::Undecided => "<b class=\"undecided\">?</b>",
        ClaimOutcome::NotMeasured | ClaimOutcome::NotJudged | ClaimOutcome::ShownOnly => "",
    };
    format!(
        "<tr><th scope=\"row\" title=\"{expression}\">{about}</th>\
         <td data-label=\"value\" class=\"n\">{value}</td>\
         <td data-label=\"accepted range\" class=\"n\">{bounds}</td><td class=\"mark\">{mark}</td></tr>\n",
        expression = escape(&check.value),
        about = escape(about),
        value = escape(&value),
        bounds = escape(&bounds),
    )
}
