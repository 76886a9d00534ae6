//! Work that several callers wait for, which is done once.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use futures_util::future::{BoxFuture, FutureExt, Shared, WeakShared};

/// The number of entries from which on those that are over are removed.
const FEW: usize = 64;

/// A future, for everybody who waits for it. It is dropped with the last of them.
pub(super) type SharedFuture<T> = Shared<BoxFuture<'static, T>>;

/// What is in flight, by what it is about.
pub(super) struct InFlight<K, T: Clone>(Mutex<LookupEntries<K, T>>);

struct LookupEntries<K, T: Clone> {
    started: BTreeMap<K, WeakShared<BoxFuture<'static, T>>>,
    /// The number of entries at which to look for those that are over.
    tidy_at: usize,
}

impl<K: Ord, T: Clone> InFlight<K, T> {
    /// Joins what is in flight about `key`, or starts it.
    pub(super) fn join(
        &self,
        key: K,
        start: impl FnOnce() -> BoxFuture<'static, T>,
    ) -> SharedFuture<T> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(joined) = entries.started.get(&key).and_then(running) {
            return joined;
        }
        let joined = start().shared();
        if entries.started.len() >= entries.tidy_at {
            entries.started.retain(|_, started| running(started).is_some());
            entries.tidy_at = FEW.max(2 * entries.started.len());
        }
        if let Some(started) = joined.downgrade() {
            entries.started.insert(key, started);
        }
        joined
    }
}

/// Returns the future if somebody waits for it and it is not over: a result counts for those only
/// who asked before it was there.
fn running<T: Clone>(started: &WeakShared<BoxFuture<'static, T>>) -> Option<SharedFuture<T>> {
    started.upgrade().filter(|joined| joined.peek().is_none())
}

impl<K, T: Clone> Default for InFlight<K, T> {
    fn default() -> Self {
        Self(Mutex::new(LookupEntries { started: BTreeMap::new(), tidy_at: FEW }))
    }
}

impl<K, T: Clone> fmt::Debug for InFlight<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InFlight")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    #[tokio::test]
    async fn what_is_in_flight_is_done_once() {
        let (in_flight, started) = (InFlight::default(), Arc::new(AtomicUsize::new(0)));
        let join = |key: usize| {
            in_flight.join(key, || {
                let number = started.fetch_add(1, Relaxed);
                async move {
                    tokio::task::yield_now().await;
                    number
                }
                .boxed()
            })
        };
        let (one, two, other) = (join(1), join(1), join(2));
        assert_eq!(futures_util::join!(one, two, other), (0, 0, 1));
        assert_eq!(join(1).await, 2, "a result is kept for nobody");
        for key in 0..10 * FEW {
            drop(join(key));
        }
        assert!(in_flight.0.lock().unwrap().started.len() <= FEW);
    }
}
