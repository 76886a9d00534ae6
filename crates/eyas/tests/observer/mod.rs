//! Captures `tracing` events.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex, OnceLock};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Metadata, Subscriber};

/// Another subscriber. While there is only one, `tracing` asks that of the thread which reaches an event first whether
/// anybody is interested in it, and tests in other threads have none.
static OTHER: OnceLock<Dispatch> = OnceLock::new();

/// The events under some targets, as `message field=value …`.
#[derive(Clone, Default)]
pub(crate) struct Observer {
    targets: &'static [&'static str],
    events: Arc<Mutex<Vec<String>>>,
}

impl Observer {
    /// Captures the events of this thread until the guard is dropped.
    pub(crate) fn start(
        targets: &'static [&'static str],
    ) -> (Self, tracing::subscriber::DefaultGuard) {
        OTHER.get_or_init(|| Dispatch::new(Self::default()));
        let observer = Self { targets, events: Arc::default() };
        let guard = tracing::subscriber::set_default(observer.clone());
        (observer, guard)
    }

    /// Returns the events so far.
    pub(crate) fn events(&self) -> Vec<String> {
        self.events.lock().expect("whole").clone()
    }

    /// Returns the first event with this message.
    pub(crate) fn first(&self, message: &str) -> Option<String> {
        let start = format!("{message} ");
        self.events().into_iter().find(|event| event.starts_with(&start))
    }
}

impl Subscriber for Observer {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.targets.contains(&metadata.target()) && *metadata.level() <= tracing::Level::DEBUG
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        self.events.lock().expect("whole").push(format!("{} {}", text.message, text.fields));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            name => _ = write!(self.fields, "{name}={value:?} "),
        }
    }
}
