//! Tracks whether an exchange waits for its service or for the peer.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

use tokio::sync::Notify;

use super::activity::Activity;

/// Whom an exchange waits for. While the service produces nothing, the peer is not responsible for
/// the lack of progress; while the service waits for the request's body, the peer is.
#[derive(Debug)]
pub(super) struct Turn {
    activity: Arc<Activity>,
    /// The service has been asked for a response, or for more of one, and has not provided it yet.
    service: AtomicBool,
    /// The service waits for more of the request's body.
    request: AtomicBool,
    /// Bytes of the request's body received.
    received: AtomicU64,
    /// Both sides may send at any time, and leave data unread, so neither is responsible for silence: the
    /// service alone decides how long the exchange may be without progress.
    tunnel: AtomicBool,
    /// The client sends its body after a 100 Continue (RFC 9110 §10.1.1).
    expects_continue: AtomicBool,
    continue_requested: Notify,
    /// The request's body is not as long as announced.
    malformed: AtomicBool,
}

impl Turn {
    pub(super) fn new(activity: Arc<Activity>) -> Self {
        Self {
            activity,
            service: AtomicBool::new(false),
            request: AtomicBool::new(false),
            received: AtomicU64::new(0),
            tunnel: AtomicBool::new(false),
            expects_continue: AtomicBool::new(false),
            continue_requested: Notify::new(),
            malformed: AtomicBool::new(false),
        }
    }

    /// Sets whether the exchange waits for the service.
    pub(super) fn set_service(&self, waits: bool) {
        if self.service.swap(waits, Relaxed) != waits {
            self.activity.note_working(waits);
        }
    }

    /// Sets whether the exchange waits for the request's body.
    pub(super) fn set_request(&self, waits: bool) {
        if self.request.swap(waits, Relaxed) != waits {
            self.activity.note_reading(waits);
        }
    }

    /// Records that the rest of the request's body will not be read.
    pub(super) fn note_unread_request(&self) {
        self.activity.note_unread_request();
    }

    /// Returns whether the exchange waits for the service alone.
    pub(super) fn waits_for_service(&self) -> bool {
        let waits_for_peer = self.request.load(Relaxed) && !self.is_tunnel();
        self.service.load(Relaxed) && !waits_for_peer
    }

    /// Sets whether the exchange is a tunnel, as it is until the service refuses it.
    pub(super) fn set_tunnel(&self, is_tunnel: bool) {
        self.tunnel.store(is_tunnel, Relaxed);
    }

    /// Returns whether the exchange is a tunnel.
    pub(super) fn is_tunnel(&self) -> bool {
        self.tunnel.load(Relaxed)
    }

    /// Records received bytes of the request's body.
    pub(super) fn note_received(&self, bytes: u64) {
        self.received.fetch_add(bytes, Relaxed);
    }

    /// Returns the number of received bytes of the request's body.
    pub(super) fn received(&self) -> u64 {
        self.received.load(Relaxed)
    }

    /// Records that the request's body is not as long as announced.
    pub(super) fn note_malformed(&self) {
        self.malformed.store(true, Relaxed);
    }

    /// Returns whether the request's body is not as long as announced.
    pub(super) fn is_malformed(&self) -> bool {
        self.malformed.load(Relaxed)
    }

    /// Records that the client waits for `100 Continue`.
    pub(super) fn expect_continue(&self) {
        self.expects_continue.store(true, Relaxed);
    }

    /// Records that the service reads the body, which sends `100 Continue` if it is expected.
    pub(super) fn request_body_read(&self) {
        if self.expects_continue.swap(false, Relaxed) {
            self.continue_requested.notify_one();
        }
    }

    /// Waits until `100 Continue` should be sent.
    pub(super) async fn continue_requested(&self) {
        self.continue_requested.notified().await;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.set_service(false);
        self.set_request(false);
    }
}
