//! Calls that wait, wait up to a limit, or do not wait.

use std::{
    ffi::c_int,
    future::poll_fn,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::sync::watch;

use crate::{
    code::{EYAS_CANCELLED, EYAS_TIMEOUT},
    endpoint_runtime::EndpointRuntime,
    error::Failure,
    pointer::OutPointer,
    readiness::ReadinessDescriptor,
    signals::SigpipeBlocked,
};

/// How long a call may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitLimit {
    Now,
    Within(Duration),
    Never,
}

impl WaitLimit {
    /// Converts milliseconds as in poll(2): 0 does not wait, and a negative number is no limit.
    pub(crate) fn from_milliseconds(milliseconds: i32) -> Self {
        match u64::try_from(milliseconds) {
            Ok(0) => Self::Now,
            Ok(some) => Self::Within(Duration::from_millis(some)),
            Err(_) => Self::Never,
        }
    }
}

/// The common state of waiting calls of one handle and one direction: it admits one call at a time
/// and has a descriptor to poll instead.
#[derive(Default)]
pub(crate) struct CallTurn {
    taken: Mutex<()>,
    pub(crate) readiness: Arc<ReadinessDescriptor>,
}

impl CallTurn {
    /// Returns a turn for other calls that are awaited with the same descriptor.
    pub(crate) fn with_same_descriptor(&self) -> Self {
        Self { taken: Mutex::default(), readiness: Arc::clone(&self.readiness) }
    }

    /// Takes the turn; `activity` describes what another thread that has it is doing.
    pub(crate) fn acquire(&self, activity: &str) -> Result<MutexGuard<'_, ()>, Failure> {
        match self.taken.try_lock() {
            Ok(turn) => Ok(turn),
            Err(TryLockError::Poisoned(turn)) => Ok(turn.into_inner()),
            Err(TryLockError::WouldBlock) => Err(Failure::misuse(format_args!(
                "another thread is {activity} with this handle; only one at a time can"
            ))),
        }
    }
}

/// Stores the descriptor that is readable while a call with this turn is worth a try.
pub(crate) fn store_descriptor(
    fd: OutPointer<'_, c_int>,
    turn: Result<&CallTurn, Failure>,
) -> Result<(), Failure> {
    let place = fd.required("fd")?;
    place.write(turn?.readiness.descriptor()?);
    Ok(())
}

/// Signals that all calls on a handle must end.
pub(crate) struct HandleClosed(watch::Sender<bool>);

impl Default for HandleClosed {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl HandleClosed {
    pub(crate) fn end(&self) {
        self.0.send_replace(true);
    }

    pub(crate) fn has_ended(&self) -> bool {
        *self.0.borrow()
    }

    async fn awaited(&self) {
        // The sender is `self`, so the channel cannot be closed.
        let _ = self.0.subscribe().wait_for(|over| *over).await;
    }
}

/// Polls until there is a value or the limit is reached. `None` if there is none yet; the
/// descriptor becomes readable when it is worth retrying.
pub(crate) fn wait<T>(
    endpoint_runtime: &EndpointRuntime,
    turn: &CallTurn,
    over: &HandleClosed,
    limit: WaitLimit,
    mut poll: impl FnMut(&mut Context<'_>) -> Poll<Result<T, Failure>>,
) -> Result<Option<T>, Failure> {
    let runtime = endpoint_runtime.runtime()?;
    let _sigpipe = SigpipeBlocked::new();
    if over.has_ended() {
        return Err(cancelled());
    }
    if limit == WaitLimit::Now {
        let _inside = runtime.enter();
        turn.readiness.lower();
        let waker = Waker::from(Arc::clone(&turn.readiness));
        return match poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => Ok(None),
            Poll::Ready(result) => {
                turn.readiness.raise();
                result.map(Some)
            }
        };
    }
    let result = runtime.block_on(async {
        tokio::select! {
            biased;
            result = poll_fn(&mut poll) => result.map(Some),
            () = over.awaited() => Err(cancelled()),
            () = end(limit) => Err(timed_out(limit)),
        }
    });
    // This call has replaced the waker of the descriptor.
    turn.readiness.raise();
    result
}

/// Waits for a future that has no handle to retry with, up to a limit.
pub(crate) fn wait_for<T>(
    endpoint_runtime: &EndpointRuntime,
    limit: WaitLimit,
    future: impl Future<Output = T>,
) -> Result<T, Failure> {
    let runtime = endpoint_runtime.runtime()?;
    let _sigpipe = SigpipeBlocked::new();
    runtime.block_on(async {
        let mut future = pin!(future);
        tokio::select! {
            biased;
            value = &mut future => Ok(value),
            () = end(limit) => Err(timed_out(limit)),
        }
    })
}

async fn end(limit: WaitLimit) {
    match limit {
        WaitLimit::Now => {}
        WaitLimit::Within(limit) => tokio::time::sleep(limit).await,
        WaitLimit::Never => std::future::pending().await,
    }
}

pub(crate) fn cancelled() -> Failure {
    Failure::new(EYAS_CANCELLED, "it was cancelled or aborted by this program")
}

fn timed_out(limit: WaitLimit) -> Failure {
    match limit {
        WaitLimit::Within(limit) => Failure::new(
            EYAS_TIMEOUT,
            format_args!("there was no result within {limit:?}; try again, or allow more time"),
        ),
        _ => Failure::new(EYAS_TIMEOUT, "the call would have to wait, which was not allowed"),
    }
}

/// Locks a mutex even if a holder has panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
