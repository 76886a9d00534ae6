//! The head of a request, with which the request begins.

use eyas_h3::{code::ErrorCode, fault::StreamFault, message::Content};
use tokio::time::timeout;

use super::RequestStream;
use crate::{
    http3::{Receiving, Sending, StreamError},
    serve::{exchange::Exchange, link::Link, shared::Shared, stats::Counters},
};

/// Waits for the head of a request, and begins it. Without one the stream has been answered or reset.
pub(super) async fn begin(
    shared: &Shared,
    link: &Link,
    awaiting: Exchange,
    stream: RequestStream,
) -> Option<(http::Request<()>, Exchange, RequestStream)> {
    let RequestStream { mut send, mut recv } = stream;
    let received = tokio::select! {
        biased;
        received = request_head(shared, &mut send, &mut recv) => Some(received?),
        () = link.activity.evicted() => None,
    };
    let stream = RequestStream { send, recv };
    // Only now does it count: a stream is not yet a request.
    let Some((request, exchange)) = received.zip(awaiting.begin()) else {
        Counters::count(&shared.counters.requests_refused);
        stream.reject();
        return None;
    };
    Some((request, exchange, stream))
}

/// Waits for the head of a request. Without one the stream has been answered or reset.
async fn request_head(
    shared: &Shared,
    send: &mut Sending<quinn::Connection>,
    recv: &mut Receiving<quinn::Connection>,
) -> Option<http::Request<()>> {
    match timeout(shared.limits.header_read_time, recv.request()).await {
        Ok(Ok(request)) => return Some(request),
        // The peer may leave no room for the answer.
        Ok(Err(error)) => {
            let refused = timeout(shared.limits.idle_time, refuse(send, &error)).await;
            refused.unwrap_or_else(|_| send.reset(ErrorCode::RequestRejected));
        }
        Err(_) => {
            Counters::count(&shared.counters.timed_out);
            send.reset(ErrorCode::RequestIncomplete);
        }
    }
    None
}

/// Answers a request that cannot be read: what is larger than is accepted with 431 (RFC 6585 §5), the rest with an
/// error code.
async fn refuse(send: &mut Sending<quinn::Connection>, error: &StreamError) {
    tracing::debug!(%error, "HTTP/3 request refused");
    match error {
        StreamError::Malformed(StreamFault::FieldSectionTooLarge { .. }) => {}
        StreamError::Malformed(fault) => return send.reset(fault.code()),
        StreamError::Excessive => return send.reset(ErrorCode::ExcessiveLoad),
        // The client has reset the request, and expects no response.
        _ => return send.reset(ErrorCode::RequestCancelled),
    }
    let mut response = http::Response::new(());
    *response.status_mut() = http::StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    if send.send_response(&response, Content::Empty).await.is_ok() {
        // What is left of it is the peer's.
        let _ = send.finish().await;
    }
}
