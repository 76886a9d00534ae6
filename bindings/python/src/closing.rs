//! Connections that close in the background, and the exit of the interpreter that waits for them.
//!
//! A kernel delivers what was written to a TCP socket although the process has ended. QUIC and SCTP are in this
//! process, so an `atexit` function waits until the peers of closed connections have everything.

use std::{
    future::Future,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use pyo3::prelude::*;
use tokio::task::JoinHandle;

use crate::runtime::{Started, runtime};

/// How long the exit waits for connections that were closed.
const EXIT_LINGER: Duration = Duration::from_secs(10);
/// How often it checks.
const CHECK_EVERY: Duration = Duration::from_millis(2);

/// A connection that is being closed.
struct Closing(&'static Started);

impl Closing {
    fn new(started: &'static Started) -> Self {
        started.closing.fetch_add(1, Ordering::SeqCst);
        Self(started)
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.closing.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Closes a connection in the background.
pub(crate) fn spawn(
    closing: impl Future<Output = ()> + Send + 'static,
) -> PyResult<JoinHandle<()>> {
    let started = runtime()?;
    let guard = Closing::new(started);
    Ok(started.spawn(async move {
        let _guard = guard;
        closing.await;
    }))
}

/// Waits until all connections have closed, but not for long.
pub(crate) fn wait_at_exit(started: &'static Started) {
    let is_closing = || started.closing.load(Ordering::SeqCst) > 0;
    if !is_closing() {
        return;
    }
    let until = Instant::now() + EXIT_LINGER;
    started.call().block_on(async {
        while is_closing() && Instant::now() < until {
            tokio::time::sleep(CHECK_EVERY).await;
        }
    });
}
