//! Sends a request over an idle or a new connection, and waits for its response.
//!
//! A request is retried only if the first attempt cannot have had an effect, or if a second one changes nothing
//! (RFC 9110 §9.2.2): if none of it was written; if it has no body, and the upstream stated that it did not process
//! it (RFC 9114 §4.1.1); or if it has no body, its method is idempotent, and the connection ended before a response
//! began. A reused connection may have ended before, and the host of a new one while it was accepted: the race for
//! the next one then finds another address of the upstream.

use std::convert::Infallible;
use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::sync::Arc;

use eyas::race::evidence::FailureCause;
use eyas_http::serve::InterimResponses;
use http::{Request, Response};
use tokio::time::{Instant, sleep};

use crate::attempt::{FailedAttempt, RequestFate, describe, malformed};
use crate::connection::{ConnectionOwner, UpstreamConnection, WantedConnection};
use crate::dial;
use crate::failure::UpstreamFailure;
use crate::interims::RequestInterims;
use crate::received::ReceivedBody;
use crate::request_body::{UploadBody, UploadProgress};
use crate::response_body::ConnectionLease;
use crate::shared::SharedGateway;
use crate::stats::GatewayCounters;

/// The limit on repetitions of a request that may have been received.
const MAX_REPEATS: u32 = 2;
/// The limit on connections opened for a request.
const MAX_OPENED: u32 = 4;

/// Sends a request, and waits for the head of its response. `repeated` returns the request once more, unless it must not
/// be sent twice.
pub(crate) async fn send(
    shared: &Arc<SharedGateway>,
    mut wanted: WantedConnection,
    mut request: Request<UploadBody>,
    repeated: impl Fn() -> Option<Request<UploadBody>>,
) -> Result<(Response<ReceivedBody>, ConnectionLease), UpstreamFailure> {
    let (upload, owner) = (Arc::clone(request.body().progress()), wanted.owner);
    let client = request.extensions_mut().remove::<InterimResponses>();
    let (mut opened, mut repeats) = (0, 0);
    loop {
        // A repetition must not meet the next of the connections that have ended without notice.
        let reused = if repeats == 0 { shared.pool.acquire(wanted) } else { None };
        let is_new = reused.is_none();
        let connection = match reused {
            Some(connection) => {
                GatewayCounters::count(&shared.counters.reused);
                connection
            }
            None => {
                opened += 1;
                // Apart from the request, for most of which there is a connection: a race is large.
                Box::pin(dial::connect(shared, wanted)).await?
            }
        };
        let began = Instant::now();
        let is_idempotent = request.method().is_idempotent();
        match attempt(shared, connection, (request, is_new), client.clone()).await {
            Ok(answered) => return Ok(leased(shared, owner, answered, upload)),
            Err(FailedAttempt { unsent: Some(unsent), .. }) if opened < MAX_OPENED => {
                request = *unsent;
            }
            Err(FailedAttempt { fate, failure, .. })
                if repeats < MAX_REPEATS
                    && (fate == RequestFate::Unprocessed
                        || (fate == RequestFate::Ended && is_idempotent)) =>
            {
                request = repeated().ok_or(failure)?;
                // One whose streams end may go on for a while, as that of a server that is being stopped.
                wanted.opened_since = Some(began);
                repeats += 1;
                GatewayCounters::count(&shared.counters.repeated);
            }
            Err(FailedAttempt { failure, .. }) => return Err(failure),
        }
    }
}

/// Returns a response with the lease of its connection.
fn leased(
    shared: &SharedGateway,
    owner: ConnectionOwner,
    (response, connection): (Response<ReceivedBody>, UpstreamConnection),
    upload: Arc<UploadProgress>,
) -> (Response<ReceivedBody>, ConnectionLease) {
    let (pool, counters) = (Arc::clone(&shared.pool), Arc::clone(&shared.counters));
    let status = response.status();
    let is_refused = status.is_client_error() || status.is_server_error();
    let connection = Some(connection);
    (response, ConnectionLease { connection, is_refused, owner, pool, upload, counters })
}

async fn attempt(
    shared: &SharedGateway,
    mut connection: UpstreamConnection,
    (request, is_new): (Request<UploadBody>, bool),
    client: Option<InterimResponses>,
) -> Result<(Response<ReceivedBody>, UpstreamConnection), FailedAttempt> {
    if let Err(error) = connection.ready().await {
        return Err(FailedAttempt::unsent(request, describe(&error)));
    }
    let upload = Arc::clone(request.body().progress());
    let interims = RequestInterims::new(&upload, client, &connection.input_end());
    let result = {
        let sent = pin!(connection.send(request, &interims));
        interims.limit(with_timeout(shared, &upload, sent)).await
    };
    let result = match result {
        Ok(Some(result)) => result,
        Ok(None) => {
            connection.cut();
            return Err(FailedAttempt::new(UpstreamFailure::Silent(shared.limits.response_time)));
        }
        Err(too_many) => {
            connection.cut();
            return Err(FailedAttempt::new(malformed(too_many.to_string())));
        }
    };
    match result {
        Ok(response) => {
            connection.answered();
            check_fields(shared, &response)?;
            Ok((response, connection))
        }
        Err(failed) => {
            remember(&connection, &failed, is_new);
            Err(failed)
        }
    }
}

/// Limits the number of fields, which only hyper's HTTP/1.1 does itself.
fn check_fields(
    shared: &SharedGateway,
    response: &Response<ReceivedBody>,
) -> Result<(), FailedAttempt> {
    let limit = shared.limits.header_fields;
    match response.headers().len() > limit {
        true => {
            let text = format!("it has more than {limit} fields");
            Err(FailedAttempt::new(malformed(text)))
        }
        false => Ok(()),
    }
}

/// Tells the memory, and other requests, what the failure of a connection means for them.
fn remember(connection: &UpstreamConnection, failed: &FailedAttempt, is_new: bool) {
    if failed.fate == RequestFate::Unprocessed {
        connection.retire();
    }
    // A connection that had been used before may have gone stale, and a reset tells of a restart.
    let is_of_path = matches!(failed.cause, Some(FailureCause::Silent | FailureCause::Protocol));
    if failed.fate == RequestFate::Ended && (is_new || is_of_path) {
        connection.broke(failed.cause, failed.failure.to_string());
    }
}

/// Waits for a response as long as the upstream accepts data or the client is to send some. Returns `None` on a
/// timeout.
async fn with_timeout<T>(
    shared: &SharedGateway,
    upload: &UploadProgress,
    mut responding: Pin<&mut impl Future<Output = T>>,
) -> Option<T> {
    let limit = shared.limits.response_time;
    let mut silence = pin!(sleep(limit));
    let mut continuing = pin!(async {
        if upload.gate.is_waiting() {
            sleep(shared.limits.continue_time).await;
            upload.gate.open();
        }
        pending::<Infallible>().await
    });
    let mut bytes = 0;
    loop {
        tokio::select! {
            biased;
            response = &mut responding => return Some(response),
            never = &mut continuing => match never {},
            () = &mut silence => {
                let accepted = upload.bytes();
                if accepted == bytes && !upload.is_awaited() {
                    return None;
                }
                bytes = accepted;
                silence.as_mut().reset(Instant::now() + limit);
            }
        }
    }
}
