//! Tests of services that fail, wait, send endless bodies or upgrade the connection.

use std::{
    convert::Infallible,
    error::Error,
    future::{Ready, ready},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Buf, Bytes};
use eyas_http::{
    Body,
    serve::{InterimResponses, Limits, RequestBody, Running, Server},
};
use futures_util::{StreamExt, stream};
use http::{Method, Request, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, Empty, Full};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::Notify,
    time::{sleep, timeout},
};
use tower::{Service, service_fn};

use crate::{
    application::{Over, client, piecewise, run, url},
    clients::{SOON, Speak, fetch, quic, request, start},
};

type BoxError = Box<dyn Error + Send + Sync>;
type ServiceRequest = Request<RequestBody>;

/// Answers incorrectly in several ways, and correctly otherwise.
async fn faulty(request: ServiceRequest) -> Result<Response<Body>, BoxError> {
    let chunk = || Ok::<_, BoxError>(Bytes::from_static(b"begun"));
    match request.uri().path() {
        "/error" => Err("no luck".into()),
        "/panic" => panic!("on purpose, before the response"),
        "/broken" => {
            let broken = stream::iter([chunk(), Err("no more luck".into())]);
            Ok(Response::new(Body::from_stream(broken)))
        }
        "/panic-later" => {
            let panics = stream::once(async { panic!("on purpose, in the body") });
            let stream = stream::iter([chunk()]).chain(panics);
            Ok(Response::new(Body::from_stream(stream)))
        }
        "/switch" => {
            let mut reply = Response::new(Body::empty());
            *reply.status_mut() = StatusCode::EARLY_HINTS;
            Ok(reply)
        }
        _ => {
            let mut reply = Response::new(Body::from("fine"));
            // Fields that the response of an upstream may contain.
            *reply.version_mut() = http::Version::HTTP_3;
            for (name, value) in [("connection", "x-hop"), ("x-hop", "1"), ("upgrade", "h2c")] {
                reply.headers_mut().insert(name, header::HeaderValue::from_static(value));
            }
            Ok(reply)
        }
    }
}

#[tokio::test]
async fn a_failing_service_is_answered_or_aborted_and_the_server_continues() {
    let running = run(Server::builder().service(service_fn(faulty))).await;
    for over in Over::ALL {
        let client = client(&running, over);
        for path in ["/error", "/panic", "/switch"] {
            let got = client.get(url(&running, path)).send().await.expect("a response");
            assert_eq!(got.status(), StatusCode::INTERNAL_SERVER_ERROR, "{over:?} {path}");
            assert!(got.text().await.expect("a body").contains("could not process"));
        }
        for path in ["/broken", "/panic-later"] {
            let got = client.get(url(&running, path)).send().await;
            let got = match got {
                Ok(got) => got.bytes().await,
                Err(error) => Err(error),
            };
            assert!(got.is_err(), "{over:?} {path}: {got:?}");
        }
        let got = client.get(url(&running, "/fine")).send().await.expect("a response");
        let hops = ["x-hop", "upgrade"].map(|name| got.headers().contains_key(name));
        let is_http1 = matches!(over, Over::Http1 | Over::Sctp);
        assert_eq!(hops, [is_http1; 2], "{over:?}");
        assert_eq!(got.text().await.expect("a body"), "fine");
    }
    wait_for_release(&running).await;
}

/// Waits until no request is in flight.
async fn wait_for_requests(running: &Running) {
    let idle = async {
        while running.stats().requests_in_flight > 0 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, idle).await.expect("no request is left");
}

/// Waits until no request is in flight and nothing is buffered.
async fn wait_for_release(running: &Running) {
    let idle = async {
        while running.stats().requests_in_flight + running.stats().buffered_bytes > 0 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, idle).await.expect("everything is released");
}

/// A service that is ready only at the second poll.
#[derive(Default)]
struct ReadyAtSecondPoll {
    polls: u32,
}

impl Clone for ReadyAtSecondPoll {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Service<ServiceRequest> for ReadyAtSecondPoll {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.polls += 1;
        if self.polls < 2 {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: ServiceRequest) -> Self::Future {
        assert_eq!(self.polls, 2, "called before it was ready");
        ready(Ok(Response::new("ready".into())))
    }
}

#[tokio::test]
async fn a_service_is_called_once_it_is_ready() {
    let running = start(Server::builder().service(ReadyAtSecondPoll::default())).await;
    for speak in Speak::SECURE {
        let got = fetch(&running, speak, crate::clients::get("/")).await;
        assert_eq!(got.body(), "ready", "{speak:?}");
    }
}

//= hostile http
//# an endless response that nobody reads
//= bound: a service is polled once its last frame was taken
#[tokio::test]
async fn a_body_is_polled_only_as_fast_as_its_peer_reads() {
    const MUCH: u64 = 64 << 20;
    let produced = Arc::<AtomicU64>::default();
    let counter = Arc::clone(&produced);
    let service = service_fn(move |_: ServiceRequest| {
        let produced = Arc::clone(&counter);
        let endless = stream::repeat_with(move || {
            produced.fetch_add(10_000, Relaxed);
            Ok::<_, Infallible>(Bytes::from_static(&[7; 10_000]))
        });
        ready(Ok::<_, Infallible>(Response::new(Body::from_stream(endless))))
    });
    let running = run(Server::builder().service(service)).await;
    for over in Over::ALL {
        produced.store(0, Relaxed);
        let client = client(&running, over);
        let unread = client.get(url(&running, "/")).send().await.expect("a response");
        let (mut before, mut calm) = (0, 0);
        while calm < 5 {
            sleep(Duration::from_millis(50)).await;
            let now = produced.load(Relaxed);
            assert!(now < MUCH, "{over:?}: {now} bytes for a peer that reads none");
            calm = if now == before { calm + 1 } else { 0 };
            before = now;
        }
        let held = running.stats().buffered_bytes;
        assert!(held <= Limits::default().buffered_bytes_per_connection as u64, "{held}");
        drop(unread);
    }
    wait_for_release(&running).await;
}

/// Returns a response that sends one chunk, and the second after a notification.
fn two_chunks(allowed: &Arc<Notify>) -> Response<Body> {
    let allowed = Arc::clone(allowed);
    let first = stream::iter([Ok::<_, Infallible>(Bytes::from_static(b"one "))]);
    let second = stream::once(async move {
        allowed.notified().await;
        Ok(Bytes::from_static(b"two"))
    });
    Response::new(Body::from_stream(first.chain(second)))
}

#[tokio::test]
async fn a_response_in_progress_survives_a_graceful_shutdown() {
    for over in Over::ALL {
        let allowed = Arc::<Notify>::default();
        let gate = Arc::clone(&allowed);
        let service =
            service_fn(move |_: ServiceRequest| ready(Ok::<_, Infallible>(two_chunks(&gate))));
        let running = run(Server::builder().service(service)).await;
        let client = client(&running, over);
        let mut got = client.get(url(&running, "/")).send().await.expect("a response");
        assert_eq!(got.chunk().await.expect("a body").expect("a word"), "one ");
        let stopping = tokio::spawn(running.shutdown(SOON));
        sleep(Duration::from_millis(100)).await;
        assert!(!stopping.is_finished(), "{over:?}");
        allowed.notify_one();
        assert_eq!(got.bytes().await.expect("whole"), "two", "{over:?}");
        assert_eq!(timeout(SOON, stopping).await.expect("an end").expect("no panic"), 0);
    }
}

#[tokio::test]
async fn an_abandoned_response_is_dropped_even_if_its_service_is_silent() {
    let service = service_fn(|request: ServiceRequest| async move {
        if request.uri().path() == "/never" {
            std::future::pending::<()>().await;
        }
        Ok::<_, Infallible>(two_chunks(&Arc::default()))
    });
    let running = run(Server::builder().service(service)).await;
    for over in Over::ALL {
        let client = client(&running, over);
        let got = client.get(url(&running, "/")).send().await.expect("a response");
        let never = client.get(url(&running, "/never")).send();
        assert!(timeout(Duration::from_millis(200), never).await.is_err(), "{over:?}");
        drop(got);
        // The client, and so its connections, are still there.
        wait_for_requests(&running).await;
        drop(client);
    }
}

#[tokio::test]
async fn a_slow_service_is_not_cut_off_and_does_not_block_others() {
    let allowed = Arc::<Notify>::default();
    let gate = Arc::clone(&allowed);
    let service = service_fn(move |request: ServiceRequest| {
        let reply = match request.uri().path() {
            "/silent" => two_chunks(&gate),
            _ => Response::new(Body::from(vec![7; 3_000_000])),
        };
        ready(Ok::<_, Infallible>(reply))
    });
    let limits = Limits { idle_time: Duration::from_millis(200), ..Limits::default() };
    let running = run(Server::builder().limits(limits).service(service)).await;
    for over in Over::ALL {
        let client = client(&running, over);
        let silent = client.get(url(&running, "/silent")).send().await.expect("a response");
        // Five times the idle limit of a peer; others are served meanwhile.
        sleep(Duration::from_millis(500)).await;
        let other = client.get(url(&running, "/")).send().await.expect("a response");
        assert_eq!(other.bytes().await.expect("a body").len(), 3_000_000, "{over:?}");
        sleep(Duration::from_millis(500)).await;
        allowed.notify_one();
        assert_eq!(silent.bytes().await.expect("whole"), "one two", "{over:?}");
    }
}

//= hostile proxy
//# a connection kept open by refused requests
//= bound: the idle time
#[tokio::test]
async fn a_client_without_a_user_does_not_keep_its_connection_open_by_being_refused() {
    let service = service_fn(|_: ServiceRequest| {
        let mut reply = Response::new(Body::from("who are you?"));
        *reply.status_mut() = StatusCode::PROXY_AUTHENTICATION_REQUIRED;
        ready(Ok::<_, Infallible>(reply))
    });
    let limits = Limits { idle_time: Duration::from_millis(200), ..Limits::default() };
    let running = run(Server::builder().limits(limits).service(service)).await;
    for over in Over::ALL {
        let client = client(&running, over);
        let opened = || {
            let stats = running.stats();
            stats.tcp_connections + stats.quic_connections + stats.sctp_associations
        };
        let before = opened();
        let refusals = async {
            // Until the first connection was closed.
            while opened() < before + 2 {
                let got = client.get(url(&running, "/")).send().await.expect("a response");
                assert_eq!(got.status(), StatusCode::PROXY_AUTHENTICATION_REQUIRED);
                got.bytes().await.expect("a body");
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(SOON, refusals).await.unwrap_or_else(|_| panic!("{over:?}: it stays open"));
    }
}

/// Answers after receiving the complete request.
async fn gathering(request: ServiceRequest) -> Result<Response<Full<Bytes>>, BoxError> {
    let all = request.into_body().collect().await?.to_bytes();
    Ok(Response::new(all.len().to_string().into()))
}

#[tokio::test]
async fn an_incomplete_request_gets_a_timeout_response() {
    let limits = Limits { idle_time: Duration::from_millis(400), ..Limits::default() };
    let running = run(Server::builder().limits(limits).service(service_fn(gathering))).await;
    for over in [Over::Http2, Over::Http3] {
        let (frame_sender, body) = piecewise();
        frame_sender.send(Frame::data("a".into())).await.expect("a reader");
        let post = client(&running, over).post(url(&running, "/")).body(body).send();
        let got = timeout(SOON, post).await.expect("an end").expect("a response");
        assert_eq!(got.status(), StatusCode::REQUEST_TIMEOUT, "{over:?}");
    }
    assert!(running.stats().timed_out >= 2);
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let limits = Limits { body_bytes: 10, ..Limits::default() };
    let service = service_fn(|request: ServiceRequest| async move {
        let gathered = request.into_body().collect().await;
        let is_too_large = gathered.is_err_and(|error| error.is_too_large());
        Ok::<_, Infallible>(Response::new(Full::<Bytes>::from(is_too_large.to_string())))
    });
    let running = run(Server::builder().limits(limits).service(service)).await;
    for speak in Speak::SECURE {
        for (length, expected) in [(10, "false"), (11, "true")] {
            let got = fetch(&running, speak, request(Method::POST, "/", vec![7; length])).await;
            // If the length is announced, the service is not called.
            let is_refused = got.status() == StatusCode::PAYLOAD_TOO_LARGE;
            assert!(got.body() == expected || (length > 10 && is_refused), "{speak:?} {got:?}");
        }
    }
    let (frame_sender, body) = piecewise();
    frame_sender.send(Frame::data("more than ten bytes".into())).await.expect("a reader");
    drop(frame_sender);
    let got = client(&running, Over::Http2).post(url(&running, "/")).body(body).send().await;
    assert_eq!(got.expect("a response").text().await.expect("a body"), "true");
}

#[tokio::test]
async fn a_client_that_expects_continue_gets_it() {
    let running = run(Server::builder().service(service_fn(gathering))).await;
    let (_conn, mut driver, mut send) = quic(&running).await;
    let driving = async { std::future::poll_fn(|cx| driver.poll_close(cx)).await };
    let exchange = async {
        let mut post = request(Method::POST, "/", "").map(|_| ());
        post.headers_mut().insert("expect", "100-continue".parse().unwrap());
        let mut stream = send.send_request(post).await.expect("a stream");
        let first = stream.recv_response().await.expect("a response");
        assert_eq!(first.status(), StatusCode::CONTINUE);
        stream.send_data("four".into()).await.expect("sent");
        stream.finish().await.expect("sent");
        let last = stream.recv_response().await.expect("a response");
        assert_eq!(last.status(), StatusCode::OK);
        let mut data = stream.recv_data().await.expect("a body").expect("data");
        assert_eq!(data.copy_to_bytes(data.remaining()), "4");
    };
    tokio::select! {
        () = exchange => {}
        error = driving => panic!("the connection ended: {error}"),
    }
    let mut post = request(Method::POST, "/", "four");
    post.headers_mut().insert("expect", "100-continue".parse().unwrap());
    assert_eq!(fetch(&running, Speak::Http2, post).await.body(), "4");
}

/// Sends early hints before the response.
async fn hinting(request: ServiceRequest) -> Result<Response<Body>, Infallible> {
    if let Some(interims) = request.extensions().get::<InterimResponses>() {
        let hint = Response::builder().status(103).header("link", "</a.css>; rel=preload");
        assert!(interims.send(hint.body(()).expect("a response")));
    }
    Ok(Response::new(Body::from("fine")))
}

#[tokio::test]
async fn hints_are_sent_before_the_response() {
    let running = run(Server::builder().service(service_fn(hinting))).await;
    let (_conn, mut driver, mut send) = quic(&running).await;
    let driving = async { std::future::poll_fn(|cx| driver.poll_close(cx)).await };
    let exchange = async {
        let get = request(Method::GET, "/", "").map(|_| ());
        let mut stream = send.send_request(get).await.expect("a stream");
        stream.finish().await.expect("sent");
        let hint = stream.recv_response().await.expect("a response");
        assert_eq!(
            (hint.status(), &hint.headers()["link"]),
            (StatusCode::EARLY_HINTS, &header::HeaderValue::from_static("</a.css>; rel=preload"))
        );
        assert_eq!(stream.recv_response().await.expect("a response").status(), StatusCode::OK);
    };
    tokio::select! {
        () = exchange => {}
        error = driving => panic!("the connection ended: {error}"),
    }
    // Clients without support for them are not affected.
    for speak in [Speak::Http1, Speak::Http2] {
        let got = fetch(&running, speak, request(Method::GET, "/", "")).await;
        assert_eq!((got.status(), &got.body()[..]), (StatusCode::OK, &b"fine"[..]), "{speak:?}");
    }
}

/// Switches to a protocol that echoes its input.
async fn mirror(mut request: ServiceRequest) -> Result<Response<Empty<Bytes>>, Infallible> {
    let upgrading = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let (mut read, mut write) =
            tokio::io::split(TokioIo::new(upgrading.await.expect("an upgrade")));
        tokio::io::copy(&mut read, &mut write).await.expect("a mirror");
    });
    let mut reply = Response::new(Empty::new());
    *reply.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    for (name, value) in [("connection", "upgrade"), ("upgrade", "mirror")] {
        reply.headers_mut().insert(name, header::HeaderValue::from_static(value));
    }
    Ok(reply)
}

async fn expect_echo(io: &mut TcpStream, word: &[u8]) {
    io.write_all(word).await.expect("sent");
    let mut back = vec![0; word.len()];
    timeout(SOON, io.read_exact(&mut back)).await.expect("in time").expect("an answer");
    assert_eq!(back, word);
}

#[tokio::test]
async fn an_upgraded_connection_counts_until_it_ends() {
    let running = start(Server::builder().plain().service(service_fn(mirror))).await;
    let mut io = crate::clients::tcp(running.local_addr()).await;
    let polls = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: mirror\r\n\r\n";
    io.write_all(polls).await.expect("sent");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let byte = timeout(SOON, io.read_u8()).await.expect("in time").expect("a head");
        head.push(byte);
    }
    assert!(head.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&head));
    expect_echo(&mut io, b"hello").await;
    assert_eq!(running.stats().tcp_open, 1);
    let stopping = tokio::spawn(running.shutdown(SOON));
    sleep(Duration::from_millis(100)).await;
    expect_echo(&mut io, b"still here").await;
    assert!(!stopping.is_finished());
    drop(io);
    assert_eq!(timeout(SOON, stopping).await.expect("an end").expect("no panic"), 0);
}

/// RFC 8441 §3: a client may send an extended CONNECT only if the server's settings offer it. Otherwise browsers open
/// WebSockets over HTTP/1.1, where they are upgrades.
#[tokio::test]
async fn websockets_over_http2_are_offered_only_on_request() {
    for offers in [false, true] {
        let protocols = offers.then_some("websocket");
        let running = crate::clients::start(Server::builder().extended_connect(protocols)).await;
        let tls = crate::clients::tls(&running, b"h2").await;
        let (sender, connection) = h2::client::handshake(tls).await.expect("HTTP/2");
        tokio::spawn(connection);
        let mut sender = sender.ready().await.expect("room for a request");
        let request = Request::builder().uri("https://localhost/").body(()).expect("a request");
        let (response, _) = sender.send_request(request, true).expect("sent");
        // The settings come before the response.
        response.await.expect("a response");
        assert_eq!(sender.is_extended_connect_protocol_enabled(), offers);
    }
}
