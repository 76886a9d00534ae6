//! Notices about problems of the server itself, for its operator.

use std::fmt;
use std::io;

use eyas::sockets::{self, Throttle};

/// The receiver of notices, limited in rate.
pub(super) struct Notices {
    observer: Box<dyn Fn(String) + Send + Sync>,
    throttle: Throttle,
}

impl Notices {
    pub(super) fn new(observer: impl Fn(String) + Send + Sync + 'static) -> Self {
        Self { observer: Box::new(observer), throttle: Throttle::default() }
    }

    /// Reports that no connection can be accepted at the moment.
    pub(super) fn exhausted(&self, error: &io::Error) {
        if self.throttle.permits() {
            (self.observer)(sockets::exhausted(error));
        }
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notices")
    }
}
