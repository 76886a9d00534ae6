//! What is wrong with the server itself, for whoever runs it.

use std::fmt;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use eyas::sockets;

/// What goes wrong again and again is said this often.
const SAY_AGAIN: Duration = Duration::from_secs(10);

/// Who is told.
pub(super) struct Notices {
    observer: Box<dyn Fn(String) + Send + Sync>,
    said_at: Mutex<Option<Instant>>,
}

impl Notices {
    pub(super) fn new(observer: impl Fn(String) + Send + Sync + 'static) -> Self {
        Self { observer: Box::new(observer), said_at: Mutex::default() }
    }

    /// Nobody can be accepted at the moment.
    pub(super) fn exhausted(&self, error: &io::Error) {
        let mut said_at = self.said_at.lock().unwrap_or_else(PoisonError::into_inner);
        if said_at.is_none_or(|at| at.elapsed() >= SAY_AGAIN) {
            *said_at = Some(Instant::now());
            (self.observer)(sockets::exhausted(error));
        }
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notices")
    }
}
