//! Tests of servers that answer before they have read the request, and then read no more.

use std::{convert::Infallible, net::Ipv4Addr, sync::Arc};

use bytes::Bytes;
use eyas::ServerIdentity;
use eyas_http::{Body, Client, Versions};
use futures_util::{StreamExt, stream};
use http::{Response, StatusCode};
use tokio::{net::TcpListener, task::JoinSet};
use tokio_rustls::TlsAcceptor;

use crate::{
    hostile_peer::{DATA, Peer, frame, ok, open_control, settings},
    site::{NAME, SOON, builder_for, identity},
};

/// Request bodies: one that is longer than all windows, and one that does not end.
fn bodies() -> [Body; 2] {
    let begun = stream::iter([Ok::<_, Infallible>(Bytes::from(vec![b'.'; 1 << 20]))]);
    [Body::from(vec![b'.'; 30_000_000]), Body::from_stream(begun.chain(stream::pending()))]
}

async fn assert_answered(client: &Client, url: &str, case: &str) {
    for body in bodies() {
        let exchange = async { client.post(url).body(body).send().await?.bytes().await };
        let answer = tokio::time::timeout(SOON, exchange).await;
        let answer = answer.unwrap_or_else(|_| panic!("{case}: no answer"));
        assert_eq!(answer.unwrap_or_else(|error| panic!("{case}: {error}")), "answer", "{case}");
    }
}

#[tokio::test]
async fn a_response_over_http3_is_delivered_whatever_stops_the_request() {
    // H3_NO_ERROR, which servers should use, H3_EXCESSIVE_LOAD and H3_REQUEST_CANCELLED.
    for code in [0x100, 0x107, 0x10c] {
        for stops_first in [true, false] {
            let peer = Peer::start(move |quic| async move {
                let _control = open_control(&quic, &settings()).await;
                let mut answering = JoinSet::new();
                while let Ok((mut send, mut recv)) = quic.accept_bi().await {
                    answering.spawn(async move {
                        let code = quinn::VarInt::from_u32(code);
                        let _ = recv.read(&mut [0; 100]).await;
                        if stops_first {
                            let _ = recv.stop(code);
                            // The client learns of it before there is a response.
                            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                        }
                        let _ = send.write_all(&[ok(), frame(DATA, b"answer")].concat()).await;
                        let _ = send.finish();
                        let _ = recv.stop(code);
                        let _ = send.stopped().await;
                    });
                }
            });
            let client = peer.client().build().expect("a client");
            let case = format!("code {code:#x}, stopped first: {stops_first}");
            assert_answered(&client, &peer.url(), &case).await;
            assert_eq!(peer.connections(), 1, "{case}");
        }
    }
}

/// Starts a server that answers every request without reading its body. Where its end of a stream is
/// dropped then, h2 resets it with NO_ERROR (RFC 9113 §8.1).
async fn http2(identity: &ServerIdentity, status: StatusCode) -> (u16, JoinSet<()>) {
    let mut tls = identity.server_config().expect("a configuration");
    tls.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut serving = JoinSet::new();
        while let Ok((tcp, _)) = listener.accept().await {
            let Ok(tls) = acceptor.accept(tcp).await else { continue };
            serving.spawn(async move {
                let mut connection = h2::server::handshake(tls).await.expect("HTTP/2");
                while let Some(Ok((request, mut respond))) = connection.accept().await {
                    let head = Response::builder().status(status).body(()).expect("a response");
                    let mut send = respond.send_response(head, false).expect("an open stream");
                    send.send_data(Bytes::from("answer"), true).expect("an open stream");
                    drop(request);
                }
            });
        }
    });
    (port, tasks)
}

#[tokio::test]
async fn a_response_over_http2_is_delivered_though_the_request_is_reset() {
    let identity = identity(&[NAME]);
    for status in [StatusCode::OK, StatusCode::PAYLOAD_TOO_LARGE] {
        let (port, _tasks) = http2(&identity, status).await;
        let client = builder_for(&[port], &[&identity]).versions(Versions::HTTP_2);
        let client = client.build().expect("a client");
        let url = format!("https://{NAME}:{port}/");
        // What is reset and what is read at once depends on chance.
        for _ in 0..10 {
            assert_answered(&client, &url, status.as_str()).await;
        }
    }
}
