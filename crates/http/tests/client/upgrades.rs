//! Tests of streams that continue with another protocol, over each version.

use std::{convert::Infallible, future::poll_fn, time::Duration};

use eyas_http::{
    Connected, Kind, Server, StreamDatagrams, Versions,
    pipe::{PipeBody, pipe},
    serve::{RequestBody, Running},
};
use futures_util::TryStreamExt as _;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Either, Full};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy, split},
    time::timeout,
};
use tokio_util::io::StreamReader;

use crate::site::{NAME, SOON, builder_for, identity};

type Answer = Response<Either<PipeBody, Full<bytes::Bytes>>>;

/// Echoes the stream after a request for `connect-udp`, and refuses other requests.
async fn echo(mut request: Request<RequestBody>) -> Result<Answer, Infallible> {
    let mut response = Response::new(Either::Right(Full::default()));
    let protocol = match request.extensions().get::<hyper::ext::Protocol>() {
        Some(protocol) => protocol.as_str().to_owned(),
        None => format!("{:?}", request.headers().get(header::UPGRADE)),
    };
    if !protocol.contains("connect-udp") || request.uri().path() != "/echo" {
        *response.status_mut() = StatusCode::FORBIDDEN;
        return Ok(response);
    }
    if request.version() <= http::Version::HTTP_11 {
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let fields = response.headers_mut();
        fields.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        fields.insert(header::UPGRADE, HeaderValue::from_static("connect-udp"));
        let upgrade = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            let (mut reader, mut writer) = split(TokioIo::new(upgrade.await.expect("upgraded")));
            copy(&mut reader, &mut writer).await.expect("open");
            writer.shutdown().await
        });
        return Ok(response);
    }
    let (mut writer, body) = pipe();
    if let Some(datagram_channel) = request.extensions_mut().remove::<StreamDatagrams>() {
        let mut datagrams = datagram_channel.open();
        tokio::spawn(async move {
            loop {
                let received = poll_fn(|cx| datagrams.poll_next(cx)).await;
                assert!(datagrams.send(&[&received]));
            }
        });
    }
    let reader = request.into_body().into_data_stream().map_err(std::io::Error::other);
    tokio::spawn(async move {
        copy(&mut StreamReader::new(reader), &mut writer).await.expect("open");
        writer.shutdown().await
    });
    Ok(Response::new(Either::Left(body)))
}

async fn start(offers: bool) -> (Running, eyas::ServerIdentity) {
    let identity = identity(&[NAME]);
    let protocols = offers.then_some("connect-udp");
    let server = Server::builder().tls(identity.clone()).tunnels(true).extended_connect(protocols);
    let running = server.service(tower::service_fn(echo)).start().await.expect("a server");
    (running, identity)
}

//= rfc9297 §2.1.1
//# no datagram frames before both settings; without them capsules
#[tokio::test]
async fn a_stream_continues_with_another_protocol() {
    let (running, identity) = start(true).await;
    let port = running.local_addr().port();
    let url = format!("https://{NAME}:{port}/");
    for versions in [Versions::HTTP_1, Versions::HTTP_2, Versions::HTTP_3] {
        let client = builder_for(&[port], &[&identity]).versions(versions).tunnels(true);
        let client = client.build().expect("a client");
        for (path, is_granted) in [("echo", true), ("else", false), ("echo", true)] {
            let request = Request::get(format!("{url}{path}")).body(()).expect("a request");
            let protocol = client.upgrade(&url, "connect-udp", request, SOON).await;
            match protocol.expect("an answer") {
                Connected::Tunnel(mut tunnel) if is_granted => {
                    tunnel.write_all(b"hello").await.expect("open");
                    let mut received = [0; 5];
                    tunnel.read_exact(&mut received).await.expect("open");
                    assert_eq!(&received, b"hello", "{versions:?}");
                    let mut datagram_channel = tunnel.datagrams();
                    assert_eq!(
                        datagram_channel.is_some(),
                        versions == Versions::HTTP_3,
                        "{versions:?}"
                    );
                    if let Some(datagrams) = &mut datagram_channel {
                        assert!(datagrams.send(&[b"be", b"side"]));
                        let received = timeout(SOON, poll_fn(|cx| datagrams.poll_next(cx)));
                        assert_eq!(received.await.expect("a datagram"), "beside");
                    }
                    tunnel.shutdown().await.expect("open");
                    let mut rest = Vec::new();
                    tunnel.read_to_end(&mut rest).await.expect("a regular end");
                    assert_eq!(rest, b"", "{versions:?}");
                }
                Connected::Refused(response) if !is_granted => {
                    assert_eq!(response.status(), StatusCode::FORBIDDEN, "{versions:?}");
                }
                other => panic!("{other:?} {versions:?}"),
            }
        }
    }
}

//= rfc9298 §3.4
//# extended CONNECT is not sent before the server's setting
#[tokio::test]
async fn extended_connect_is_not_sent_unless_offered() {
    let (running, identity) = start(false).await;
    let port = running.local_addr().port();
    let url = format!("https://{NAME}:{port}/");
    for versions in [Versions::HTTP_2, Versions::HTTP_3] {
        let client = builder_for(&[port], &[&identity]).versions(versions).build();
        let request = Request::get(format!("{url}echo")).body(()).expect("a request");
        let protocol = client.expect("a client").upgrade(&url, "connect-udp", request, SOON).await;
        let error = protocol.expect_err("it is not offered");
        assert_eq!(error.kind(), Kind::Protocol);
        assert!(error.to_string().contains("does not offer extended CONNECT"), "{error}");
    }
    assert_eq!(running.stats().requests(), 0);
    running.shutdown(Duration::from_secs(1)).await;
}
