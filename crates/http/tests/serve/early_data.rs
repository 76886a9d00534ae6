//! Tests of 0-RTT requests (RFC 8470).

use std::{net::SocketAddr, sync::Arc, time::Duration};

use eyas_http::{
    Body,
    serve::{PeerInfo, RequestBody, Running, Server, ServerBuilder},
};
use http::{Method, Request, Response, StatusCode};
use quinn::crypto::rustls::QuicClientConfig;
use rustls_pki_types::CertificateDer;
use tokio::{
    net::UdpSocket,
    time::{sleep, timeout},
};
use tower::service_fn;

use crate::clients::{SOON, get, h3_exchange, h3_over, request, start, trust};

/// Returns a server that answers 202 to early requests.
fn builder() -> ServerBuilder {
    let service = service_fn(|request: Request<RequestBody>| {
        let is_early = request.extensions().get::<PeerInfo>().is_some_and(|peer| peer.early);
        let mut reply = Response::new(Body::empty());
        *reply.status_mut() = if is_early { StatusCode::ACCEPTED } else { StatusCode::OK };
        std::future::ready(Ok::<_, std::convert::Infallible>(reply))
    });
    Server::builder().service(service)
}

/// Returns a client with a ticket of the server.
async fn resuming(address: SocketAddr, root: &CertificateDer<'static>) -> quinn::Endpoint {
    let mut tls = trust(root, b"h3");
    tls.enable_early_data = true;
    let crypto = QuicClientConfig::try_from(tls).unwrap();
    let mut endpoint = quinn::Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    endpoint.set_default_client_config(quinn::ClientConfig::new(Arc::new(crypto)));
    let conn = endpoint.connect(address, "localhost").unwrap().await.unwrap();
    let (mut driver, mut send) = h3_over(conn.clone()).await;
    let driving =
        tokio::spawn(async move { std::future::poll_fn(|cx| driver.poll_close(cx)).await });
    h3_exchange(&mut send, get("/bytes/1")).await.unwrap();
    // The tickets come with or after the handshake.
    sleep(Duration::from_millis(100)).await;
    driving.abort();
    endpoint
}

/// Returns the status of a request sent as 0-RTT data, if the server accepted the data.
async fn early(
    endpoint: &quinn::Endpoint,
    address: SocketAddr,
    request: Request<bytes::Bytes>,
) -> Option<StatusCode> {
    let connecting = endpoint.connect(address, "localhost").unwrap();
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

/// Starts a relay to this server that delays what one client sends by half a second.
async fn delayed_relay_to(server: SocketAddr) -> SocketAddr {
    let here = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
    let there = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
    there.connect(server).await.unwrap();
    let address = here.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut up, mut down) = ([0; 65_536], [0; 65_536]);
        let mut client = None;
        loop {
            tokio::select! {
                received = here.recv_from(&mut up) => {
                    let (length, from) = received.unwrap();
                    client = Some(from);
                    let (datagram, there) = (up[..length].to_vec(), Arc::clone(&there));
                    tokio::spawn(async move {
                        sleep(Duration::from_millis(500)).await;
                        let _ = there.send(&datagram).await;
                    });
                }
                received = there.recv(&mut down) => {
                    let length = received.unwrap();
                    here.send_to(&down[..length], client.unwrap()).await.unwrap();
                }
            }
        }
    });
    address
}

/// Returns a client with a ticket, on a delayed path: the handshake completes well after the first
/// request has arrived.
async fn resuming_with_delay(running: &Running) -> (quinn::Endpoint, SocketAddr) {
    let address = delayed_relay_to(running.local_addr()).await;
    (resuming(address, running.identity().unwrap().certificate()).await, address)
}

#[tokio::test]
async fn safe_requests_are_served_early_and_others_wait() {
    let running = start(builder().early_data(true)).await;
    let (endpoint, address) = resuming_with_delay(&running).await;
    let status = early(&endpoint, address, get("/bytes/10")).await;
    assert_eq!(status, Some(StatusCode::ACCEPTED));
    let (endpoint, address) = resuming_with_delay(&running).await;
    let status = early(&endpoint, address, request(Method::POST, "/echo", "x")).await;
    assert_eq!(status, Some(StatusCode::TOO_EARLY));
}

#[tokio::test]
async fn nothing_is_accepted_early_by_default() {
    let running = start(builder()).await;
    let (endpoint, address) = resuming_with_delay(&running).await;
    let connecting = endpoint.connect(address, "localhost").unwrap();
    assert!(connecting.into_0rtt().is_err(), "the ticket allows no 0-RTT data");
}

#[tokio::test]
async fn a_service_sees_safe_early_requests_marked_as_early() {
    let running = start(builder().early_data(true)).await;
    for (method, expected) in
        [(Method::GET, StatusCode::ACCEPTED), (Method::POST, StatusCode::TOO_EARLY)]
    {
        let (endpoint, address) = resuming_with_delay(&running).await;
        let status = early(&endpoint, address, request(method, "/", "")).await;
        assert_eq!(status, Some(expected));
    }
}
