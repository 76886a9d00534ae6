//! The bodies of requests and responses, whatever the version of HTTP.

use std::{
    io,
    pin::Pin,
    sync::{Arc, atomic::Ordering::Relaxed},
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::{
    activity::Exchange,
    fault::{Fault, Trigger},
    quic::RecvBody,
    site::{bytes::Pattern, files::FileBody},
    stats::Counters,
};

/// Why a body ended before its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    /// The request's body could not be read.
    #[error("reading the request body: {0}")]
    Hyper(#[from] hyper::Error),
    /// The request's body could not be read.
    #[error("reading the request body: {0}")]
    Http3(#[from] h3::error::StreamError),
    /// The request's body is bigger than the server allows.
    #[error("the request body is over the limit of {0} bytes")]
    TooLarge(u64),
    /// A file could not be read.
    #[error("reading a file: {0}")]
    File(#[from] io::Error),
    /// A personality of the test server wants it so.
    #[error("cut short on purpose")]
    OnPurpose,
}

/// The body of a request.
pub(super) struct RequestBody {
    source: Source,
    left: u64,
    limit: u64,
    counters: Arc<Counters>,
}

enum Source {
    Hyper(Incoming),
    Http3(Box<RecvBody>),
}

impl RequestBody {
    /// A body of HTTP/1 or HTTP/2.
    pub(super) fn hyper(body: Incoming, limit: u64, counters: Arc<Counters>) -> Self {
        Self { source: Source::Hyper(body), left: limit, limit, counters }
    }

    /// A body of HTTP/3.
    pub(super) fn http3(body: RecvBody, limit: u64, counters: Arc<Counters>) -> Self {
        Self { source: Source::Http3(Box::new(body)), left: limit, limit, counters }
    }

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        match &mut self.source {
            Source::Hyper(body) => loop {
                match ready!(Pin::new(&mut *body).poll_frame(cx)) {
                    Some(Ok(frame)) => {
                        if let Ok(data) = frame.into_data() {
                            break Poll::Ready(Some(Ok(data)));
                        }
                    }
                    Some(Err(error)) => break Poll::Ready(Some(Err(error.into()))),
                    None => break Poll::Ready(None),
                }
            },
            Source::Http3(stream) => match ready!(stream.poll_recv_data(cx)) {
                Ok(Some(mut data)) => Poll::Ready(Some(Ok(data.copy_to_bytes(data.remaining())))),
                Ok(None) => Poll::Ready(None),
                Err(error) => Poll::Ready(Some(Err(error.into()))),
            },
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Some(data) = ready!(self.poll_data(cx)?) else { return Poll::Ready(None) };
        let length = data.len() as u64;
        self.counters.body_bytes_received.fetch_add(length, Relaxed);
        let Some(left) = self.left.checked_sub(length) else {
            return Poll::Ready(Some(Err(BodyError::TooLarge(self.limit))));
        };
        self.left = left;
        Poll::Ready(Some(Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.source, Source::Hyper(body) if body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Hyper(body) => body.size_hint(),
            Source::Http3(_) => SizeHint::default(),
        }
    }
}

/// What a response carries.
pub(super) enum Content {
    /// Nothing.
    Empty,
    /// A few bytes made on the spot.
    Full(Bytes),
    /// A stretch of the pattern of `/bytes/N`.
    Pattern(Pattern),
    /// A stretch of a file.
    File(FileBody),
    /// The request's body.
    Echo(Box<RequestBody>),
}

impl Content {
    /// How many bytes are still to come, if that is known.
    pub(super) fn remaining(&self) -> Option<u64> {
        match self {
            Self::Empty => Some(0),
            Self::Full(bytes) => Some(bytes.len() as u64),
            Self::Pattern(pattern) => Some(pattern.remaining()),
            Self::File(file) => Some(file.remaining()),
            Self::Echo(body) => body.size_hint().exact(),
        }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        match self {
            Self::Empty => Poll::Ready(None),
            Self::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Full(bytes) => Poll::Ready(Some(Ok(std::mem::take(bytes)))),
            Self::Pattern(pattern) => Poll::Ready(pattern.next().map(Ok)),
            Self::File(file) => file.poll_next(cx).map_err(BodyError::from),
            Self::Echo(body) => Pin::new(&mut **body)
                .poll_frame(cx)
                .map_ok(|frame| frame.into_data().unwrap_or_default()),
        }
    }
}

/// The body of a response. It holds the exchange open until it is dropped.
pub(super) struct ResponseBody {
    content: Content,
    fault: Option<Trigger>,
    counters: Arc<Counters>,
    exchange: Option<Exchange>,
}

impl ResponseBody {
    pub(super) fn new(
        content: Content,
        fault: Option<Fault>,
        counters: Arc<Counters>,
        exchange: Exchange,
    ) -> Self {
        let fault = fault.map(Trigger::new);
        Self { content, fault, counters, exchange: Some(exchange) }
    }

    /// The exchange, to be held for longer than the body.
    pub(super) fn take_exchange(&mut self) -> Option<Exchange> {
        self.exchange.take()
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        if let Some(trigger) = &mut this.fault
            && trigger.is_due()
        {
            return trigger.poll_fire(cx);
        }
        let Some(mut data) = ready!(this.content.poll_next(cx)?) else { return Poll::Ready(None) };
        if let Some(trigger) = &mut this.fault {
            trigger.cut(&mut data);
        }
        this.counters.body_bytes_sent.fetch_add(data.len() as u64, Relaxed);
        Poll::Ready(Some(Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        // With a fault ahead even the last byte is not the end.
        self.fault.is_none() && self.content.remaining() == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.content.remaining().map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
