//! Tests of the kinds and texts of errors for each fault of a peer.

use std::time::Duration;

use eyas::race::policy::Policy;
use eyas_http::{Error, Kind, Versions};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::ports::own_port;
use crate::site::{Plan, SOON, Site, builder, builder_for, client, echo_path, identity};

async fn fails(request: eyas_http::RequestBuilder, kind: Kind) -> Error {
    let failure = tokio::time::timeout(SOON, request.send()).await.expect("an end");
    let error = failure.expect_err("a failure");
    assert_eq!(error.kind(), kind, "{error}");
    error
}

/// Starts a server that accepts and sends nothing; returns its port and task.
async fn silent() -> (u16, JoinHandle<()>) {
    let port = own_port();
    let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("the port");
    let accepting = tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            kept.push(stream);
        }
    });
    (port, accepting)
}

#[tokio::test]
async fn a_server_that_accepts_and_stays_silent() {
    let (port, silent) = silent().await;
    let limit = Duration::from_millis(300);
    let client = builder_for(&[port], &[]).connect_timeout(limit).idle_timeout(limit).build();
    let client = client.expect("a client");
    fails(client.get(format!("https://a.example:{port}/")), Kind::ConnectTimeout).await;
    fails(client.get(format!("http://a.example:{port}/")), Kind::IdleTimeout).await;
    let client = builder_for(&[port], &[]).timeout(limit).build().expect("a client");
    fails(client.get(format!("http://a.example:{port}/")), Kind::TotalTimeout).await;
    silent.abort();
}

#[tokio::test]
async fn a_request_has_limits_of_its_own() {
    let (port, silent) = silent().await;
    let limit = Duration::from_millis(300);
    let client = builder_for(&[port], &[]).build().expect("a client");
    let secured = client.get(format!("https://a.example:{port}/"));
    fails(secured.connect_timeout(limit), Kind::ConnectTimeout).await;
    let get = || client.get(format!("http://a.example:{port}/"));
    fails(get().idle_timeout(limit), Kind::IdleTimeout).await;
    fails(get().timeout(limit), Kind::TotalTimeout).await;
    let client = builder_for(&[port], &[]).idle_timeout(limit).build().expect("a client");
    let patient = client.get(format!("http://a.example:{port}/"));
    fails(patient.idle_timeout(None).timeout(limit), Kind::TotalTimeout).await;
    silent.abort();
}

#[tokio::test]
async fn a_closed_port() {
    let port = own_port();
    // Over UDP a refusal is not distinguished from silence, so the race runs to its deadline.
    let race = Policy { deadline: Duration::from_secs(1), ..Policy::default() };
    let client = builder_for(&[port], &[]).race(race).build().expect("a client");
    let url = format!("https://a.example:{port}/");
    let error = fails(client.get(&url), Kind::Connect).await;
    assert_eq!(error.url(), Some(&*url));
    let reported = error.to_string();
    assert!(
        reported.contains("quic 127.0.0.1") && reported.contains("tcp 127.0.0.1"),
        "{reported}"
    );
    assert!(!error.trace().expect("a trace").steps.is_empty());
}

#[tokio::test]
async fn an_untrusted_certificate_and_one_of_another_name() {
    let site = Plan::default().start(echo_path).await;
    let without_roots = builder_for(&[site.address.port()], &[]).build().expect("a client");
    fails(without_roots.get(site.url("/")), Kind::Certificate).await;
    let other = Plan::default().identity(&identity(&["other.example"])).start(echo_path).await;
    fails(client(&[&other]).get(other.url("/")), Kind::Certificate).await;
    assert!(site.seen().is_empty() && other.seen().is_empty());
}

#[tokio::test]
async fn a_certificate_that_is_wrong_on_one_transport_only() {
    let good = identity(&[crate::site::NAME]);
    let tcp = Plan::tcp("h2").identity(&good).start(echo_path).await;
    let port = tcp.address.port();
    let bad = identity(&["other.example"]);
    let quic = Plan::quic().identity(&bad).port(port).start(echo_path).await;
    let response = builder_for(&[port], &[&good, &bad]).build().expect("a client");
    let response = response.get(tcp.url("/")).send().await.expect("a response");
    assert_eq!(response.version(), http::Version::HTTP_2);
    assert!(quic.seen().is_empty());
}

#[tokio::test]
async fn a_name_that_dns_does_not_know() {
    let site = Plan::default().start(echo_path).await;
    // The resolver of these tests queries a port without a listener.
    let error = fails(client(&[&site]).get("https://unknown.example/"), Kind::Dns).await;
    assert!(error.to_string().contains("unknown.example"), "{error}");
}

#[tokio::test]
async fn responses_that_are_not_http() {
    for reply in [&b"SSH-2.0-OpenSSH_9.9\r\n"[..], b"\0\x01\x02", b"HTTP/1.1 abc\r\n\r\n", b""] {
        let port = start_raw_server(reply).await;
        let client = builder_for(&[port], &[]).build().expect("a client");
        fails(client.get(format!("http://a.example:{port}/")), Kind::Protocol).await;
    }
}

//= hostile client
//# an endless head
//= bound: `MAX_HEAD_BYTES`, `MAX_HEAD_FIELDS`
#[tokio::test]
async fn a_head_without_end_is_not_read_to_its_end() {
    let mut endless = b"HTTP/1.1 200 OK\r\n".to_vec();
    for number in 0..100_000 {
        endless.extend(format!("x-{number}: {}\r\n", "y".repeat(50)).into_bytes());
    }
    let port = start_raw_server(endless.leak()).await;
    let client = builder_for(&[port], &[]).build().expect("a client");
    fails(client.get(format!("http://a.example:{port}/")), Kind::Protocol).await;
}

#[tokio::test]
async fn a_head_may_have_two_thousand_fields() {
    let head = |fields| {
        let fields = (0..fields).map(|number| format!("x-{number}: y\r\n")).collect::<String>();
        format!("HTTP/1.1 204 No Content\r\n{fields}\r\n").into_bytes().leak()
    };
    let ports = [start_raw_server(head(2000)).await, start_raw_server(head(2001)).await];
    let client = builder_for(&ports, &[]).build().expect("a client");
    let url = |port| format!("http://a.example:{port}/");
    let response = client.get(url(ports[0])).send().await.expect("a response");
    assert_eq!(response.headers().len(), 2000);
    let error = fails(client.get(url(ports[1])), Kind::Protocol).await;
    assert!(error.to_string().contains("2000 fields"), "{error}");
}

async fn start_raw_server(reply: &'static [u8]) -> u16 {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let port = own_port();
    let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("the port");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream.write_all(reply).await;
            });
        }
    });
    port
}

#[tokio::test]
async fn a_connection_cut_in_mid_body() {
    let site: Site = Plan::default()
        .start(|_| crate::site::Reply::text("half").end(crate::site::End::Never))
        .await;
    for versions in [Versions::HTTP_1, Versions::HTTP_2, Versions::HTTP_3] {
        let client = builder(&[&site]).versions(versions).build().expect("a client");
        let mut response = client.get(site.url("/")).send().await.expect("a head");
        assert!(response.chunk().await.expect("a chunk").is_some());
        site.cut();
        let error = tokio::time::timeout(SOON, response.chunk()).await.expect("an end");
        let error = error.expect_err("a body cut off");
        assert!(
            matches!(error.kind(), Kind::BodyReset | Kind::BodyTruncated),
            "{versions:?}: {error}"
        );
    }
}
