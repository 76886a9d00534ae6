//! Tests of requests as 0-RTT data (RFC 8470).

use std::{
    net::Ipv4Addr,
    sync::atomic::{AtomicUsize, Ordering},
};

use eyas::{Endpoint, Resolver, SecurityParameters, ServerIdentity};
use eyas_http::{Client, Proxy, Response};
use http::Method;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::{
    hostile_peer::Peer,
    ports::own_port,
    site::{NAME, Reply, SOON, Site, echo_path, identity, start_early},
    wire::{
        CONTROL, DATA, DECODER_STREAM_ERROR, ENCODER, Ending, SETTINGS_ERROR, close_code, frame,
        head, send_uni, settings, varint,
    },
};

fn client(site: &Site, early_data: bool) -> Client {
    client_of(site.address.port(), &site.identity, early_data)
}

fn client_of(port: u16, identity: &ServerIdentity, early_data: bool) -> Client {
    let security = SecurityParameters::platform()
        .with_roots([identity.certificate().clone()])
        .with_early_data(true);
    let resolver = Resolver::server((Ipv4Addr::LOCALHOST, 9).into()).overriding(
        NAME,
        port,
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

/// The settings of RFC 9114 §7.2.4.1 and RFC 9204 §5.
const TABLE_BYTES: u64 = 0x01;
const FIELD_BYTES: u64 = 0x06;
const BLOCKED_STREAMS: u64 = 0x07;

/// RFC 9114 §8.1.
const NO_ERROR: u64 = 0x100;

/// A server whose SETTINGS differ between a connection and the next one.
struct ChangingServer {
    peer: Peer,
    /// Whether the client used the table of the first settings before the second ones, and the code with which it closed
    /// the connection, in the order of the connections.
    reports: UnboundedReceiver<(bool, Option<u64>)>,
}

impl ChangingServer {
    /// On the second connection the request is answered only if `answers`.
    fn start(first: Vec<u8>, second: Vec<u8>, answers: bool) -> Self {
        let (report, reports) = unbounded_channel();
        let connections = AtomicUsize::new(0);
        let peer = Peer::start_early(move |quic| {
            let is_second = connections.fetch_add(1, Ordering::SeqCst) == 1;
            let (report, frames) = (report.clone(), [first.clone(), second.clone()]);
            async move {
                let mut others = Vec::new();
                let uses_table = is_second && uses_table(&quic, &mut others).await;
                let own = [varint(CONTROL), frames[usize::from(is_second)].clone()].concat();
                let _control = send_uni(&quic, &own, Ending::Open).await;
                while let Ok((mut send, recv)) = quic.accept_bi().await {
                    if answers || !is_second {
                        let answer = [head(&[(":status", "200")]), frame(DATA, b"ok")].concat();
                        let _ = send.write_all(&answer).await;
                        let _ = send.finish();
                    }
                    others.push(recv);
                    drop(send.stopped().await);
                }
                let _ = report.send((uses_table, close_code(&quic).await));
            }
        });
        Self { peer, reports }
    }
}

/// Returns whether an instruction of the client's encoder comes first, before the server has sent anything.
async fn uses_table(quic: &quinn::Connection, others: &mut Vec<quinn::RecvStream>) -> bool {
    let mut kind = [0];
    while let Ok(mut uni) = quic.accept_uni().await {
        uni.read_exact(&mut kind).await.expect("a type");
        if u64::from(kind[0]) == ENCODER {
            let first = tokio::time::timeout(SOON / 10, uni.read_exact(&mut kind)).await;
            others.push(uni);
            return matches!(first, Ok(Ok(())));
        }
        others.push(uni);
    }
    false
}

//= rfc9114 §7.2.4.2
//# a client complies with the settings that it has stored, and an accepting server that reduces or omits one is
//# H3_SETTINGS_ERROR
//= rfc9204 §3.2.3
//# with 0-RTT a maximum capacity that was not zero stays the same, else QPACK_DECODER_STREAM_ERROR
#[tokio::test]
async fn settings_are_remembered_with_the_session_and_hold() {
    let own = [(TABLE_BYTES, 4096), (FIELD_BYTES, 20_000), (BLOCKED_STREAMS, 4)];
    let with = |setting, value: Option<u64>| {
        let value = value.map(|value| (setting, value));
        let others = own.iter().filter(|(other, _)| *other != setting).copied();
        settings(&others.chain(value).collect::<Vec<_>>())
    };
    for (what, second, code) in [
        ("the same", settings(&own), NO_ERROR),
        ("larger fields", with(FIELD_BYTES, Some(30_000)), NO_ERROR),
        ("more streams", with(BLOCKED_STREAMS, Some(5)), NO_ERROR),
        ("smaller fields", with(FIELD_BYTES, Some(19_999)), SETTINGS_ERROR),
        ("no size of fields", with(FIELD_BYTES, None), SETTINGS_ERROR),
        ("fewer streams", with(BLOCKED_STREAMS, Some(3)), SETTINGS_ERROR),
        ("no streams", with(BLOCKED_STREAMS, None), SETTINGS_ERROR),
        ("a larger table", with(TABLE_BYTES, Some(8192)), DECODER_STREAM_ERROR),
        ("a smaller table", with(TABLE_BYTES, Some(4095)), DECODER_STREAM_ERROR),
        ("no table", with(TABLE_BYTES, None), DECODER_STREAM_ERROR),
    ] {
        let mut server = ChangingServer::start(settings(&own), second, code == NO_ERROR);
        let client = client_of(server.peer.port, &server.peer.identity, true);
        let url = server.peer.url();
        let get = || async { client.get(&*url).send().await };
        get().await.expect("a response").bytes().await.expect("a body");
        // The ticket comes after the handshake.
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        client.network_changed();
        let response = tokio::time::timeout(SOON, get()).await.expect("an end");
        let response = response.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(was_early(&response), code == NO_ERROR, "{what}");
        drop((response, client));
        // After a violation the request is sent again on another connection.
        let connections = if code == NO_ERROR { 2 } else { 3 };
        let mut ended = Vec::new();
        while ended.len() < connections {
            let report = tokio::time::timeout(SOON, server.reports.recv()).await.expect("an end");
            ended.push(report.expect("a report"));
        }
        assert!(ended.contains(&(true, Some(code))), "{what}: {ended:?}");
    }
}
