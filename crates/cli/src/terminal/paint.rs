//! Lines of spans, each with a meaning; colours are added only when a line is converted to a string.

use std::borrow::Cow;
use std::io::IsTerminal;

use anstyle::{AnsiColor, Style};

use super::shown;
use crate::flags::ColorChoice;

/// The meaning of a span, which determines its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    /// Running text.
    Plain,
    /// Less important text.
    Dim,
    /// A heading.
    Head,
    /// Success.
    Good,
    /// Failure.
    Bad,
    /// A warning.
    Warn,
    /// QUIC.
    Quic,
    /// TCP and other stream transports.
    Stream,
    /// A command to type.
    Command,
}

impl Paint {
    const fn style(self) -> Style {
        let style = Style::new();
        match self {
            Self::Plain => style,
            Self::Dim => style.dimmed(),
            Self::Head => style.bold(),
            Self::Good => style.bold().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Green))),
            Self::Bad => style.fg_color(Some(anstyle::Color::Ansi(AnsiColor::Red))),
            Self::Warn => style.fg_color(Some(anstyle::Color::Ansi(AnsiColor::Yellow))),
            Self::Quic => style.fg_color(Some(anstyle::Color::Ansi(AnsiColor::Cyan))),
            Self::Stream => style.fg_color(Some(anstyle::Color::Ansi(AnsiColor::Blue))),
            Self::Command => style.bold().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Cyan))),
        }
    }
}

/// How output is styled: colours, characters and width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutputStyle {
    /// Whether escape sequences are written.
    pub(crate) colour: bool,
    /// Whether non-ASCII characters are written.
    pub(crate) unicode: bool,
    /// The available columns.
    pub(crate) width: usize,
}

/// The width of output to a pipe or a file.
const PIPED_WIDTH: usize = 80;
/// The minimum and maximum of the width used for a terminal.
const WIDTHS: (usize, usize) = (60, 110);

impl OutputStyle {
    /// Returns the style of standard output.
    pub(crate) fn of_stdout(choice: ColorChoice) -> Self {
        Self::new(choice, std::io::stdout().is_terminal(), |name| std::env::var(name).ok())
    }

    /// Returns the style of standard error.
    pub(crate) fn of_stderr(choice: ColorChoice) -> Self {
        Self::new(choice, std::io::stderr().is_terminal(), |name| std::env::var(name).ok())
    }

    /// Derives the style: a non-empty NO_COLOR disables colours (no-color.org), and a locale with a
    /// character set other than UTF-8 restricts output to ASCII.
    pub(super) fn new(
        choice: ColorChoice,
        terminal: bool,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let dumb = set("TERM").as_deref() == Some("dumb");
        let colour = match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => terminal && !dumb && set("NO_COLOR").is_none(),
        };
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
        let unicode = locale.is_none_or(|locale| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        });
        let width = match terminal {
            true => terminal_width(set("COLUMNS")).clamp(WIDTHS.0, WIDTHS.1),
            false => PIPED_WIDTH,
        };
        Self { colour, unicode, width }
    }
}

/// Returns the actual columns of the terminal, for lines that are redrawn.
pub(crate) fn current_width() -> usize {
    terminal_width(std::env::var("COLUMNS").ok())
}

fn terminal_width(columns: Option<String>) -> usize {
    let from_environment = columns.and_then(|columns| columns.parse().ok());
    let from_terminal = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    from_environment.or_else(from_terminal).filter(|width| *width > 0).unwrap_or(PIPED_WIDTH)
}

/// Returns the number of columns of a text.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().count()
}

/// One line, as spans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PaintedLine(Vec<(Paint, String)>);

impl PaintedLine {
    /// Creates an empty line.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Returns the line with this text appended.
    #[must_use]
    pub(crate) fn with_span(mut self, paint: Paint, text: impl Into<String>) -> Self {
        self.push(paint, text);
        self
    }

    /// Creates a line of text that already has its colours.
    pub(super) fn coloured(text: String) -> Self {
        Self(vec![(Paint::Plain, text)])
    }

    /// Appends text, with escapes for characters that a terminal would obey.
    pub(crate) fn push(&mut self, paint: Paint, text: impl Into<String>) {
        let text = text.into();
        let text = match shown(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(escaped) => escaped,
        };
        match self.0.last_mut() {
            Some((last, text_so_far)) if *last == paint => text_so_far.push_str(&text),
            _ => self.0.push((paint, text)),
        }
    }

    /// Adds spaces up to this column.
    pub(crate) fn pad_to(&mut self, column: usize) {
        let width = self.width();
        if width < column {
            self.push(Paint::Plain, " ".repeat(column - width));
        }
    }

    /// Returns the number of columns used.
    pub(crate) fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| columns(text)).sum()
    }

    /// Converts the line to a string, without trailing spaces.
    pub(crate) fn to_text(&self, colour: bool) -> String {
        let mut text = String::new();
        for (paint, span) in &self.0 {
            let style = paint.style();
            match colour && *paint != Paint::Plain {
                true => text.push_str(&format!("{style}{span}{style:#}")),
                false => text.push_str(span),
            }
        }
        text.truncate(text.trim_end_matches(' ').len());
        text
    }
}

/// Wraps text at spaces into lines that fit behind this column, with characters outside the locale
/// replaced.
pub(crate) fn wrapped(
    paint: Paint,
    text: &str,
    column: usize,
    style: OutputStyle,
) -> Vec<PaintedLine> {
    let room = style.width.saturating_sub(column).max(20);
    let mut lines = Vec::new();
    let mut current = String::new();
    for word in style.transliterate(text).split_whitespace() {
        if !current.is_empty() && columns(&current) + 1 + columns(word) > room {
            lines.push(std::mem::take(&mut current));
        }
        if !current.is_empty() {
            current.push(' ');
        }
        current.push_str(word);
    }
    lines.push(current);
    let indent = " ".repeat(column);
    lines
        .iter()
        .map(|text| PaintedLine::new().with_span(Paint::Plain, &indent).with_span(paint, text))
        .collect()
}
