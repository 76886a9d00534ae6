//! Clients who are nobody yet, or go round in circles: they take nothing from those that are known.

mod stage;

use std::net::SocketAddr;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use eyas::Endpoint;
use eyas_proxy::users::ProxyUsers;
use eyas_proxy::{ProxyBuilder, ProxyLimits};
use eyas_relay::via::UpstreamProxy;
use stage::{Stage, TIMEOUT};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

fn stage(set: impl FnOnce(ProxyBuilder) -> ProxyBuilder) -> Stage {
    Stage::new(Endpoint::builder().build().expect("an endpoint"), set)
}

async fn client(stage: &Stage) -> TcpStream {
    TcpStream::connect(stage.running.local_addr()).await.expect("it listens")
}

/// Returns the whole response to a CONNECT, with these credentials if there are any.
async fn connect(stage: &Stage, to: SocketAddr, credentials: Option<&str>) -> String {
    let mut client = client(stage).await;
    let field = credentials
        .map(|given| format!("Proxy-Authorization: Basic {}\r\n", BASE64_STANDARD.encode(given)));
    let request = format!("CONNECT {to} HTTP/1.1\r\n{}\r\n", field.unwrap_or_default());
    client.write_all(request.as_bytes()).await.expect("writes");
    let mut response = Vec::new();
    let reading = client.read_to_end(&mut response);
    // A destination that closes resets its connection if there was something to read.
    let _ = timeout(TIMEOUT, reading).await.expect("a response");
    String::from_utf8(response).expect("text")
}

/// Starts a server that closes each connection.
async fn closing() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move { while listener.accept().await.is_ok() {} });
    address
}

//= hostile proxy
//# clients without a user or a destination that take all places
//= bound: `connections`
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_name_no_destination_make_room() {
    let users = ProxyUsers::parse("ada:lace\n").expect("users");
    let limits = ProxyLimits { connections: 4, ..ProxyLimits::default() };
    let stage = stage(|proxy| proxy.users(users).limits(limits));
    let to = closing().await;
    let mut silent = Vec::new();
    for number in 0..4 {
        let mut client = client(&stage).await;
        // Some say nothing, and some give no password for their destination.
        if number % 2 == 0 {
            client.write_all(&[5, 1, 2]).await.expect("writes");
            client.read_exact(&mut [0; 2]).await.expect("the method");
        }
        silent.push(client);
    }
    while stage.running.stats().open < 4 {
        tokio::task::yield_now().await;
    }
    let response = connect(&stage, to, Some("ada:lace")).await;
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    let mut first = silent.remove(0);
    let ended = timeout(TIMEOUT, first.read(&mut [0])).await.expect("it is disconnected");
    assert!(matches!(ended, Ok(0) | Err(_)));
    assert_eq!(stage.running.stats().over_limit, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_comes_as_its_place_is_needed_is_answered() {
    let limits = ProxyLimits { connections: 1, ..ProxyLimits::default() };
    let stage = stage(|proxy| proxy.limits(limits));
    let to = closing().await;
    let until_open = async |count| {
        while stage.running.stats().open != count {
            tokio::task::yield_now().await;
        }
    };
    for _ in 0..50 {
        timeout(TIMEOUT, until_open(0)).await.expect("all have left");
        let mut first = client(&stage).await;
        timeout(TIMEOUT, until_open(1)).await.expect("it is admitted");
        let request = format!("CONNECT {to} HTTP/1.1\r\n\r\n");
        first.write_all(request.as_bytes()).await.expect("writes");
        // It gets the place, or is turned away.
        let _other = client(&stage).await;
        let mut response = Vec::new();
        let _ = timeout(TIMEOUT, first.read_to_end(&mut response)).await.expect("an end");
        let response = String::from_utf8_lossy(&response);
        assert!(response.starts_with("HTTP/1.1 "), "{response:?}");
    }
}

//= hostile proxy
//# guessed passwords
//= bound: `BURST`, `MAX_ENTRIES`
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passwords_cannot_be_guessed_quickly() {
    let users = ProxyUsers::parse("ada:lace\nbob:x\n").expect("users");
    let stage = stage(|proxy| proxy.users(users));
    let to = closing().await;
    let known = connect(&stage, to, Some("bob:x")).await;
    assert!(known.starts_with("HTTP/1.1 200 "), "{known}");
    let mut braked = None;
    for number in 0..10_000 {
        let response = connect(&stage, to, Some(&format!("ada:{number}"))).await;
        if response.starts_with("HTTP/1.1 429 ") {
            braked = Some(response);
            break;
        }
        assert!(response.starts_with("HTTP/1.1 407 "), "{response}");
    }
    let braked = braked.expect("it is slowed down");
    assert!(braked.contains("\r\nRetry-After: ") && braked.contains("wrong passwords"), "{braked}");
    // Whoever was a user from there before still is.
    let known = connect(&stage, to, Some("bob:x")).await;
    assert!(known.starts_with("HTTP/1.1 200 "), "{known}");
}

//= hostile proxy
//# a proxy that reaches itself
//= bound: 502, which says so
/// ```text
/// client ─▶ proxy ── CONNECT ──▶ a way back ──▶ proxy: 502
/// ```
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_that_reaches_itself_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let way_back = listener.local_addr().expect("bound");
    let via = UpstreamProxy::parse(&format!("http://{way_back}")).expect("a proxy");
    let stage = stage(|proxy| proxy.via(via));
    let proxy = stage.running.local_addr();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let mut far = TcpStream::connect(proxy).await.expect("it listens");
            tokio::spawn(async move { copy_bidirectional(&mut near, &mut far).await });
        }
    });
    let response = connect(&stage, closing().await, None).await;
    assert!(response.starts_with("HTTP/1.1 502 "), "{response}");
    let reports = format!("{:?} {:?}", stage.report().await.end, stage.report().await.end);
    assert!(reports.contains("leads back to this proxy"), "{reports}");
    assert_eq!(stage.running.stats().accepted, 2);
}
