//! Trace files: one JSON object per line, the header first.

use std::fs;
use std::io::{self, BufRead, Write};
use std::path::Path;

use eyas::race::trace::{HeaderVersion, MAX_STEPS, Trace, TraceHeader, TraceStep};
use serde_json::error::Category;

use crate::failure::{Failure, FailureKind};
use crate::private_file;

/// The longest line of a trace that is read; the largest DNS response is far below it.
const MAX_LINE: u64 = 1 << 20;

/// Writes a trace, readable only by its owner because it contains host names.
pub(crate) fn write(path: &Path, trace: &Trace) -> Result<(), Failure> {
    let source = path.display().to_string();
    write_lines(path, trace).map_err(|cause| Failure::write(&source, &cause))
}

fn write_lines(path: &Path, trace: &Trace) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    private_file::set_private(&mut options);
    let mut out = io::BufWriter::new(options.open(path)?);
    serde_json::to_writer(&mut out, &trace.header)?;
    for step in &trace.steps {
        out.write_all(b"\n")?;
        serde_json::to_writer(&mut out, step)?;
    }
    out.write_all(b"\n")?;
    out.flush()
}

/// Reads a trace; `-` is standard input.
pub(crate) fn read(path: &Path) -> Result<Trace, Failure> {
    let source = path.display().to_string();
    if path == Path::new("-") {
        return parse(&mut io::stdin().lock(), "standard input");
    }
    let file = fs::File::open(path).map_err(|cause| Failure::read(&source, &cause))?;
    parse(&mut io::BufReader::new(file), &source)
}

pub(super) fn parse(input: &mut dyn BufRead, source: &str) -> Result<Trace, Failure> {
    let header = line(input, source)?.ok_or_else(|| not_a_trace(source, 1, &"it is empty"))?;
    let version: HeaderVersion = object(&header, source, 1)?;
    version.check().map_err(|unknown| not_a_trace(source, 1, &unknown))?;
    let header: TraceHeader = object(&header, source, 1)?;
    let mut steps = Vec::new();
    while let Some(text) = line(input, source)? {
        if steps.len() == MAX_STEPS {
            return Err(not_a_trace(source, steps.len() + 2, &"it has too many steps"));
        }
        let step: TraceStep = object(&text, source, steps.len() + 2)?;
        steps.push(step);
    }
    Ok(Trace { header, steps })
}

/// Returns the next line that is not empty.
fn line(input: &mut dyn BufRead, source: &str) -> Result<Option<String>, Failure> {
    loop {
        let mut text = String::new();
        let read = io::Read::take(&mut *input, MAX_LINE).read_line(&mut text);
        match read.map_err(|cause| Failure::read(source, &cause))? {
            0 => return Ok(None),
            _ if text.trim().is_empty() => {}
            _ => return Ok(Some(text)),
        }
    }
}

fn object<T: serde::de::DeserializeOwned>(
    text: &str,
    source: &str,
    number: usize,
) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(|cause| match cause.classify() {
        Category::Data => {
            let what = match number {
                1 => "it has no head that this eyas knows",
                _ => "this eyas knows no such step; another version may have recorded it",
            };
            not_a_trace(source, number, &what)
        }
        Category::Eof => not_a_trace(source, number, &"it ends in the middle of an object"),
        _ => not_a_trace(source, number, &format!("no JSON at column {}", cause.column())),
    })
}

fn not_a_trace(source: &str, number: usize, cause: &dyn std::fmt::Display) -> Failure {
    Failure::new(FailureKind::Replay, format!("{source} is not a trace: line {number}: {cause}"))
        .hint("record one with eyas race --trace FILE TARGET")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_trace_is_told_without_names_of_types() {
        for (text, expected) in [
            ("", "line 1: it is empty"),
            ("hello\n", "line 1: no JSON at column 1"),
            ("[]\n", "line 1: it has no head"),
            ("{\"version\":2}\n", "line 1: it has no head"),
            ("{\"version\":2,\"started_at\":\n", "line 1: it ends in the middle"),
            ("{\"version\":1}\n", "line 1: its format is version 1"),
        ] {
            let failure = parse(&mut text.as_bytes(), "x.jsonl").expect_err(text);
            let message = failure.message;
            assert!(
                message.starts_with(&format!("x.jsonl is not a trace: {expected}")),
                "{message}"
            );
            assert!(!message.contains('`') && !message.contains("struct"), "{message}");
        }
    }
}
