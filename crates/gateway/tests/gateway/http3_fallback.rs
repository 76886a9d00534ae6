//! HTTP/3 to an upstream beside the older versions: with it, without it, and when it stops to work.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use eyas::race::memory::MemoryConfig;
use eyas::{MemoryStore, SecurityParameters, ServerIdentity};
use eyas_gateway::{Gateway, GatewayBuilder, GatewayLimits};
use eyas_http::serve::{RequestBody, Running, Server};
use eyas_http::{Body, Versions};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use tokio::io::AsyncReadExt;
use tokio::net::UdpSocket;
use tokio::time::{sleep, timeout};
use tower::service_fn;

use crate::ports;
use crate::stage::{EACH_VERSION, GET, Stage, TIMEOUT, client, read_all};

const STREAMS: Versions = Versions { http1: true, http2: true, http3: false };

fn identity() -> ServerIdentity {
    ServerIdentity::self_signed(["localhost"]).expect("an identity")
}

/// Starts an upstream at this port that answers with its version.
async fn upstream(identity: &ServerIdentity, port: u16, versions: Versions) -> Running {
    let service = service_fn(|request: Request<RequestBody>| async move {
        let text = format!("{:?}\n", request.version());
        Ok::<_, Infallible>(Response::new(Body::from(text)))
    });
    let server = Server::builder().tls(identity.clone()).versions(versions);
    let server = server.listen((Ipv4Addr::LOCALHOST, port).into()).service(service);
    server.start().await.expect("an upstream")
}

/// Returns a gateway in the clear to the upstream at this port.
async fn before(
    identity: &ServerIdentity,
    port: u16,
    set: impl FnOnce(GatewayBuilder) -> GatewayBuilder,
) -> Stage {
    let url = format!("https://localhost:{port}").parse().expect("an upstream");
    let roots = SecurityParameters::platform().with_roots([identity.certificate().clone()]);
    let gateway = set(Gateway::builder(url).security(roots)).build().expect("a gateway");
    let server = Server::builder().plain().service(gateway.clone());
    Stage::of(server.start().await.expect("a server"), gateway)
}

async fn get(stage: &Stage) -> String {
    let answer = read_all(&mut stage.send(GET).await).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    answer
}

/// Each request has a connection of its own.
fn unpooled(gateway: GatewayBuilder) -> GatewayBuilder {
    gateway.limits(GatewayLimits { keep_time: Duration::ZERO, ..GatewayLimits::default() })
}

#[tokio::test]
async fn an_upstream_without_http3_is_reached_over_tcp() {
    let (identity, port) = (identity(), ports::own_port());
    let _upstream = upstream(&identity, port, STREAMS).await;
    let stage = before(&identity, port, |gateway| gateway).await;
    assert!(get(&stage).await.contains("HTTP/2.0"));
    assert_eq!(stage.gateway.stats().http2_connections, 1);
}

/// After the first connections QUIC costs nothing more: not even a packet.
#[tokio::test]
async fn quic_that_is_swallowed_is_not_tried_each_time() {
    let (identity, port) = (identity(), ports::own_port());
    let _upstream = upstream(&identity, port, STREAMS).await;
    let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).await.expect("a port");
    let received = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&received);
    tokio::spawn(async move {
        while silent.recv_from(&mut [0; 2048]).await.is_ok() {
            counted.fetch_add(1, Relaxed);
        }
    });
    let stage = before(&identity, port, unpooled).await;
    let learnt = async {
        loop {
            let seen = received.load(Relaxed);
            for _ in 0..5 {
                assert!(get(&stage).await.contains("HTTP/2.0"));
            }
            // Longer than the time after which the attempts of a race are over.
            sleep(Duration::from_secs(4)).await;
            if seen > 0 && received.load(Relaxed) == seen {
                return;
            }
        }
    };
    timeout(TIMEOUT, learnt).await.expect("it stops trying");
}

#[tokio::test]
async fn http3_can_be_left_out() {
    let (identity, port) = (identity(), ports::own_port());
    let upstream = upstream(&identity, port, Versions::ALL).await;
    let stage = before(&identity, port, |gateway| gateway.http3(false)).await;
    assert!(get(&stage).await.contains("HTTP/2.0"));
    assert_eq!(upstream.stats().quic_connections, 0);
}

/// Nothing that is safe to repeat fails when the QUIC of an upstream goes away under load.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upstream_that_restarts_without_http3_fails_no_request_that_can_be_repeated() {
    let (identity, port) = (identity(), ports::own_port());
    let quic = upstream(&identity, port, Versions::HTTP_3).await;
    let tcp = upstream(&identity, port, STREAMS).await;
    let stage = Arc::new(before(&identity, port, |gateway| gateway).await);
    let cut = Arc::<AtomicUsize>::default();
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let (stage, cut) = (Arc::clone(&stage), Arc::clone(&cut));
            tokio::spawn(async move {
                for _ in 0..50 {
                    let answer = read_all(&mut stage.send(GET).await).await;
                    // A response that had begun ends with its upstream: it is never repeated.
                    match answer.is_empty() {
                        true => drop(cut.fetch_add(1, Relaxed)),
                        false => assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}"),
                    }
                }
            })
        })
        .collect();
    while quic.stats().http3_requests < 100 {
        tokio::task::yield_now().await;
    }
    // At once, with its requests in flight.
    drop(quic);
    for client in clients {
        client.await.expect("no failure");
    }
    assert!(cut.load(Relaxed) <= 8, "no more than were in flight");
    assert!(tcp.stats().http2_requests > 0, "{:?}", stage.gateway.stats());
}

/// Forwards datagrams from a port to a server, for as long as `passes` is set.
async fn forward(socket: UdpSocket, server: SocketAddr, passes: Arc<AtomicBool>) {
    let socket = Arc::new(socket);
    let mut clients = HashMap::<SocketAddr, Arc<UdpSocket>>::new();
    let mut datagram = [0; 2048];
    while let Ok((length, from)) = socket.recv_from(&mut datagram).await {
        if !passes.load(Relaxed) {
            continue;
        }
        let inner = match clients.entry(from) {
            Entry::Occupied(known) => Arc::clone(known.get()),
            Entry::Vacant(new) => {
                let inner = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
                inner.connect(server).await.expect("connects");
                let inner = Arc::clone(new.insert(Arc::new(inner)));
                let (outer, passes) = (Arc::clone(&socket), Arc::clone(&passes));
                tokio::spawn(back(Arc::clone(&inner), outer, from, passes));
                inner
            }
        };
        let _ = inner.send(&datagram[..length]).await;
    }
}

/// Forwards what the server sends to one of its clients.
async fn back(
    inner: Arc<UdpSocket>,
    outer: Arc<UdpSocket>,
    client: SocketAddr,
    passes: Arc<AtomicBool>,
) {
    let mut datagram = [0; 2048];
    while let Ok(length) = inner.recv(&mut datagram).await {
        if passes.load(Relaxed) {
            let _ = outer.send_to(&datagram[..length], client).await;
        }
    }
}

//= hostile gateway
//# an upstream over HTTP/3 that falls silent
//= bound: `PATIENCE`
/// A firewall begins to drop UDP: requests in flight move to TCP, and HTTP/3 is used again once it works.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_move_to_tcp_while_udp_is_dropped_and_back_afterwards() {
    let (identity, port) = (identity(), ports::own_port());
    let quic = upstream(&identity, 0, Versions::HTTP_3).await;
    let _tcp = upstream(&identity, port, STREAMS).await;
    let outer = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).await.expect("a port");
    let passes = Arc::new(AtomicBool::new(true));
    tokio::spawn(forward(outer, quic.local_addr(), Arc::clone(&passes)));
    let retest_after = Some(Duration::from_secs(5));
    let memory = MemoryStore::in_memory(MemoryConfig { retest_after, ..MemoryConfig::default() });
    let fallback_time = Duration::from_secs(1);
    let limits = GatewayLimits { fallback_time, ..GatewayLimits::default() };
    let stage = before(&identity, port, |gateway| gateway.memory(memory).limits(limits)).await;
    assert!(get(&stage).await.contains("HTTP/3.0"));
    passes.store(false, Relaxed);
    // On the connection of the first one, which nothing comes back on.
    let answers = futures_util::future::join_all((0..4).map(|_| get(&stage)));
    let answers = timeout(TIMEOUT, answers).await.expect("in time");
    assert!(answers.iter().all(|answer| answer.contains("HTTP/2.0")), "{answers:?}");
    passes.store(true, Relaxed);
    let returned = async {
        while !get(&stage).await.contains("HTTP/3.0") {
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(TIMEOUT, returned).await.expect("HTTP/3 again");
}

/// Starts an upstream over HTTP/3 whose response never ends, and counts what it produced.
async fn endless(identity: &ServerIdentity, produced: Arc<AtomicUsize>) -> Running {
    let service = service_fn(move |_: Request<RequestBody>| {
        let produced = Arc::clone(&produced);
        let pieces = futures_util::stream::repeat_with(move || {
            produced.fetch_add(10_000, Relaxed);
            Ok::<_, Infallible>(Frame::data(Bytes::from_static(&[7; 10_000])))
        });
        async { Ok::<_, Infallible>(Response::new(StreamBody::new(pieces))) }
    });
    let server = Server::builder().tls(identity.clone()).versions(Versions::HTTP_3);
    server.service(service).start().await.expect("an upstream")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_holds_up_the_upstream() {
    let (identity, produced) = (identity(), Arc::<AtomicUsize>::default());
    let upstream = endless(&identity, Arc::clone(&produced)).await;
    let stage = before(&identity, upstream.local_addr().port(), |gateway| gateway).await;
    let mut client = stage.send(GET).await;
    client.read_exact(&mut [0; 12]).await.expect("an answer");
    // Until nothing is produced for a while.
    let mut before = 0;
    let held = async {
        while produced.load(Relaxed) != before {
            before = produced.load(Relaxed);
            sleep(Duration::from_secs(1)).await;
        }
    };
    timeout(TIMEOUT, held).await.expect("it is held up");
    // It goes on when the client reads, and ends with the client.
    let mut read = 0;
    while read < 20_000_000 {
        read += client.read(&mut [0; 65536]).await.expect("reads");
    }
    assert!(produced.load(Relaxed) > before);
    drop(client);
    let over = async {
        while upstream.stats().requests_in_flight > 0 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(TIMEOUT, over).await.expect("it is cancelled");
}

/// The same in the other direction.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upstream_that_does_not_read_holds_up_the_client() {
    let (identity, read) = (identity(), Arc::<AtomicUsize>::default());
    let (go, gone) = tokio::sync::watch::channel(false);
    let counted = Arc::clone(&read);
    let service = service_fn(move |request: Request<RequestBody>| {
        let (mut gone, counted) = (gone.clone(), Arc::clone(&counted));
        async move {
            let _ = gone.wait_for(|go| *go).await;
            let mut body = request.into_body();
            while let Some(frame) = body.frame().await {
                let frame = frame.expect("whole");
                counted.fetch_add(frame.data_ref().map_or(0, Bytes::len), Relaxed);
            }
            Ok::<_, Infallible>(Response::new(Body::empty()))
        }
    });
    let limits = eyas_http::serve::Limits { body_bytes: u64::MAX, ..Default::default() };
    let server =
        Server::builder().tls(identity.clone()).versions(Versions::HTTP_3).limits(limits.clone());
    let upstream = server.service(service).start().await.expect("an upstream");
    let url = format!("h3://localhost:{}", upstream.local_addr().port());
    let roots = SecurityParameters::platform().with_roots([identity.certificate().clone()]);
    let gateway = Gateway::builder(url.parse().expect("one")).security(roots).build();
    let gateway = gateway.expect("a gateway");
    let server = Server::builder().limits(limits).service(gateway.clone());
    let stage = Stage::of(server.start().await.expect("a server"), gateway);
    const PIECES: usize = 4000;
    for version in EACH_VERSION {
        go.send_replace(false);
        read.store(0, Relaxed);
        let taken = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&taken);
        let pieces = (0..PIECES).map(move |_| {
            count.fetch_add(1, Relaxed);
            Ok::<_, Infallible>(Bytes::from_static(&[7; 10_000]))
        });
        let pieces = futures_util::stream::iter(pieces);
        let url = format!("https://localhost:{}/", stage.running.local_addr().port());
        let posting =
            tokio::spawn(client(&stage, version).post(&url).body(Body::from_stream(pieces)).send());
        let mut seen = usize::MAX;
        let held = async {
            while taken.load(Relaxed) != seen {
                seen = taken.load(Relaxed);
                sleep(Duration::from_secs(1)).await;
            }
        };
        timeout(TIMEOUT, held).await.expect("it is held up");
        assert!(seen < PIECES, "{version:?}: all of it is held somewhere");
        go.send_replace(true);
        let answer = timeout(TIMEOUT, posting).await.expect("in time").expect("no panic");
        assert_eq!(answer.expect("a response").status(), 200, "{version:?}");
        assert_eq!(read.load(Relaxed), PIECES * 10_000, "{version:?}");
    }
}

#[tokio::test]
async fn a_websocket_goes_over_http1_beside_http3() {
    let mut inner = Stage::plain().await;
    let identity = identity();
    // A gateway serves as the upstream that has all versions.
    let server = Server::builder().tls(identity.clone()).service(inner.gateway.clone());
    let outer = server.start().await.expect("an upstream");
    let stage = before(&identity, outer.local_addr().port(), |gateway| gateway).await;
    let mut plain = stage.send(GET).await;
    let mut upstream = inner.connection().await;
    upstream.head().await;
    upstream.send(crate::stage::OK).await;
    assert!(read_all(&mut plain).await.ends_with("ok"));
    let upgrade = "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let mut client = stage.send(upgrade).await;
    upstream.head().await;
    let accept = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nhello";
    upstream.send(accept).await;
    let mut answer = Vec::new();
    while !answer.ends_with(b"hello") {
        assert!(client.read_buf(&mut answer).await.expect("reads") > 0);
    }
    assert!(answer.starts_with(b"HTTP/1.1 101 "));
    let stats = (outer.stats().http3_requests, outer.stats().http11_requests);
    assert_eq!(stats, (1, 1));
}
