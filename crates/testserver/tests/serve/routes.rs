//! Tests of every route over every version of HTTP.

use bytes::Bytes;
use eyas_http::serve::AltSvcPolicy;
use eyas_testserver::site::{MAX_BYTES, pattern_byte};
use http::{Method, StatusCode, header};

use crate::{
    builder,
    clients::{Speak, fetch, get, raw, request, start},
    server,
};

fn pattern(start: u64, end: u64) -> Vec<u8> {
    (start..end).map(pattern_byte).collect()
}

#[tokio::test]
async fn the_page_shows_how_it_was_requested() {
    let running = server().await;
    for speak in Speak::SECURE {
        let response = fetch(&running, speak, get("/")).await;
        assert_eq!(response.status(), StatusCode::OK);
        let page = std::str::from_utf8(response.body()).unwrap();
        let name = match speak {
            Speak::Http2 => "HTTP/2",
            Speak::Http3 => "HTTP/3",
            _ => "HTTP/1.1",
        };
        assert!(page.contains(&format!("<h1 id=\"protocol\">{name}</h1>")), "{page}");
        assert!(!page.contains("{{"), "{page}");
    }
}

#[tokio::test]
async fn bytes_follow_the_pattern() {
    let running = server().await;
    for speak in Speak::SECURE {
        for count in [0, 1, 250, 251, 252, 65_536, 3_000_001] {
            let response = fetch(&running, speak, get(&format!("/bytes/{count}"))).await;
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(response.headers()[header::CONTENT_LENGTH], count.to_string());
            assert!(*response.body() == pattern(0, count), "{speak:?} {count}");
        }
    }
}

#[tokio::test]
async fn head_has_the_length_and_no_body() {
    let running = server().await;
    for speak in Speak::SECURE {
        let path = format!("/bytes/{MAX_BYTES}");
        let response = fetch(&running, speak, request(Method::HEAD, &path, "")).await;
        assert_eq!(response.status(), StatusCode::OK, "{speak:?}");
        assert_eq!(response.headers()[header::CONTENT_LENGTH], MAX_BYTES.to_string());
        assert!(response.body().is_empty());
    }
}

#[tokio::test]
async fn ranges_are_parts_of_the_same_pattern() {
    let running = server().await;
    for speak in Speak::SECURE {
        let mut ranged = get("/bytes/1000000");
        ranged.headers_mut().insert(header::RANGE, "bytes=999000-".parse().unwrap());
        let response = fetch(&running, speak, ranged).await;
        assert_eq!(response.status(), StatusCode::PARTIAL_CONTENT);
        assert_eq!(response.headers()[header::CONTENT_RANGE], "bytes 999000-999999/1000000");
        assert!(*response.body() == pattern(999_000, 1_000_000));

        let mut beyond = get("/bytes/10");
        beyond.headers_mut().insert(header::RANGE, "bytes=10-".parse().unwrap());
        let response = fetch(&running, speak, beyond).await;
        assert_eq!(response.status(), StatusCode::RANGE_NOT_SATISFIABLE);
        assert_eq!(response.headers()[header::CONTENT_RANGE], "bytes */10");
    }
}

#[tokio::test]
async fn too_many_bytes_are_refused() {
    let running = server().await;
    for count in ["1073741825", "99999999999999999999999", "-1", "1.5", "x", ""] {
        let response = fetch(&running, Speak::Http1, get(&format!("/bytes/{count}"))).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{count}");
    }
}

#[tokio::test]
async fn echo_returns_the_body() {
    let running = server().await;
    let body = Bytes::from(pattern(0, 2_000_000));
    for speak in Speak::SECURE {
        let mut post = request(Method::POST, "/echo", body.clone());
        post.headers_mut().insert(header::CONTENT_TYPE, "image/x-eyas".parse().unwrap());
        let response = fetch(&running, speak, post).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()[header::CONTENT_TYPE], "image/x-eyas");
        assert!(*response.body() == body, "{speak:?}");
    }
}

#[tokio::test]
async fn echo_describes_a_get() {
    let running = server().await;
    for speak in Speak::SECURE {
        let mut described = get("/echo?a=b");
        described.headers_mut().insert("x-test", "one \"two\"".parse().unwrap());
        let response = fetch(&running, speak, described).await;
        let head: serde_json::Value = serde_json::from_slice(response.body()).unwrap();
        assert_eq!(head["method"], "GET");
        assert_eq!(head["query"], "a=b");
        assert_eq!(head["protocol"], format!("{:?}", speak.version()));
        let fields = head["headers"].as_array().unwrap();
        assert!(fields.contains(&serde_json::json!(["x-test", "one \"two\""])), "{head}");
    }
}

#[tokio::test]
async fn slow_waits_as_long_as_requested() {
    let running = server().await;
    let start = std::time::Instant::now();
    let response = fetch(&running, Speak::Http3, get("/slow?ms=200")).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert!(start.elapsed() >= std::time::Duration::from_millis(200));
    for query in ["", "?ms=", "?ms=60001", "?ms=-1"] {
        let response = fetch(&running, Speak::Http2, get(&format!("/slow{query}"))).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{query}");
    }
}

#[tokio::test]
async fn statuses_and_redirections_are_as_requested() {
    let running = server().await;
    for speak in Speak::SECURE {
        for code in [200, 204, 304, 404, 418, 503, 599] {
            let response = fetch(&running, speak, get(&format!("/status/{code}"))).await;
            assert_eq!(response.status(), code);
        }
        for code in ["100", "199", "600", "abc"] {
            let response = fetch(&running, speak, get(&format!("/status/{code}"))).await;
            assert_eq!(response.status(), StatusCode::BAD_REQUEST);
        }
        let response = fetch(&running, speak, get("/redirect/2")).await;
        assert_eq!(response.status(), StatusCode::FOUND);
        assert_eq!(response.headers()[header::LOCATION], "/redirect/1");
        assert_eq!(fetch(&running, speak, get("/redirect/0")).await.status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn unknown_paths_and_methods_are_rejected() {
    let running = server().await;
    for speak in Speak::SECURE {
        let response = fetch(&running, speak, get("/none")).await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
        for path in ["/", "/bytes/1", "/slow?ms=0", "/status/200"] {
            let response = fetch(&running, speak, request(Method::DELETE, path, "")).await;
            assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED, "{path}");
            assert_eq!(response.headers()[header::ALLOW], "GET, HEAD, OPTIONS");
            let response = fetch(&running, speak, request(Method::OPTIONS, path, "")).await;
            assert_eq!(response.status(), StatusCode::NO_CONTENT, "{path}");
        }
    }
}

#[tokio::test]
async fn alternatives_are_announced_only_over_tcp() {
    let running = server().await;
    let port = running.local_addr().port();
    for speak in [Speak::Http1, Speak::Http2] {
        let response = fetch(&running, speak, get("/bytes/1")).await;
        assert_eq!(response.headers()[header::ALT_SVC], format!("h3=\":{port}\"; ma=86400"));
    }
    let response = fetch(&running, Speak::Http3, get("/bytes/1")).await;
    assert!(!response.headers().contains_key(header::ALT_SVC));
    assert!(response.headers().contains_key(header::DATE));

    let without_alt_svc = start(builder().alt_svc(AltSvcPolicy::Off)).await;
    let response = fetch(&without_alt_svc, Speak::Http2, get("/bytes/1")).await;
    assert!(!response.headers().contains_key(header::ALT_SVC));
}

#[tokio::test]
async fn plain_mode_serves_http_1_0_1_1_and_2() {
    let running = start(builder().plain()).await;
    for speak in Speak::PLAIN {
        let response = fetch(&running, speak, get("/bytes/1000")).await;
        assert!(*response.body() == pattern(0, 1000), "{speak:?}");
        assert!(!response.headers().contains_key(header::ALT_SVC));
    }
    let answer = raw(running.local_addr(), b"GET /bytes/3 HTTP/1.0\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n\0\u{1}\u{2}"), "{answer}");
    assert_eq!(running.stats().http10_requests, 1);
    let kept = "GET /bytes/3 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n".repeat(2);
    let kept = format!("{kept}GET /echo HTTP/1.0\r\n\r\n");
    let answer = raw(running.local_addr(), kept.as_bytes()).await;
    assert_eq!(answer.matches("HTTP/1.0 200 OK\r\n").count(), 3, "{answer}");
}

#[tokio::test]
async fn one_port_serves_both_families() {
    let addresses = ["127.0.0.1:0", "[::1]:0"].map(|address| address.parse().unwrap());
    let running = start(builder().listen(addresses[0]).listen(addresses[1])).await;
    let [v4, v6] = running.local_addrs() else { panic!("two addresses") };
    assert_eq!(v4.port(), v6.port());
    assert!(v4.is_ipv4() && v6.is_ipv6());
    drop(crate::clients::tcp(*v6).await);
    assert_eq!(fetch(&running, Speak::Http3, get("/")).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn everything_is_counted() {
    let running = server().await;
    for speak in Speak::SECURE {
        fetch(&running, speak, request(Method::POST, "/echo", "12345")).await;
    }
    let stats = running.stats();
    assert_eq!(stats.tcp_connections, 2);
    assert_eq!(stats.quic_connections, 1);
    assert_eq!((stats.http11_requests, stats.http2_requests, stats.http3_requests), (1, 1, 1));
    assert_eq!((stats.body_bytes_received, stats.body_bytes_sent), (15, 15));
    assert_eq!(stats.requests(), 3);
}
