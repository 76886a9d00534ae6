//! What a tunnel tells of itself while it runs.

use std::fmt;
use std::sync::Arc;

use eyas::sockets::Throttle;

/// Something that has happened, for people and programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// One word for programs.
    pub event: &'static str,
    /// A sentence for people.
    pub text: String,
    /// Whether something went wrong.
    pub is_bad: bool,
}

/// Who is told. It is called by the tasks that serve, so it must not wait.
#[derive(Clone)]
pub(crate) struct Observer(pub(crate) Arc<dyn Fn(Notice) + Send + Sync>);

impl Observer {
    pub(crate) fn say(&self, event: &'static str, text: String) {
        (self.0)(Notice { event, text, is_bad: false });
    }

    pub(crate) fn complain(&self, event: &'static str, text: String) {
        (self.0)(Notice { event, text, is_bad: true });
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

/// Complaints of what goes wrong again and again.
#[derive(Debug)]
pub(crate) struct Repeated {
    observer: Observer,
    throttle: Throttle,
}

impl Repeated {
    pub(crate) fn new(observer: Observer) -> Self {
        Self { observer, throttle: Throttle::default() }
    }

    /// Complains, unless it has done so a short while ago.
    pub(crate) fn complain(&self, event: &'static str, text: String) {
        if self.throttle.permits() {
            self.observer.complain(event, text);
        }
    }
}
