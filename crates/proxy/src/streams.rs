//! Clients on streams: CONNECT over HTTP/2 (RFC 9113 §8.5), HTTP/3 (RFC 9114 §4.4) or SCTP, and CONNECT-UDP
//! (RFC 9298). Each stream is a client like a TCP connection: the same limits and rules apply to it, and it has
//! a report of its own.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use eyas_http::StreamDatagrams;
use eyas_http::pipe::{PipeBody, PipeBroken, pipe};
use eyas_http::serve::{PeerInfo, RequestBody};
use eyas_relay::connect_udp::{self, CAPSULE_PROTOCOL, PROTOCOL};
use eyas_relay::destination::{Destination, RefusedRequest, RequestRefusal};
use eyas_relay::handshake::{HandshakeProtocol, http_credentials, http_destination};
use eyas_relay::proxy_status::{self, ErrorType};
use eyas_relay::pseudonym;
use eyas_relay::via::TunnelKind;
use futures_util::TryStreamExt as _;
use http::header::{
    CONNECTION, CONTENT_TYPE, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, RETRY_AFTER, UPGRADE, VIA,
};
use http::{HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;
use hyper::ext::Protocol;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::join;
use tokio::sync::oneshot;
use tokio_util::io::StreamReader;
use tokio_util::sync::{CancellationToken, DropGuard};
use tower_service::Service;

use crate::admission::ClientPermit;
use crate::client::ClientStream;
use crate::connect::NoConnection;
use crate::connection::ClientState;
use crate::report::ClientEnding;
use crate::shared::SharedProxy;

/// The service that answers requests on streams.
#[derive(Clone)]
pub(crate) struct StreamService(pub(crate) Arc<SharedProxy>);

impl Service<Request<RequestBody>> for StreamService {
    type Response = Response<AnswerBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<AnswerBody>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let shared = Arc::clone(&self.0);
        Box::pin(async move {
            let (responder, response) = oneshot::channel();
            // In a task of its own, since it outlives the head of the response.
            shared.tasks.spawn(serve(Arc::clone(&shared), request, responder));
            let stopped = || {
                let error = ErrorType::ProxyInternalResponse;
                text((StatusCode::SERVICE_UNAVAILABLE, error), "the proxy is stopping")
            };
            Ok(response.await.unwrap_or_else(|_| stopped()))
        })
    }
}

/// The body of the response to a client on its stream.
#[derive(Debug)]
pub(crate) enum AnswerBody {
    /// A text, such as the reason of a refusal.
    Text(Option<Bytes>),
    /// The data of the destination, and a guard that is dropped when the client gives the stream up.
    Tunnel { body: PipeBody, _disconnect_guard: DropGuard },
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = PipeBroken;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, PipeBroken>>> {
        match self.get_mut() {
            Self::Text(text) => Poll::Ready(text.take().map(Frame::data).map(Ok)),
            Self::Tunnel { body, .. } => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Text(None))
    }
}

fn text((status, error): (StatusCode, ErrorType), why: &str) -> Response<AnswerBody> {
    let text = Bytes::from(format!("eyas proxy: {why}\n"));
    let mut response = Response::new(AnswerBody::Text(Some(text)));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    proxy_status::insert(response.headers_mut(), error, why);
    response
}

fn refusal(refused: &RefusedRequest) -> Response<AnswerBody> {
    let status = StatusCode::from_u16(refused.http().0).unwrap_or(StatusCode::BAD_GATEWAY);
    let mut response = text((status, refused.error), &refused.why.to_string());
    if refused.why == RequestRefusal::NoUser {
        let challenge = HeaderValue::from_static("Basic realm=\"eyas proxy\"");
        response.headers_mut().insert(PROXY_AUTHENTICATE, challenge);
    }
    if let Some(seconds) = refused.why.retry_after() {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// Sends the client its response.
type ResponseSender = oneshot::Sender<Response<AnswerBody>>;

/// Serves a stream, and reports the outcome.
async fn serve(shared: Arc<SharedProxy>, request: Request<RequestBody>, responder: ResponseSender) {
    let Some(client) = request.extensions().get::<PeerInfo>().map(|peer| peer.remote) else {
        return;
    };
    shared.counters.accepted();
    let mut permit = match shared.admission.admit(client.ip()) {
        Ok(permit) => permit,
        Err(denial) => {
            shared.counters.over_limit();
            let status = (StatusCode::SERVICE_UNAVAILABLE, ErrorType::ConnectionLimitReached);
            let _ = responder.send(text(status, &denial.to_string()));
            return;
        }
    };
    let mut stream =
        StreamClient { shared: &shared, client_state: ClientState::new(client), client };
    let ending = tokio::select! {
        ending = stream.serve(request, responder, &mut permit) => ending,
        () = shared.abort.cancelled() => ClientEnding::Stopped,
    };
    drop(permit);
    stream.client_state.report(&shared, ending);
}

/// A client on a stream.
struct StreamClient<'a> {
    shared: &'a Arc<SharedProxy>,
    client_state: ClientState,
    client: SocketAddr,
}

impl StreamClient<'_> {
    async fn serve(
        &mut self,
        request: Request<RequestBody>,
        responder: ResponseSender,
        permit: &mut ClientPermit,
    ) -> ClientEnding {
        tracing::debug!(client = %self.client, version = ?request.version(), "request on a stream");
        let kind = tunnel_kind(&request);
        self.client_state.protocol = Some(match kind {
            TunnelKind::Bytes => HandshakeProtocol::Connect,
            TunnelKind::Datagrams => HandshakeProtocol::ConnectUdp,
        });
        let destination = match self.read(&request, kind) {
            Ok(destination) => destination,
            Err(why) => return refuse(responder, why.into()),
        };
        self.client_state.destination = Some(destination.clone());
        if let Err(denial) = permit.settle(self.client_state.user.as_deref()) {
            let why = RequestRefusal::Failed(denial.to_string());
            return refuse(responder, RefusedRequest::new(ErrorType::ConnectionLimitReached, why));
        }
        match kind {
            TunnelKind::Bytes => self.bytes(request, responder, destination).await,
            TunnelKind::Datagrams => self.datagrams(request, responder, destination).await,
        }
    }

    async fn bytes(
        &mut self,
        request: Request<RequestBody>,
        mut responder: ResponseSender,
        destination: Destination,
    ) -> ClientEnding {
        let reached = tokio::select! {
            reached = self.client_state.reach(self.shared, &destination) => reached,
            () = responder.closed() => return ClientEnding::Left,
        };
        let mut race = match reached {
            Ok(race) => race,
            Err(NoConnection::Refused(refused)) => return refuse(responder, refused),
            Err(failure) => return failure.into(),
        };
        let granted = race.alongside(granted(request, responder, TunnelKind::Bytes)).await;
        let Some(mut client) = granted else { return ClientEnding::Left };
        let relayed =
            self.client_state.relay_bytes(self.shared, &mut client, race, Bytes::new()).await;
        relayed.unwrap_or_else(|ending| ending)
    }

    async fn datagrams(
        &mut self,
        mut request: Request<RequestBody>,
        mut responder: ResponseSender,
        destination: Destination,
    ) -> ClientEnding {
        let reached = tokio::select! {
            reached = self.client_state.reach_udp(self.shared, &destination) => reached,
            () = responder.closed() => return ClientEnding::Left,
        };
        let (route, _permit) = match reached {
            Ok(reached) => reached,
            Err(refused) => return refuse(responder, refused),
        };
        // Before the response, so that no datagram that the client sends after it is lost.
        let datagrams = request.extensions_mut().remove::<StreamDatagrams>();
        let datagrams = datagrams.map(|datagrams| datagrams.open());
        let granted = granted(request, responder, TunnelKind::Datagrams).await;
        let Some(mut client) = granted else { return ClientEnding::Left };
        let route = (&destination, route);
        self.client_state.relay_datagrams(self.shared, &mut client, route, (b"", datagrams)).await
    }

    /// Authenticates the client, and returns its destination.
    fn read(
        &mut self,
        request: &Request<RequestBody>,
        kind: TunnelKind,
    ) -> Result<Destination, RequestRefusal> {
        let mut fields = request.headers().get_all(PROXY_AUTHORIZATION).iter();
        let field = fields.next().filter(|_| fields.next().is_none());
        let given = http_credentials(field.map(HeaderValue::as_bytes));
        self.client_state.user = self.shared.authenticate(self.client.ip(), given.as_ref())?;
        let hops = request.headers().get_all(VIA).iter().map(HeaderValue::as_bytes);
        self.client_state.hops = pseudonym::combined(hops);
        if kind == TunnelKind::Datagrams {
            return connect_udp::destination(request.uri().path());
        }
        if request.method() != Method::CONNECT {
            let why =
                "over HTTP/2, HTTP/3 and SCTP this proxy supports only CONNECT and CONNECT-UDP";
            return Err(RequestRefusal::Unsupported(why.to_owned()));
        }
        if let Some(protocol) = request.extensions().get::<Protocol>() {
            let name = protocol.as_str();
            return Err(RequestRefusal::Unsupported(format!(
                "CONNECT for {name} is not supported"
            )));
        }
        http_destination(request.uri().authority().map_or("", http::uri::Authority::as_str))
    }
}

/// Returns what a request is for, by its protocol.
fn tunnel_kind(request: &Request<RequestBody>) -> TunnelKind {
    let is_udp = match request.extensions().get::<Protocol>() {
        Some(protocol) => protocol.as_str().eq_ignore_ascii_case(PROTOCOL),
        None => {
            request.method() == Method::GET
                && request.extensions().get::<OnUpgrade>().is_some()
                && connect_udp::asks_for_udp(request.headers())
        }
    };
    if is_udp { TunnelKind::Datagrams } else { TunnelKind::Bytes }
}

fn refuse(responder: ResponseSender, refused: RefusedRequest) -> ClientEnding {
    // A client that has disconnected does not need the reason.
    let _ = responder.send(refusal(&refused));
    ClientEnding::Refused(refused.why)
}

/// Sends a client its success response, and returns its stream: the bodies of request and response, or the
/// upgraded HTTP/1 connection.
async fn granted(
    mut request: Request<RequestBody>,
    responder: ResponseSender,
    kind: TunnelKind,
) -> Option<ClientStream> {
    let disconnect = CancellationToken::new();
    let has_streams = matches!(request.version(), Version::HTTP_2 | Version::HTTP_3);
    let respond = |answer| {
        let mut response = Response::new(answer);
        if kind == TunnelKind::Datagrams {
            let (field, value) = CAPSULE_PROTOCOL;
            response.headers_mut().insert(field, value);
            if !has_streams {
                *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
                let fields = response.headers_mut();
                fields.insert(CONNECTION, HeaderValue::from_static("upgrade"));
                fields.insert(UPGRADE, HeaderValue::from_static(PROTOCOL));
            }
        }
        responder.send(response).ok()
    };
    if let Some(upgrade) = request.extensions_mut().remove::<OnUpgrade>().filter(|_| !has_streams) {
        respond(AnswerBody::Text(None))?;
        let stream = TokioIo::new(upgrade.await.ok()?);
        return Some(ClientStream::Stream(Box::new(stream), disconnect));
    }
    let (writer, body) = pipe();
    let _disconnect_guard = disconnect.clone().drop_guard();
    respond(AnswerBody::Tunnel { body, _disconnect_guard })?;
    let data = request.into_body().into_data_stream();
    let reader = StreamReader::new(data.map_err(io::Error::other));
    Some(ClientStream::Stream(Box::new(join(reader, writer)), disconnect))
}
