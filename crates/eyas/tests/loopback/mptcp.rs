//! Multipath TCP, as far as it can be tested with one path. The tests print a note if the kernel
//! does not support it.

use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use eyas::race::candidate::{AddressOrigin, Candidate, Security, Transport};
use eyas::race::policy::Policy;
use eyas::race::target::TargetHost;
use eyas::race::trace;
use eyas::{Connection, Endpoint, ListenParameters, Listener};

use crate::common::{self, builder_for, https, ping_pong, wait};

/// A listener for `h2` over TLS, or `None` if the kernel does not support Multipath TCP.
async fn listen(identity: &eyas::ServerIdentity) -> Option<Listener> {
    let parameters = ListenParameters::new(common::own_address())
        .transports([Transport::Mptcp])
        .security(identity.clone())
        .with_alpn(["h2"]);
    match Listener::bind(parameters).await {
        Ok(listener) => Some(listener),
        Err(error) => {
            // Written directly, because the harness hides the output of tests that pass.
            let mut stderr = std::io::stderr();
            writeln!(stderr, "SKIPPED: no Multipath TCP in this kernel: {error}").unwrap();
            None
        }
    }
}

fn candidate(address: SocketAddr) -> Candidate {
    Candidate {
        address,
        transport: Transport::Mptcp,
        security: Security::Tls,
        alpn: vec!["h2".into()],
        ech: None,
        priority: None,
        origin: AddressOrigin::Caller,
    }
}

async fn attempt(endpoint: &Endpoint, listener: &Listener) -> Connection {
    let host = TargetHost::Name(common::NAME.into());
    wait(endpoint.attempt(&host, candidate(listener.local_addr()), None)).await.unwrap()
}

#[tokio::test]
async fn mptcp_is_reported_on_both_ends() {
    let identity = common::identity();
    let Some(listener) = listen(&identity).await else { return };
    let endpoint = builder_for(&[identity], listener.local_addr().port()).build().unwrap();
    let client = attempt(&endpoint, &listener).await;
    assert_eq!(client.info().transport, Transport::Mptcp);
    assert!(!client.info().fell_back);
    let server = wait(listener.accept()).await;
    assert_eq!(server.info().transport, Transport::Mptcp);
}

#[tokio::test]
async fn mptcp_falls_back_where_the_peer_has_none() {
    let identity = common::identity();
    // First check whether the kernel supports it.
    if listen(&identity).await.is_none() {
        return;
    }
    let listener = common::listen(&identity, [Transport::Tcp]).await;
    let endpoint = builder_for(&[identity], listener.local_addr().port()).build().unwrap();
    let client = attempt(&endpoint, &listener).await;
    assert_eq!(client.info().transport, Transport::Tcp);
    assert!(client.info().fell_back);
    ping_pong(&listener, client).await;
}

/// A head start so long that TCP does not win even on a busy machine.
fn before_tcp() -> Policy {
    Policy {
        transports: vec![Transport::Mptcp, Transport::Tcp],
        head_start: Duration::from_secs(2),
        ..Policy::default()
    }
}

#[tokio::test]
async fn mptcp_wins_a_race_against_tcp() {
    let identity = common::identity();
    let Some(listener) = listen(&identity).await else { return };
    let port = listener.local_addr().port();
    let endpoint = builder_for(&[identity], port).build().unwrap();
    let mut initiation = endpoint.preconnection(https(port)).policy(before_tcp()).initiate();
    let connection = wait(initiation.usable()).await.unwrap();
    assert_eq!(connection.info().transport, Transport::Mptcp);
    assert!(!connection.info().fell_back);
    ping_pong(&listener, connection).await;
    wait(initiation.finished()).await;
    trace::replay(&initiation.trace()).unwrap();
}

#[tokio::test]
async fn after_a_fallback_tcp_is_the_winner() {
    let identity = common::identity();
    if listen(&identity).await.is_none() {
        return;
    }
    let listener = common::listen(&identity, [Transport::Tcp]).await;
    let port = listener.local_addr().port();
    let endpoint = builder_for(&[identity], port).build().unwrap();
    let mut initiation = endpoint.preconnection(https(port)).policy(before_tcp()).initiate();
    let connection = wait(initiation.usable()).await.unwrap();
    assert_eq!(connection.info().transport, Transport::Tcp);
    assert!(connection.info().fell_back, "{:?}", connection.info());
    ping_pong(&listener, connection).await;
    wait(initiation.finished()).await;
    trace::replay(&initiation.trace()).unwrap();
    let second = endpoint.preconnection(https(port)).policy(before_tcp()).connect();
    let connection = wait(second).await.unwrap();
    assert_eq!(connection.info().transport, Transport::Tcp);
    assert!(connection.info().from_memory, "a fallback is remembered as working TCP");
}

#[tokio::test]
async fn mptcp_replaces_tcp_if_the_endpoint_is_configured_so() {
    let identity = common::identity();
    let Some(listener) = listen(&identity).await else { return };
    let port = listener.local_addr().port();
    let endpoint = builder_for(&[identity], port).mptcp(true).build().unwrap();
    let policy = Policy { transports: vec![Transport::Tcp], ..Policy::default() };
    let connecting = endpoint.preconnection(https(port)).policy(policy).connect();
    let connection = wait(connecting).await.unwrap();
    assert_eq!(connection.info().transport, Transport::Mptcp);
    ping_pong(&listener, connection).await;
}
