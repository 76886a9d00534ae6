//! Upstreams over HTTP/2 and HTTP/3, and upstreams with several addresses.

use std::convert::Infallible;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use bytes::Bytes;
use eyas::SecurityParameters;
use eyas_gateway::Gateway;
use eyas_http::Body;
use eyas_http::serve::{RequestBody, Running, Server, ServerBuilder};
use futures_util::future::join_all;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use tokio::time::timeout;
use tower::service_fn;

use crate::ports;
use crate::stage::{EACH_VERSION, GET, Stage, TIMEOUT, client, read_all};

/// Starts an upstream that answers with its version, the request's body and a field of its trailers, and with trailers
/// as gRPC does.
async fn echoing(set: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Running {
    let service = service_fn(|request: Request<RequestBody>| async move {
        let (version, te) = (request.version(), request.headers().get("te").cloned());
        let received = request.into_body().collect().await.expect("a body");
        let sum = received.trailers().and_then(|trailers| trailers.get("x-sum").cloned());
        let sum = format!(" {}", sum.as_ref().map_or("", |sum| sum.to_str().expect("text")));
        let received = received.to_bytes();
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from_static("0"));
        let text = Bytes::from(format!("{version:?} {te:?} "));
        let data = [text, received, sum.into()].map(Frame::data);
        let frames = data.into_iter().chain([Frame::trailers(trailers)]);
        let frames = frames.map(Ok::<_, Infallible>);
        Ok::<_, Infallible>(Response::new(StreamBody::new(futures_util::stream::iter(frames))))
    });
    set(Server::builder().names(["localhost"])).service(service).start().await.expect("a server")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_and_trailers_pass_to_an_upstream_over_http2_and_http3() {
    for (scheme, uses_http3) in [("https", false), ("h2c", false), ("https", true), ("h3", true)] {
        let is_secure = scheme != "h2c";
        let upstream = echoing(|server| if is_secure { server } else { server.plain() }).await;
        let url = format!("{scheme}://localhost:{}", upstream.local_addr().port());
        let mut gateway = Gateway::builder(url.parse().expect("an upstream")).http3(uses_http3);
        if let Some(identity) = upstream.identity() {
            let roots = [identity.certificate().clone()];
            gateway = gateway.security(SecurityParameters::platform().with_roots(roots));
        }
        let gateway = gateway.build().expect("a gateway");
        let running = Server::builder().service(gateway.clone()).start().await.expect("a server");
        let stage = Stage::of(running, gateway.clone());
        for version in EACH_VERSION {
            let client = client(&stage, version);
            let port = stage.running.local_addr().port();
            let url = format!("https://localhost:{port}/p");
            let posts = (0..20).map(|number| {
                let mut sum = HeaderMap::new();
                sum.insert("x-sum", number.into());
                let data = Bytes::from(format!("request {number}"));
                let parts = [Ok::<_, Infallible>(Frame::data(data)), Ok(Frame::trailers(sum))];
                let body = Body::wrap(StreamBody::new(futures_util::stream::iter(parts)));
                let post = client.post(url.as_str()).header("te", "trailers");
                let post = post.header("trailer", "x-sum").body(body).send();
                // To the end: a client over HTTP/1.1 has a limited number of connections.
                async { post.await.expect("a response").into_body().collect().await }
            });
            let answers = timeout(TIMEOUT, join_all(posts)).await;
            let answers = answers.unwrap_or_else(|_| panic!("{scheme} {version:?}: no answers"));
            for (number, got) in answers.into_iter().enumerate() {
                let got = got.expect("whole");
                let trailers = got.trailers().cloned().unwrap_or_default();
                let text = String::from_utf8(got.to_bytes().to_vec()).expect("text");
                assert!(text.starts_with(if uses_http3 { "HTTP/3" } else { "HTTP/2" }), "{text}");
                assert!(text.ends_with(&format!("request {number} {number}")), "{text}");
                let is_kept = trailers.get("grpc-status").is_some_and(|status| status == "0");
                assert!(is_kept || version == EACH_VERSION[0], "{version:?}: {trailers:?}");
            }
        }
        let (stats, served) = (gateway.stats(), upstream.stats());
        let requests = if uses_http3 { served.http3_requests } else { served.http2_requests };
        assert_eq!((stats.failures.iter().sum::<u64>(), requests), (0, 60));
        assert!(stats.connections < 25, "they share connections: {stats:?}");
    }
}

/// Starts a server at this address, that counts its requests.
async fn counting(address: SocketAddr, count: Arc<AtomicUsize>) -> Running {
    let service = service_fn(move |_: Request<RequestBody>| {
        count.fetch_add(1, Relaxed);
        async move {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            Ok::<_, Infallible>(Response::new(Body::from("ok")))
        }
    });
    let server = Server::builder().plain().listen(address).service(service);
    server.start().await.expect("a server")
}

/// Nothing that was safe to repeat fails when one of two addresses goes down under load. What is not: a request whose
/// response has begun, which the gateway counts as aborted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_goes_down_fails_no_request_that_can_be_repeated() {
    for scheme in ["http", "h2c"] {
        let port = ports::own_port();
        let counts = [Arc::<AtomicUsize>::default(), Arc::default()];
        let six = counting((Ipv6Addr::LOCALHOST, port).into(), Arc::clone(&counts[0])).await;
        let _four = counting((Ipv4Addr::LOCALHOST, port).into(), Arc::clone(&counts[1])).await;
        let url = format!("{scheme}://localhost:{port}");
        let gateway = Gateway::builder(url.parse().expect("an upstream")).build();
        let gateway = gateway.expect("a gateway");
        let server = Server::builder().plain().service(gateway.clone());
        let stage = Arc::new(Stage::of(server.start().await.expect("a server"), gateway.clone()));
        let clients: Vec<_> = (0..8)
            .map(|_| {
                let stage = Arc::clone(&stage);
                tokio::spawn(async move {
                    let mut broken = 0;
                    for _ in 0..50 {
                        let answer = read_all(&mut stage.send(GET).await).await;
                        let is_begun = answer.is_empty() || answer.starts_with("HTTP/1.1 200 ");
                        assert!(is_begun, "{answer}");
                        broken += u64::from(!answer.ends_with("\r\n\r\nok"));
                    }
                    broken
                })
            })
            .collect();
        while counts[0].load(Relaxed) + counts[1].load(Relaxed) < 100 {
            tokio::task::yield_now().await;
        }
        // At once, with its requests in flight.
        drop(six);
        let mut broken = 0;
        for client in clients {
            broken += client.await.unwrap_or_else(|error| panic!("{scheme}: {error}"));
        }
        assert_eq!(broken, gateway.stats().aborted_responses, "{scheme}: {:?}", gateway.stats());
        assert!(counts[1].load(Relaxed) > 0, "{scheme}: {:?}", gateway.stats());
    }
}

#[tokio::test]
async fn field_names_keep_their_case_over_http_1_1() {
    let mut stage = Stage::plain().await;
    let get =
        "GET / HTTP/1.1\r\nHost: a\r\nX-CuStOm: 1\r\nSOAPAction: x\r\nConnection: close\r\n\r\n";
    let mut client = stage.send(get).await;
    let mut upstream = stage.connection().await;
    let head = upstream.head().await;
    assert!(
        head.contains("\r\nX-CuStOm: 1\r\n") && head.contains("\r\nSOAPAction: x\r\n"),
        "{head}"
    );
    upstream.send("HTTP/1.1 200 OK\r\nX-AnSwEr: 2\r\nContent-Length: 0\r\n\r\n").await;
    let answer = read_all(&mut client).await;
    assert!(answer.contains("\r\nX-AnSwEr: 2\r\n"), "{answer}");
}
