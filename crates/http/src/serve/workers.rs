//! Threads that serve byte streams, each with a runtime of its own: so nothing that is done for a request wakes
//! another thread, and what several requests of a connection send goes out together.

use std::{
    future::Future,
    io,
    net::TcpStream as BlockingTcpStream,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
};

use tokio::{
    net::TcpStream,
    runtime::{Builder, Handle},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The threads that serve byte streams. If there are none, the runtime that accepts them does.
#[derive(Debug)]
pub(super) struct Workers {
    workers: Vec<Worker>,
    stop: CancellationToken,
}

#[derive(Debug)]
struct Worker {
    runtime: Handle,
    /// The number of its streams.
    open: Arc<AtomicUsize>,
}

/// Counts a stream until it is dropped.
struct OpenStream(Arc<AtomicUsize>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Workers {
    /// Starts this many threads.
    pub(super) fn start(count: usize) -> io::Result<Self> {
        let mut all = Self { workers: Vec::new(), stop: CancellationToken::new() };
        for _ in 0..count {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let (handle, stop) = (runtime.handle().clone(), all.stop.clone());
            thread::Builder::new().name("eyas-serve".to_owned()).spawn(move || {
                runtime.block_on(stop.cancelled());
                // What it still does is of no use to anybody.
                runtime.shutdown_background();
            })?;
            all.workers.push(Worker { runtime: handle, open: Arc::default() });
        }
        Ok(all)
    }

    /// Serves a stream in the thread that has the fewest.
    pub(super) fn spawn<F>(
        &self,
        tasks: &TaskTracker,
        tcp: TcpStream,
        serve: impl FnOnce(TcpStream) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let Some(worker) = self.workers.iter().min_by_key(|worker| worker.open.load(Relaxed))
        else {
            tasks.spawn(serve(tcp));
            return;
        };
        // A socket belongs to the runtime that waits for it.
        let Ok(tcp) = tcp.into_std() else { return };
        worker.open.fetch_add(1, Relaxed);
        let open = OpenStream(Arc::clone(&worker.open));
        tasks.spawn_on(serve_moved(tcp, serve, open), &worker.runtime);
    }

    /// Ends the threads, and drops what they do.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Serves a stream in another runtime than that which has accepted it.
async fn serve_moved<F: Future<Output = ()>>(
    tcp: BlockingTcpStream,
    serve: impl FnOnce(TcpStream) -> F,
    open: OpenStream,
) {
    match TcpStream::from_std(tcp) {
        Ok(tcp) => serve(tcp).await,
        Err(error) => tracing::debug!(%error, "a connection cannot be served"),
    }
    drop(open);
}
