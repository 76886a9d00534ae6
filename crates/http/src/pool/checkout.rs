//! Gets a connection for a request.

use std::{sync::Arc, time::Duration};

use http::Version;
use tokio::time::Instant;

use super::{
    Key, Leased, Pool, WeakPool,
    connection::Connection,
    origins::{Conditions, Next},
};
use crate::{connection_report::ConnectionReport, protocol::Sender};

/// How long a request waits for an HTTP/1.1 connection whose last response has been read to its
/// end, before it opens another.
const RETURN_TIME: Duration = Duration::from_millis(10);

/// The result of [`Pool::checkout`].
pub(crate) enum Checkout {
    /// Use this connection.
    Ready(Leased),
    /// Open a connection; other requests may be waiting to share it.
    Dial(Permit),
}

/// The permission to open one connection. Dropping it lets another request open one.
pub(crate) struct Permit {
    pool: WeakPool,
    key: Key,
}

impl Pool {
    /// Waits for a connection or for the permission to open one. With `opened_since`, a connection
    /// that is older does not do.
    pub(crate) async fn checkout(&self, key: &Key, opened_since: Option<Instant>) -> Checkout {
        // Whatever is about to be returned is older.
        let mut patient = opened_since.is_none();
        loop {
            // Created before the pool is queried, so that no change in between is missed.
            let changed = Arc::clone(&self.0.changed).notified_owned();
            let mut closing = Vec::new();
            let (limits, now) = (&self.0.limits, Instant::now());
            let conditions = Conditions { limits, now, patient, opened_since };
            let next = self.0.lock().next(key, &conditions, &mut closing);
            drop(closing);
            match next {
                Next::Use(leased) => return Checkout::Ready(leased),
                Next::Dial => {
                    return Checkout::Dial(Permit { pool: self.downgrade(), key: key.clone() });
                }
                Next::Wait => changed.await,
                Next::WaitBriefly => {
                    patient = tokio::time::timeout(RETURN_TIME, changed).await.is_ok();
                }
            }
        }
    }

    /// Returns an HTTP/1.1 connection to the pool once its exchange is over; other connections
    /// never leave the pool.
    pub(crate) fn put_back(&self, key: &Key, leased: Leased) {
        if leased.version() >= Version::HTTP_2 {
            return;
        }
        let (weak, key) = (self.downgrade(), key.clone());
        let mut connection = leased.into_connection();
        self.spawn(async move {
            if let Sender::Http1(sender) = connection.sender_mut()
                && !sender.is_reusable().await
            {
                return;
            }
            if let Some(pool) = weak.upgrade() {
                let replaced = pool.0.lock().insert(&key, connection);
                drop(replaced);
                pool.after_insert();
            }
        });
    }
}

impl Permit {
    /// Returns the key of the connection.
    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    /// Leases a new connection that no other request may share.
    pub(crate) fn unshared(&self, sender: Sender, report: Arc<ConnectionReport>) -> Option<Leased> {
        let pool = self.pool.upgrade()?;
        let connection = Connection::new(sender, report, pool.0.slot(&self.key));
        let mut leased = connection.into_lease();
        leased.early = true;
        Some(leased)
    }

    /// Adds the new connection to the pool and leases it.
    pub(crate) fn opened(self, sender: Sender, report: Arc<ConnectionReport>) -> Option<Leased> {
        let pool = self.pool.upgrade()?;
        let connection = Connection::new(sender, report, pool.0.slot(&self.key));
        let leased = match connection.share() {
            Some(leased) => {
                let replaced = pool.0.lock().insert(&self.key, connection);
                drop(replaced);
                leased
            }
            None => {
                let leased = connection.into_lease();
                pool.0.lock().leased_out(&self.key, &leased);
                leased
            }
        };
        pool.after_insert();
        Some(leased)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.0.lock().dial_ended(&self.key);
            pool.0.changed.notify_waiters();
        }
    }
}
