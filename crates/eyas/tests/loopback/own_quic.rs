//! Races with the caller's own QUIC configuration.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use eyas::race::candidate::Transport;
use eyas::race::evidence::FailureCause;
use eyas::race::policy::Policy;
use eyas::{Endpoint, ListenParameters, Listener, MemoryStore, Resolver, ServerIdentity};
use rustls::{ClientConfig, RootCertStore};

use crate::common::{NAME, Scene, identity, own_address, wait};

#[expect(dead_code, reason = "its main is for cargo run")]
#[path = "../../examples/own-quic.rs"]
mod example;

/// Trusts this server and no other.
fn trusting(identity: &ServerIdentity) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(identity.certificate().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

#[tokio::test]
async fn the_callers_configuration_races_and_yields_its_connection() {
    let identity = identity();
    let parameters = ListenParameters::new(own_address())
        .transports([Transport::Quic])
        .security(identity.clone())
        .with_alpn(["moq-test"]);
    let listener = Listener::bind(parameters).await.unwrap();
    let port = listener.local_addr().port();
    // Nothing listens at the first address, and the endpoint itself does not trust the server.
    let unused = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
    let resolver = Resolver::server((Ipv4Addr::LOCALHOST, 9).into());
    let resolver = resolver.overriding(NAME, port, vec![unused, Ipv4Addr::LOCALHOST.into()]);
    let endpoint =
        Endpoint::builder().resolver(resolver).memory(MemoryStore::none()).build().unwrap();
    let config = example::quic_config(trusting(&identity), "moq-test").unwrap();
    let connecting = example::connect(&endpoint, (NAME, port, "moq-test"), config);
    let (client, server) = wait(async { tokio::join!(connecting, listener.accept()) }).await;
    let client = client.unwrap();
    assert_eq!(client.info().alpn.as_deref(), Some("moq-test"));
    assert!(
        matches!(&client.info().failed[..], [(candidate, failure)]
            if candidate.address.ip() == unused && failure.cause == FailureCause::Refused),
        "{:?}",
        client.info().failed
    );
    // The transport parameters are the caller's as well: it accepts no datagrams.
    let (ours, theirs) = (client.quic().unwrap().clone(), server.quic().unwrap().clone());
    assert_eq!(theirs.max_datagram_size(), None);
    // It outlives the connection that it came from.
    drop(client);
    let mut stream = ours.open_uni().await.unwrap();
    stream.write_all(b"moq").await.unwrap();
    stream.finish().unwrap();
    let mut received = wait(theirs.accept_uni()).await.unwrap();
    assert_eq!(wait(received.read_to_end(16)).await.unwrap(), b"moq");
}

#[tokio::test]
async fn a_configuration_with_other_roots_does_not_affect_the_endpoints_trust() {
    let scene = Scene::new([Transport::Tcp, Transport::Quic]).await;
    // A head start so long that TCP does not win even on a busy machine.
    let policy = Policy { head_start: Duration::from_secs(2), ..Policy::default() };
    let race = || scene.endpoint.preconnection(scene.target()).policy(policy.clone());
    let config = example::quic_config(trusting(&identity()), "h3").unwrap();
    for _ in 0..2 {
        let connection = wait(race().quic_config(config.clone()).connect()).await.unwrap();
        assert_eq!(connection.info().transport, Transport::Tcp);
    }
    let connection = wait(race().connect()).await.unwrap();
    assert_eq!(connection.info().transport, Transport::Quic);
}
