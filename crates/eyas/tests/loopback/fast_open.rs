//! TCP Fast Open (RFC 7413), for attempts without a race.

use std::net::SocketAddr;

use eyas::race::candidate::{AddressOrigin, Candidate, Security, Transport};
use eyas::race::evidence::FailureCause;
use eyas::race::policy::Policy;
use eyas::race::target::TargetHost;
use eyas::{Connection, Endpoint, ListenParameters, Listener};

use crate::common::{self, NAME, builder_for, https, own_address, ping_pong, wait};

fn candidate(address: SocketAddr, security: Security) -> Candidate {
    Candidate {
        address,
        transport: Transport::Tcp,
        security,
        alpn: vec![],
        ech: None,
        priority: None,
        origin: AddressOrigin::Caller,
    }
}

async fn attempt(endpoint: &Endpoint, address: SocketAddr, security: Security) -> Connection {
    let host = TargetHost::Name(NAME.into());
    wait(endpoint.attempt(&host, candidate(address, security), None)).await.unwrap()
}

/// With fast open the call returns before the peer has answered.
fn is_fast_open(connection: &Connection) -> bool {
    let info = connection.info();
    info.rtt.is_none() && info.timings.answered.is_none() && info.timings.transport.is_none()
}

#[tokio::test]
async fn a_lone_attempt_reports_no_answer_and_carries_bytes() {
    let identity = common::identity();
    let secure = common::listen(&identity, [Transport::Tcp]).await;
    let plain =
        Listener::bind(ListenParameters::new("127.0.0.1:0".parse().unwrap())).await.unwrap();
    let endpoint = builder_for(&[identity], 1).fast_open(true).build().unwrap();
    for (listener, security) in [(&plain, Security::None), (&secure, Security::Tls)] {
        // The second time, the kernel may have a cookie of the peer.
        for _ in 0..2 {
            let connection = attempt(&endpoint, listener.local_addr(), security).await;
            assert!(is_fast_open(&connection), "{:?}", connection.info());
            ping_pong(listener, connection).await;
        }
    }
}

#[tokio::test]
async fn a_handshake_over_it_still_finds_its_own_address() {
    let endpoint = builder_for(&[common::identity()], 1).fast_open(true).build().unwrap();
    let wanted = candidate(own_address(), Security::Tls);
    let failure =
        wait(endpoint.attempt(&TargetHost::Name(NAME.into()), wanted, None)).await.unwrap_err();
    assert_eq!(failure.cause, FailureCause::Refused, "{failure:?}");
}

#[tokio::test]
async fn fast_open_never_wins_a_race() {
    let identity = common::identity();
    let listener = common::listen(&identity, [Transport::Tcp]).await;
    let port = listener.local_addr().port();
    let endpoint = builder_for(&[identity], port).fast_open(true).build().unwrap();
    let policy = Policy { transports: vec![Transport::Tcp], ..Policy::default() };
    let connecting = endpoint.preconnection(https(port)).policy(policy).connect();
    let connection = wait(connecting).await.unwrap();
    assert!(connection.info().rtt.is_some() && connection.info().timings.answered.is_some());
}
