//! Where a server listens for its clients, and whom it listened for before.
//!
//! A client that was killed has said no goodbye, and its session is given up only after a long silence. When
//! it comes back it asks for the ports that it had; then its old session is asked whether anybody is still
//! there, and if nobody answers soon its ports are the new one's.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use eyas::KeyFingerprint;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::ends::{self, ListenError};
use super::forward::Place;
use super::link::Link;

/// For who holds a port that its own key asks for again to say that it is there: on a bad line, too,
/// where the first question or its answer is lost.
const PRESENCE: Duration = Duration::from_secs(3);

/// All places where a server listens for its clients.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    held: Arc<Mutex<Vec<Held>>>,
}

#[derive(Debug)]
struct Held {
    port: u16,
    key: KeyFingerprint,
    link: Link,
    released: CancellationToken,
}

/// A socket that listens. Whoever accepts on it owns it whole: the place is free once the last socket is
/// closed, in whichever task that happens, and not before.
#[derive(Debug)]
pub(super) struct Listening {
    pub(super) listener: TcpListener,
    // Dropped after the socket, as the later field.
    _lease: Arc<Lease>,
}

/// A place that is listened at until this is dropped.
#[derive(Debug)]
struct Lease {
    places: Places,
    released: CancellationToken,
    _says: DropGuard,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.places.lock().retain(|held| held.released != self.released);
    }
}

impl Places {
    fn lock(&self) -> MutexGuard<'_, Vec<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Listens at a place for the client with this key, which may hold it by a session that is dead.
    pub(super) async fn listen(
        &self,
        at: &Place,
        key: KeyFingerprint,
        link: &Link,
    ) -> Result<(Vec<Listening>, u16), ListenError> {
        let bound = match ends::listen(at) {
            Err(why) if why.is_taken && self.take_over(at.port, key, link).await => {
                ends::listen(at)
            }
            bound => bound,
        };
        let (listeners, port) = bound?;
        let released = CancellationToken::new();
        let held = Held { port, key, link: link.clone(), released: released.clone() };
        self.lock().push(held);
        let says = released.clone().drop_guard();
        let lease = Arc::new(Lease { places: self.clone(), released, _says: says });
        let hold = |listener| Listening { listener, _lease: lease.clone() };
        Ok((listeners.into_iter().map(hold).collect(), port))
    }

    /// Takes this port from other sessions of the same key that nobody is at the other end of, and says
    /// whether there were any.
    async fn take_over(&self, port: u16, key: KeyFingerprint, link: &Link) -> bool {
        let former: Vec<_> = self
            .lock()
            .iter()
            .filter(|held| held.port == port && held.key == key && !held.link.is_same(link))
            .map(|held| (held.link.clone(), held.released.clone()))
            .collect();
        let mut were_dead = false;
        for (former, released) in former {
            if !former.is_there(PRESENCE).await {
                former.give_up("it did not answer, and its client has come back");
                released.cancelled().await;
                were_dead = true;
            }
        }
        were_dead
    }
}
