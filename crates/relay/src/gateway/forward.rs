//! A request to its response, over a connection that waits or over a new one.
//!
//! A request is sent a second time only where the first one cannot have had an effect, or where two have
//! the one of one (RFC 9110 §9.2.2): nothing of it was written, or its method is idempotent, it has no body, and
//! it met a connection that had served others and ended before a response began.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use eyas_http::serve::InterimResponses;
use http::{Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::SendRequest;
use tokio::time::{Instant, sleep};

use super::dial;
use super::failure::Failure;
use super::fields;
use super::pool::Owner;
use super::request_body::{Progress, Upload};
use super::response_body::Lease;
use super::shared::Shared;
use super::stats::Counters;
use crate::proxy_status::ErrorType;

/// How a single try ended without a response.
struct Missed {
    failure: Failure,
    /// The request, if nothing of it was written.
    unsent: Option<Box<Request<Upload>>>,
    /// Whether the connection ended before anything of a response.
    ended: bool,
}

/// Sends a request, and waits for the head of its response.
pub(super) async fn send(
    shared: &Shared,
    owner: Owner,
    mut request: Request<Upload>,
) -> Result<(Response<Incoming>, Lease), Failure> {
    let upload = Arc::clone(request.body().progress());
    listen_for_interims(&mut request, &upload);
    while let Some(sender) = shared.pool.take(owner) {
        let spare = spare(&request);
        Counters::count(&shared.counters.reused);
        match attempt(shared, sender, request).await {
            Ok((response, sender)) => return Ok((response, lease(shared, owner, sender, upload))),
            Err(Missed { unsent: Some(unsent), .. }) => request = *unsent,
            Err(Missed { ended: true, failure, .. }) => {
                request = spare.ok_or(failure)?;
                Counters::count(&shared.counters.repeated);
                break;
            }
            Err(Missed { failure, .. }) => return Err(failure),
        }
    }
    let sender = dial::dial(shared, owner).await?;
    let (response, sender) =
        attempt(shared, sender, request).await.map_err(|missed| missed.failure)?;
    Ok((response, lease(shared, owner, sender, upload)))
}

fn lease(
    shared: &Shared,
    owner: Owner,
    sender: SendRequest<Upload>,
    upload: Arc<Progress>,
) -> Lease {
    let (pool, counters) = (Arc::clone(&shared.pool), Arc::clone(&shared.counters));
    Lease { sender: Some(sender), owner, pool, upload, counters }
}

/// The same request again, if it may be sent twice.
fn spare(request: &Request<Upload>) -> Option<Request<Upload>> {
    let may_repeat = request.method().is_idempotent()
        && !request.headers().contains_key(header::UPGRADE)
        && http_body::Body::is_end_stream(request.body());
    if !may_repeat {
        return None;
    }
    let mut spare = Request::new(Upload::none());
    *spare.method_mut() = request.method().clone();
    *spare.uri_mut() = request.uri().clone();
    *spare.version_mut() = request.version();
    *spare.headers_mut() = request.headers().clone();
    *spare.extensions_mut() = request.extensions().clone();
    Some(spare)
}

/// Opens the gate of the body when the upstream wants it, and passes on what else it says before its
/// response (RFC 9110 §15.2), where the client's connection can carry that.
fn listen_for_interims(request: &mut Request<Upload>, upload: &Arc<Progress>) {
    let client = request.extensions_mut().remove::<InterimResponses>();
    if client.is_none() && !upload.gate.is_shut() {
        return;
    }
    let upload = Arc::clone(upload);
    hyper::ext::on_informational(request, move |response| {
        if response.status() == StatusCode::CONTINUE {
            upload.gate.open();
        } else if let Some(client) = &client {
            let mut interim = Response::new(());
            *interim.status_mut() = response.status();
            *interim.headers_mut() = fields::of_interim(response.headers());
            client.send(interim);
        }
    });
}

async fn attempt(
    shared: &Shared,
    mut sender: SendRequest<Upload>,
    request: Request<Upload>,
) -> Result<(Response<Incoming>, SendRequest<Upload>), Missed> {
    // A connection that has just served is ready when its task has seen the end.
    if let Err(error) = sender.ready().await {
        let failure = Failure::Closed(describe(&error));
        return Err(Missed { failure, unsent: Some(Box::new(request)), ended: true });
    }
    let upload = Arc::clone(request.body().progress());
    let sent = sender.try_send_request(request);
    let result = watched(shared, &upload, sent).await;
    match result {
        None => {
            let failure = Failure::Silent(shared.limits.response_time);
            Err(Missed { failure, unsent: None, ended: false })
        }
        Some(Ok(response)) => Ok((response, sender)),
        Some(Err(error)) => Err(missed(error, &upload)),
    }
}

fn missed(mut error: TrySendError<Request<Upload>>, upload: &Progress) -> Missed {
    let unsent = error.take_message().map(Box::new);
    let error = error.into_error();
    let failure = match upload.error() {
        Some(error) => Failure::Upload(error),
        None if error.is_parse() => Failure::Malformed(ErrorType::HttpProtocolError, describe(&error)),
        None => Failure::Closed(describe(&error)),
    };
    let ended = matches!(failure, Failure::Closed(_));
    Missed { failure, unsent, ended }
}

/// What hyper says, with its cause.
fn describe(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Waits for an answer, for as long as the upstream takes something, or the client is to send
/// something. Nothing if that is over.
async fn watched<T>(
    shared: &Shared,
    upload: &Progress,
    answering: impl Future<Output = T>,
) -> Option<T> {
    let limit = shared.limits.response_time;
    let mut answering = pin!(answering);
    let mut silence = pin!(sleep(limit));
    let mut patience = pin!(sleep(shared.limits.continue_time));
    let mut bytes = 0;
    loop {
        tokio::select! {
            biased;
            answer = &mut answering => return Some(answer),
            () = &mut patience, if upload.gate.is_shut() => upload.gate.open(),
            () = &mut silence => {
                let taken = upload.bytes();
                if taken == bytes && !upload.is_awaited() {
                    return None;
                }
                bytes = taken;
                silence.as_mut().reset(Instant::now() + limit);
            }
        }
    }
}
