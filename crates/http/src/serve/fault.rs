//! Deliberately faulty responses, for the personalities of the test server.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use http::Version;
use tokio::{sync::Notify, time::Sleep};

use super::{body_error::BodyError, piece::Piece};

/// The fault applied to every body longer than `after` bytes by a server that fails on purpose
/// ([`ServerBuilder::fault`](super::ServerBuilder::fault)).
#[derive(Clone, Copy, Debug)]
pub struct FaultConfig {
    /// The number of bytes of the body that are still sent.
    pub after: u64,
    /// Whether the connection (TCP) or stream (QUIC) is reset; otherwise the message ends early.
    pub reset: bool,
}

impl FaultConfig {
    /// Returns what the fault means for a response in this version of HTTP.
    pub(super) fn for_response(self, version: Version, tear_down: &Arc<Notify>) -> Fault {
        let kind = match (self.reset, version) {
            (true, Version::HTTP_3) => FaultKind::Break,
            (true, _) => FaultKind::TearDown(Arc::clone(tear_down)),
            (false, Version::HTTP_2 | Version::HTTP_3) => FaultKind::End,
            // hyper enforces the announced length over HTTP/1, so ending early means aborting.
            (false, _) => FaultKind::Break,
        };
        Fault { after: self.after, kind }
    }
}

/// The fault of one response, after this many bytes of its body.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    /// The number of bytes of the body that are still sent.
    pub(super) after: u64,
    /// What happens then.
    pub(super) kind: FaultKind,
}

/// How a response goes wrong.
#[derive(Clone, Debug)]
pub(super) enum FaultKind {
    /// The message ends as if it were complete, with fewer bytes than announced.
    End,
    /// The message is aborted: the connection ends (HTTP/1), or its stream is reset.
    Break,
    /// The connection is reset by the task that waits for this.
    TearDown(Arc<Notify>),
}

/// How long to wait before the fault, so that the bytes before it reliably reach the peer.
const PAUSE: Duration = Duration::from_millis(50);

/// A fault that has yet to happen.
pub(super) struct Trigger {
    left: u64,
    kind: FaultKind,
    pause: Option<Pin<Box<Sleep>>>,
}

impl Trigger {
    pub(super) fn new(fault: Fault) -> Self {
        Self { left: fault.after, kind: fault.kind, pause: None }
    }

    /// Returns whether all bytes before the fault have been sent.
    pub(super) fn is_due(&self) -> bool {
        self.left == 0
    }

    /// Shortens the next piece of the body to the bytes that may still be sent.
    pub(super) fn cut(&mut self, data: &mut Piece) {
        data.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.left -= data.len() as u64;
    }

    /// Applies the fault.
    pub(super) fn poll_fire(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Piece, BodyError>>> {
        let pause = self.pause.get_or_insert_with(|| Box::pin(tokio::time::sleep(PAUSE)));
        ready!(pause.as_mut().poll(cx));
        match &self.kind {
            FaultKind::End => Poll::Ready(None),
            FaultKind::Break => Poll::Ready(Some(Err(BodyError::Deliberate))),
            FaultKind::TearDown(notify) => {
                notify.notify_one();
                // The notified task drops the connection, and this body with it.
                Poll::Pending
            }
        }
    }
}
