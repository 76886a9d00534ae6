//! Exclusive resources of a server, such as ports, and the sessions that have them.
//!
//! A client that was killed has not sent GOODBYE, and its session is given up only after a long silence. When
//! it reconnects and requests the same resource, its old session is probed, and if there is no answer soon, the
//! resource goes to the new one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use eyas::KeyFingerprint;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::link::SessionLink;

/// The time for the old session to answer, long enough that the first probe or its answer may be lost.
const PROBE_TIME: Duration = Duration::from_secs(3);

/// The resources of one kind that the clients of a server have.
#[derive(Debug)]
pub(crate) struct ResourceLeases<T>(Arc<Mutex<Vec<LeaseEntry<T>>>>);

#[derive(Debug)]
struct LeaseEntry<T> {
    resource: T,
    key: KeyFingerprint,
    link: SessionLink,
    released: CancellationToken,
}

/// A resource that a client has until this is dropped.
#[derive(Debug)]
pub(crate) struct ResourceLease<T> {
    leases: ResourceLeases<T>,
    released: CancellationToken,
    _guard: DropGuard,
}

impl<T> Drop for ResourceLease<T> {
    fn drop(&mut self) {
        self.leases.lock().retain(|entry| entry.released != self.released);
    }
}

impl<T> Clone for ResourceLeases<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for ResourceLeases<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> ResourceLeases<T> {
    fn lock(&self) -> MutexGuard<'_, Vec<LeaseEntry<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that this client has a resource.
    pub(crate) fn add(
        &self,
        resource: T,
        key: KeyFingerprint,
        link: &SessionLink,
    ) -> ResourceLease<T> {
        let released = CancellationToken::new();
        let entry = LeaseEntry { resource, key, link: link.clone(), released: released.clone() };
        self.lock().push(entry);
        let _guard = released.clone().drop_guard();
        ResourceLease { leases: self.clone(), released, _guard }
    }
}

impl<T: PartialEq> ResourceLeases<T> {
    /// Ends other sessions of the same key that have this resource and do not answer. Returns whether there
    /// were any.
    pub(crate) async fn take_over(
        &self,
        resource: &T,
        key: KeyFingerprint,
        link: &SessionLink,
    ) -> bool {
        let former: Vec<_> = self
            .lock()
            .iter()
            .filter(|entry| {
                entry.resource == *resource && entry.key == key && !entry.link.is_same(link)
            })
            .map(|entry| (entry.link.clone(), entry.released.clone()))
            .collect();
        let mut have_ended = false;
        for (former, released) in former {
            if !former.answers(PROBE_TIME).await {
                former.give_up("it did not answer, and its client has reconnected");
                released.cancelled().await;
                have_ended = true;
            }
        }
        have_ended
    }
}
