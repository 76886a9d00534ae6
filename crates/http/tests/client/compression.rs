//! Tests of compressed bodies.

use async_compression::tokio::bufread::GzipEncoder;
use bytes::Bytes;
use eyas_http::{Kind, Versions};
use tokio::io::AsyncReadExt;

use crate::site::{Plan, Reply, builder, echo_path};

//= hostile client
//# a decompression bomb
//= bound: `max_body`, if the caller sets it
#[tokio::test]
async fn a_body_larger_than_allowed_is_cut_off_after_decompression() {
    let mut bomb = Vec::new();
    let zeros = vec![0; 1_000_000];
    GzipEncoder::new(&zeros[..]).read_to_end(&mut bomb).await.expect("coded");
    assert!(bomb.len() < 10_000);
    let bomb = Bytes::from(bomb);
    let site = Plan::default()
        .start(move |_| Reply::text(bomb.clone()).header("content-encoding", "gzip"))
        .await;
    for versions in [Versions::HTTP_1, Versions::HTTP_2, Versions::HTTP_3] {
        let client = builder(&[&site]).versions(versions).max_body(10_000).build();
        let response = client.expect("a client").get(site.url("/")).send().await.expect("a head");
        let error = response.bytes().await.expect_err("too large");
        assert_eq!(error.kind(), Kind::BodyTooLarge, "{error}");
        let client = builder(&[&site]).versions(versions).max_body(1_000_000).build();
        let response = client.expect("a client").get(site.url("/")).send().await.expect("a head");
        assert_eq!(response.bytes().await.expect("all").len(), 1_000_000);
    }
}

#[tokio::test]
async fn decompression_can_be_disabled() {
    let site = Plan::default().start(echo_path).await;
    let plain = builder(&[&site]).decompress(false).build().expect("a client");
    plain.get(site.url("/")).send().await.expect("a response");
    assert!(!site.seen()[0].headers.contains_key("accept-encoding"));
    let default_client = builder(&[&site]).build().expect("a client");
    default_client.get(site.url("/")).send().await.expect("a response");
    assert_eq!(site.seen()[1].headers["accept-encoding"], "gzip, br, zstd, deflate");
}
