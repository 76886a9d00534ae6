//! The examples, with our server: its name resolves to two addresses, and nothing listens at the first.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use axum::{Extension, Router, extract::Request, routing::get};
use eyas::{Endpoint, MemoryStore, Resolver, SecurityParameters, Transport, race::policy::Policy};
use eyas_http::{
    Body, Kind, Versions,
    connector::Connector,
    serve::{PeerInfo, Running, SctpService, Server},
};
use http_body_util::BodyExt;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use tonic_health::{pb::health_check_response::ServingStatus, server::health_reporter};

#[expect(dead_code, reason = "its main is for cargo run")]
#[path = "../hyper.rs"]
mod hyper;
#[expect(dead_code, reason = "its main is for cargo run")]
#[path = "../reqwest.rs"]
mod reqwest_by_proxy;
#[expect(dead_code, reason = "its main is for cargo run")]
#[path = "../tonic.rs"]
mod tonic_health_check;
#[expect(dead_code, reason = "its main is for cargo run")]
#[path = "../ureq.rs"]
mod ureq_agent;

const NAME: &str = "peer.test";
/// A loopback address without a listener.
const UNUSED: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

async fn greet(Extension(peer): Extension<PeerInfo>, request: Request) -> String {
    format!("{:?} over {}", request.version(), peer.transport)
}

/// Starts a server with an application and gRPC.
async fn start() -> Running {
    let (_, health) = health_reporter();
    let grpc = tonic::service::Routes::new(health).prepare().into_axum_router();
    let app = Router::new().route("/", get(greet)).merge(grpc);
    let server = Server::builder().listen((HERE, 0).into()).names([NAME]);
    server.sctp(SctpService::with_free_port()).service(app).start().await.expect("a server")
}

fn url(running: &Running) -> String {
    format!("https://{NAME}:{}/", running.local_addr().port())
}

/// Returns an endpoint that resolves the server's name to these addresses.
fn endpoint(running: &Running, at: &[IpAddr]) -> Endpoint {
    let root = running.identity().expect("TLS").certificate().clone();
    let udp = running.sctp().and_then(|sctp| sctp.encapsulation_port()).expect("SCTP over UDP");
    let resolver = Resolver::server((Ipv4Addr::LOCALHOST, 9).into());
    Endpoint::builder()
        .security(SecurityParameters::platform().with_roots([root]))
        .resolver(resolver.overriding(NAME, running.local_addr().port(), at.to_vec()))
        .memory(MemoryStore::none())
        .sctp_encapsulation_port(udp)
        .build()
        .expect("an endpoint")
}

/// Returns the server's response through this connector.
async fn response_through(connector: Connector, url: &str) -> String {
    let client = Client::builder(TokioExecutor::new()).build::<_, Body>(connector);
    let response = client.get(url.parse().expect("a URL")).await.expect("a response");
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    String::from_utf8_lossy(&body).into_owned()
}

#[tokio::test]
async fn hyper_races_and_uses_http2_if_negotiated() {
    let running = start().await;
    let response = hyper::get(endpoint(&running, &[UNUSED, HERE]), &url(&running)).await;
    let here = SocketAddr::new(HERE, running.local_addr().port());
    let expected = format!("HTTP/2.0 over tcp to {here}, after 1 that failed\nHTTP/2.0 over tcp");
    assert_eq!(response.expect("a response"), expected);
}

#[tokio::test]
async fn a_connector_offers_the_protocols_of_its_client() {
    let running = start().await;
    let connector = Connector::new(endpoint(&running, &[HERE]));
    let http1 = connector.clone().versions(Versions::HTTP_1);
    assert_eq!(response_through(http1, &url(&running)).await, "HTTP/1.1 over tcp");
    let sctp = Policy { transports: vec![Transport::SctpUdp], ..Policy::default() };
    assert_eq!(response_through(connector.race(sctp), &url(&running)).await, "HTTP/1.1 over sctp");
}

#[tokio::test]
async fn a_connector_uses_tls_for_http_urls_if_requested() {
    let running = start().await;
    let connector = Connector::new(endpoint(&running, &[HERE])).always_tls();
    let http = url(&running).replace("https:", "http:");
    assert_eq!(response_through(connector, &http).await, "HTTP/2.0 over tcp");
}

#[tokio::test]
async fn a_failed_race_is_reported_through_the_client() {
    let running = start().await;
    let connector = Connector::new(endpoint(&running, &[UNUSED]));
    let error = connector.connect(&url(&running).parse().expect("a URL")).await;
    let error = error.expect_err("no listener");
    assert_eq!(error.kind(), Kind::Connect);
    assert!(error.to_string().contains("127.0.0.2"), "{error}");
    let quic = Policy { transports: vec![Transport::Quic], ..Policy::default() };
    let connector = Connector::new(endpoint(&running, &[HERE])).race(quic);
    let error = connector.connect(&url(&running).parse().expect("a URL")).await;
    assert!(error.expect_err("no transport").to_string().contains("allow TCP"));
}

#[tokio::test]
async fn a_grpc_call_uses_a_race() {
    let running = start().await;
    let endpoint = endpoint(&running, &[UNUSED, HERE]);
    let status = tonic_health_check::health(endpoint.clone(), &url(&running)).await;
    assert_eq!(status.expect("an answer"), ServingStatus::Serving);
    let tcp = endpoint.attempts(Transport::Tcp);
    assert_eq!((tcp.used, tcp.failed), (1, 1), "{tcp:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ureq_races_and_reuses_its_connection() {
    let running = start().await;
    let endpoint = endpoint(&running, &[UNUSED, HERE]);
    let (url, counting) = (url(&running), endpoint.clone());
    let requests = tokio::task::spawn_blocking(move || {
        let agent = ureq_agent::agent(endpoint).expect("an agent");
        for _ in 0..2 {
            let mut response = agent.get(&url).call().expect("a response");
            let body = response.body_mut().read_to_string().expect("a body");
            assert_eq!(body, "HTTP/1.1 over tcp");
        }
    });
    requests.await.expect("ureq");
    assert_eq!(counting.attempts(Transport::Tcp).used, 1, "the second request reuses it");
}

#[tokio::test(flavor = "multi_thread")]
async fn ureq_reports_timeouts_and_failed_races_as_errors() {
    let running = start().await;
    let silent = tokio::net::TcpListener::bind((HERE, 0)).await.expect("a socket");
    let silent = format!("http://{}/", silent.local_addr().expect("an address"));
    let (url, endpoint) = (url(&running), endpoint(&running, &[UNUSED]));
    let requests = tokio::task::spawn_blocking(move || {
        let agent = ureq_agent::agent(endpoint).expect("an agent");
        let error = agent.get(&url).call().expect_err("no listener");
        assert!(error.to_string().contains("127.0.0.2"), "{error}");
        let limited = agent.get(&silent).config().timeout_global(Some(Duration::from_millis(200)));
        let error = limited.build().call().expect_err("no response");
        assert!(matches!(error, ureq::Error::Timeout(_)), "{error}");
    });
    requests.await.expect("ureq");
}

/// Our own client through a SOCKS proxy with users, with the right password and with a wrong one.
#[tokio::test]
async fn our_own_client_works_through_socks() {
    let running = start().await;
    let plain = Server::builder().listen((HERE, 0).into()).plain();
    let plain = plain.service(Router::new().route("/", get(greet))).start().await.expect("HTTP");
    let users = eyas_proxy::users::ProxyUsers::parse("ada:se:cret").expect("users");
    let relay = endpoint(&running, &[UNUSED, HERE]);
    let proxy = eyas_proxy::Proxy::builder(relay.clone()).users(users).start().expect("a proxy");
    let through = |user: &str| {
        let address = format!("socks5h://{user}@{}", proxy.local_addr());
        // The client's own endpoint cannot reach that name.
        let client = eyas_http::Client::builder().endpoint(endpoint(&running, &[UNUSED]));
        client.proxy(eyas_http::Proxy::all(address, "")).build().expect("a client")
    };
    let client = through("ada:se%3Acret");
    let response = client.get(url(&running)).send().await.expect("a response");
    assert!(response.connection().reasons.iter().any(|reason| reason.contains("socks5://")));
    assert_eq!(response.text().await.expect("a body"), "HTTP/2.0 over tcp");
    assert_eq!(relay.attempts(Transport::Tcp).failed, 1, "the proxy resolved and raced");
    let clear = format!("http://{}/", plain.local_addr());
    let response = client.get(clear).send().await.expect("a response");
    assert_eq!(response.text().await.expect("a body"), "HTTP/1.1 over tcp");
    let error = through("ada:wrong").get(url(&running)).send().await.expect_err("refused");
    assert_eq!(error.kind(), Kind::Proxy);
    assert!(!error.to_string().contains("wrong"), "{error}");
}

#[tokio::test]
async fn reqwest_races_through_the_in_process_proxy() {
    let running = start().await;
    let root = running.identity().expect("TLS").certificate().clone();
    let _ = eyas::rustls::crypto::ring::default_provider().install_default();
    let trusted = reqwest::Certificate::from_der(&root).expect("a certificate");
    let builder = reqwest::Client::builder().tls_certs_only([trusted]);
    let endpoint = endpoint(&running, &[UNUSED, HERE]);
    let (client, proxy) = reqwest_by_proxy::client(endpoint.clone(), builder).expect("a client");
    let response = client.get(url(&running)).send().await.expect("a response");
    assert_eq!(response.text().await.expect("a body"), "HTTP/2.0 over tcp");
    let tcp = endpoint.attempts(Transport::Tcp);
    assert_eq!((tcp.used, tcp.failed), (1, 1), "{tcp:?}");
    drop(client);
    proxy.shutdown().await;
}
