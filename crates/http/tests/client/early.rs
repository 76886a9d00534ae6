//! Tests of requests as 0-RTT data (RFC 8470).

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use eyas::{EchOutcome, Endpoint, Resolver, SecurityParameters, ServerIdentity};
use eyas_http::{Client, PoolLimits, Proxy, Response};
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
    let resolver = Resolver::server((Ipv4Addr::LOCALHOST, 9).into()).overriding(
        NAME,
        port,
        vec![Ipv4Addr::LOCALHOST.into()],
    );
    client_with(resolver, identity, early_data)
}

fn client_with(resolver: Resolver, identity: &ServerIdentity, early_data: bool) -> Client {
    let security = SecurityParameters::platform()
        .with_roots([identity.certificate().clone()])
        .with_early_data(true);
    let endpoint = Endpoint::builder().security(security).resolver(resolver);
    let endpoint = endpoint.build().expect("an endpoint");
    // So that a connection to another origin closes that to the first one.
    let limits = PoolLimits { total: 1, ..PoolLimits::default() };
    let builder = Client::builder().endpoint(endpoint).proxy(Proxy::none()).pool(limits);
    builder.early_data(early_data).build().expect("a client")
}

/// Closes the idle connection. Nothing listens at the other origin.
async fn close_idle(client: &Client) {
    let other = format!("http://127.0.0.1:{}/", own_port());
    client.get(other).send().await.expect_err("nobody is there");
}

async fn fetch(client: &Client, site: &Site, method: Method) -> Response {
    client.request(method, site.url("/")).send().await.expect("a response")
}

/// Establishes a session to resume, and closes the connection.
async fn prepare(client: &Client, site: &Site) {
    fetch(client, site, Method::GET).await.bytes().await.expect("a body");
    // The ticket comes after the handshake.
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    close_idle(client).await;
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
        close_idle(&enabled).await;
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

#[tokio::test]
async fn what_was_known_on_another_network_is_forgotten() {
    let site = start_early(&identity(&[NAME]), own_port(), echo_path);
    let client = client(&site, true);
    prepare(&client, &site).await;
    client.network_changed();
    assert!(!was_early(&fetch(&client, &site, Method::GET).await));
    close_idle(&client).await;
    assert!(was_early(&fetch(&client, &site, Method::GET).await));
}

const PUBLIC_NAME: &str = "public.example";

/// Returns a configuration for Encrypted ClientHello whose key nobody has (RFC 9849 §4).
pub(crate) fn ech_configs() -> Vec<u8> {
    let mut contents = vec![7, 0, 0x20, 0, 32];
    contents.extend([9; 32]);
    contents.extend([0, 4, 0, 1, 0, 1, 0]);
    contents.push(u8::try_from(PUBLIC_NAME.len()).expect("short"));
    contents.extend(PUBLIC_NAME.bytes());
    contents.extend([0, 0]);
    let length = |extra| u16::try_from(contents.len() + extra).expect("short").to_be_bytes();
    [&length(4)[..], &[0xfe, 0x0d], &length(0), &contents].concat()
}

/// Returns the data of an HTTPS record with that (RFC 9460 §2.2).
fn record_with_ech() -> Vec<u8> {
    let configs = ech_configs();
    let length = u16::try_from(configs.len()).expect("short").to_be_bytes();
    // Priority 1, its own name, `alpn=h3`, `ech`.
    [&[0, 1, 0, 0, 1, 0, 3, 2, b'h', b'3', 0, 5][..], &length, &configs].concat()
}

/// A name server: each name has this host's address, and an HTTPS record if it is already published; until then there
/// is no answer about it, or that there is none.
struct Names {
    address: SocketAddr,
    is_published: Arc<AtomicBool>,
    _task: tokio::task::JoinSet<()>,
}

impl Names {
    async fn start(answers_before: bool) -> Self {
        let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.expect("a port");
        let address = socket.local_addr().expect("an address");
        let is_published = Arc::new(AtomicBool::default());
        let published = Arc::clone(&is_published);
        let mut task = tokio::task::JoinSet::new();
        task.spawn(async move {
            let mut query = [0; 1500];
            while let Ok((_, from)) = socket.recv_from(&mut query).await {
                let end =
                    12 + query[12..].iter().position(|octet| *octet == 0).expect("a name") + 1;
                let data = match (query[end + 1], published.load(Ordering::SeqCst)) {
                    (1, _) => Some(vec![127, 0, 0, 1]),
                    (65, true) => Some(record_with_ech()),
                    (65, false) if !answers_before => continue,
                    _ => None,
                };
                // The question alone, then the record with a time to live of a minute (RFC 1035 §4.1).
                let mut answer = query[..end + 4].to_vec();
                answer[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0]);
                if let Some(data) = data {
                    answer[7] = 1;
                    answer.extend([0xc0, 12, 0, query[end + 1], 0, 1, 0, 0, 0, 60]);
                    answer.extend(u16::try_from(data.len()).expect("short").to_be_bytes());
                    answer.extend(data);
                }
                let _ = socket.send_to(&answer, from).await;
            }
        });
        Self { address, is_published, _task: task }
    }

    fn client(&self, site: &Site) -> Client {
        client_with(Resolver::server(self.address), &site.identity, true)
    }
}

#[tokio::test]
async fn early_data_is_not_sent_in_the_clear_where_a_race_would_encrypt_the_name() {
    let site = start_early(&identity(&[NAME, PUBLIC_NAME]), own_port(), echo_path);
    let names = Names::start(false).await;
    let client = names.client(&site);
    prepare(&client, &site).await;
    names.is_published.store(true, Ordering::SeqCst);
    let response = fetch(&client, &site, Method::GET).await;
    assert!(!was_early(&response));
    // The server has none, and proves it.
    assert_eq!(response.connection().ech, Some(EchOutcome::TurnedOff));
}

#[tokio::test]
async fn early_data_is_sent_where_the_records_say_nothing_of_encrypting_the_name() {
    let site = start_early(&identity(&[NAME]), own_port(), echo_path);
    let names = Names::start(true).await;
    let client = names.client(&site);
    prepare(&client, &site).await;
    assert!(was_early(&fetch(&client, &site, Method::GET).await));
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
        close_idle(&client).await;
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
