//! Tests of an axum application with our own client over every version of HTTP and over SCTP.

use std::{
    convert::Infallible,
    net::Ipv4Addr,
    sync::{Arc, Mutex},
};

use axum::{Extension, Router, extract::Request, response::Response, routing::get};
use bytes::Bytes;
use eyas::{
    Endpoint, MemoryStore, Resolver, SecurityParameters,
    race::{candidate::Transport, policy::Policy},
};
use eyas_http::{
    Body, Client, Proxy, Versions,
    serve::{PeerInfo, Running, SctpService, Server, ServerBuilder},
};
use http::{HeaderMap, StatusCode, Version, header};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tokio::{sync::mpsc, time::timeout};

use crate::{
    clients::{SOON, start},
    observer::Observer,
};

/// How a request is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    Http1,
    Http2,
    Http3,
    Sctp,
}

impl Over {
    pub(crate) const ALL: [Self; 4] = [Self::Http1, Self::Http2, Self::Http3, Self::Sctp];

    pub(crate) fn version(self) -> Version {
        match self {
            Self::Http1 | Self::Sctp => Version::HTTP_11,
            Self::Http2 => Version::HTTP_2,
            Self::Http3 => Version::HTTP_3,
        }
    }

    fn choice(self) -> (Versions, Transport) {
        match self {
            Self::Http1 => (Versions::HTTP_1, Transport::Tcp),
            Self::Http2 => (Versions::HTTP_2, Transport::Tcp),
            Self::Http3 => (Versions::HTTP_3, Transport::Quic),
            Self::Sctp => (Versions::HTTP_1, Transport::SctpUdp),
        }
    }
}

/// Starts a server with every transport that our client supports.
pub(crate) async fn run(builder: ServerBuilder) -> Running {
    start(builder.sctp(SctpService::with_free_port())).await
}

/// Returns a client that uses only this version and transport.
pub(crate) fn client(running: &Running, over: Over) -> Client {
    let root = running.identity().expect("TLS").certificate().clone();
    let udp = running.sctp().and_then(|sctp| sctp.encapsulation_port()).expect("SCTP inside UDP");
    let resolver = Resolver::server((Ipv4Addr::LOCALHOST, 9).into());
    let port = running.local_addr().port();
    let endpoint = Endpoint::builder()
        .security(SecurityParameters::platform().with_roots([root]))
        .resolver(resolver.overriding("localhost", port, vec![Ipv4Addr::LOCALHOST.into()]))
        .memory(MemoryStore::none())
        .sctp_encapsulation_port(udp)
        .build()
        .expect("an endpoint");
    let (versions, transport) = over.choice();
    let race = Policy { transports: vec![transport], ..Policy::default() };
    let client = Client::builder().endpoint(endpoint).proxy(Proxy::none()).race(race);
    client.versions(versions).build().expect("a client")
}

pub(crate) fn url(running: &Running, path: &str) -> String {
    format!("https://localhost:{}{path}", running.local_addr().port())
}

/// Returns a body, and the sender of its frames.
pub(crate) fn piecewise() -> (mpsc::Sender<Frame<Bytes>>, Body) {
    let (frame_sender, frame_receiver) = mpsc::channel(1);
    let frames = futures_util::stream::unfold(frame_receiver, |mut frame_receiver| async move {
        let frame: Frame<Bytes> = frame_receiver.recv().await?;
        Some((Ok::<_, Infallible>(frame), frame_receiver))
    });
    (frame_sender, Body::wrap(StreamBody::new(frames)))
}

async fn greet(Extension(peer): Extension<PeerInfo>) -> String {
    assert!(peer.secure && !peer.early && peer.remote.ip().to_canonical().is_loopback());
    let alpn = peer.alpn.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
    format!("{} {alpn} {}", peer.transport, peer.server_name.unwrap_or_default())
}

async fn echo(request: Request) -> Response {
    let reply = Response::builder().header(header::TRAILER, "x-end");
    reply.body(request.into_body()).expect("a response")
}

fn app() -> Router {
    Router::new().route("/", get(greet)).route("/echo", axum::routing::post(echo))
}

#[tokio::test]
async fn an_application_sees_how_each_request_arrived() {
    let running = run(Server::builder().service(app())).await;
    for over in Over::ALL {
        let got = client(&running, over).get(url(&running, "/")).send().await.expect("a response");
        assert_eq!((got.status(), got.version()), (StatusCode::OK, over.version()), "{over:?}");
        let announced = got.headers().contains_key(header::ALT_SVC);
        assert_eq!(announced, over != Over::Http3, "{over:?}");
        assert!(got.headers().contains_key(header::DATE), "{over:?}");
        assert!(!got.headers().contains_key(header::SERVER), "{over:?}");
        let expected = match over {
            Over::Http1 => "tcp http/1.1 localhost",
            Over::Http2 => "tcp h2 localhost",
            Over::Http3 => "quic h3 localhost",
            Over::Sctp => "sctp http/1.1 localhost",
        };
        assert_eq!(got.content_length(), Some(expected.len() as u64), "{over:?}");
        assert_eq!(got.text().await.expect("a body"), expected);
        let missing = client(&running, over).get(url(&running, "/none")).send().await;
        assert_eq!(missing.expect("a response").status(), StatusCode::NOT_FOUND, "{over:?}");
    }
    let stats = running.stats();
    assert_eq!((stats.http11_requests, stats.http2_requests, stats.http3_requests), (4, 2, 2));
}

#[tokio::test]
async fn bodies_are_echoed_as_they_arrive_with_their_trailers() {
    let running = run(Server::builder().service(app())).await;
    for over in Over::ALL {
        let (frame_sender, body) = piecewise();
        let post = client(&running, over).post(url(&running, "/echo")).body(body);
        let post = post.header("te", "trailers").header("trailer", "x-end");
        let mut got = timeout(SOON, post.send()).await.expect("in time").expect("a response");
        for round in 0..5 {
            let piece = Bytes::from(vec![round; 50_000]);
            frame_sender.send(Frame::data(piece.clone())).await.expect("a reader");
            let mut back = Vec::new();
            while back.len() < piece.len() {
                let chunk = timeout(SOON, got.chunk()).await.expect("before the end is sent");
                back.extend(chunk.expect("whole").expect("a chunk"));
            }
            assert!(back == piece, "{over:?} {round}");
        }
        let trailers = HeaderMap::from_iter([("x-end".parse().unwrap(), "yes".parse().unwrap())]);
        frame_sender.send(Frame::trailers(trailers.clone())).await.expect("a reader");
        drop(frame_sender);
        let end = timeout(SOON, got.body_mut().frame()).await.expect("in time");
        let end = end.expect("a frame").expect("whole").into_trailers();
        assert_eq!(end.expect("trailers"), trailers, "{over:?}");
        assert!(got.body_mut().frame().await.is_none(), "{over:?}");
    }
}

#[tokio::test]
async fn head_has_the_fields_of_get_and_no_body() {
    let running = run(Server::builder().service(app())).await;
    for over in Over::ALL {
        let client = client(&running, over);
        let get = client.get(url(&running, "/")).send().await.expect("a response");
        let length = get.content_length();
        assert!(length > Some(0));
        let head = client.request(http::Method::HEAD, url(&running, "/")).send().await;
        let head = head.expect("a response");
        assert_eq!(head.headers()[header::CONTENT_LENGTH], length.unwrap().to_string());
        assert!(head.bytes().await.expect("a body").is_empty(), "{over:?}");
    }
}

#[tokio::test]
async fn the_access_log_includes_an_application() {
    let reported = Arc::<Mutex<Vec<_>>>::default();
    let log = Arc::clone(&reported);
    let builder = Server::builder().service(app()).access_log(move |access| {
        let line = (access.transport, access.target.clone(), access.status, access.bytes);
        log.lock().expect("no panic").push(line);
    });
    let running = run(builder).await;
    let mut expected = Vec::new();
    for (over, name) in Over::ALL.into_iter().zip(["tcp", "tcp", "quic", "sctp"]) {
        let got = client(&running, over).get(url(&running, "/?a=b")).send().await;
        let got = got.expect("a response").bytes().await.expect("a body");
        expected.push((name, "/?a=b".to_owned(), Some(StatusCode::OK), got.len() as u64));
    }
    running.shutdown(SOON).await;
    let mut reported = reported.lock().expect("no panic").clone();
    reported.sort();
    expected.sort();
    assert_eq!(reported, expected);
}

#[tokio::test]
async fn each_request_is_told_as_an_event() {
    for over in Over::ALL {
        let (observer, _guard) = Observer::start(&["eyas_http::serve::access"]);
        let running = run(Server::builder().service(app())).await;
        let got = client(&running, over).get(url(&running, "/path?secret")).send().await;
        got.expect("a response");
        let event = observer.first("").expect("an event");
        let version = format!("version={:?} ", over.version());
        for part in ["remote=", &version, "method=GET ", "path=\"/path\""] {
            assert!(event.contains(part), "{over:?}: {event}");
        }
        assert!(!event.contains("secret"), "{over:?}: {event}");
    }
}
