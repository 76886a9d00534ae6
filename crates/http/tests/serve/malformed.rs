//! Requests that no service should see, over every version: what RFC 9110, 9112, 9113 and 9114 call
//! malformed.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use bytes::Bytes;
use eyas_http::{
    Body,
    serve::{Limits, RequestBody, Running, Server},
};
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use tokio::time::timeout;
use tower::service_fn;

use crate::clients::{SOON, Speak, fetch, h3_exchange, quic, raw, request, start};

/// A server whose service reads the body for `/read`, and ignores it for other paths; with the
/// number of requests that it has answered with 200.
async fn server(plain: bool) -> (Running, Arc<AtomicUsize>) {
    let served = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&served);
    let service = service_fn(move |request: Request<RequestBody>| {
        let count = Arc::clone(&count);
        async move {
            let mut length = 0;
            if request.uri().path() == "/read" {
                match request.into_body().collect().await {
                    Ok(body) => length = body.to_bytes().len(),
                    Err(_) => {
                        let mut reply = Response::new(Body::empty());
                        *reply.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
                        return Ok(reply);
                    }
                }
            }
            count.fetch_add(1, SeqCst);
            Ok::<_, Infallible>(Response::new(Body::from(length.to_string())))
        }
    });
    let builder = Server::builder().service(service);
    (start(if plain { builder.plain() } else { builder }).await, served)
}

/// Sends a request over HTTP/3, and returns the status, or the error.
async fn over_http3(running: &Running, request: Request<Bytes>) -> Result<u16, String> {
    let (_conn, mut driver, mut send) = quic(running).await;
    let driving = std::future::poll_fn(|cx| driver.poll_close(cx));
    let exchange = async {
        tokio::select! {
            response = h3_exchange(&mut send, request) => response,
            error = driving => Err(error.into()),
        }
    };
    let response = timeout(SOON, exchange).await.expect("an answer in time");
    response.map(|response| response.status().as_u16()).map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_body_over_http3_is_as_long_as_announced() {
    let (running, _) = server(false).await;
    for path in ["/read", "/ignored"] {
        for (method, length, body, valid) in [
            (Method::POST, "5", "hello", true),
            (Method::POST, "0", "", true),
            (Method::GET, "5", "hello", true),
            (Method::POST, "4", "hello", false),
            (Method::POST, "6", "hello", false),
            (Method::POST, "5", "", false),
            (Method::GET, "5", "", false),
            (Method::GET, "0", "x", false),
            (Method::PUT, "18446744073709551615", "x", false),
        ] {
            let mut request = request(method.clone(), path, body);
            request.headers_mut().insert("content-length", length.parse().expect("a value"));
            // What a service ignores is checked only as far as it has arrived.
            let result = over_http3(&running, request).await;
            match valid {
                true => assert_eq!(result, Ok(200), "{method} {path} {length} {body}"),
                false if path == "/read" => {
                    let error = result.expect_err(length);
                    assert!(error.contains("MESSAGE"), "{method} {length} {body}: {error}");
                }
                false => {}
            }
        }
    }
}

#[tokio::test]
async fn connection_specific_fields_are_malformed_over_http2_and_3() {
    let (running, served) = server(false).await;
    for (name, value) in [
        ("connection", "close"),
        ("connection", "keep-alive"),
        ("keep-alive", "timeout=5"),
        ("proxy-connection", "close"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
        ("te", "gzip"),
        ("te", "trailers, gzip"),
    ] {
        let mut request = request(Method::GET, "/", "");
        request.headers_mut().insert(name, value.parse().expect("a value"));
        match over_http3(&running, request).await {
            Ok(status) => assert_eq!(status, 400, "{name}: {value}"),
            Err(error) => assert!(error.contains("MESSAGE"), "{name}: {value}: {error}"),
        }
    }
    assert_eq!(served.load(SeqCst), 0);
    for speak in Speak::SECURE {
        let mut request = request(Method::GET, "/", "");
        request.headers_mut().insert("te", "trailers".parse().expect("a value"));
        assert_eq!(fetch(&running, speak, request).await.status(), 200, "{speak:?}");
    }
}

#[tokio::test]
async fn targets_and_hosts_over_http1_are_checked() {
    let (running, _) = server(true).await;
    let long = |length: usize| "a".repeat(length);
    for (line, fields, status) in [
        ("GET / HTTP/1.1".to_owned(), "Host: a".to_owned(), 200),
        ("GET / HTTP/1.1".to_owned(), "Host: a:80".to_owned(), 200),
        ("GET / HTTP/1.1".to_owned(), "Host: [::1]:80".to_owned(), 200),
        ("GET / HTTP/1.1".to_owned(), "Host:".to_owned(), 200),
        ("GET / HTTP/1.0".to_owned(), "X: y".to_owned(), 200),
        ("GET http://a/ HTTP/1.1".to_owned(), "Host: a".to_owned(), 200),
        ("GET http://a HTTP/1.1".to_owned(), "Host: b".to_owned(), 200),
        ("GET http://a?x=1 HTTP/1.1".to_owned(), "Host: a".to_owned(), 200),
        ("OPTIONS * HTTP/1.1".to_owned(), "Host: a".to_owned(), 200),
        (format!("GET /{} HTTP/1.1", long(8_000)), "Host: a".to_owned(), 200),
        ("GET / HTTP/1.1".to_owned(), "X: y".to_owned(), 400),
        ("GET / HTTP/1.1".to_owned(), "Host: a\r\nHost: a".to_owned(), 400),
        ("GET / HTTP/1.0".to_owned(), "Host: a\r\nHost: a".to_owned(), 400),
        ("GET / HTTP/1.1".to_owned(), "Host: a b".to_owned(), 400),
        ("GET / HTTP/1.1".to_owned(), "Host: u@a".to_owned(), 400),
        ("GET / HTTP/1.1".to_owned(), "Host: a:x".to_owned(), 400),
        ("GET / HTTP/1.1".to_owned(), "Host: a/b".to_owned(), 400),
        ("GET a HTTP/1.1".to_owned(), "Host: a".to_owned(), 400),
        ("GET a:80 HTTP/1.1".to_owned(), "Host: a".to_owned(), 400),
        ("GET * HTTP/1.1".to_owned(), "Host: a".to_owned(), 400),
        ("GET ftp://a/ HTTP/1.1".to_owned(), "Host: a".to_owned(), 400),
        (format!("GET /{} HTTP/1.1", long(40_000)), "Host: a".to_owned(), 414),
        (format!("GET /{} HTTP/1.1", long(300_000)), "Host: a".to_owned(), 414),
        ("GET / HTTP/1.1".to_owned(), format!("Host: a\r\nX: {}", long(40_000)), 431),
        ("GET / HTTP/1.1".to_owned(), format!("Host: a\r\n{}", "X: y\r\n".repeat(9_000)), 431),
    ] {
        let head = format!("{line}\r\n{}\r\nConnection: close\r\n\r\n", fields.trim_end());
        let answer = raw(running.local_addr(), head.as_bytes()).await;
        let found: Option<u16> = answer.get(9..12).and_then(|status| status.parse().ok());
        assert_eq!(found, Some(status), "{:.60} {:.60}", line, fields);
    }
}

#[tokio::test]
async fn long_targets_are_told_from_long_fields_over_every_version() {
    let limit = |bytes| Limits { header_bytes: bytes, ..Limits::default() };
    let (default, small, large) = (limit(32 * 1024), limit(8 * 1024), limit(50_000));
    for (limits, path, field, status) in [
        (&default, 1_000, 1_000, 200),
        (&default, 32_000, 0, 200),
        (&default, 32_000, 1_000, 431),
        (&default, 0, 33_000, 431),
        (&default, 0, 60_000, 431),
        (&default, 33_000, 0, 414),
        (&default, 33_000, 25_000, 414),
        (&default, 60_000, 0, 414),
        (&small, 7_000, 0, 200),
        (&small, 12_000, 0, 414),
        (&small, 60_000, 0, 414),
        (&small, 7_000, 7_000, 431),
        (&large, 40_000, 0, 200),
        (&large, 60_000, 0, 414),
    ] {
        let service = service_fn(async |_| Ok::<_, Infallible>(Response::new(Body::empty())));
        let builder = || Server::builder().service(service).limits(limits.clone());
        let (secure, plain) = (start(builder()).await, start(builder().plain()).await);
        for speak in
            [Speak::Http1, Speak::Http2, Speak::Http3, Speak::PlainHttp1, Speak::PlainHttp2]
        {
            let mut request = request(Method::GET, &format!("/{}?q", "a".repeat(path)), "");
            let value = "b".repeat(field).parse().expect("a value");
            request.headers_mut().insert("x-long", value);
            let running = if Speak::SECURE.contains(&speak) { &secure } else { &plain };
            let found = fetch(running, speak, request).await.status();
            let size = limits.header_bytes;
            assert_eq!(found, status, "{speak:?}, of {size}: a path of {path}, a field of {field}");
        }
    }
}

#[tokio::test]
async fn a_long_request_line_after_a_request_is_414_too() {
    let (running, _) = server(true).await;
    let requests = format!("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /{}", "a".repeat(40_000));
    let answer = raw(running.local_addr(), requests.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer:.100}");
    assert!(answer.contains("HTTP/1.1 414 URI Too Long\r\n"), "{answer}");
}
