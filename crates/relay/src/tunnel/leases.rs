//! What a server lets its clients have one at a time, and whose it was before.
//!
//! A client that was killed has said no goodbye, and its session is given up only after a long silence. When
//! it comes back it asks for what it had; then its old session is asked whether anybody is still there, and
//! if nobody answers soon what it had is the new one's.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use eyas::KeyFingerprint;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::link::Link;

/// For who holds what its own key asks for again to say that it is there: on a bad line, too, where the
/// first question or its answer is lost.
const PRESENCE: Duration = Duration::from_secs(3);

/// All that the clients of a server have of one kind.
#[derive(Debug)]
pub(super) struct Leases<T>(Arc<Mutex<Vec<Held<T>>>>);

#[derive(Debug)]
struct Held<T> {
    what: T,
    key: KeyFingerprint,
    link: Link,
    released: CancellationToken,
}

/// Something that a client has until this is dropped.
#[derive(Debug)]
pub(super) struct Lease<T> {
    leases: Leases<T>,
    released: CancellationToken,
    _says: DropGuard,
}

impl<T> Drop for Lease<T> {
    fn drop(&mut self) {
        self.leases.lock().retain(|held| held.released != self.released);
    }
}

impl<T> Clone for Leases<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Leases<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Leases<T> {
    fn lock(&self) -> MutexGuard<'_, Vec<Held<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client with this key has it from now on.
    pub(super) fn hold(&self, what: T, key: KeyFingerprint, link: &Link) -> Lease<T> {
        let released = CancellationToken::new();
        let held = Held { what, key, link: link.clone(), released: released.clone() };
        self.lock().push(held);
        let says = released.clone().drop_guard();
        Lease { leases: self.clone(), released, _says: says }
    }
}

impl<T: PartialEq> Leases<T> {
    /// Takes this from other sessions of the same key that nobody is at the other end of, and says whether
    /// there were any.
    pub(super) async fn take_over(&self, what: &T, key: KeyFingerprint, link: &Link) -> bool {
        let former: Vec<_> = self
            .lock()
            .iter()
            .filter(|held| held.what == *what && held.key == key && !held.link.is_same(link))
            .map(|held| (held.link.clone(), held.released.clone()))
            .collect();
        let mut were_dead = false;
        for (former, released) in former {
            if !former.is_there(PRESENCE).await {
                former.give_up("it did not answer, and its client has reconnected");
                released.cancelled().await;
                were_dead = true;
            }
        }
        were_dead
    }
}
