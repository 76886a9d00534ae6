//! The body of a response on its way to the client.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use eyas::race::evidence::FailureCause;
use eyas_http::pipe::PipeBody;
use http_body::{Body, Frame, SizeHint};
use thiserror::Error;
use tokio::time::{Instant, Sleep, sleep};

use crate::connection::{ConnectionOwner, UpstreamConnection};
use crate::fields;
use crate::pool::UpstreamPool;
use crate::received::{ReceivedBody, ReceivedError};
use crate::request_body::UploadProgress;
use crate::stats::GatewayCounters;

/// Why a response was aborted.
#[derive(Debug, Error)]
pub enum ResponseBodyError {
    /// The upstream aborted it.
    #[error("the upstream aborted its response: {0}")]
    Broken(Box<dyn std::error::Error + Send + Sync>),
    /// The upstream was silent for too long.
    #[error("the upstream was silent for {0:?} in the middle of its response")]
    Silent(Duration),
    /// A tunnel was reset.
    #[error("the tunnel to the upstream broke, or was idle for too long")]
    Ended,
}

/// The body of a gateway's response.
#[derive(Debug)]
pub struct ResponseBody(BodySource);

#[derive(Debug)]
enum BodySource {
    Generated(Option<Bytes>),
    Upstream(Box<FromUpstream>),
    Tunnel(PipeBody),
}

/// A connection that is returned to the pool when its response has ended.
#[derive(Debug)]
pub(crate) struct ConnectionLease {
    pub(crate) connection: Option<UpstreamConnection>,
    /// Whether the response is an error, and the rest of the request is therefore not wanted.
    pub(crate) is_refused: bool,
    pub(crate) owner: ConnectionOwner,
    pub(crate) pool: Arc<UpstreamPool>,
    pub(crate) upload: Arc<UploadProgress>,
    pub(crate) counters: Arc<GatewayCounters>,
}

impl ConnectionLease {
    /// Returns the connection to the pool, if it can be reused. After an error the rest of the request is
    /// not sent (RFC 9112 §9.5): the upstream may never read it, and the client is to read the response.
    fn end(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        if self.upload.is_over() {
            self.pool.keep(connection, self.owner);
        } else if self.is_refused {
            connection.cut();
        }
    }
}

impl Drop for ConnectionLease {
    fn drop(&mut self) {
        // A body that was not requested is never sent after the response.
        self.upload.gate.close();
    }
}

#[derive(Debug)]
struct FromUpstream {
    body: ReceivedBody,
    lease: ConnectionLease,
    idle_time: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
    /// Why it has ended early, until the client learns of it.
    failure: Option<ReceivedError>,
    has_failed: bool,
}

impl ResponseBody {
    /// Returns a body with this text, which may be empty.
    pub(crate) fn generated(text: Bytes) -> Self {
        Self(BodySource::Generated((!text.is_empty()).then_some(text)))
    }

    /// Returns a body with the data from a tunnel.
    pub(crate) fn from_tunnel(download: PipeBody) -> Self {
        Self(BodySource::Tunnel(download))
    }

    /// Returns a body with the data from the upstream.
    pub(crate) fn from_upstream(
        body: ReceivedBody,
        lease: ConnectionLease,
        idle_time: Duration,
    ) -> Self {
        let source = FromUpstream {
            body,
            lease,
            idle_time,
            timer: None,
            is_waiting: false,
            failure: None,
            has_failed: false,
        };
        Self(BodySource::Upstream(Box::new(source)))
    }
}

impl FromUpstream {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ResponseBodyError>>> {
        let body = &mut self.body;
        let polled = match (self.failure.take(), &mut self.lease.connection) {
            (Some(error), _) => Poll::Ready(Some(Err(error))),
            (None, Some(connection)) => {
                connection.poll(cx, |cx| Pin::new(&mut *body).poll_frame(cx))
            }
            (None, None) => Pin::new(body).poll_frame(cx),
        };
        let Poll::Ready(polled) = polled else {
            return self.poll_silence(cx).map(|error| Some(Err(error)));
        };
        self.is_waiting = false;
        match polled {
            Some(Ok(frame)) => {
                if frame.is_trailers() {
                    self.end();
                }
                let cleaned = match frame.into_data() {
                    Ok(data) => Frame::data(data),
                    Err(frame) => {
                        let trailers = frame.into_trailers().unwrap_or_default();
                        Frame::trailers(fields::filter_trailers(trailers))
                    }
                };
                Poll::Ready(Some(Ok(cleaned)))
            }
            Some(Err(error)) if !self.has_failed => {
                // The server writes what came before, which it would otherwise drop.
                (self.failure, self.has_failed) = (Some(error), true);
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Some(Err(error)) => {
                GatewayCounters::count(&self.lease.counters.aborted_responses);
                let connection = self.lease.connection.take();
                if let (Some(connection), Some(FailureCause::Silent)) =
                    (connection, self.body.cause())
                {
                    connection.broke(Some(FailureCause::Silent), error.to_string());
                }
                Poll::Ready(Some(Err(ResponseBodyError::Broken(error.into()))))
            }
            None => {
                self.end();
                Poll::Ready(None)
            }
        }
    }

    fn end(&mut self) {
        if !self.lease.upload.is_over() && !self.lease.is_refused {
            self.body.let_request_end();
        }
        self.lease.end();
    }

    /// Ready when the upstream has been silent for too long since more data was first requested.
    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<ResponseBodyError> {
        let limit = self.idle_time;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(limit)));
        if !self.is_waiting {
            self.is_waiting = true;
            timer.as_mut().reset(Instant::now() + limit);
        }
        ready!(timer.as_mut().poll(cx));
        GatewayCounters::count(&self.lease.counters.aborted_responses);
        self.lease.connection = None;
        Poll::Ready(ResponseBodyError::Silent(limit))
    }
}

impl Drop for FromUpstream {
    fn drop(&mut self) {
        if self.body.is_end_stream() {
            self.end();
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = ResponseBodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ResponseBodyError>>> {
        match &mut self.0 {
            BodySource::Generated(text) => {
                Poll::Ready(text.take().map(|text| Ok(Frame::data(text))))
            }
            BodySource::Upstream(source) => source.poll(cx),
            BodySource::Tunnel(download) => {
                Pin::new(download).poll_frame(cx).map_err(|_| ResponseBodyError::Ended)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            BodySource::Generated(text) => text.is_none(),
            BodySource::Upstream(source) => source.body.is_end_stream(),
            BodySource::Tunnel(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            BodySource::Generated(text) => {
                SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64))
            }
            BodySource::Upstream(source) => source.body.size_hint(),
            BodySource::Tunnel(_) => SizeHint::default(),
        }
    }
}
