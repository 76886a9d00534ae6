//! Bars and lines on a terminal's standard error: a large body with its rate, the runs of an experiment.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::flags::ColorChoice;
use crate::terminal::{self, OutputStyle, shown};

/// Bodies with a smaller announced length get no bar.
const SMALL: u64 = 1 << 20;
/// The number of times that it is drawn per second.
const DRAWS_PER_SECOND: u8 = 8;
/// How often the rate is drawn while nothing arrives.
const TICK: Duration = Duration::from_millis(500);

/// The variants of a line: the columns that each one needs, the fullest first.
type LineForms = [(usize, &'static str); 3];

const KNOWN: LineForms = [
    (68, "{wide_bar} {percent:>3}%  {bytes} of {total_bytes}  {binary_bytes_per_sec}  {eta} left"),
    (40, "{wide_bar} {percent:>3}%  {binary_bytes_per_sec}  {eta} left"),
    (0, "{percent:>3}%  {eta} left"),
];
const RUNS: LineForms = [
    (56, "{wide_bar} {percent:>3}%  {pos} of {len} runs  {elapsed}  {eta} left"),
    (28, "{wide_bar} {percent:>3}%  {eta} left"),
    (0, "{percent:>3}%  {eta} left"),
];
const UNKNOWN: LineForms = [
    (40, "{spinner} {bytes}  {binary_bytes_per_sec}  {elapsed}"),
    (24, "{spinner} {bytes}  {elapsed}"),
    (0, "{spinner} {bytes}"),
];
const WORDS: LineForms = [(0, "{spinner} {wide_msg}"); 3];

/// The progress of a body.
pub(crate) struct BodyProgress(Option<ProgressBar>);

impl BodyProgress {
    /// Returns a bar for a body with this announced length, if it is large, `wanted`, and shown on
    /// a terminal.
    pub(crate) fn new(length: Option<u64>, wanted: bool, color: ColorChoice) -> Self {
        let large = length.is_none_or(|length| length >= SMALL);
        if !wanted || !large || !std::io::stderr().is_terminal() {
            return Self(None);
        }
        let bar = match length {
            Some(length) => ProgressBar::new(length),
            None => ProgressBar::new_spinner(),
        };
        Self::on_stderr(bar, if length.is_some() { KNOWN } else { UNKNOWN }, color)
    }

    /// Returns a bar for this number of runs, some of them `done` already, if it is `wanted` and
    /// standard error is a terminal.
    pub(crate) fn of_runs(total: usize, done: usize, wanted: bool, color: ColorChoice) -> Self {
        if !wanted || total == done || !std::io::stderr().is_terminal() {
            return Self(None);
        }
        let bar = ProgressBar::new(total as u64);
        bar.set_position(done as u64);
        // Runs that were already done took no time, and must not affect the estimate.
        bar.reset_eta();
        Self::on_stderr(bar, RUNS, color)
    }

    /// Returns a line that is filled by [`set_text`](Self::set_text), if it is `wanted` and shown on a
    /// terminal.
    pub(crate) fn text_line(wanted: bool, color: ColorChoice) -> Self {
        if !wanted || !std::io::stderr().is_terminal() {
            return Self(None);
        }
        Self::on_stderr(ProgressBar::new_spinner(), WORDS, color)
    }

    /// Sets the text of the line.
    pub(crate) fn set_text(&self, text: String) {
        if let Some(bar) = &self.0 {
            bar.set_message(shown(&text).into_owned());
        }
    }

    fn on_stderr(bar: ProgressBar, forms: LineForms, color: ColorChoice) -> Self {
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND));
        Self::fitted(bar, forms, OutputStyle::of_stderr(color), terminal::current_width())
    }

    /// Returns a bar with as much as fits, in characters that the terminal supports.
    fn fitted(bar: ProgressBar, forms: LineForms, style: OutputStyle, width: usize) -> Self {
        let fitting = forms.iter().find(|(columns, _)| *columns <= width);
        let mut template = fitting.map_or(String::new(), |(_, template)| (*template).to_owned());
        if style.colour {
            template = template.replace("{wide_bar}", "{wide_bar:.cyan/dim}");
        }
        if let Ok(bar_style) = ProgressStyle::with_template(&template) {
            bar.set_style(match style.unicode {
                true => bar_style.progress_chars("━━─"),
                false => bar_style.progress_chars("=>-").tick_chars("|/-\\ "),
            });
        }
        bar.enable_steady_tick(TICK);
        Self(Some(bar))
    }

    /// Adds bytes that have arrived.
    pub(crate) fn add(&self, count: usize) {
        if let Some(bar) = &self.0 {
            bar.inc(count as u64);
        }
    }

    /// Prints something else while the bar is hidden.
    pub(crate) fn suspend(&self, print: impl FnOnce()) {
        match &self.0 {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Removes the bar.
    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

impl Drop for BodyProgress {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use indicatif::TermLike;

    use super::*;

    /// A terminal of this width, and the lines that were drawn on it.
    #[derive(Clone, Debug)]
    struct FakeTerminal {
        width: u16,
        lines: Arc<Mutex<Vec<String>>>,
    }

    impl TermLike for FakeTerminal {
        fn width(&self) -> u16 {
            self.width
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            let mut lines = self.lines.lock().expect("not poisoned");
            if let Some(last) = lines.last_mut() {
                last.push_str(text);
            }
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            self.flush()
        }
        fn flush(&self) -> io::Result<()> {
            self.lines.lock().expect("not poisoned").push(String::new());
            Ok(())
        }
    }

    /// A kind of line, its forms, and a bar for it.
    type Case = (&'static str, LineForms, fn() -> ProgressBar);

    /// What is drawn at this width while a bar passes through its middle.
    fn fitted(bar: ProgressBar, forms: LineForms, width: u16, unicode: bool) -> Vec<String> {
        let lines = Arc::new(Mutex::new(vec![String::new()]));
        let terminal_lines = FakeTerminal { width, lines: lines.clone() };
        bar.set_draw_target(ProgressDrawTarget::term_like(Box::new(terminal_lines)));
        let style = OutputStyle { colour: false, unicode, width: 80 };
        let progress = BodyProgress::fitted(bar, forms, style, usize::from(width));
        progress.set_text("words ".repeat(40));
        for _ in 0..4 {
            progress.add(999 << 18);
        }
        let fitted = lines.lock().expect("not poisoned").clone();
        fitted.into_iter().filter(|line| !line.trim().is_empty()).collect()
    }

    #[test]
    fn lines_fit_every_terminal_and_character_set() {
        let all: [Case; 4] = [
            ("body", KNOWN, || ProgressBar::new(1_023 << 20)),
            ("runs", RUNS, || ProgressBar::new(1_047_527_423)),
            ("body of unknown length", UNKNOWN, ProgressBar::new_spinner),
            ("words", WORDS, ProgressBar::new_spinner),
        ];
        for (name, forms, bar) in all {
            for width in [20, 39, 40, 60, 67, 68, 80, 200] {
                for unicode in [false, true] {
                    let lines = fitted(bar(), forms, width, unicode);
                    assert!(!lines.is_empty(), "{name} at {width}");
                    for line in lines {
                        let columns = terminal::columns(&line);
                        assert!(columns <= usize::from(width), "{name} at {width}: {line:?}");
                        assert!(unicode || line.is_ascii(), "{name} at {width}: {line:?}");
                    }
                }
            }
        }
    }
}
