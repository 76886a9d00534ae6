//! The service that a server asks.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use eyas_http::serve::{ConnectProtocol, InterimResponses};
use http::{HeaderValue, Request, Response, StatusCode, header, request};
use http_body::Body;
use hyper::upgrade::OnUpgrade;
use tower_service::Service;

use super::ask::{self, Ask, Framing, Objection};
use super::failure::Failure;
use super::fields;
use super::forward;
use super::head::{self, Content};
use super::peer::Peer;
use super::pool::Owner;
use super::request_body::{BoxError, Progress, Upload};
use super::response_body::ResponseBody;
use super::shared::Shared;
use super::stats::Stats;
use super::tunnel;
use super::websocket;
use crate::proxy_status::ErrorType;

/// A tower service that has requests answered by an upstream. Clones are the same gateway.
#[derive(Clone, Debug)]
pub struct Gateway(Arc<Shared>);

impl Gateway {
    pub(super) fn new(shared: Shared) -> Self {
        Self(Arc::new(shared))
    }

    /// Returns the counters so far.
    pub fn stats(&self) -> Stats {
        self.0.counters.snapshot()
    }

    /// What the upstream gets of a request from this client: the head, with the field that says how the body
    /// ends unless it `is_over`, or the status that the request is refused with. The upstream is not asked.
    /// Requests for WebSockets are treated as any others here.
    ///
    /// # Errors
    /// If the request is refused.
    pub fn onward(
        &self,
        mut from: request::Parts,
        client: Option<SocketAddr>,
        is_over: bool,
    ) -> Result<Request<()>, StatusCode> {
        let peer = Peer { remote: client, ..Peer::default() };
        let asked = ask::read(&from, false).map_err(|why| why.status)?;
        let onward = head::onward(&self.0, &asked, (&mut from, &peer));
        let mut onward = onward.ok_or(StatusCode::BAD_REQUEST)?;
        head::frame(&mut onward, Content::of(asked.framing, is_over));
        Ok(onward)
    }
}

impl<B> Service<Request<B>> for Gateway
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let shared = Arc::clone(&self.0);
        Box::pin(async move { Ok(answer(&shared, request).await) })
    }
}

/// Answers a request, in any case.
async fn answer<B>(shared: &Arc<Shared>, request: Request<B>) -> Response<ResponseBody>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let (mut from, body) = request.into_parts();
    let peer = Peer::of(&from.extensions);
    let (method, uri) = (from.method.clone(), from.uri.clone());
    match exchange(shared, (&mut from, &peer), body).await {
        Ok(response) => response,
        Err(failure) => {
            shared.counters.failed(failure.reason());
            if failure.is_upstreams() {
                tracing::warn!(%failure, %method, path = uri.path(), "no response of the upstream");
                shared.notices.report(&failure, || format!("{method} {}", printable(uri.path())));
            }
            failure.response().map(ResponseBody::made)
        }
    }
}

/// Nothing of a path that a terminal would obey.
fn printable(path: &str) -> String {
    path.escape_debug().to_string()
}

async fn exchange<B>(
    shared: &Arc<Shared>,
    (from, peer): (&mut request::Parts, &Peer),
    body: B,
) -> Result<Response<ResponseBody>, Failure>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let protocol = from.extensions.remove::<ConnectProtocol>();
    let asked = ask::read(from, protocol.is_some()).map_err(Failure::Refused)?;
    if shared.pseudonym.is_in(&from.headers) {
        return Err(Failure::Loop);
    }
    let switching = websocket::is_asked(from).then(|| from.extensions.remove::<OnUpgrade>());
    let mut onward = head::onward(shared, &asked, (from, peer)).ok_or(UNWRITABLE)?;
    if let Some(interims) = from.extensions.remove::<InterimResponses>() {
        onward.extensions_mut().insert(interims);
    }
    let owner = if shared.proxy_protocol { peer.remote.zip(peer.local) } else { None };
    if let Some(ConnectProtocol(protocol)) = protocol {
        if &*protocol != "websocket" {
            return Err(UNKNOWN_PROTOCOL);
        }
        let client = Upload::new(body, None, Progress::new(false));
        return switch_on_stream(shared, owner, client, onward).await;
    }
    if let Some(Some(client)) = switching {
        return switch(shared, owner, client, onward).await;
    }
    let (upload, content) = upload(&asked, &onward, body).await?;
    let mut onward = onward.map(|()| upload);
    head::frame(&mut onward, content);
    let (response, lease) = forward::send(shared, owner, onward).await?;
    if response.status().is_informational() {
        return Err(upgrade_failed("it switched protocols unasked"));
    }
    if response.headers().contains_key(header::TRANSFER_ENCODING) && !is_chunked_alone(&response) {
        let text = "the only supported transfer coding is chunked".to_owned();
        return Err(Failure::Malformed(ErrorType::HttpResponseTransferCoding, text));
    }
    let idle_time = shared.limits.idle_time;
    let mut response = response.map(|body| ResponseBody::of_upstream(body, lease, idle_time));
    fields::of_response(response.headers_mut());
    Ok(response)
}

const UNWRITABLE: Failure = Failure::Refused(Objection {
    status: StatusCode::BAD_REQUEST,
    text: "The request target is invalid.",
});

fn upgrade_failed(text: &str) -> Failure {
    Failure::Malformed(ErrorType::HttpUpgradeFailed, text.to_owned())
}

fn is_chunked_alone<B>(response: &Response<B>) -> bool {
    let mut codings = fields::names(response.headers(), &header::TRANSFER_ENCODING);
    codings.next().is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"))
        && codings.next().is_none()
}

/// The body to send, and how its length is announced.
async fn upload<B>(asked: &Ask, onward: &Request<()>, body: B) -> Result<(Upload, Content), Failure>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let content = Content::of(asked.framing, body.is_end_stream());
    let announced = match content {
        Content::None => match asked.framing {
            // HTTP/3 does not hold a client to it that nothing comes.
            Framing::Length(_) => Some(0),
            Framing::Open | Framing::Nothing => return Ok((Upload::none(), content)),
        },
        Content::Length(length) => Some(length),
        Content::Open => None,
    };
    let progress = Progress::new(asked.expects_continue && content != Content::None);
    let mut upload = Upload::new(body, announced, progress);
    // A stream of HTTP/2 or HTTP/3 may end right behind the head, or a moment later: a method that has
    // no content as a rule waits for that, so that the upstream is not sent a body without bytes.
    let is_rarely_sent = onward.method().is_safe() || onward.method() == http::Method::DELETE;
    let waits = content == Content::None
        || (content == Content::Open && is_rarely_sent && !asked.expects_continue);
    if waits && upload.is_empty().await.map_err(Failure::Upload)? {
        return Ok((Upload::none(), Content::None));
    }
    Ok((upload, content))
}

const UNKNOWN_PROTOCOL: Failure = Failure::Refused(Objection {
    status: StatusCode::NOT_IMPLEMENTED,
    text: "The only supported protocol for CONNECT is websocket.",
});

/// Opens a WebSocket for a client that asked by extended CONNECT (RFC 8441 §5), or passes on why there is
/// none.
async fn switch_on_stream(
    shared: &Arc<Shared>,
    owner: Owner,
    client: Upload,
    onward: Request<()>,
) -> Result<Response<ResponseBody>, Failure> {
    let mut onward = onward.map(|()| Upload::none());
    *onward.method_mut() = http::Method::GET;
    let key = websocket::new_key().ok_or(UNWRITABLE)?;
    onward.headers_mut().insert(header::SEC_WEBSOCKET_KEY, key.clone());
    websocket::ask(onward.headers_mut());
    let (mut response, lease) = forward::send(shared, owner, onward).await?;
    if response.status().is_success() {
        // To the client it would be a WebSocket.
        return Err(upgrade_failed("it responded as if no WebSocket had been requested"));
    }
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        let idle_time = shared.limits.idle_time;
        fields::of_response(response.headers_mut());
        return Ok(response.map(|body| ResponseBody::of_upstream(body, lease, idle_time)));
    }
    if !websocket::is_agreed(Some(&key), response.headers()) {
        return Err(upgrade_failed("it switched to something other than WebSocket"));
    }
    let upstream = hyper::upgrade::on(&mut response);
    fields::of_response(response.headers_mut());
    response.headers_mut().remove(header::SEC_WEBSOCKET_ACCEPT);
    *response.status_mut() = StatusCode::OK;
    let download = tunnel::open_on_stream(shared, client, upstream);
    Ok(response.map(|_| ResponseBody::of_tunnel(download)))
}

/// Opens a WebSocket, or passes on why there is none.
async fn switch(
    shared: &Arc<Shared>,
    owner: Owner,
    client: OnUpgrade,
    onward: Request<()>,
) -> Result<Response<ResponseBody>, Failure> {
    let mut onward = onward.map(|()| Upload::none());
    let key = onward.headers().get(header::SEC_WEBSOCKET_KEY).cloned();
    websocket::ask(onward.headers_mut());
    let (mut response, lease) = forward::send(shared, owner, onward).await?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        let idle_time = shared.limits.idle_time;
        fields::of_response(response.headers_mut());
        return Ok(response.map(|body| ResponseBody::of_upstream(body, lease, idle_time)));
    }
    if !websocket::is_agreed(key.as_ref(), response.headers()) {
        return Err(upgrade_failed("it switched to something other than WebSocket"));
    }
    let upstream = hyper::upgrade::on(&mut response);
    fields::of_response(response.headers_mut());
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    response.headers_mut().insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    tunnel::open(shared, client, upstream);
    Ok(response.map(|_| ResponseBody::made(Bytes::new())))
}
