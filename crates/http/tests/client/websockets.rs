//! WebSockets of axum, over each version.

use std::time::Duration;

use axum::{
    Router,
    extract::ws::{Message, WebSocket, WebSocketUpgrade},
    response::Response,
    routing::any,
};
use eyas_http::{Connected, Server, Tunnel, Versions, serve::Running};
use futures_util::{SinkExt as _, StreamExt as _};
use http::{HeaderValue, Request, StatusCode};
use tokio::{io::AsyncReadExt as _, time::timeout};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{self, protocol::Role},
};

use crate::site::{NAME, SOON, builder_for, identity, until};

/// Longer than anything in a message needs, and shorter than the connection may be idle without a request.
const IDLE_TIME: Duration = Duration::from_millis(500);

async fn accept(upgrade: WebSocketUpgrade) -> Response {
    upgrade.protocols(["chat"]).on_upgrade(echo)
}

/// Repeats messages until the client closes the WebSocket.
async fn echo(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        if matches!(message, Message::Text(_) | Message::Binary(_)) {
            socket.send(message).await.expect("open");
        }
    }
}

async fn start() -> (Running, eyas::ServerIdentity) {
    let identity = identity(&[NAME]);
    let limits =
        eyas_http::serve::Limits { idle_time: IDLE_TIME, body_bytes: 3, ..Default::default() };
    let server = Server::builder().tls(identity.clone()).extended_connect(["websocket"]);
    let app = Router::new().route("/chat", any(accept));
    (server.limits(limits).service(app).start().await.expect("a server"), identity)
}

/// Requests a WebSocket or another protocol.
async fn request(
    (running, identity): (&Running, &eyas::ServerIdentity),
    versions: Versions,
    protocol: &str,
) -> Connected {
    let port = running.local_addr().port();
    let client = builder_for(&[port], &[identity]).versions(versions).tunnels(true);
    let url = format!("https://{NAME}:{port}/chat");
    let mut request = Request::get(&url).header("sec-websocket-version", "13");
    if versions == Versions::HTTP_1 {
        request = request.header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    }
    let request = request.header("sec-websocket-protocol", "chat, other").body(());
    let client = client.build().expect("a client");
    let answer = client.upgrade(&url, protocol, request.expect("a request"), SOON).await;
    answer.expect("an answer")
}

async fn open(
    served: (&Running, &eyas::ServerIdentity),
    versions: Versions,
) -> WebSocketStream<Tunnel> {
    match request(served, versions, "websocket").await {
        Connected::Tunnel(tunnel) => {
            assert_eq!(tunnel.headers()["sec-websocket-protocol"], "chat", "{versions:?}");
            WebSocketStream::from_raw_socket(tunnel, Role::Client, None).await
        }
        Connected::Refused(response) => panic!("{response:?}"),
    }
}

//= rfc9220 §3, RFC 8441 §5
//# a WebSocket on a stream, whose end is that of the WebSocket's connection
#[tokio::test]
async fn websockets_of_axum_work_over_each_version() {
    let (running, identity) = start().await;
    for versions in [Versions::HTTP_1, Versions::HTTP_2, Versions::HTTP_3] {
        let mut socket = open((&running, &identity), versions).await;
        // More than the limit of bodies, and than any buffer on the way.
        let large = "x".repeat(3_000_000);
        for text in ["hello", &large] {
            socket.send(text.into()).await.expect("open");
            let message = timeout(SOON, socket.next()).await.expect("in time").expect("one");
            assert!(message.expect("whole").to_text().expect("text") == text, "{versions:?}");
        }
        // A quiet one is no idle connection, and counts as a request.
        tokio::time::sleep(3 * IDLE_TIME).await;
        if versions != Versions::HTTP_1 {
            assert_eq!(running.stats().requests_in_flight, 1, "{versions:?}");
        }
        socket.send("still here".into()).await.expect("open");
        let message = timeout(SOON, socket.next()).await.expect("in time").expect("one");
        assert_eq!(message.expect("whole").to_text().expect("text"), "still here");
        socket.close(None).await.expect("open");
        let last = timeout(SOON, socket.next()).await.expect("in time");
        assert!(matches!(last, Some(Ok(tungstenite::Message::Close(_)))), "{versions:?}: {last:?}");
        let mut rest = Vec::new();
        let end = timeout(SOON, socket.get_mut().read_to_end(&mut rest)).await.expect("in time");
        // Over HTTP/1.1 axum drops TLS without its end.
        assert!(end.is_ok() || versions == Versions::HTTP_1, "{versions:?}: {end:?}");
        assert_eq!(rest, b"", "{versions:?}");
        drop(socket);
        until("the request ends", || running.stats().requests_in_flight == 0).await;
    }
}

//= rfc9220 §3
//# a protocol that is not supported is answered with 501
#[tokio::test]
async fn other_protocols_are_answered_with_501() {
    let (running, identity) = start().await;
    for versions in [Versions::HTTP_2, Versions::HTTP_3] {
        for protocol in ["connect-udp", "websockets", "webtransport"] {
            match request((&running, &identity), versions, protocol).await {
                Connected::Refused(response) => {
                    assert_eq!(response.status(), StatusCode::NOT_IMPLEMENTED, "{versions:?}");
                    let length = response.headers().get("content-length");
                    assert!(length.is_some_and(|length| *length != HeaderValue::from_static("0")));
                }
                Connected::Tunnel(tunnel) => panic!("{protocol}: {tunnel:?}"),
            }
        }
    }
    until("the requests end", || running.stats().requests_in_flight == 0).await;
}
