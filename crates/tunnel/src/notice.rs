//! What a tunnel reports while it runs.

use std::fmt;
use std::sync::Arc;

use eyas::sockets::ReportThrottle;

/// An event, for people and programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelNotice {
    /// One word for programs.
    pub event: &'static str,
    /// A sentence for people.
    pub text: String,
    /// Whether something went wrong.
    pub is_bad: bool,
}

/// The caller's function for notices. It is called by the serving tasks, so it must not block.
#[derive(Clone)]
pub(crate) struct NoticeObserver(pub(crate) Arc<dyn Fn(TunnelNotice) + Send + Sync>);

impl NoticeObserver {
    pub(crate) fn notify(&self, event: &'static str, text: String) {
        (self.0)(TunnelNotice { event, text, is_bad: false });
    }

    pub(crate) fn warn(&self, event: &'static str, text: String) {
        (self.0)(TunnelNotice { event, text, is_bad: true });
    }
}

impl fmt::Debug for NoticeObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NoticeObserver")
    }
}

/// Warnings about a problem that may recur often.
#[derive(Debug)]
pub(crate) struct ThrottledWarnings {
    observer: NoticeObserver,
    throttle: ReportThrottle,
}

impl ThrottledWarnings {
    pub(crate) fn new(observer: NoticeObserver) -> Self {
        Self { observer, throttle: ReportThrottle::default() }
    }

    /// Reports a warning, unless there was one recently.
    pub(crate) fn warn(&self, event: &'static str, text: String) {
        if self.throttle.permits() {
            self.observer.warn(event, text);
        }
    }
}
