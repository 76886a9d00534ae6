//! Runs work in separate threads, until it is done or interrupted by Ctrl-C.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use eyas_lab::live::LiveError;
use eyas_lab::runner::{RunError, RunEvent};

use super::write_failure;
use crate::command;
use crate::failure::{Failure, FailureKind};
use crate::flags::ColorChoice;
use crate::output::{self, BodyProgress};
use crate::terminal::{OutputStyle, Paint, PaintedLine};

/// How long a live run may take to remove its hosts and links once it is interrupted.
const TEARDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// How runs are watched.
pub(super) struct RunWatcher {
    /// Where finished runs are stored.
    pub(super) out: PathBuf,
    /// Whether progress is shown.
    pub(super) watched: bool,
    pub(super) color: ColorChoice,
    /// Whether there are hosts and links to be removed.
    pub(super) is_live: bool,
}

impl RunWatcher {
    /// Executes work to its end, unless it is interrupted. The work is passed a stop flag and a
    /// receiver of progress.
    pub(super) async fn finish_or_stop<T: Send + 'static>(
        self,
        work: impl FnOnce(&AtomicBool, &mut dyn FnMut(RunEvent<'_>)) -> Result<T, RunError>
        + Send
        + 'static,
    ) -> Result<T, Failure> {
        let mut interruption = command::listen()?;
        let stop = Arc::new(AtomicBool::new(false));
        let (stop_flag, watched, color) = (stop.clone(), self.watched, self.color);
        let mut work = tokio::task::spawn_blocking(move || {
            let mut bar: Option<BodyProgress> = None;
            work(&stop_flag, &mut |event| match (event, &bar) {
                (RunEvent::Progress(now), None) => {
                    bar = Some(BodyProgress::of_runs(now.total, now.done, watched, color));
                }
                (RunEvent::Progress(_), Some(bar)) => bar.add(1),
                (RunEvent::Skipped { point, missing }, bar) => {
                    let line = PaintedLine::new()
                        .with_span(Paint::Plain, format!("SKIPPED {point}: {missing}"));
                    let print = || output::print_to_stderr(&[line], OutputStyle::of_stderr(color));
                    match bar {
                        Some(bar) => bar.suspend(print),
                        None => print(),
                    }
                }
            })
        });
        tokio::select! {
            finished = &mut work => match finished {
                Ok(finished) => finished.map_err(|cause| run_failure(&cause)),
                Err(cause) => Err(Failure::new(FailureKind::Interrupted, cause.to_string())),
            },
            kind = interruption.next() => {
                stop.store(true, Ordering::Relaxed);
                if self.is_live {
                    // Let it remove what it has set up.
                    let _ = tokio::time::timeout(TEARDOWN_TIMEOUT, work).await;
                }
                Err(self.interrupted(kind))
            }
        }
    }

    fn interrupted(&self, kind: FailureKind) -> Failure {
        let message = format!(
            "interrupted; finished runs are kept in {}; the same command runs the rest",
            self.out.display(),
        );
        if self.watched {
            let line = PaintedLine::new().with_span(Paint::Plain, &message);
            output::print_to_stderr(&[line], OutputStyle::of_stderr(self.color));
        }
        Failure::new(kind, message)
    }
}

fn run_failure(cause: &RunError) -> Failure {
    let kind = match cause {
        RunError::Results(cause) => return write_failure(cause),
        RunError::Plan(_) => return Failure::new(FailureKind::Usage, cause.to_string()),
        RunError::LiveShard => {
            return Failure::new(FailureKind::Usage, cause.to_string())
                .hint("run all of it on each machine to be measured");
        }
        RunError::Live { cause: LiveError::Testbed(_), .. } => FailureKind::Emulator,
        RunError::Live { .. } => FailureKind::Connect,
        _ => return Failure::new(FailureKind::Interrupted, cause.to_string()),
    };
    Failure::new(kind, cause.to_string())
        .hint("finished runs are kept: the same command continues with the failed run")
}
