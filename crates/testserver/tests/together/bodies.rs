//! Tests of complete and broken bodies.

use eyas_http::{Kind, Versions};
use eyas_testserver::site::pattern_byte;
use eyas_testserver::{ServerPersonality, TransportSide};

use crate::stage::Stage;

const EACH: [Versions; 3] = [Versions::HTTP_1, Versions::HTTP_2, Versions::HTTP_3];

/// Enough for several windows of every protocol.
const COUNT: u64 = 4_000_000;

fn pattern(count: u64) -> Vec<u8> {
    (0..count).map(pattern_byte).collect()
}

#[tokio::test]
async fn long_bodies_arrive_completely_both_ways() {
    let stage = Stage::new(ServerPersonality::Healthy).await;
    for versions in EACH {
        let client = stage.client_for(versions);
        let down = client.get(stage.url(&format!("/bytes/{COUNT}"))).send().await;
        let down = down.expect("a response").bytes().await.expect("a body");
        assert!(down == pattern(COUNT), "{versions:?}");
        let up = client.post(stage.url("/echo")).body(down.clone()).send().await;
        let up = up.expect("a response").bytes().await.expect("a body");
        assert!(up == down, "{versions:?}");
    }
}

#[tokio::test]
async fn a_reset_in_mid_body_is_an_error() {
    let stage = Stage::new(ServerPersonality::ResetInBody { after: 5000 }).await;
    for versions in EACH {
        let response = stage.client_for(versions).get(stage.url("/bytes/100000")).send().await;
        let error = response.expect("a head").bytes().await.expect_err("no whole body");
        assert_eq!(error.kind(), Kind::BodyReset, "{versions:?}: {error}");
        assert!(error.to_string().contains("127.0.0.1"), "{error}");
    }
}

#[tokio::test]
async fn a_truncated_body_is_an_error() {
    let stage = Stage::new(ServerPersonality::TruncatedBody { after: 5000 }).await;
    for versions in EACH {
        let response = stage.client_for(versions).get(stage.url("/bytes/100000")).send().await;
        let error = response.expect("a head").bytes().await.expect_err("no whole body");
        let is_reported = matches!(error.kind(), Kind::BodyTruncated | Kind::BodyLength);
        assert!(is_reported, "{versions:?}: {error}");
    }
}

#[tokio::test]
async fn one_bad_transport_does_not_affect_the_body_of_the_other() {
    let stage = Stage::new(ServerPersonality::WrongCertificate(TransportSide::Quic)).await;
    let response = stage.client().get(stage.url("/bytes/100000")).send().await;
    let body = response.expect("a response").bytes().await.expect("a body");
    assert!(body == pattern(100_000));
}
