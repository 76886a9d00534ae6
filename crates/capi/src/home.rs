//! The runtime of an endpoint, and the effects of a fork.
//!
//! Threads do not survive a fork: a forked child has a copy of the memory but none of the threads.
//! There, the runtime is left alone and calls are refused.

use std::{ops::Deref, sync::Arc, time::Duration};

use tokio::runtime::{Builder, EnterGuard, Runtime};

use crate::{error::Failure, signals};

/// Threads that drive sockets and timers; calls that wait do so in the caller's own.
const WORKERS: usize = 1;

/// How long the end of a runtime waits for what it still writes to a disk.
const LINGER: Duration = Duration::from_secs(5);

/// Where everything of an endpoint lives, until the last handle is freed.
pub(crate) struct Home {
    /// Nothing while it ends.
    runtime: Option<Runtime>,
    process: u32,
}

impl Home {
    pub(crate) fn new() -> Result<Arc<Self>, Failure> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .thread_name("eyas")
            .on_thread_start(signals::block_all)
            .enable_all()
            .build()?;
        Ok(Arc::new(Self { runtime: Some(runtime), process: std::process::id() }))
    }

    fn is_here(&self) -> bool {
        self.process == std::process::id()
    }

    pub(crate) fn runtime(&self) -> Result<&Runtime, Failure> {
        match &self.runtime {
            Some(runtime) if self.is_here() => Ok(runtime),
            _ => Err(Failure::misuse(
                "the endpoint was made before this process was forked, and its threads stayed with the \
                 parent; make another one here",
            )),
        }
    }

    /// For what starts tasks without waiting.
    pub(crate) fn enter(&self) -> Result<EnterGuard<'_>, Failure> {
        Ok(self.runtime()?.enter())
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        match self.is_here() {
            true => runtime.shutdown_timeout(LINGER),
            false => std::mem::forget(runtime),
        }
    }
}

/// What lives on the runtime. It is dropped inside of it, and never in a forked child, where the locks
/// of the parent's threads may be taken for good.
pub(crate) struct Owned<T> {
    /// Nothing while it is dropped.
    value: Option<T>,
    home: Arc<Home>,
}

impl<T> Owned<T> {
    pub(crate) fn new(value: T, home: &Arc<Home>) -> Self {
        Self { value: Some(value), home: Arc::clone(home) }
    }

    pub(crate) fn home(&self) -> &Arc<Home> {
        &self.home
    }
}

impl<T> Deref for Owned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // Empty only while it is being dropped.
        self.value.as_ref().expect("a value until it is dropped")
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        let value = self.value.take();
        match self.home.enter() {
            Ok(_inside) => {
                let _quiet = signals::Quiet::new();
                drop(value);
            }
            Err(_) => std::mem::forget(value),
        }
    }
}
