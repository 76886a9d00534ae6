//! What `-w` prints after a transfer.

use super::facts::{TransferFacts, VariableValue};
use crate::terminal::shown;

/// What a format results in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WrittenOut {
    /// For standard output.
    pub(super) out: String,
    /// For standard error.
    pub(super) err: String,
    /// The names of variables that do not exist.
    pub(super) unknown: Vec<String>,
}

/// Which of the two streams are terminals, where what a peer has sent is escaped.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TerminalStreams {
    pub(super) out: bool,
    pub(super) err: bool,
}

/// Fills a format with the facts.
pub(super) fn fill(format: &str, facts: &TransferFacts, terminals: TerminalStreams) -> WrittenOut {
    let mut written = WrittenOut::default();
    let value =
        |text: String, to_err: bool| match if to_err { terminals.err } else { terminals.out } {
            true => shown(&text).into_owned(),
            false => text,
        };
    let (mut to_err, mut rest) = (false, format);
    while let Some(first) = rest.chars().next() {
        let (piece, length) = match first {
            '\\' => escape(rest),
            '%' => match word(rest) {
                PercentWord::Literal(text, length) => (text.to_owned(), length),
                PercentWord::Field(name, length) => {
                    (value(facts.field(name).unwrap_or_default(), to_err), length)
                }
                PercentWord::Variable("stdout", length) => {
                    to_err = false;
                    (String::new(), length)
                }
                PercentWord::Variable("stderr", length) => {
                    to_err = true;
                    (String::new(), length)
                }
                // What follows is only for failures.
                PercentWord::Variable("onerror", _) if facts.failure.is_none() => break,
                PercentWord::Variable("onerror", length) => (String::new(), length),
                PercentWord::Variable("json", length) => {
                    (value(facts.to_json().to_string(), to_err), length)
                }
                PercentWord::Variable("header_json", length) => {
                    (value(facts.fields_to_json(), to_err), length)
                }
                PercentWord::Variable(name, length) => match facts.variable(name) {
                    Some(fact) => (value(fact.to_string(), to_err), length),
                    None => {
                        written.unknown.push(name.to_owned());
                        (String::new(), length)
                    }
                },
            },
            other => (other.to_string(), other.len_utf8()),
        };
        (if to_err { &mut written.err } else { &mut written.out }).push_str(&piece);
        rest = &rest[length..];
    }
    written
}

/// Returns what an escape stands for, and how long it is.
fn escape(rest: &str) -> (String, usize) {
    match rest[1..].chars().next() {
        Some('n') => ("\n".to_owned(), 2),
        Some('r') => ("\r".to_owned(), 2),
        Some('t') => ("\t".to_owned(), 2),
        Some(other) => (format!("\\{other}"), 1 + other.len_utf8()),
        None => ("\\".to_owned(), 1),
    }
}

/// What begins with a percent sign, and how long it is.
enum PercentWord<'a> {
    Literal(&'a str, usize),
    Variable(&'a str, usize),
    Field(&'a str, usize),
}

fn word(rest: &str) -> PercentWord<'_> {
    const FIELD: &str = "%header{";
    if rest.starts_with("%%") {
        return PercentWord::Literal("%", 2);
    }
    let within =
        |start: &str| Some((rest.strip_prefix(start)?.split_once('}')?.0, start.len() + 1));
    match (within("%{"), within(FIELD)) {
        (Some((name, around)), _) => PercentWord::Variable(name, name.len() + around),
        (None, Some((name, around))) => PercentWord::Field(name, name.len() + around),
        (None, None) => PercentWord::Literal("%", 1),
    }
}

impl std::fmt::Display for VariableValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text.as_deref().unwrap_or_default()),
            Self::Number(number) => write!(f, "{number}"),
            Self::Status(status) => write!(f, "{status:03}"),
            Self::Time(time) => write!(f, "{:.6}", time.as_secs_f64()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::facts::VARIABLES;
    use super::*;

    fn facts() -> TransferFacts {
        TransferFacts {
            url: "https://a.test/".to_owned(),
            received: 77,
            total: Duration::from_micros(1_234_567),
            ..TransferFacts::default()
        }
    }

    #[test]
    fn formats_are_filled() {
        for (format, expected) in [
            ("%{http_code}\\n", "000\n"),
            ("%{size_download}\\t%{time_total}", "77\t1.234567"),
            ("%{url_effective} 100%%", "https://a.test/ 100%"),
            ("%", "%"),
            ("%{open", "%{open"),
            ("%x \\x \\", "%x \\x \\"),
            ("é%{method}é", "éGETé"),
            ("[%header{x}]", "[]"),
            ("a%{onerror}b", "a"),
        ] {
            assert_eq!(
                fill(format, &facts(), TerminalStreams::default()).out,
                expected,
                "{format}"
            );
        }
        let mut failed = facts();
        failed.failure = Some(("refused".to_owned(), 7));
        let written = fill(
            "%{stderr}%{exitcode}%{stdout}%{onerror}%{errormsg}",
            &failed,
            TerminalStreams::default(),
        );
        assert_eq!((written.out.as_str(), written.err.as_str()), ("refused", "7"));
        let hostile = TransferFacts { url: "a\u{9b}2J\u{202e}".to_owned(), ..facts() };
        let terminals = TerminalStreams { out: true, err: false };
        let written = fill("%{url}%{stderr}%{url}", &hostile, terminals);
        assert!(!written.out.contains(['\u{9b}', '\u{202e}']), "{}", written.out);
        assert_eq!(written.err, hostile.url);
        let written = fill("a%{nonsense}b", &facts(), TerminalStreams::default());
        assert_eq!((written.out.as_str(), written.unknown), ("ab", vec!["nonsense".to_owned()]));
    }

    #[test]
    fn every_variable_has_a_value() {
        for name in VARIABLES {
            assert!(facts().variable(name).is_some(), "{name}");
        }
        let object: serde_json::Value =
            serde_json::from_str(&fill("%{json}", &facts(), TerminalStreams::default()).out)
                .expect("JSON");
        assert_eq!(object["size_download"], 77);
        assert_eq!(object.as_object().map(serde_json::Map::len), Some(VARIABLES.len()));
    }
}
