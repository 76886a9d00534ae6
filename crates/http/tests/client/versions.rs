//! Tests of each version of HTTP, with bodies both ways.

use bytes::Bytes;
use eyas::race::candidate::Transport;
use eyas_http::{Body, Versions};
use http::Version;

use crate::site::{NAME, Plan, Reply, Seen, builder, client, echo_path};

const EACH: [(Versions, Version, Transport); 3] = [
    (Versions::HTTP_1, Version::HTTP_11, Transport::Tcp),
    (Versions::HTTP_2, Version::HTTP_2, Transport::Tcp),
    (Versions::HTTP_3, Version::HTTP_3, Transport::Quic),
];

fn echo(seen: &Seen) -> Reply {
    Reply::text(seen.body.clone()).header("x-method", seen.method.as_str())
}

#[tokio::test]
async fn a_get_over_each_version() {
    let site = Plan::default().start(echo_path).await;
    for (versions, version, transport) in EACH {
        let client = builder(&[&site]).versions(versions).build().expect("a client");
        let response = client.get(site.url("/a?b=c")).send().await.expect("a response");
        assert_eq!(response.version(), version);
        assert_eq!(response.connection().transport, transport);
        assert_eq!(response.connection().remote, site.address);
        assert_eq!(response.text().await.expect("a body"), "/a?b=c");
        let seen = site.seen().pop().expect("a request");
        assert_eq!(seen.version, version);
        assert!(seen.headers["user-agent"].to_str().expect("text").starts_with("eyas/"));
        assert!(!seen.headers.contains_key("host") || version == Version::HTTP_11);
    }
}

#[tokio::test]
async fn bodies_stream_both_ways_over_each_version() {
    let site = Plan::default().start(echo).await;
    let big: Vec<u8> = (0..3_000_000u32).map(|n| n.to_le_bytes()[0]).collect();
    for (versions, version, _) in EACH {
        let client = builder(&[&site]).versions(versions).build().expect("a client");
        let chunks: Vec<_> = big
            .chunks(100_000)
            .map(|c| Ok::<_, std::io::Error>(Bytes::copy_from_slice(c)))
            .collect();
        let body = Body::from_stream(futures_util::stream::iter(chunks));
        let mut response = client.post(site.url("/")).body(body).send().await.expect("a response");
        let mut back = Vec::new();
        while let Some(chunk) = response.chunk().await.expect("a chunk") {
            back.extend_from_slice(&chunk);
        }
        assert!(back == big, "{version:?}");
    }
}

#[tokio::test]
async fn the_length_of_a_body_in_memory_is_announced() {
    let site = Plan::default().start(echo).await;
    for (versions, version, _) in EACH {
        let client = builder(&[&site]).versions(versions).build().expect("a client");
        client.put(site.url("/")).body("four").send().await.expect("a response");
        let seen = site.seen().pop().expect("a request");
        assert_eq!(seen.headers["content-length"], "4", "{version:?}");
        client.get(site.url("/")).send().await.expect("a response");
        let seen = site.seen().pop().expect("a request");
        assert!(!seen.headers.contains_key("content-length"), "{version:?}");
    }
}

#[tokio::test]
async fn head_has_a_length_and_no_body() {
    let site = Plan::default().start(|_| Reply::status(200).header("content-length", "1000")).await;
    for (versions, version, _) in EACH {
        let client = builder(&[&site]).versions(versions).build().expect("a client");
        let response = client.head(site.url("/")).send().await.expect("a response");
        assert_eq!(response.content_length(), Some(1000), "{version:?}");
        assert_eq!(response.bytes().await.expect("nothing").len(), 0, "{version:?}");
    }
}

#[tokio::test]
async fn plain_http_is_http_1_over_tcp() {
    let site = Plan::plain().start(echo_path).await;
    let response = client(&[&site]).get(site.plain_url("/x")).send().await.expect("a response");
    assert_eq!(response.version(), Version::HTTP_11);
    assert_eq!(response.connection().security, eyas::race::candidate::Security::None);
    assert_eq!(response.text().await.expect("a body"), "/x");
    let host = format!("{NAME}:{}", site.address.port());
    assert_eq!(site.seen()[0].headers["host"], host.as_str());
}

#[tokio::test]
async fn an_address_as_host() {
    let site = Plan::default().start(|_| Reply::text("here")).await;
    let url = format!("https://127.0.0.1:{}/", site.address.port());
    let response = client(&[&site]).get(url).send().await.expect("a response");
    assert_eq!(response.text().await.expect("a body"), "here");
}

#[tokio::test]
async fn connection_fields_are_not_sent_over_http_2_and_3() {
    let site = Plan::default().start(echo_path).await;
    for versions in [Versions::HTTP_2, Versions::HTTP_3] {
        let client = builder(&[&site]).versions(versions).build().expect("a client");
        let request = client.get(site.url("/")).header("connection", "close").header("te", "gzip");
        request.header("keep-alive", "1").send().await.expect("a response");
        let seen = site.seen().pop().expect("a request");
        for name in ["connection", "te", "keep-alive", "host"] {
            assert!(!seen.headers.contains_key(name), "{name}");
        }
    }
}
