//! Ambiguous requests (RFC 9112 §11).
//!
//! Each case is followed, on the same connection, by a request that the upstream would answer if one of the two
//! programs lost count. If the case is ambiguous, that request must not reach the upstream.

use crate::stage::{OK, Stage, TIMEOUT, Upstream, read_all};

const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: a.example\r\n\r\n";

/// Returns a head with this method and these fields.
fn head(method: &str, fields: &str) -> String {
    format!("{method} /p HTTP/1.1\r\nHost: a.example\r\n{fields}\r\n\r\n")
}

/// Returns the number of responses.
fn answers(read: &str) -> usize {
    read.lines().filter(|line| line.starts_with("HTTP/1.")).count()
}

//= hostile gateway
//# a request that two programs read differently
//= bound: 400
#[tokio::test]
async fn ambiguous_requests_are_refused_with_400() {
    let mut stage = Stage::plain().await;
    let post = |fields: &str| head("POST", fields);
    let get = |fields: &str| head("GET", fields);
    for (what, request, status) in [
        ("different hosts", get("Host: b.example"), 400),
        (
            "a host that the target contradicts",
            get("X: 1").replace(" /p", " http://b.example/"),
            400,
        ),
        ("a host with space", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n".to_owned(), 400),
        ("no host", "GET / HTTP/1.1\r\nX: 1\r\n\r\n".to_owned(), 400),
        ("two lengths", post("Content-Length: 1\r\nContent-Length: 2"), 400),
        ("a list of lengths", post("Content-Length: 1, 2"), 400),
        ("a list of the same lengths", post("Content-Length: 3, 3"), 400),
        ("a length with a sign", post("Content-Length: +1"), 400),
        ("a negative length", post("Content-Length: -1"), 400),
        ("a hexadecimal length", post("Content-Length: 0x1"), 400),
        ("a length that overflows", post("Content-Length: 18446744073709551617"), 400),
        ("an empty length", post("Content-Length: "), 400),
        ("space before the colon of the length", post("Content-Length : 1"), 400),
        ("space before the colon of the coding", post("Transfer-Encoding : chunked"), 400),
        ("a coding in HTTP/1.0", post("Transfer-Encoding: chunked").replace("/1.1", "/1.0"), 400),
        ("another coding", post("Transfer-Encoding: gzip"), 400),
        ("identity", post("Transfer-Encoding: identity"), 400),
        ("chunked that is not last", post("Transfer-Encoding: chunked, identity"), 400),
        (
            "identity after it",
            post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity"),
            400,
        ),
        ("a coding in quotes", post("Transfer-Encoding: \"chunked\""), 400),
        ("a coding with a prefix", post("Transfer-Encoding: xchunked"), 400),
        ("a coding with a parameter", post("Transfer-Encoding: chunked;q=1"), 400),
        ("an empty coding", post("Transfer-Encoding: "), 400),
        ("a coding after a control character", post("Transfer-Encoding: \u{b}chunked"), 400),
        ("a folded line", get("X: a\r\n b"), 400),
        ("a folded coding", post("Transfer-Encoding:\r\n chunked"), 400),
        ("a folded first line", "GET / HTTP/1.1\r\n Host: a\r\n\r\n".to_owned(), 400),
        ("a bare CR in a value", get("X: a\rb"), 400),
        ("a bare CR as a line end", get("X: a\rTransfer-Encoding: chunked"), 400),
        ("NUL in a value", get("X: a\0b"), 400),
        ("NUL in a name", get("X\0: a"), 400),
        ("a name with a space", get("X Y: a"), 400),
        ("a line without a colon", get("Transfer-Encoding chunked"), 400),
        ("no name", get(": a"), 400),
        ("two spaces in the request line", get("X: a").replace("GET ", "GET  "), 400),
        ("an unknown version", get("X: a").replace("/1.1", "/1.2"), 400),
        ("TRACE", head("TRACE", "Connection: close"), 405),
        ("CONNECT", head("CONNECT", "Connection: close").replace(" /p", " a.example:1"), 501),
        ("two codings", post("Transfer-Encoding: gzip, chunked\r\nConnection: close"), 501),
        ("chunked after an empty element", post("Transfer-Encoding: ,chunked"), 501),
        (
            "chunked after identity",
            post("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked"),
            501,
        ),
        ("chunked twice", post("Transfer-Encoding: chunked, chunked\r\nConnection: close"), 501),
    ] {
        let answer = stage.refused(&format!("{request}{SMUGGLED}")).await;
        let begins = |version| answer.starts_with(&format!("HTTP/{version} {status} "));
        assert!(begins("1.1") || begins("1.0"), "{what}: {answer}");
        assert_eq!(answers(&answer), 1, "{what}: one answer, and the end: {answer}");
    }
}

/// Data before an invalid chunk is forwarded, but no end, and nothing after it.
#[tokio::test]
async fn a_body_with_ambiguous_chunks_is_never_complete() {
    let (mut stage, mut seen) = (Stage::plain().await, 0);
    for (what, chunks) in [
        ("a size with a sign", "+3\r\nabc\r\n0\r\n\r\n"),
        ("a size with a prefix", "0x3\r\nabc\r\n0\r\n\r\n"),
        ("a size after a space", " 3\r\nabc\r\n0\r\n\r\n"),
        ("no size", "\r\n0\r\n\r\n"),
        ("a size that overflows", "10000000000000003\r\nabc\r\n0\r\n\r\n"),
        ("a bare LF after the size", "3\nabc\r\n0\r\n\r\n"),
        ("a bare CR after the size", "3\rabc\r\n0\r\n\r\n"),
        ("a bare LF in an extension", "3;a=b\nabc\r\n0\r\n\r\n"),
        ("a chunk that is longer than announced", "3\r\nabcd\r\n0\r\n\r\n"),
        ("a bare LF after the chunk", "3\r\nabc\n0\r\n\r\n"),
        ("a bare LF after the last chunk", "0\n\r\n"),
        ("a last chunk without a line end", "3\r\nabc\r\n0\r\nGET"),
        ("an endless extension", &format!("3;{}\r\nabc\r\n0\r\n\r\n", "x".repeat(20_000))),
        ("an invalid trailer", "3\r\nabc\r\n0\r\nno trailer\r\n\r\n"),
    ] {
        let request = head("POST", "Transfer-Encoding: chunked");
        let mut client = stage.send(&format!("{request}{chunks}{SMUGGLED}")).await;
        let answer = read_all(&mut client).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{what}: {answer}");
        assert_eq!(answers(&answer), 1, "{what}: {answer}");
        // A body that is invalid from its first byte on need not reach the upstream at all.
        while seen < stage.gateway.stats().connections {
            let next = tokio::time::timeout(TIMEOUT, stage.connections.recv()).await;
            let stream = next.expect("in time").expect("a connection");
            let sent = Upstream { stream, read: Vec::new() }.end().await;
            assert!(!sent.ends_with("0\r\n\r\n"), "{what}: it looks complete: {sent:?}");
            assert!(!sent.contains("smuggled"), "{what}: {sent:?}");
            seen += 1;
        }
    }
}

/// Unusual but valid requests are forwarded in an unambiguous form.
#[tokio::test]
async fn forwarded_requests_are_unambiguous() {
    let mut stage = Stage::plain().await;
    let post = |fields: &str| head("POST", &format!("Connection: close\r\n{fields}"));
    let chunked = post("Transfer-Encoding: chunked");
    let whole = "3\r\nabc\r\n0\r\n\r\n";
    for (what, request, received) in [
        ("extensions of chunks", format!("{chunked}3;a=b;c=\"d\"\r\nabc\r\n0;e\r\n\r\n"), whole),
        ("zeros before a size", format!("{chunked}0000003\r\nabc\r\n0000\r\n\r\n"), whole),
        (
            "a size in capitals",
            format!("{chunked}A\r\n0123456789\r\n0\r\n\r\n"),
            "A\r\n0123456789\r\n0\r\n\r\n",
        ),
        ("a field's line that ends in LF", post("X: a\nContent-Length: 3") + "abc", "abc"),
        ("zeros before a length", post("Content-Length: 003") + "abc", "abc"),
        ("an empty line in front", format!("\r\n{}abc", post("Content-Length: 3")), "abc"),
    ] {
        let mut client = stage.send(&request).await;
        let mut upstream = stage.connection().await;
        let head = upstream.head().await;
        assert!(!head.replace("\r\n", "").contains(['\r', '\n']), "{what}: {head:?}");
        assert!(!head.contains(" 003") && !head.contains("c=\"d"), "{what}: {head:?}");
        upstream.until(received).await;
        upstream.send(&OK.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")).await;
        let answer = read_all(&mut client).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{what}: {answer}");
        assert_eq!(upstream.end().await, "", "{what}: nothing more reaches the upstream");
    }
}

//= hostile gateway
//# a body with two lengths, or truncated
//= bound: it never looks complete; nothing is smuggled
#[tokio::test]
async fn nothing_is_smuggled_after_a_body_with_two_lengths() {
    let mut stage = Stage::plain().await;
    for fields in [
        "Content-Length: 6\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 6",
    ] {
        let request = head("POST", fields);
        let mut client = stage.send(&format!("{request}0\r\n\r\n{SMUGGLED}")).await;
        let mut upstream = stage.connection().await;
        let head = upstream.head().await.to_lowercase();
        assert!(!head.contains("content-length") && head.contains("chunked"), "{head}");
        upstream.until("0\r\n\r\n").await;
        upstream.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok").await;
        let answer = read_all(&mut client).await;
        assert_eq!(answers(&answer), 1, "{answer}");
        assert_eq!(upstream.end().await, "", "nothing more reaches the upstream");
    }
}

/// If an upstream sends data after a response, neither its client nor any other one receives it.
#[tokio::test]
async fn bytes_after_a_response_reach_no_client() {
    let mut stage = Stage::plain().await;
    for (head, body) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", "ok"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            "",
        ),
        ("HTTP/1.1 204 No Content\r\n\r\n", ""),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", ""),
    ] {
        let split = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nsplit";
        for _ in 0..2 {
            let mut client = stage.send(crate::stage::GET).await;
            let mut upstream = stage.connection().await;
            upstream.head().await;
            upstream.send(&format!("{head}{body}{split}")).await;
            let answer = read_all(&mut client).await;
            assert!(!answer.contains("split"), "{head}: {answer}");
            assert_eq!(upstream.end().await, "", "{head}: the connection is not reused");
        }
    }
}
