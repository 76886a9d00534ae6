//! The table of claims.

use super::markup::{escape, with_interval};
use crate::claim::{CheckVerdict, Verdict};
use crate::results::Document;

pub(super) fn section(document: &Document) -> String {
    if document.claims.is_empty() {
        return String::new();
    }
    let count = |wanted| document.claims.iter().filter(|claim| claim.accepted == wanted).count();
    let (accepted, refused, open) = (count(Some(true)), count(Some(false)), count(None));
    let mut summary = format!("{accepted} of {} came out", document.claims.len());
    if refused > 0 {
        summary.push_str(&format!(", {refused} did not"));
    }
    if open > 0 {
        summary.push_str(&format!(", {open} were not measured"));
    }
    let items: String = document.claims.iter().map(claim).collect();
    format!(
        "<section>\n<h2>Claims</h2>\n<p>{summary}.</p>\n<ol class=\"claims\">\n{items}</ol>\n</section>\n"
    )
}

fn claim(verdict: &Verdict) -> String {
    let (class, word) = match verdict.accepted {
        Some(true) => ("good", "✓ accepted"),
        Some(false) => ("bad", "✗ refused"),
        None => ("open", "not measured"),
    };
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
         <th>accepted</th><th></th></tr></thead>\n<tbody>\n{rows}</tbody></table>\n{note}</li>\n",
        id = escape(&verdict.id),
        text = escape(&verdict.text),
        published = escape(&verdict.published),
    )
}

fn check(check: &CheckVerdict) -> String {
    let unit = match check.unit.is_empty() {
        true => String::new(),
        false => format!(" {}", check.unit),
    };
    let value = match check.measured {
        Some(mean) => format!("{}{unit}", with_interval(mean, check.ci95)),
        None => "–".to_owned(),
    };
    let about = if check.about.is_empty() { &check.value } else { &check.about };
    let bounds = match check.accept.is_empty() {
        true => "shown only".to_owned(),
        false => check.accept.in_words(),
    };
    let mark = match check.accepted {
        Some(true) => "<b class=\"good\">✓</b>",
        Some(false) => "<b class=\"bad\">✗</b>",
        None => "",
    };
    format!(
        "<tr><th scope=\"row\" title=\"{expression}\">{about}</th>\
         <td data-label=\"value\" class=\"n\">{value}</td>\
         <td data-label=\"accepted\" class=\"n\">{bounds}</td><td class=\"mark\">{mark}</td></tr>\n",
        expression = escape(&check.value),
        about = escape(about),
        value = escape(&value),
        bounds = escape(&bounds),
    )
}
