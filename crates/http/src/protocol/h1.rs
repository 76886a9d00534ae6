//! HTTP/1.1, implemented with hyper.

use std::hint::black_box;
use std::sync::{Arc, Once};

use futures_util::FutureExt;
use http::{Request, Response, Version};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{
    InformationalLimit, InputEnd, Life, MAX_HEAD_BYTES, MAX_HEAD_FIELDS, SendFailure,
    early_answer::EarlyAnswer, fields, queued_body::QueuedBody, wire_body,
};
use crate::{Body, Error, Kind};

/// More than hyper reserves for a head.
const MORE_THAN_A_HEAD: usize = 256 * 1024;

/// One HTTP/1.1 connection; one request at a time.
pub(crate) struct Http1 {
    sender: http1::SendRequest<QueuedBody>,
    /// Whether requests carry the absolute URI, as proxies require (RFC 9112 §3.2.2).
    to_proxy: bool,
    /// What tells whether the host at the other end still answers.
    pub(super) below: Life,
    input_end: InputEnd,
}

impl Http1 {
    /// Starts HTTP/1.1 on a stream. The connection runs in its own task, which ends when this
    /// handle is dropped.
    pub(crate) async fn start<S>(stream: S, to_proxy: bool) -> Result<Self, Error>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        keep_memory_for_heads();
        let stream = EarlyAnswer::new(stream);
        let input_end = stream.input_end();
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(MAX_HEAD_BYTES)
            .max_header_size(MAX_HEAD_BYTES)
            .max_headers(MAX_HEAD_FIELDS)
            // RFC 9112 §5.2: a user agent replaces each obs-fold by spaces.
            .allow_obsolete_multiline_headers_in_responses(true)
            // Lines that are no fields are passed over, as browsers do: the servers that send them
            // work with everybody else.
            .allow_spaces_after_header_name_in_responses(true)
            .ignore_invalid_headers_in_responses(true)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| Error::from_source(Kind::Protocol, error))?;
        // Not an `async` block, whose future would reserve space for the connection twice.
        tokio::spawn(connection.with_upgrades().map(|result| {
            if let Err(error) = result {
                tracing::debug!(%error, "HTTP/1.1 connection ended");
            }
        }));
        Ok(Self { sender, to_proxy, below: Life::Unknown, input_end })
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Waits until the previous exchange is over; returns `false` if the connection ended with it.
    pub(crate) async fn is_reusable(&mut self) -> bool {
        self.sender.ready().await.is_ok()
    }

    pub(crate) async fn send(
        &mut self,
        request: Request<Body>,
    ) -> Result<Response<Body>, SendFailure> {
        Ok(self.exchange(request).await?.map(wire_body::from_hyper))
    }

    /// Like [`send`](Self::send), but returns the response in a form that can be upgraded.
    pub(crate) async fn exchange(
        &mut self,
        mut request: Request<Body>,
    ) -> Result<Response<Incoming>, SendFailure> {
        fields::set_host(&mut request);
        fields::set_content_length(&mut request);
        // HTTP/1.0 only on request.
        if request.version() != Version::HTTP_10 {
            *request.version_mut() = Version::HTTP_11;
        }
        if !self.to_proxy && request.method() != http::Method::CONNECT {
            *request.uri_mut() = fields::origin_form(request.uri());
        }
        let limit = limit_informational(&mut request, &self.input_end);
        // Abandoning the exchange ends the connection.
        let sent = limit.apply(self.sender.try_send_request(request.map(QueuedBody::from))).await;
        match sent.map_err(|too_many| SendFailure::new(too_many.into()))? {
            Ok(response) => Ok(response),
            Err(mut failure) => {
                let unsent = failure.take_message().map(|request| request.into_body().into());
                let error = wire_body::request_error(failure.into_error());
                Err(SendFailure { error, unsent, unprocessed: false })
            }
        }
    }
}

/// Counts the informational responses, of which hyper reads any number.
fn limit_informational(request: &mut Request<Body>, end: &InputEnd) -> Arc<InformationalLimit> {
    let limit = Arc::new(InformationalLimit::ending(end));
    let counted = Arc::clone(&limit);
    hyper::ext::on_informational(request, move |response| {
        // The exchange ends with the error.
        let _ = counted.count(response.headers());
    });
    limit
}

/// Lets glibc keep the memory of one head for the next. By default it returns what exceeds 128 KiB at the end of the heap
/// to the kernel, which takes six calls and six page faults with each connection. "The initial value … is 128 * 1024"
/// and "the threshold is adjusted upward to the size of the freed block, and the trim threshold to twice that size"
/// (mallopt(3), M_MMAP_THRESHOLD): so one larger block is freed. Where there is no glibc, that is all that it does.
fn keep_memory_for_heads() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| drop(black_box(Vec::<u8>::with_capacity(MORE_THAN_A_HEAD))));
}
