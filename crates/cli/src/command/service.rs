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
mod notify;
mod signals;
mod watch;

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};

use self::notify::Notifier;
use self::signals::{Signal, Signals};
use self::watch::Watch;
use crate::failure::{Failure, Kind};
use crate::flags::ColorChoice;
use crate::output;
use crate::terminal::{Line, OutputStyle, Paint};

pub(super) use self::activation::{PassedSockets, listens_twice, serve_nothing, sockets};
pub(super) use self::watch::Stamp;

/// How often files are looked at. A change is loaded once they have been the same twice.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What happens to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// It is to stop.
    Stop,
    /// It is to load its files again: by a signal, so also to open its log again.
    Reload,
    /// Its files have changed.
    Changed,
}

/// A server as its operator and a service manager see it.
pub(super) struct Service {
    signals: Signals,
    watch: Watch,
    look: Interval,
    notifier: Option<Notifier>,
    /// Set if the service manager restarts a server that is silent.
    watchdog: Option<Interval>,
    color: ColorChoice,
}

impl Service {
    /// Receives signals from now on.
    pub(super) fn begin(color: ColorChoice) -> Result<Self, Failure> {
        let signals = Signals::listen().map_err(|cause| {
            Failure::new(Kind::Interrupted, format!("cannot handle signals: {cause}"))
        })?;
        let notifier = Notifier::from_env();
        let watchdog = notifier.as_ref().and_then(Notifier::watchdog_period).map(regular);
        let watch = Watch::default();
        Ok(Self { signals, watch, look: regular(LOOK_EVERY), notifier, watchdog, color })
    }

    /// Notices when these files change from now on: call it before they are read.
    pub(super) fn watch(&mut self, files: impl IntoIterator<Item = PathBuf>) {
        self.watch = Watch::new(files);
    }

    /// Tells the service manager that the server is ready, at the start and after each reload.
    pub(super) fn ready(&self, status: &str) {
        self.notify(&format!("READY=1\nSTATUS={status}\n"));
    }

    /// Waits for the next event. Cancel-safe.
    pub(super) async fn next(&mut self) -> Event {
        loop {
            let event = tokio::select! {
                signal = self.signals.next() => match signal {
                    Signal::Stop => Event::Stop,
                    Signal::Reload => Event::Reload,
                },
                _ = self.look.tick(), if !self.watch.is_empty() => match self.watch.has_changed() {
                    true => Event::Changed,
                    false => continue,
                },
                () = due(&mut self.watchdog) => {
                    self.notify("WATCHDOG=1\n");
                    continue;
                }
            };
            match event {
                Event::Stop => {
                    self.notify("STOPPING=1\nSTATUS=stopping once all connections have ended\n")
                }
                Event::Reload | Event::Changed => {
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
                signal = self.signals.next() => if signal == Signal::Stop {
                    return;
                },
                () = due(&mut self.watchdog) => self.notify("WATCHDOG=1\n"),
            }
        }
    }

    /// Reports what was loaded, or why the former stays in use.
    pub(super) fn report(&self, loaded: Result<String, Failure>) {
        let line = match loaded {
            Ok(what) => Line::new().with(Paint::Dim, what),
            Err(failure) => Line::new()
                .with(Paint::Warn, "eyas: ")
                .with(Paint::Plain, format!("{}; the former one stays in use", failure.message)),
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
