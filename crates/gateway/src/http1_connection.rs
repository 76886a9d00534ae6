//! A connection to the upstream over HTTP/1.1, which serves one request at a time.
//!
//! hyper's work on it is done by the task of that request: a task of the connection's own would be woken by each
//! request, and wake that of the request with each part of the response. It gets one where the work must go on
//! although nobody waits for a response: for the rest of a request that was answered early, and for what follows an
//! upgrade. A connection that is kept idle needs no work until it is used again.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use eyas::ConnectionFeedback;
use eyas_http::InputEnd;
use http::{Request, Response, header};
use hyper::client::conn::http1;
use tokio::runtime::{self, Handle};
use tokio_util::sync::CancellationToken;

use crate::attempt::{FailedAttempt, sent};
use crate::interims::RequestInterims;
use crate::received::ReceivedBody;
use crate::request_body::UploadBody;

/// hyper's work on a connection, which is closed when this is dropped.
type ConnectionWork = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Who does the work on a connection.
enum Worker {
    /// The request that uses it. `None` once the connection has ended.
    Request(Option<ConnectionWork>),
    /// A task, until the token is cancelled.
    Task(CancellationToken),
}

pub(crate) struct Http1Connection {
    sender: http1::SendRequest<UploadBody>,
    worker: Worker,
    /// The runtime that waits for its socket.
    runtime: runtime::Id,
    /// Where informational responses without end are cut off.
    input_end: InputEnd,
    /// For the memory, if it was raced.
    feedback: Option<ConnectionFeedback>,
}

impl fmt::Debug for Http1Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http1Connection").field("sender", &self.sender).finish_non_exhaustive()
    }
}

impl Http1Connection {
    /// Returns a connection that needs this work.
    pub(crate) fn new(
        sender: http1::SendRequest<UploadBody>,
        work: impl Future<Output = ()> + Send + 'static,
        input_end: InputEnd,
        feedback: Option<ConnectionFeedback>,
    ) -> Self {
        let worker = Worker::Request(Some(Box::pin(work)));
        Self { sender, worker, runtime: Handle::current().id(), input_end, feedback }
    }

    /// Returns the runtime in which its use wakes no other thread.
    pub(crate) const fn runtime(&self) -> runtime::Id {
        self.runtime
    }

    pub(crate) fn input_end(&self) -> InputEnd {
        self.input_end.clone()
    }

    pub(crate) const fn feedback(&self) -> Option<&ConnectionFeedback> {
        self.feedback.as_ref()
    }

    /// Returns whether it is of no use to a further request, by what has arrived since the last one.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.work(&mut Context::from_waker(Waker::noop()));
        self.sender.is_closed()
    }

    /// Waits until a request can be sent: until the end of the last response was seen.
    pub(crate) async fn ready(&mut self) -> hyper::Result<()> {
        poll_fn(|cx| {
            if self.sender.is_ready() {
                return Poll::Ready(Ok(()));
            }
            self.work(cx);
            self.sender.poll_ready(cx)
        })
        .await
    }

    /// Sends a request, and waits for the head of its response.
    pub(crate) async fn send(
        &mut self,
        mut request: Request<UploadBody>,
        interims: &RequestInterims,
    ) -> Result<Response<ReceivedBody>, FailedAttempt> {
        interims.listen(&mut request);
        if request.headers().contains_key(header::UPGRADE) {
            self.detach();
        }
        let upload = Arc::clone(request.body().progress());
        let sending = self.sender.try_send_request(request);
        let mut sending = pin!(sent(sending, &upload));
        let response = poll_fn(|cx| self.poll(cx, |cx| sending.as_mut().poll(cx))).await;
        if !upload.is_over() {
            self.detach();
        }
        response
    }

    /// Polls for something that is ready only after some of the work, such as the next part of a response.
    pub(crate) fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        if matches!(self.worker, Worker::Task(_)) {
            return poll(cx);
        }
        // The work alone makes it ready, and must not wake the task that does it.
        let quiet = &mut Context::from_waker(Waker::noop());
        if let Poll::Ready(ready) = poll(quiet) {
            return Poll::Ready(ready);
        }
        self.work(cx);
        poll(quiet)
    }

    fn work(&mut self, cx: &mut Context<'_>) {
        if let Worker::Request(work) = &mut self.worker
            && work.as_mut().is_some_and(|work| work.as_mut().poll(cx).is_ready())
        {
            *work = None;
        }
    }

    /// Gives the work to a task, which goes on with a request after this is dropped.
    fn detach(&mut self) {
        let Worker::Request(work) = &mut self.worker else { return };
        let Some(work) = work.take() else { return };
        let cut = CancellationToken::new();
        self.worker = Worker::Task(cut.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = work => {}
                () = cut.cancelled() => {}
            }
        });
    }

    /// Ends it though a request is being sent, which dropping it does not if there is a task.
    pub(crate) fn cut(self) {
        if let Worker::Task(cut) = self.worker {
            cut.cancel();
        }
    }
}
