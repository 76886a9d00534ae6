//! A thread in the server's host on which servers run.

use std::future::Future;
use std::sync::mpsc;
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use super::{LiveError, LiveTestbed};

/// Running servers. Dropping this ends them.
pub(super) struct ServerThread {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ServerThread {
    /// Waits until `start` has started serving, and returns its result. The future that it returns
    /// as well runs until the servers are ended.
    pub(super) fn start<Output, Work, Starting>(
        testbed: &LiveTestbed,
        start: impl FnOnce() -> Starting + Send + 'static,
    ) -> Result<(Self, Output), LiveError>
    where
        Output: Send + 'static,
        Work: Future<Output = ()>,
        Starting: Future<Output = Result<(Output, Work), LiveError>>,
    {
        let (stop, stopped) = oneshot::channel();
        let (sender, started) = mpsc::sync_channel(1);
        let thread = testbed.server_thread(move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(cause) => {
                    let _ = sender.send(Err(LiveError::Inside(cause.to_string())));
                    return;
                }
            };
            runtime.block_on(async {
                match start().await {
                    Ok((output, work)) => {
                        let _ = sender.send(Ok(output));
                        tokio::select! {
                            // Until a stop is requested, or the sender is dropped.
                            _ = stopped => {}
                            () = work => {}
                        }
                    }
                    Err(cause) => {
                        let _ = sender.send(Err(cause));
                    }
                }
            });
        })?;
        let servers = Self { stop: Some(stop), thread: Some(thread) };
        match started.recv() {
            Ok(Ok(output)) => Ok((servers, output)),
            Ok(Err(cause)) => Err(cause),
            Err(cause) => Err(LiveError::Inside(cause.to_string())),
        }
    }
}

impl Drop for ServerThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
