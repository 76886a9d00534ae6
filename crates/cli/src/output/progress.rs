//! Bars and lines on a terminal's standard error: a large body with its rate, the runs of an experiment.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Bodies announced shorter than this get no bar.
const SMALL: u64 = 1 << 20;
/// How often it is drawn, in times a second.
const DRAWN_PER_SECOND: u8 = 8;
/// How often the rate is drawn while nothing arrives.
const TICK: Duration = Duration::from_millis(500);

const KNOWN: &str = "{bar:32.cyan/dim} {percent:>3}%  {bytes} of {total_bytes}  \
                     {binary_bytes_per_sec}  {eta} left";
const RUNS: &str = "{bar:32.cyan/dim} {percent:>3}%  {pos} of {len} runs  {elapsed}  {eta} left";
const WORDS: &str = "{spinner} {wide_msg}";
const UNKNOWN: &str = "{spinner} {bytes}  {binary_bytes_per_sec}  {elapsed}";

/// How far a body has come.
pub(crate) struct Progress(Option<ProgressBar>);

impl Progress {
    /// A bar for a body of this announced length, if it is large, `wanted`, and somebody watches.
    pub(crate) fn new(length: Option<u64>, wanted: bool) -> Self {
        let large = length.is_none_or(|length| length >= SMALL);
        if !wanted || !large || !std::io::stderr().is_terminal() {
            return Self(None);
        }
        let bar = match length {
            Some(length) => ProgressBar::new(length),
            None => ProgressBar::new_spinner(),
        };
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(DRAWN_PER_SECOND));
        Self::drawn(bar, if length.is_some() { KNOWN } else { UNKNOWN })
    }

    /// A bar for so many runs, of which some are done already, if it is `wanted` and somebody
    /// watches.
    pub(crate) fn of_runs(total: usize, done: usize, wanted: bool) -> Self {
        if !wanted || total == done || !std::io::stderr().is_terminal() {
            return Self(None);
        }
        let bar = ProgressBar::new(total as u64);
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(DRAWN_PER_SECOND));
        bar.set_position(done as u64);
        // What was found done took no time: the estimate must not believe it did.
        bar.reset_eta();
        Self::drawn(bar, RUNS)
    }

    /// A line that [`say`](Self::say) fills, if it is `wanted` and somebody watches.
    pub(crate) fn of_words(wanted: bool) -> Self {
        if !wanted || !std::io::stderr().is_terminal() {
            return Self(None);
        }
        let bar = ProgressBar::new_spinner();
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(DRAWN_PER_SECOND));
        Self::drawn(bar, WORDS)
    }

    /// What there is to say now.
    pub(crate) fn say(&self, words: String) {
        if let Some(bar) = &self.0 {
            bar.set_message(words);
        }
    }

    fn drawn(bar: ProgressBar, template: &str) -> Self {
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━━─"));
        }
        bar.enable_steady_tick(TICK);
        Self(Some(bar))
    }

    /// More bytes have come.
    pub(crate) fn add(&self, count: usize) {
        if let Some(bar) = &self.0 {
            bar.inc(count as u64);
        }
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
