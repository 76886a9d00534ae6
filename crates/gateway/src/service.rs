//! The service for a server.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use eyas_http::serve::InterimResponses;
use eyas_relay::proxy_status::ErrorType;
use http::{Extensions, HeaderValue, Request, Response, StatusCode, Version, header, request};
use http_body::Body;
use hyper::ext::Protocol;
use hyper::upgrade::OnUpgrade;
use tower_service::Service;

use crate::connection::WantedConnection;
use crate::failure::UpstreamFailure;
use crate::fields;
use crate::forward;
use crate::head::{self, RequestContent};
use crate::peer::RequestPeer;
use crate::received::ReceivedBody;
use crate::request_body::{BoxError, UploadBody, UploadProgress};
use crate::response_body::{ConnectionLease, ResponseBody};
use crate::shared::SharedGateway;
use crate::stats::GatewayStats;
use crate::tunnel::{self, UpstreamTunnel};
use crate::upgrade;
use crate::validation::{BodyFraming, RequestRejection, ValidRequest, has_raw_octets, validate};
use crate::websocket;

/// A tower service that forwards requests to an upstream. Clones share the same gateway.
#[derive(Clone, Debug)]
pub struct Gateway(Arc<SharedGateway>);

impl Gateway {
    pub(crate) fn new(shared: SharedGateway) -> Self {
        Self(Arc::new(shared))
    }

    pub(crate) fn shared(&self) -> &SharedGateway {
        &self.0
    }

    /// Returns the counters so far.
    pub fn stats(&self) -> GatewayStats {
        self.0.counters.snapshot()
    }

    /// Returns the head of the request that the upstream would get for a request from this client, without
    /// contacting the upstream. It includes the framing of the body, unless that `is_over`. Requests for
    /// WebSockets are treated like any others.
    ///
    /// # Errors
    /// Returns the status of the response if the request is rejected.
    pub fn upstream_request(
        &self,
        from: request::Parts,
        client: Option<SocketAddr>,
        is_over: bool,
    ) -> Result<Request<()>, StatusCode> {
        let peer = RequestPeer { remote: client, ..RequestPeer::default() };
        let valid = validate(&from, false).map_err(|rejection| rejection.status)?;
        let request = head::for_upstream(&self.0, &valid, (&from, &peer));
        let mut request = request.ok_or(StatusCode::BAD_REQUEST)?;
        head::frame(&mut request, RequestContent::from_framing(valid.framing, is_over));
        Ok(request)
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

/// Answers a request, with an error response if necessary.
async fn answer<B>(shared: &Arc<SharedGateway>, request: Request<B>) -> Response<ResponseBody>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let (mut from, body) = request.into_parts();
    let peer = RequestPeer::from_extensions(&from.extensions);
    let (method, uri) = (from.method.clone(), from.uri.clone());
    match exchange(shared, (&mut from, &peer), body).await {
        Ok(response) => response,
        Err(failure) => {
            shared.counters.failed(failure.reason());
            if failure.concerns_operator() {
                tracing::warn!(%failure, %method, path = uri.path(), "no response from the upstream");
                shared.notices.report(&failure, || format!("{method} {}", printable(uri.path())));
            }
            failure.response().map(ResponseBody::generated)
        }
    }
}

/// Escapes a path for output on a terminal.
fn printable(path: &str) -> String {
    path.escape_debug().to_string()
}

async fn exchange<B>(
    shared: &Arc<SharedGateway>,
    (from, peer): (&mut request::Parts, &RequestPeer),
    body: B,
) -> Result<Response<ResponseBody>, UpstreamFailure>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    if shared.refuses_raw_targets && has_raw_octets(from) {
        return Err(RAW_TARGET);
    }
    let protocol = from.extensions.remove::<Protocol>();
    let valid = validate(from, protocol.is_some()).map_err(UpstreamFailure::Refused)?;
    if shared.pseudonym.is_in(&from.headers) {
        return Err(UpstreamFailure::Loop);
    }
    let upgrade = websocket::is_requested(from).then(|| from.extensions.remove::<OnUpgrade>());
    let protocols = upgrade.is_none().then(|| shared.upgrades.requested(from)).flatten();
    let switching = protocols.zip(from.extensions.remove::<OnUpgrade>());
    let mut forwarded = head::for_upstream(shared, &valid, (from, peer)).ok_or(UNWRITABLE)?;
    if let Some(interims) = from.extensions.remove::<InterimResponses>() {
        forwarded.extensions_mut().insert(interims);
    }
    let owner = if shared.proxy_protocol { peer.remote.zip(peer.local) } else { None };
    if let Some(protocol) = protocol {
        if !protocol.as_str().eq_ignore_ascii_case("websocket") {
            return Err(UNKNOWN_PROTOCOL);
        }
        let client = UploadBody::new(body, None, UploadProgress::new(false));
        let wanted = WantedConnection::for_websocket(owner, &shared.upstream);
        return Box::pin(open_websocket_on_stream(shared, wanted, client, forwarded)).await;
    }
    if let Some(Some(client)) = upgrade {
        let wanted = WantedConnection::for_websocket(owner, &shared.upstream);
        return Box::pin(open_websocket(shared, wanted, client, forwarded)).await;
    }
    let extensions = kept_extensions(from);
    forwarded.extensions_mut().extend(extensions.clone());
    let (upload, content) = upload(&valid, &forwarded, body).await?;
    let mut forwarded = forwarded.map(|()| upload);
    head::frame(&mut forwarded, content);
    if let Some((protocols, _)) = &switching {
        upgrade::request(forwarded.headers_mut(), protocols);
    }
    let can_repeat = switching.is_none() && forwarded.body().is_end_stream();
    let repeated = || {
        let head = can_repeat.then(|| head::for_upstream(shared, &valid, (from, peer)))??;
        let mut repeated = head.map(|()| UploadBody::none());
        repeated.extensions_mut().extend(extensions.clone());
        head::frame(&mut repeated, content);
        Some(repeated)
    };
    let wanted = WantedConnection::new(owner, switching.is_some());
    let (response, lease) = forward::send(shared, wanted, forwarded, repeated).await?;
    if let (Some((protocols, client)), StatusCode::SWITCHING_PROTOCOLS) =
        (switching, response.status())
    {
        return switch(shared, (&protocols, client), (response, lease));
    }
    if response.status().is_informational() {
        return Err(upgrade_failed("it switched protocols without a request to"));
    }
    if response.headers().contains_key(header::TRANSFER_ENCODING) && !is_only_chunked(&response) {
        let text = "the only supported transfer coding is chunked".to_owned();
        return Err(UpstreamFailure::Malformed(ErrorType::HttpResponseTransferCoding, text));
    }
    Ok(forwarded_response(shared, response, lease))
}

/// Returns what hyper keeps with a request over HTTP/1: the case of names, which some applications mind.
fn kept_extensions(from: &mut request::Parts) -> Extensions {
    if matches!(from.version, Version::HTTP_2 | Version::HTTP_3) {
        return Extensions::new();
    }
    from.extensions.remove::<OnUpgrade>();
    std::mem::take(&mut from.extensions)
}

/// Returns a response as the client gets it.
fn forwarded_response(
    shared: &SharedGateway,
    response: Response<ReceivedBody>,
    lease: ConnectionLease,
) -> Response<ResponseBody> {
    let idle_time = shared.limits.idle_time;
    let mut response = response.map(|body| ResponseBody::from_upstream(body, lease, idle_time));
    fields::filter_response(response.headers_mut());
    response
}

/// Opens a tunnel for the protocol that the upstream has switched to.
fn switch(
    shared: &Arc<SharedGateway>,
    (protocols, client): (&HeaderValue, OnUpgrade),
    (response, lease): (Response<ReceivedBody>, ConnectionLease),
) -> Result<Response<ResponseBody>, UpstreamFailure> {
    let protocol = upgrade::accepted(protocols, response.headers())
        .ok_or_else(|| upgrade_failed("it switched to a protocol that was not requested"))?;
    let (mut response, upstream) = UpstreamTunnel::from_response(response, lease);
    fields::filter_response(response.headers_mut());
    upgrade::request(response.headers_mut(), &protocol);
    tunnel::open(shared, client, upstream);
    Ok(response.map(|()| ResponseBody::generated(Bytes::new())))
}

const RAW_TARGET: UpstreamFailure = UpstreamFailure::Refused(RequestRejection {
    status: StatusCode::BAD_REQUEST,
    text: "The request target must be ASCII.",
});

const UNWRITABLE: UpstreamFailure = UpstreamFailure::Refused(RequestRejection {
    status: StatusCode::BAD_REQUEST,
    text: "The request target is invalid.",
});

fn upgrade_failed(text: &str) -> UpstreamFailure {
    UpstreamFailure::Malformed(ErrorType::HttpUpgradeFailed, text.to_owned())
}

fn is_only_chunked<B>(response: &Response<B>) -> bool {
    let mut codings = fields::list_elements(response.headers(), &header::TRANSFER_ENCODING);
    codings.next().is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"))
        && codings.next().is_none()
}

/// Returns the body to send, and how its length is announced.
async fn upload<B>(
    valid: &ValidRequest,
    forwarded: &Request<()>,
    body: B,
) -> Result<(UploadBody, RequestContent), UpstreamFailure>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let content = RequestContent::from_framing(valid.framing, body.is_end_stream());
    let announced = match content {
        RequestContent::None => match valid.framing {
            // HTTP/3 does not check that a client which announced nothing sends nothing.
            BodyFraming::Length(_) => Some(0),
            BodyFraming::Open | BodyFraming::Nothing => return Ok((UploadBody::none(), content)),
        },
        RequestContent::Length(length) => Some(length),
        RequestContent::Open => None,
    };
    let progress = UploadProgress::new(valid.expects_continue && content != RequestContent::None);
    let mut upload = UploadBody::new(body, announced, progress);
    // An HTTP/2 or HTTP/3 stream may end with the head, or a moment later. Methods that usually have no content
    // wait for that, so that the upstream does not get an empty chunked body.
    let method = forwarded.method();
    let is_rarely_sent =
        (method.is_safe() && method != http::Method::QUERY) || method == http::Method::DELETE;
    let waits = content == RequestContent::None
        || (content == RequestContent::Open && is_rarely_sent && !valid.expects_continue);
    if waits && upload.is_empty().await.map_err(UpstreamFailure::Upload)? {
        return Ok((UploadBody::none(), RequestContent::None));
    }
    Ok((upload, content))
}

const UNKNOWN_PROTOCOL: UpstreamFailure = UpstreamFailure::Refused(RequestRejection {
    status: StatusCode::NOT_IMPLEMENTED,
    text: "The only supported protocol for CONNECT is websocket.",
});

/// Opens a WebSocket for a client that used extended CONNECT (RFC 8441 §5, RFC 9220 §3), or forwards the upstream's refusal.
async fn open_websocket_on_stream(
    shared: &Arc<SharedGateway>,
    wanted: WantedConnection,
    client: UploadBody,
    forwarded: Request<()>,
) -> Result<Response<ResponseBody>, UpstreamFailure> {
    let mut forwarded = forwarded.map(|()| UploadBody::none());
    *forwarded.method_mut() = http::Method::GET;
    let key = websocket::new_key().ok_or(UNWRITABLE)?;
    forwarded.headers_mut().insert(header::SEC_WEBSOCKET_KEY, key.clone());
    websocket::request_upgrade(forwarded.headers_mut());
    let (response, lease) = forward::send(shared, wanted, forwarded, || None).await?;
    if response.status().is_success() {
        // The client would take it for a WebSocket.
        return Err(upgrade_failed("it responded as if no WebSocket had been requested"));
    }
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Ok(forwarded_response(shared, response, lease));
    }
    if !websocket::is_accepted(Some(&key), response.headers()) {
        return Err(upgrade_failed("it switched to something other than WebSocket"));
    }
    let (mut response, upstream) = UpstreamTunnel::from_response(response, lease);
    fields::filter_response(response.headers_mut());
    response.headers_mut().remove(header::SEC_WEBSOCKET_ACCEPT);
    *response.status_mut() = StatusCode::OK;
    let download = tunnel::open_on_stream(shared, client, upstream);
    Ok(response.map(|()| ResponseBody::from_tunnel(download)))
}

/// Opens a WebSocket, or forwards the upstream's refusal.
async fn open_websocket(
    shared: &Arc<SharedGateway>,
    wanted: WantedConnection,
    client: OnUpgrade,
    forwarded: Request<()>,
) -> Result<Response<ResponseBody>, UpstreamFailure> {
    let mut forwarded = forwarded.map(|()| UploadBody::none());
    let key = forwarded.headers().get(header::SEC_WEBSOCKET_KEY).cloned();
    websocket::request_upgrade(forwarded.headers_mut());
    let (response, lease) = forward::send(shared, wanted, forwarded, || None).await?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Ok(forwarded_response(shared, response, lease));
    }
    if !websocket::is_accepted(key.as_ref(), response.headers()) {
        return Err(upgrade_failed("it switched to something other than WebSocket"));
    }
    let (mut response, upstream) = UpstreamTunnel::from_response(response, lease);
    fields::filter_response(response.headers_mut());
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    response.headers_mut().insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    tunnel::open(shared, client, upstream);
    Ok(response.map(|()| ResponseBody::generated(Bytes::new())))
}
