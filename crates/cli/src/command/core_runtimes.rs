//! A runtime of one thread for each core, for many short tasks that have nothing to do with one another: on a runtime
//! of several threads each of their steps would wake another thread.

use std::future::Future;
use std::num::NonZero;
use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::run_on;
use crate::failure::{Failure, FailureKind};

/// The limit on runtimes: all that have nothing to do wake when a client connects.
const MAX_RUNTIMES: usize = 8;

/// Runs a future on this thread, with the handles of the runtimes of the other cores, whose tasks end with it.
pub(super) fn on_every_core<T, F>(work: impl FnOnce(Vec<Handle>) -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let others = (1..cores.min(MAX_RUNTIMES)).map(|_| CoreRuntime::start());
    let others = others.collect::<Result<Vec<_>, _>>()?;
    let handles = others.iter().map(|other| other.handle.clone()).collect();
    run_on(Builder::new_current_thread(), work(handles))
}

/// A runtime of one thread, which ends with its tasks when this is dropped.
struct CoreRuntime {
    handle: Handle,
    ending: Option<DropGuard>,
    thread: Option<JoinHandle<()>>,
}

impl CoreRuntime {
    fn start() -> Result<Self, Failure> {
        let failure =
            |cause| Failure::new(FailureKind::Connect, format!("cannot start a thread: {cause}"));
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failure)?;
        let handle = runtime.handle().clone();
        let end = CancellationToken::new();
        let ending = Some(end.clone().drop_guard());
        let thread = thread::Builder::new()
            .name("eyas-core".to_owned())
            .spawn(move || run(runtime, &end))
            .map_err(failure)?;
        Ok(Self { handle, ending, thread: Some(thread) })
    }
}

fn run(runtime: Runtime, end: &CancellationToken) {
    runtime.block_on(end.cancelled());
    runtime.shutdown_background();
}

impl Drop for CoreRuntime {
    fn drop(&mut self) {
        drop(self.ending.take());
        if let Some(thread) = self.thread.take() {
            // What its tasks hold, such as the memory with what is to be written, is dropped by then.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn each_runtime_has_a_thread_and_drops_its_tasks_at_the_end() {
        let held = Arc::new(());
        let kept = Arc::clone(&held);
        let ran = on_every_core(|others| async move {
            let mut threads = vec![thread::current().id()];
            for other in others {
                let kept = Arc::clone(&kept);
                other.spawn(async move {
                    pending::<()>().await;
                    drop(kept);
                });
                let id = other.spawn(async { thread::current().id() }).await.expect("it runs");
                assert!(!threads.contains(&id));
                threads.push(id);
            }
            Ok(())
        });
        assert!(ran.is_ok());
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
