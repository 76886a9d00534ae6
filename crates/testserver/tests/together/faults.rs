//! Tests of the client against each personality.

use std::time::Duration;

use eyas::{
    MemoryStore,
    race::{memory::MemoryConfig, policy::Policy},
};
use eyas_http::{Error, Kind};
use eyas_testserver::{ServerPersonality, TransportSide};
use http::Version;
use tokio::time::{sleep, timeout};

use crate::stage::{SOON, Stage};

/// Returns the version of the first request, with a head start for QUIC that is long enough for
/// busy machines.
async fn version(stage: &Stage) -> Version {
    let race = Policy { head_start: Duration::from_secs(2), ..Policy::default() };
    let memory = MemoryStore::in_memory(MemoryConfig::default());
    let client = stage.builder_with(&memory).race(race).build().expect("a client");
    let response = client.get(stage.url("/bytes/1000")).send();
    let response = timeout(SOON, response).await.expect("an end").expect("a response");
    let version = response.version();
    assert_eq!(response.bytes().await.expect("a body").len(), 1000);
    version
}

async fn failure(stage: &Stage) -> Error {
    let response = stage.client().get(stage.url("/bytes/1000")).send();
    timeout(SOON, response).await.expect("an end").expect_err("no response")
}

#[tokio::test]
async fn working_transports_are_found() {
    let slow = Duration::from_millis(100);
    let cases = [
        (ServerPersonality::Healthy, Version::HTTP_3),
        (ServerPersonality::UdpSwallowed, Version::HTTP_2),
        (ServerPersonality::TcpOnly, Version::HTTP_2),
        (ServerPersonality::Http3Only, Version::HTTP_3),
        (ServerPersonality::TcpSlow { by: slow }, Version::HTTP_3),
        (ServerPersonality::TcpSilent, Version::HTTP_3),
    ];
    for (personality, expected) in cases {
        let stage = Stage::new(personality).await;
        assert_eq!(version(&stage).await, expected, "{personality}");
        assert_eq!(stage.server.stats().requests(), 1, "{personality}: sent once");
    }
}

#[tokio::test]
async fn a_fault_on_one_transport_leaves_the_other() {
    let faults: [fn(TransportSide) -> ServerPersonality; 4] = [
        ServerPersonality::WrongCertificate,
        ServerPersonality::ExpiredCertificate,
        ServerPersonality::WrongName,
        ServerPersonality::NoCommonAlpn,
    ];
    for fault in faults {
        let on_tcp = Stage::new(fault(TransportSide::Tcp)).await;
        assert_eq!(version(&on_tcp).await, Version::HTTP_3, "{}", fault(TransportSide::Tcp));
        let on_quic = Stage::new(fault(TransportSide::Quic)).await;
        assert_eq!(version(&on_quic).await, Version::HTTP_2, "{}", fault(TransportSide::Quic));
    }
}

#[tokio::test]
async fn a_certificate_that_is_bad_on_both_is_reported_once() {
    let cases = [
        (
            ServerPersonality::WrongCertificate(TransportSide::Both),
            "the certificate's issuer \"untrusted test authority\" is not trusted here",
        ),
        (
            ServerPersonality::ExpiredCertificate(TransportSide::Both),
            "the certificate expired on 2002-01-01, ",
        ),
        (
            ServerPersonality::WrongName(TransportSide::Both),
            "the certificate is for other.test, not for ",
        ),
    ];
    for (personality, sentence) in cases {
        let stage = Stage::new(personality).await;
        let error = failure(&stage).await;
        assert_eq!(error.kind(), Kind::Certificate, "{personality}: {error}");
        assert_eq!(error.to_string().matches(sentence).count(), 1, "{personality}: {error}");
        assert_eq!(stage.server.stats().requests(), 0);
    }
}

#[tokio::test]
async fn a_fault_on_both_is_reported_for_each_candidate() {
    let stage = Stage::new(ServerPersonality::NoCommonAlpn(TransportSide::Both)).await;
    let error = failure(&stage).await;
    assert_eq!(error.kind(), Kind::Tls, "{error}");
    let message = error.to_string();
    for part in ["quic", "tcp", "127.0.0.1", "application protocol"] {
        assert!(message.contains(part), "{message} lacks {part}");
    }
    assert_eq!(stage.server.stats().requests(), 0);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn if_everything_is_dropped_the_deadline_ends_it() {
    let stage = Stage::new(ServerPersonality::AllSwallowed).await;
    let memory = MemoryStore::in_memory(MemoryConfig::default());
    let client = stage.builder_with(&memory).connect_timeout(Duration::from_millis(500));
    let client = client.build().expect("a client");
    let response = timeout(SOON, client.get(stage.url("/")).send()).await.expect("an end");
    let error = response.expect_err("no response");
    assert_eq!(error.kind(), Kind::ConnectTimeout, "{error}");
}

#[tokio::test]
async fn dropped_udp_is_remembered_by_the_next_client() {
    let stage = Stage::new(ServerPersonality::UdpSwallowed).await;
    let memory = MemoryStore::in_memory(MemoryConfig::default());
    let first = stage.builder_with(&memory).build().expect("a client");
    let response = first.get(stage.url("/")).send().await.expect("a response");
    assert_eq!(response.version(), Version::HTTP_2);
    // The success of TCP is remembered at once, the silence of QUIC later.
    let both_remembered = timeout(SOON, async {
        while memory.entries().len() < 2 {
            sleep(Duration::from_millis(20)).await;
        }
    });
    both_remembered.await.expect("both outcomes are remembered");
    let second = stage.builder_with(&memory).build().expect("a client");
    let response = second.get(stage.url("/")).send().await.expect("a response");
    assert_eq!(response.version(), Version::HTTP_2);
    assert!(response.connection().from_memory);
}

#[tokio::test]
async fn late_quic_takes_over() {
    let stage = Stage::new(ServerPersonality::QuicSlow { by: Duration::from_millis(1500) }).await;
    let client = stage.client();
    let first = client.get(stage.url("/bytes/10")).send().await.expect("a response");
    assert_eq!(first.version(), Version::HTTP_2);
    let switched = timeout(SOON, async {
        loop {
            let later = client.get(stage.url("/bytes/10")).send().await.expect("a response");
            if later.version() == Version::HTTP_3 {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
    });
    switched.await.expect("HTTP/3 in the end");
    let stats = stage.server.stats();
    assert_eq!(stats.http3_requests, 1, "the switch repeats nothing");
}
