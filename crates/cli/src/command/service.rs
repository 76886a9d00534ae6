//! What servers that run for a long time have in common: they load their files again while connections
//! go on, tell a service manager what they do, and may get their sockets from it.
//!
//! | file | purpose |
//! | --- | --- |
//! | `mod` | waiting for the next event |
//! | `signals` | signals to stop and to load the files again |
//! | `watch` | notices changed files |
//! | `notify` | messages to the service manager |
//! | `activation` | sockets from the service manager |

mod activation;
#[cfg(unix)]
mod notify;
#[cfg(windows)]
#[path = "service/notify/absent.rs"]
mod notify;
mod signals;
mod watch;

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};

use self::notify::ServiceNotifier;
use self::signals::{ServiceSignal, ServiceSignals};
use self::watch::FileWatch;
use crate::failure::{Failure, FailureKind};
use crate::flags::ColorChoice;
use crate::output;
use crate::terminal::{OutputStyle, Paint, PaintedLine};

pub(super) use self::activation::{PassedSockets, listens_twice, serve_nothing, sockets};
pub(super) use self::watch::FileStamp;

/// How often files are looked at. A change is loaded once they have been the same twice.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What happens to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServiceEvent {
    /// It is to stop.
    Stop,
    /// It is to load its files again: by a signal, so also to open its log again.
    Reload,
    /// Its files have changed.
    Changed,
}

/// A server as its operator and a service manager see it.
pub(super) struct RunningService {
    signals: ServiceSignals,
    watch: FileWatch,
    look: Interval,
    notifier: Option<ServiceNotifier>,
    /// Set if the service manager restarts a server that is silent.
    watchdog: Option<Interval>,
    color: ColorChoice,
}

impl RunningService {
    /// Receives signals from now on.
    pub(super) fn begin(color: ColorChoice) -> Result<Self, Failure> {
        let signals = ServiceSignals::listen().map_err(|cause| {
            Failure::new(FailureKind::Interrupted, format!("cannot handle signals: {cause}"))
        })?;
        let notifier = ServiceNotifier::from_env();
        let watchdog = notifier.as_ref().and_then(ServiceNotifier::watchdog_period).map(regular);
        let watch = FileWatch::default();
        Ok(Self { signals, watch, look: regular(LOOK_EVERY), notifier, watchdog, color })
    }

    /// Notices when these files change from now on: call it before they are read.
    pub(super) fn watch(&mut self, files: impl IntoIterator<Item = PathBuf>) {
        self.watch = FileWatch::new(files);
    }

    /// Tells the service manager that the server is ready, at the start and after each reload.
    pub(super) fn ready(&self, status: &str) {
        self.notify(&format!("READY=1\nSTATUS={status}\n"));
    }

    /// Waits for the next event. Cancel-safe.
    pub(super) async fn next(&mut self) -> ServiceEvent {
        loop {
            let event = tokio::select! {
                signal = self.signals.next() => match signal {
                    ServiceSignal::Stop => ServiceEvent::Stop,
                    ServiceSignal::Reload => ServiceEvent::Reload,
                },
                _ = self.look.tick(), if !self.watch.is_empty() => match self.watch.has_changed() {
                    true => ServiceEvent::Changed,
                    false => continue,
                },
                () = due(&mut self.watchdog) => {
                    self.notify("WATCHDOG=1\n");
                    continue;
                }
            };
            match event {
                ServiceEvent::Stop => {
                    self.notify("STOPPING=1\nSTATUS=stopping once all connections have ended\n")
                }
                ServiceEvent::Reload | ServiceEvent::Changed => {
                    self.watch.note_loaded();
                    self.notify(&notify::reloading());
                }
            }
            return event;
        }
    }

    /// Waits for a further signal to stop, while the server ends what is in progress.
    pub(super) async fn stopped_again(&mut self) {
        loop {
            tokio::select! {
                signal = self.signals.next() => if signal == ServiceSignal::Stop {
                    return;
                },
                () = due(&mut self.watchdog) => self.notify("WATCHDOG=1\n"),
            }
        }
    }

    /// Reports what was loaded, or why the former stays in use.
    pub(super) fn report(&self, loaded: Result<String, Failure>) {
        let line = match loaded {
            Ok(what) => PaintedLine::new().with_span(Paint::Dim, what),
            Err(failure) => PaintedLine::new().with_span(Paint::Warn, "eyas: ").with_span(
                Paint::Plain,
                format!("{}; the former one stays in use", failure.message),
            ),
        };
        output::print_to_stderr(&[line], OutputStyle::of_stderr(self.color));
    }

    fn notify(&self, state: &str) {
        if let Some(notifier) = &self.notifier {
            notifier.send(state);
        }
    }
}

/// Waits until the service manager is to hear something.
async fn due(watchdog: &mut Option<Interval>) {
    match watchdog {
        Some(interval) => {
            interval.tick().await;
        }
        None => std::future::pending().await,
    }
}

fn regular(period: Duration) -> Interval {
    let mut interval = interval(period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}
