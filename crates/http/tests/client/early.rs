//! Tests of requests as 0-RTT data (RFC 8470).

use std::{
    net::Ipv4Addr,
    sync::atomic::{AtomicUsize, Ordering},
};

use eyas::{Endpoint, Resolver, SecurityParameters};
use eyas_http::{Client, Proxy, Response};
use http::Method;

use crate::ports::own_port;
use crate::site::{NAME, Reply, Site, echo_path, identity, start_early};

fn client(site: &Site, early_data: bool) -> Client {
    let security = SecurityParameters::platform()
        .with_roots([site.identity.certificate().clone()])
        .with_early_data(true);
    let resolver = Resolver::server((Ipv4Addr::LOCALHOST, 9).into()).overriding(
        NAME,
        site.address.port(),
        vec![Ipv4Addr::LOCALHOST.into()],
    );
    let endpoint = Endpoint::builder().security(security).resolver(resolver);
    let endpoint = endpoint.build().expect("an endpoint");
    let builder = Client::builder().endpoint(endpoint).proxy(Proxy::none());
    builder.early_data(early_data).build().expect("a client")
}

async fn fetch(client: &Client, site: &Site, method: Method) -> Response {
    client.request(method, site.url("/")).send().await.expect("a response")
}

/// Establishes a session to resume, and closes the connection.
async fn prepare(client: &Client, site: &Site) {
    fetch(client, site, Method::GET).await.bytes().await.expect("a body");
    // The ticket comes after the handshake.
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    client.network_changed();
}

fn was_early(response: &Response) -> bool {
    response.connection().reasons.iter().any(|reason| reason.contains("0-RTT"))
}

#[tokio::test]
async fn a_safe_request_is_sent_early_if_enabled_and_the_connection_is_shared_afterwards() {
    let site = start_early(&identity(&[NAME]), own_port(), echo_path);
    let client = client(&site, true);
    prepare(&client, &site).await;
    let response = fetch(&client, &site, Method::GET).await;
    assert!(was_early(&response));
    assert_eq!(response.text().await.expect("a body"), "/");
    let response = fetch(&client, &site, Method::GET).await;
    assert!(!was_early(&response));
    assert_eq!((site.connections(), site.seen().len()), (2, 3));
}

#[tokio::test]
async fn unsafe_requests_and_requests_by_default_are_not_sent_early() {
    let site = start_early(&identity(&[NAME]), own_port(), echo_path);
    let by_default = client(&site, false);
    prepare(&by_default, &site).await;
    assert!(!was_early(&fetch(&by_default, &site, Method::GET).await));
    let enabled = client(&site, true);
    prepare(&enabled, &site).await;
    for method in [Method::POST, Method::PUT, Method::DELETE] {
        enabled.network_changed();
        assert!(!was_early(&fetch(&enabled, &site, method).await));
    }
}

#[tokio::test]
async fn too_early_is_retried_once() {
    let enabled = AtomicUsize::new(0);
    let site = start_early(&identity(&[NAME]), own_port(), move |_| {
        // The second request is the early one.
        match enabled.fetch_add(1, Ordering::SeqCst) {
            1 => Reply::status(425),
            _ => Reply::text("ok"),
        }
    });
    let client = client(&site, true);
    prepare(&client, &site).await;
    let response = fetch(&client, &site, Method::GET).await;
    assert_eq!(response.status(), 200);
    assert!(!was_early(&response));
    assert_eq!((site.connections(), site.seen().len()), (2, 3));
}

#[tokio::test]
async fn too_early_for_a_request_that_was_not_early_is_returned() {
    let site = start_early(&identity(&[NAME]), own_port(), |_| Reply::status(425));
    assert_eq!(fetch(&client(&site, true), &site, Method::GET).await.status(), 425);
    assert_eq!(site.seen().len(), 1);
}

#[tokio::test]
async fn rejected_early_data_is_sent_after_the_handshake() {
    let id = identity(&[NAME]);
    let first = start_early(&id, own_port(), echo_path);
    let client = client(&first, true);
    prepare(&client, &first).await;
    let port = first.address.port();
    drop(first);
    // The same address, without the session.
    let second = restart(&id, port).await;
    let response = fetch(&client, &second, Method::GET).await;
    assert!(!was_early(&response));
    assert_eq!(response.text().await.expect("a body"), "/");
    assert_eq!(second.seen().len(), 1);
}

#[tokio::test]
async fn an_origin_that_becomes_silent_over_udp_is_reached_over_tcp() {
    let id = identity(&[NAME]);
    let first = start_early(&id, own_port(), echo_path);
    let client = client(&first, true);
    prepare(&client, &first).await;
    let port = first.address.port();
    drop(first);
    let tcp = crate::site::Plan::tcp("h2").identity(&id).port(port).start(echo_path).await;
    let response = fetch(&client, &tcp, Method::GET).await;
    assert_eq!(response.version(), http::Version::HTTP_2);
    assert_eq!(tcp.seen().len(), 1);
}

/// Starts a server on the port, which becomes free once the old endpoint is closed.
async fn restart(id: &eyas::ServerIdentity, port: u16) -> Site {
    for _ in 0..200 {
        if std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return start_early(id, port, echo_path);
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("port {port} stays taken");
}
