//! 0-RTT requests (RFC 8470).

use std::{net::SocketAddr, sync::Arc, time::Duration};

use eyas_http::serve::personality::{Authority, Faces, Personality, TestServer};
use http::{Method, Request, StatusCode};
use quinn::crypto::rustls::QuicClientConfig;
use tokio::time::{sleep, timeout};

use crate::clients::{SOON, get, h3_exchange, h3_over, request, trust};

/// A client that has a ticket of the server.
async fn resuming(server: &TestServer, authority: &Authority) -> quinn::Endpoint {
    let mut tls = trust(authority.root(), b"h3");
    tls.enable_early_data = true;
    let crypto = QuicClientConfig::try_from(tls).unwrap();
    let mut endpoint = quinn::Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    endpoint.set_default_client_config(quinn::ClientConfig::new(Arc::new(crypto)));
    let conn = endpoint.connect(server.local_addr(), "localhost").unwrap().await.unwrap();
    let (mut driver, mut send) = h3_over(conn.clone()).await;
    let driving =
        tokio::spawn(async move { std::future::poll_fn(|cx| driver.poll_close(cx)).await });
    h3_exchange(&mut send, get("/bytes/1")).await.unwrap();
    // The tickets come with or after the handshake.
    sleep(Duration::from_millis(100)).await;
    driving.abort();
    endpoint
}

/// The status of a request sent as 0-RTT data, if the server took the data.
async fn early(
    endpoint: &quinn::Endpoint,
    server: &TestServer,
    request: Request<bytes::Bytes>,
) -> Option<StatusCode> {
    let connecting = endpoint.connect(server.local_addr(), "localhost").unwrap();
    let (conn, accepted) = connecting.into_0rtt().ok()?;
    let (mut driver, mut send) = h3_over(conn).await;
    let driving =
        tokio::spawn(async move { std::future::poll_fn(|cx| driver.poll_close(cx)).await });
    let response = h3_exchange(&mut send, request);
    let (response, accepted) =
        timeout(SOON, async { tokio::join!(response, accepted) }).await.expect("an end");
    driving.abort();
    accepted.then(|| response.unwrap().status())
}

/// On a path with some delay the handshake ends well after the first request has come.
fn faces(early_data: bool) -> Faces {
    Faces { early_data, ..Personality::QuicSlow { by: Duration::from_millis(500) }.faces() }
}

#[tokio::test]
async fn safe_requests_are_served_early_and_others_are_put_off() {
    let authority = Authority::new(["peer.test"]).unwrap();
    let stage = ([127, 0, 0, 1].into(), faces(true));
    let server = TestServer::start(&authority, &[stage]).await.unwrap();
    let endpoint = resuming(&server, &authority).await;
    let status = early(&endpoint, &server, get("/bytes/10")).await;
    assert_eq!(status, Some(StatusCode::OK));
    let endpoint = resuming(&server, &authority).await;
    let status = early(&endpoint, &server, request(Method::POST, "/echo", "x")).await;
    assert_eq!(status, Some(StatusCode::TOO_EARLY));
}

#[tokio::test]
async fn nothing_is_taken_early_unless_asked_for() {
    let authority = Authority::new(["peer.test"]).unwrap();
    let stage = ([127, 0, 0, 1].into(), faces(false));
    let server = TestServer::start(&authority, &[stage]).await.unwrap();
    let endpoint = resuming(&server, &authority).await;
    let connecting = endpoint.connect(server.local_addr(), "localhost").unwrap();
    assert!(connecting.into_0rtt().is_err(), "the ticket allows no 0-RTT data");
}
