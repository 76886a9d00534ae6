//! Output: pages and objects to standard output, bodies to their destinations.

mod background;
mod body;
mod destination;
mod message;
mod part;
mod progress;
mod replacement;
mod unfinished;

#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::path::Path;

use serde_json::Value;

use crate::failure::Failure;
use crate::flags::ColorChoice;
use crate::terminal::{OutputStyle, Paint, PaintedLine, shown_json};

pub(crate) use body::{BodySink, unbuffered_stdout};
pub(crate) use destination::{AtomicFile, ExistingPart};
pub(crate) use message::report;
pub(crate) use part::RepresentationId;
pub(crate) use progress::BodyProgress;
pub(crate) use unfinished::UnfinishedBytes;

/// Writes lines to standard output.
pub(crate) fn page(lines: &[PaintedLine], style: OutputStyle) -> Result<(), Failure> {
    let lines: String = lines.iter().map(|line| line.to_text(style.colour) + "\n").collect();
    text(&lines)
}

/// Writes text to standard output, as it is.
pub(crate) fn text(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|cause| Failure::write("standard output", &cause))
}

/// Writes text to a file, once it is complete.
pub(crate) fn file(path: &Path, text: &str) -> Result<(), Failure> {
    let mut file = AtomicFile::create(path)?;
    let written = file.write_all(text.as_bytes());
    written.map_err(|cause| Failure::write(&path.display().to_string(), &cause))?;
    file.finish()
}

/// Writes text to a file that only this user may read, once it is complete; a file that exists keeps
/// its permissions.
pub(crate) fn private_file(path: &Path, text: &str) -> Result<(), Failure> {
    let is_new = !path.exists();
    let mut file = AtomicFile::create(path)?;
    let written = file.write_all(text.as_bytes());
    #[cfg(unix)]
    let written = written.and_then(|()| if is_new { file.make_private() } else { Ok(()) });
    let _ = is_new;
    written.map_err(|cause| Failure::write(&path.display().to_string(), &cause))?;
    file.finish()
}

/// Writes one JSON object and a line end to standard output.
pub(crate) fn object(value: &Value) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", shown_json(value, true))
        .and_then(|()| out.flush())
        .map_err(|cause| Failure::write("standard output", &cause))
}

/// Writes lines to standard error; a failure of that cannot be reported.
pub(crate) fn print_to_stderr(lines: &[PaintedLine], style: OutputStyle) {
    let text: String = lines.iter().map(|line| line.to_text(style.colour) + "\n").collect();
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Prints a problem that the run goes on with, or what may surprise its user, to standard error.
pub(crate) fn notice(color: ColorChoice, text: impl AsRef<str>) {
    let line =
        PaintedLine::new().with_span(Paint::Warn, "eyas: ").with_span(Paint::Plain, text.as_ref());
    print_to_stderr(&[line], OutputStyle::of_stderr(color));
}
