//! Tunnels over HTTP/3 by a client that writes every byte itself: extended CONNECT (RFC 9220), and CONNECT.

use std::{convert::Infallible, future::pending, io, sync::Arc, time::Duration};

use eyas_http::{
    pipe::{PipeBody, pipe},
    serve::{Limits, RequestBody, Running, Server, ServerBuilder},
};
use futures_util::TryStreamExt as _;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use tokio::{
    io::{AsyncWriteExt as _, copy, sink},
    time::{sleep, timeout},
};
use tokio_util::io::StreamReader;
use tower::service_fn;

use crate::{
    clients::{SOON, quic_to, start},
    wire::{DATA, MESSAGE_ERROR, frame, head},
};

/// RFC 9114 §8.1.
const REQUEST_CANCELLED: u32 = 0x10c;
const CONNECT_ERROR: u32 = 0x10f;

/// Repeats what arrives on the stream, takes it without an answer, or does not read it.
async fn tunnel(request: Request<RequestBody>) -> Result<Response<PipeBody>, Infallible> {
    let path = request.uri().path().to_owned();
    let data = request.into_body().into_data_stream().map_err(io::Error::other);
    let mut reader = StreamReader::new(data);
    let (mut writer, body) = pipe();
    tokio::spawn(async move {
        match path.as_str() {
            "/deaf" => pending().await,
            "/sink" => {
                writer.shutdown().await?;
                copy(&mut reader, &mut sink()).await?;
            }
            _ => {
                copy(&mut reader, &mut writer).await?;
                writer.shutdown().await?;
            }
        }
        Ok::<_, io::Error>(())
    });
    Ok(Response::new(body))
}

async fn serve(builder: ServerBuilder) -> (Running, quinn::Connection) {
    let running = start(builder.service(service_fn(tunnel))).await;
    let root = running.identity().expect("a server with TLS").certificate();
    let quic = quic_to(running.local_addr(), root).await.expect("a QUIC handshake");
    (running, quic)
}

const CONNECT: [(&str, &str); 5] = [
    (":method", "CONNECT"),
    (":protocol", "websocket"),
    (":scheme", "https"),
    (":authority", "localhost"),
    (":path", "/"),
];

/// Returns the head of an extended CONNECT to this path.
fn connect(path: &str) -> Vec<u8> {
    head(&[&CONNECT[..4], &[(":path", path)]].concat())
}

/// Opens a stream that begins with this.
async fn open(quic: &quinn::Connection, bytes: &[u8]) -> (quinn::SendStream, quinn::RecvStream) {
    let (mut send, recv) = quic.open_bi().await.expect("a stream");
    send.write_all(bytes).await.expect("written");
    (send, recv)
}

/// Reads until these bytes have come.
async fn read_until(recv: &mut quinn::RecvStream, mark: &[u8]) {
    let mut read = Vec::new();
    while !read.windows(mark.len()).any(|some| some == mark) {
        let chunk = timeout(SOON, recv.read_chunk(4096, true)).await.expect("in time");
        read.extend_from_slice(&chunk.expect("no error").expect("no end").bytes);
    }
}

/// Waits until this many requests are in flight.
async fn in_flight(running: &Running, expected: u64) {
    let wait = async {
        while running.stats().requests_in_flight != expected {
            sleep(Duration::from_millis(5)).await;
        }
    };
    let now = || running.stats().requests_in_flight;
    timeout(SOON, wait).await.unwrap_or_else(|_| panic!("{} in flight", now()));
}

//= rfc9220 §3
//# `:protocol` only where the setting is 1, with CONNECT, `:scheme`, `:path` and `:authority`; malformed otherwise
#[tokio::test]
async fn a_malformed_extended_connect_is_reset() {
    let without =
        |name: &str| CONNECT.into_iter().filter(|(pseudo, _)| *pseudo != name).collect::<Vec<_>>();
    let with = |fields: &[(&'static str, &'static str)]| [&CONNECT[..], fields].concat();
    let mut get = CONNECT.to_vec();
    get[0].1 = "GET";
    let mut protocol = CONNECT.to_vec();
    protocol[1].1 = "web socket";
    let rows = [
        ("no scheme", without(":scheme")),
        ("no path", without(":path")),
        ("no authority", without(":authority")),
        ("not CONNECT", get),
        ("two protocols", with(&[(":protocol", "websocket")])),
        ("no token", protocol),
        ("a field of HTTP/1.1", with(&[("upgrade", "websocket")])),
    ];
    let (_running, quic) = serve(Server::builder().extended_connect(["websocket"])).await;
    let (_other, unoffered) = serve(Server::builder()).await;
    let rows = rows.into_iter().map(|(name, fields)| (&quic, name, fields));
    for (quic, name, fields) in rows.chain([(&unoffered, "not offered", CONNECT.to_vec())]) {
        let (_send, mut recv) = open(quic, &head(&fields)).await;
        let reset = timeout(SOON, recv.received_reset()).await.expect("in time");
        let code = reset.expect("connected").map(quinn::VarInt::into_inner);
        assert_eq!(code, Some(MESSAGE_ERROR), "{name}");
    }
    let (mut send, mut recv) = open(&quic, &connect("/")).await;
    send.write_all(&frame(DATA, b"hello")).await.expect("open");
    read_until(&mut recv, b"hello").await;
}

//= rfc9220 §3
//# a reset of either direction ends the other: H3_REQUEST_CANCELLED
//= rfc9114 §4.4
//# an error of a tunnel's connection is H3_CONNECT_ERROR
#[tokio::test]
async fn a_reset_of_one_direction_ends_the_other() {
    let plain = head(&[(":method", "CONNECT"), (":authority", "localhost:1")]);
    let server = || Server::builder().extended_connect(["websocket"]);
    for (builder, begin, code) in [
        (server(), connect("/"), REQUEST_CANCELLED),
        (server().tunnels(true), plain, CONNECT_ERROR),
    ] {
        let (running, quic) = serve(builder).await;
        let (mut send, mut recv) = open(&quic, &begin).await;
        send.write_all(&frame(DATA, b"hello")).await.expect("open");
        read_until(&mut recv, b"hello").await;
        in_flight(&running, 1).await;
        send.reset(REQUEST_CANCELLED.into()).expect("open");
        let reset = timeout(SOON, recv.received_reset()).await.expect("in time");
        assert_eq!(reset.expect("connected"), Some(code.into()));
        in_flight(&running, 0).await;
        // A client that only stops reading has no use for the rest either.
        let (mut send, mut recv) = open(&quic, &begin).await;
        send.write_all(&frame(DATA, b"hello")).await.expect("open");
        read_until(&mut recv, b"hello").await;
        recv.stop(REQUEST_CANCELLED.into()).expect("open");
        let stopped = timeout(SOON, send.stopped()).await.expect("in time");
        assert!(stopped.expect("connected").is_some());
        in_flight(&running, 0).await;
    }
}

//= hostile http
//# tunnels of which one direction has ended, or is not read, to have more than are counted
//= bound: `requests`, `concurrent_streams`
#[tokio::test]
async fn each_direction_of_a_tunnel_counts_until_its_end() {
    let (running, quic) = serve(Server::builder().extended_connect(["websocket"])).await;
    let (mut send, mut recv) = open(&quic, &connect("/sink")).await;
    let response = timeout(SOON, recv.read_to_end(1000)).await.expect("in time");
    response.expect("a regular end");
    sleep(Duration::from_millis(100)).await;
    assert_eq!(running.stats().requests_in_flight, 1);
    send.write_all(&frame(DATA, b"more")).await.expect("open");
    send.finish().expect("open");
    in_flight(&running, 0).await;
}

//= hostile http
//# data for a tunnel that its service does not read
//= bound: `RECEIVE_WINDOW` each, as far as `buffered_bytes_per_connection` allows
#[tokio::test]
async fn a_tunnel_that_is_not_read_does_not_block_others() {
    let (_running, quic) = serve(Server::builder().extended_connect(["websocket"])).await;
    let (mut deaf, _recv) = open(&quic, &connect("/deaf")).await;
    let flood = frame(DATA, &vec![0; 4_000_000]);
    let flooding = tokio::spawn(async move { deaf.write_all(&flood).await.map(|()| deaf) });
    let (mut send, mut recv) = open(&quic, &connect("/")).await;
    for _ in 0..20 {
        let sent = timeout(SOON, send.write_all(&frame(DATA, &[7; 100_000]))).await;
        sent.expect("in time").expect("open");
        send.write_all(&frame(DATA, b"mark")).await.expect("open");
        read_until(&mut recv, b"mark").await;
    }
    // Its own window holds it back.
    assert!(!flooding.is_finished());
    flooding.abort();
}

/// RFC 9000 §10.1.2: a connection that is used must not be lost because it is quiet.
#[tokio::test]
async fn a_quiet_tunnel_keeps_its_connection() {
    let limits = Limits { idle_time: Duration::from_secs(1), ..Limits::default() };
    let builder = Server::builder().extended_connect(["websocket"]).limits(limits);
    let running = start(builder.service(service_fn(tunnel))).await;
    let root = running.identity().expect("a server with TLS").certificate();
    let crypto = crate::clients::trust(root, b"h3");
    let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(crypto).expect("a cipher suite");
    let mut config = quinn::ClientConfig::new(Arc::new(crypto));
    let mut transport = quinn::TransportConfig::default();
    let silence = quinn::IdleTimeout::try_from(Duration::from_secs(2)).expect("short");
    transport.max_idle_timeout(Some(silence)).keep_alive_interval(None);
    config.transport_config(Arc::new(transport));
    let address = running.local_addr();
    let local = if address.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
    let endpoint = quinn::Endpoint::client(local.parse().expect("an address")).expect("a port");
    let connecting = endpoint.connect_with(config, address, "localhost").expect("a target");
    let quic = connecting.await.expect("a QUIC handshake");
    let (mut send, mut recv) = open(&quic, &connect("/")).await;
    send.write_all(&frame(DATA, b"hello")).await.expect("open");
    read_until(&mut recv, b"hello").await;
    sleep(Duration::from_secs(5)).await;
    send.write_all(&frame(DATA, b"still here")).await.expect("open");
    read_until(&mut recv, b"still here").await;
    // Without one it is closed.
    send.finish().expect("open");
    timeout(SOON, quic.closed()).await.expect("in time");
}
