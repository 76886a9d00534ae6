//! The runtime of an endpoint, and the effects of a fork.
//!
//! Threads do not survive a fork: a forked child has a copy of the memory but none of the threads.
//! There, the runtime is left alone and calls are refused.

use std::{ops::Deref, sync::Arc, time::Duration};

use tokio::runtime::{Builder, EnterGuard, Handle, Runtime};

use crate::{error::Failure, signals};

/// The number of threads that drive sockets and timers; waiting calls use the caller's thread.
const WORKERS: usize = 1;

/// How long the shutdown of a runtime waits for pending writes to a disk.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// The runtime of everything that belongs to an endpoint, until the last handle is freed.
pub(crate) struct EndpointRuntime {
    /// `None` while it shuts down.
    runtime: Option<Runtime>,
    process: u32,
}

impl EndpointRuntime {
    pub(crate) fn new() -> Result<Arc<Self>, Failure> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .thread_name("eyas")
            .on_thread_start(signals::block_all)
            .enable_all()
            .build()?;
        Ok(Arc::new(Self { runtime: Some(runtime), process: std::process::id() }))
    }

    fn is_original_process(&self) -> bool {
        self.process == std::process::id()
    }

    pub(crate) fn runtime(&self) -> Result<&Runtime, Failure> {
        match &self.runtime {
            Some(runtime) if self.is_original_process() => Ok(runtime),
            _ => Err(Failure::misuse(
                "the endpoint was made before this process was forked, and its threads stayed with the \
                 parent; make another one here",
            )),
        }
    }

    /// Enters the runtime, for code that starts tasks without waiting.
    pub(crate) fn enter(&self) -> Result<EnterGuard<'_>, Failure> {
        Ok(self.runtime()?.enter())
    }
}

impl Drop for EndpointRuntime {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        if !self.is_original_process() {
            std::mem::forget(runtime);
            return;
        }
        // A connection that has closed in the background, on a thread of the runtime, which cannot
        // wait for itself.
        if Handle::try_current().is_ok() {
            std::thread::spawn(|| runtime.shutdown_timeout(SHUTDOWN_TIMEOUT));
            return;
        }
        runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    }
}

/// A value that belongs to the runtime. It is dropped inside the runtime, and never in a forked
/// child, where locks of the parent's threads may be held forever.
pub(crate) struct RuntimeOwned<T> {
    /// `None` while it is dropped.
    value: Option<T>,
    endpoint_runtime: Arc<EndpointRuntime>,
}

impl<T> RuntimeOwned<T> {
    pub(crate) fn new(value: T, endpoint_runtime: &Arc<EndpointRuntime>) -> Self {
        Self { value: Some(value), endpoint_runtime: Arc::clone(endpoint_runtime) }
    }

    pub(crate) fn endpoint_runtime(&self) -> &Arc<EndpointRuntime> {
        &self.endpoint_runtime
    }
}

impl<T> Deref for RuntimeOwned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // `None` only while it is being dropped.
        self.value.as_ref().expect("a value until it is dropped")
    }
}

impl<T> Drop for RuntimeOwned<T> {
    fn drop(&mut self) {
        let value = self.value.take();
        match self.endpoint_runtime.enter() {
            Ok(_inside) => {
                let _sigpipe = signals::SigpipeBlocked::new();
                drop(value);
            }
            Err(_) => std::mem::forget(value),
        }
    }
}
