//! Which thread drives the runtime: that of a blocking call, or else one in the background.
//!
//! Between two calls that follow each other closely nothing is handed over. So a program that makes one request
//! after another has no switch between threads in any of them, and its connections are still served while it does
//! something else: PINGs are answered, timers fire, and connections that the peer closes are dropped.

use std::{
    future::Future,
    io,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread::{self, Thread},
    time::Duration,
};

use tokio::{runtime::Runtime, sync::Notify};

/// How long the background thread waits for another call before it takes over. Nothing is served meanwhile.
const PAUSE: Duration = Duration::from_millis(2);

/// A runtime with one thread at a time, and the calls that want to be that thread.
pub(crate) struct Driver {
    runtime: Runtime,
    /// The blocking calls in progress.
    calls: AtomicUsize,
    /// The blocking calls that have started so far.
    started: AtomicU64,
    /// Notifies the background thread, which drives the runtime, that a call has started.
    call_started: Notify,
    /// The background thread, which is parked while a long call is under way.
    background: OnceLock<Thread>,
}

impl Driver {
    /// Starts the background thread, which never ends: calls may be under way in other threads when the interpreter
    /// ends.
    pub(crate) fn start(runtime: Runtime) -> io::Result<Arc<Self>> {
        let driving = Arc::new(Self {
            runtime,
            calls: AtomicUsize::new(0),
            started: AtomicU64::new(0),
            call_started: Notify::new(),
            background: OnceLock::new(),
        });
        let driven = Arc::clone(&driving);
        let background =
            thread::Builder::new().name("eyas".into()).spawn(move || driven.drive())?;
        driving.background.get_or_init(|| background.thread().clone());
        Ok(driving)
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Begins a blocking call.
    pub(crate) fn call(&self) -> Call<'_> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.started.fetch_add(1, Ordering::SeqCst);
        self.call_started.notify_one();
        Call(self)
    }

    fn drive(&self) -> ! {
        loop {
            self.wait_for_pause();
            self.runtime.block_on(async {
                while self.calls.load(Ordering::SeqCst) == 0 {
                    self.call_started.notified().await;
                }
            });
        }
    }

    /// Waits until no call has been under way for a [`PAUSE`].
    fn wait_for_pause(&self) {
        loop {
            let started = self.started.load(Ordering::SeqCst);
            thread::sleep(PAUSE);
            if started != self.started.load(Ordering::SeqCst) {
                continue;
            }
            if self.calls.load(Ordering::SeqCst) == 0 {
                return;
            }
            // The same calls are still under way: they may be long ones. The last one unparks this thread.
            while self.calls.load(Ordering::SeqCst) != 0 {
                thread::park();
            }
        }
    }
}

/// A blocking call in progress.
pub(crate) struct Call<'a>(&'a Driver);

impl Call<'_> {
    /// Runs a future to completion, and with it the tasks, sockets and timers of the runtime, unless another thread
    /// does so already.
    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.0.runtime.block_on(future)
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let is_last = self.0.calls.fetch_sub(1, Ordering::SeqCst) == 1;
        if is_last && let Some(background) = self.0.background.get() {
            background.unpark();
        }
    }
}
