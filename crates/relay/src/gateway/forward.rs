//! Sends a request over an idle or a new connection, and waits for its response.
//!
//! A request is retried only if the first attempt cannot have had an effect, or if a second one changes nothing
//! (RFC 9110 §9.2.2): if none of it was written, or if its method is idempotent, it has no body, and the connection
//! ended before a response began. A reused connection may have ended before, and the host of a new one while it
//! was accepted: the race for the next one then finds another address of the upstream.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use eyas_http::serve::InterimResponses;
use eyas_http::{InformationalLimit, InputEnd, TooManyInformational};
use http::{Request, Response, StatusCode, header};
use hyper::body::Incoming;
use tokio::time::{Instant, sleep};

use super::connection::{Connection, Owner, Wanted};
use super::dial;
use super::failure::Failure;
use super::fields;
use super::request_body::{Progress, Upload};
use super::response_body::Lease;
use super::shared::Shared;
use super::stats::Counters;
use crate::proxy_status::ErrorType;

/// The limit on repetitions of a request that may have been received.
const MAX_REPEATS: u32 = 2;
/// The limit on connections opened for a request.
const MAX_OPENED: u32 = 4;

/// An attempt without a response.
struct FailedAttempt {
    failure: Failure,
    /// The request, if none of it was written.
    unsent: Option<Box<Request<Upload>>>,
    /// Whether the connection ended before a response began.
    ended: bool,
}

/// Sends a request, and waits for the head of its response.
pub(super) async fn send(
    shared: &Shared,
    wanted: Wanted,
    mut request: Request<Upload>,
) -> Result<(Response<Incoming>, Lease), Failure> {
    let (upload, owner) = (Arc::clone(request.body().progress()), wanted.owner);
    let client = request.extensions_mut().remove::<InterimResponses>();
    let (mut opened, mut repeats) = (0, 0);
    loop {
        // A repetition must not meet the next of the connections that have ended without notice.
        let reused = if repeats == 0 { shared.pool.take(wanted) } else { None };
        let is_new = reused.is_none();
        let connection = match reused {
            Some(connection) => {
                Counters::count(&shared.counters.reused);
                connection
            }
            None => {
                opened += 1;
                dial::connect(shared, wanted).await?
            }
        };
        let copy = copy_for_retry(&request);
        match attempt(shared, connection, (request, is_new), client.clone()).await {
            Ok(answered) => return Ok(leased(shared, owner, answered, upload)),
            Err(FailedAttempt { unsent: Some(unsent), .. }) if opened < MAX_OPENED => {
                request = *unsent;
            }
            Err(FailedAttempt { ended: true, failure, .. }) if repeats < MAX_REPEATS => {
                request = copy.ok_or(failure)?;
                repeats += 1;
                Counters::count(&shared.counters.repeated);
            }
            Err(FailedAttempt { failure, .. }) => return Err(failure),
        }
    }
}

/// Returns a response with the lease of its connection.
fn leased(
    shared: &Shared,
    owner: Owner,
    (response, connection): (Response<Incoming>, Connection),
    upload: Arc<Progress>,
) -> (Response<Incoming>, Lease) {
    let (pool, counters) = (Arc::clone(&shared.pool), Arc::clone(&shared.counters));
    let status = response.status();
    let is_refused = status.is_client_error() || status.is_server_error();
    let connection = Some(connection);
    (response, Lease { connection, is_refused, owner, pool, upload, counters })
}

/// Returns a copy of the request, if it may be sent twice.
fn copy_for_retry(request: &Request<Upload>) -> Option<Request<Upload>> {
    let may_repeat = request.method().is_idempotent()
        && !request.headers().contains_key(header::UPGRADE)
        && http_body::Body::is_end_stream(request.body());
    if !may_repeat {
        return None;
    }
    let mut copy = Request::new(Upload::none());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    *copy.extensions_mut() = request.extensions().clone();
    Some(copy)
}

/// Opens the gate of the body on 100 Continue, and forwards other interim responses (RFC 9110 §15.2), if the
/// client's connection supports them. Returns their limit, since hyper has none.
fn listen_for_interims(
    request: &mut Request<Upload>,
    client: Option<InterimResponses>,
    end: &InputEnd,
) -> Arc<InformationalLimit> {
    let upload = Arc::clone(request.body().progress());
    let limit = Arc::new(InformationalLimit::ending(end));
    let counted = Arc::clone(&limit);
    hyper::ext::on_informational(request, move |response| {
        if counted.count(response.headers()).is_err() {
            return;
        }
        if response.status() == StatusCode::CONTINUE {
            upload.gate.open();
        } else if let Some(client) = &client {
            let mut interim = Response::new(());
            *interim.status_mut() = response.status();
            *interim.headers_mut() = fields::of_interim(response.headers());
            client.send(interim);
        }
    });
    limit
}

/// Why an attempt got no response although its connection is open.
enum NoResponse {
    Silence,
    Interims(TooManyInformational),
}

impl NoResponse {
    fn failure(self, limit: Duration) -> Failure {
        match self {
            Self::Silence => Failure::Silent(limit),
            Self::Interims(why) => {
                Failure::Malformed(ErrorType::HttpProtocolError, why.to_string())
            }
        }
    }
}

async fn attempt(
    shared: &Shared,
    mut connection: Connection,
    (mut request, is_new): (Request<Upload>, bool),
    client: Option<InterimResponses>,
) -> Result<(Response<Incoming>, Connection), FailedAttempt> {
    if let Err(error) = connection.ready().await {
        let failure = Failure::Closed(describe(&error));
        return Err(FailedAttempt { failure, unsent: Some(Box::new(request)), ended: true });
    }
    let upload = Arc::clone(request.body().progress());
    let interims = listen_for_interims(&mut request, client, &connection.input_end());
    let result = {
        let sent = connection.send(request);
        interims.apply(with_timeout(shared, &upload, sent)).await
    };
    let result = result.map_err(NoResponse::Interims);
    match result.and_then(|result| result.ok_or(NoResponse::Silence)) {
        Err(why) => {
            connection.cut();
            let failure = why.failure(shared.limits.response_time);
            Err(FailedAttempt { failure, unsent: None, ended: false })
        }
        Ok(Ok(response)) => Ok((response, connection)),
        Ok(Err((error, unsent))) => {
            let failed = failed_attempt(&error, unsent.map(Box::new), &upload);
            if failed.ended && is_new {
                connection.broke(describe(&error));
            }
            Err(failed)
        }
    }
}

fn failed_attempt(
    error: &hyper::Error,
    unsent: Option<Box<Request<Upload>>>,
    upload: &Progress,
) -> FailedAttempt {
    let failure = match upload.error() {
        Some(error) => Failure::Upload(error),
        None if error.is_parse() => {
            Failure::Malformed(ErrorType::HttpProtocolError, describe(error))
        }
        None => Failure::Closed(describe(error)),
    };
    let ended = matches!(failure, Failure::Closed(_));
    FailedAttempt { failure, unsent, ended }
}

/// Returns hyper's text with its cause.
fn describe(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Waits for a response as long as the upstream accepts data or the client is to send some. Returns `None` on a
/// timeout.
async fn with_timeout<T>(
    shared: &Shared,
    upload: &Progress,
    responding: impl Future<Output = T>,
) -> Option<T> {
    let limit = shared.limits.response_time;
    let mut responding = pin!(responding);
    let mut silence = pin!(sleep(limit));
    let mut continue_timer = pin!(sleep(shared.limits.continue_time));
    let mut bytes = 0;
    loop {
        tokio::select! {
            biased;
            response = &mut responding => return Some(response),
            () = &mut continue_timer, if upload.gate.is_waiting() => upload.gate.open(),
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
