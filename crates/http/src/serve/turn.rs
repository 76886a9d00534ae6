//! Whose turn it is in an exchange: the service's or the peer's.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

use tokio::sync::Notify;

use super::activity::Activity;

/// Whom one exchange waits for. While it is the service that has nothing to say yet, its peer is not
/// to blame that nothing moves; while the service itself waits for the request's body, the peer is.
#[derive(Debug)]
pub(super) struct Turn {
    activity: Arc<Activity>,
    /// The service is asked for a response, or for more of it, and has none yet.
    service: AtomicBool,
    /// The service wants more of the request's body, and none has come yet.
    request: AtomicBool,
    /// Bytes of the request's body received.
    received: AtomicU64,
    /// Both sides send whenever they like, so neither is blamed for silence.
    tunnel: AtomicBool,
    /// It is for the service to say when it has lasted for too long without a byte.
    unwatched: AtomicBool,
    /// The client sends its body once it gets 100 Continue (RFC 9110 §10.1.1).
    expects: AtomicBool,
    invited: Notify,
}

impl Turn {
    pub(super) fn new(activity: Arc<Activity>) -> Self {
        Self {
            activity,
            service: AtomicBool::new(false),
            request: AtomicBool::new(false),
            received: AtomicU64::new(0),
            tunnel: AtomicBool::new(false),
            unwatched: AtomicBool::new(false),
            expects: AtomicBool::new(false),
            invited: Notify::new(),
        }
    }

    /// Notes whether the service is waited for.
    pub(super) fn set_service(&self, waits: bool) {
        if self.service.swap(waits, Relaxed) != waits {
            self.activity.note_working(waits);
        }
    }

    /// Notes whether the request's body is waited for.
    pub(super) fn set_request(&self, waits: bool) {
        if self.request.swap(waits, Relaxed) != waits {
            self.activity.note_reading(waits);
        }
    }

    /// Returns whether only the service keeps the exchange from continuing.
    pub(super) fn is_services(&self) -> bool {
        let waits_for_peer = self.request.load(Relaxed) && !self.tunnel.load(Relaxed);
        self.service.load(Relaxed) && !waits_for_peer
    }

    /// Notes that the exchange is a tunnel.
    pub(super) fn set_tunnel(&self) {
        self.tunnel.store(true, Relaxed);
    }

    /// Notes that the exchange is a tunnel whose ends may also leave what comes unread for as long as the
    /// service lets them.
    pub(super) fn set_unwatched_tunnel(&self) {
        self.set_tunnel();
        self.unwatched.store(true, Relaxed);
    }

    /// Returns whether only the service may end an exchange that makes no progress.
    pub(super) fn is_unwatched(&self) -> bool {
        self.unwatched.load(Relaxed)
    }

    /// Notes bytes of the request's body.
    pub(super) fn note_received(&self, bytes: u64) {
        self.received.fetch_add(bytes, Relaxed);
    }

    /// Returns the number of received bytes of the request's body.
    pub(super) fn received(&self) -> u64 {
        self.received.load(Relaxed)
    }

    /// Notes that the client waits for `100 Continue`.
    pub(super) fn expect(&self) {
        self.expects.store(true, Relaxed);
    }

    /// Notes that the service reads the body.
    pub(super) fn invite(&self) {
        if self.expects.swap(false, Relaxed) {
            self.invited.notify_one();
        }
    }

    /// Waits until `100 Continue` is to be sent.
    pub(super) async fn invited(&self) {
        self.invited.notified().await;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.set_service(false);
        self.set_request(false);
    }
}
