//! The text about a failed run: what happened, what to do, and additional output.

use std::io::IsTerminal;

use crate::failure::{Failure, FailureKind};
use crate::flags::CommonFlags;
use crate::terminal::{OutputStyle, Paint, PaintedLine, wrapped};

/// The prefix of messages.
const NAME: &str = "eyas: ";

/// Formats the message, wrapped for a terminal; otherwise with one line per sentence.
fn message_lines(failure: &Failure, style: OutputStyle, is_terminal: bool) -> Vec<PaintedLine> {
    let mut lines = sentence(&failure.message, style, is_terminal);
    if let Some(first) = lines.first_mut() {
        let text = first.to_text(false);
        *first = PaintedLine::new()
            .with_span(Paint::Bad, NAME)
            .with_span(Paint::Plain, text.trim_start());
    }
    if let Some(hint) = &failure.hint {
        lines.extend(sentence(hint, style, is_terminal));
    }
    if !failure.below.is_empty() {
        lines.push(PaintedLine::new());
        lines.extend(failure.below.iter().cloned());
    }
    lines
}

/// Formats a sentence, indented like the prefix. Text with its own lines, such as an excerpt of a
/// file with a mark below it, keeps them.
fn sentence(text: &str, style: OutputStyle, is_terminal: bool) -> Vec<PaintedLine> {
    let text = text.trim_end();
    if is_terminal && !text.contains('\n') {
        return wrapped(Paint::Plain, text, NAME.len(), style);
    }
    vec![
        PaintedLine::new()
            .with_span(Paint::Plain, " ".repeat(NAME.len()))
            .with_span(Paint::Plain, text),
    ]
}

/// Reports a failure: as JSON on standard output, or as text on standard error.
pub(crate) fn report(failure: &Failure, common: &CommonFlags, silent: bool) {
    if failure.kind == FailureKind::BrokenPipe {
        return;
    }
    if common.json {
        let _ = super::object(&failure.to_json());
        return;
    }
    // A user who ended the run knows it, so this is printed only if there is more to report.
    if silent || (failure.kind.is_interruption() && failure.hint.is_none()) {
        return;
    }
    let style = OutputStyle::of_stderr(common.color);
    super::print_to_stderr(&message_lines(failure, style, std::io::stderr().is_terminal()), style);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(message: &str, is_terminal: bool) -> Vec<String> {
        let style = OutputStyle { colour: false, unicode: true, width: 60 };
        let failure = Failure::new(FailureKind::Connect, message).hint("check whether it runs");
        message_lines(&failure, style, is_terminal).iter().map(|line| line.to_text(false)).collect()
    }

    const LONG: &str =
        "cannot connect to a.test:443: quic 192.0.2.1:443, tcp 192.0.2.1:443 tls: refused";

    #[test]
    fn a_terminal_gets_lines_that_fit() {
        let wanted = [
            "eyas: cannot connect to a.test:443: quic 192.0.2.1:443, tcp",
            "      192.0.2.1:443 tls: refused",
            "      check whether it runs",
        ];
        assert_eq!(reported(LONG, true), wanted);
    }

    #[test]
    fn a_file_gets_one_line_for_a_sentence() {
        assert_eq!(
            reported(LONG, false),
            [&format!("eyas: {LONG}"), "      check whether it runs"]
        );
    }

    #[test]
    fn line_breaks_are_kept() {
        let text = "my.toml: wrong\n  |\n1 | x =\n  |     ^\n";
        let wanted =
            ["eyas: my.toml: wrong\n  |\n1 | x =\n  |     ^", "      check whether it runs"];
        assert_eq!(reported(text, true), wanted);
    }
}
