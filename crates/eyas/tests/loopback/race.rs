//! Whole races over real sockets on loopback.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::common::dns::{self, Response};
use crate::common::{self, NAME, Scene, SlowUdp, builder_for, https, ping_pong, wait};
use eyas::race::candidate::Transport;
use eyas::race::evidence::{AttemptFailure, EvidenceLevel, FailureCause};
use eyas::race::io::RaceFailure;
use eyas::race::memory::{EntryOutcome, MemoryEntry};
use eyas::race::policy::Policy;
use eyas::race::trace;
use eyas::{Endpoint, ListenParameters, Listener, MemoryStore, ServerIdentity};

#[tokio::test]
async fn quic_wins_where_it_works() {
    let scene = Scene::new([Transport::Tcp, Transport::Quic]).await;
    // A head start so long that TCP does not win even on a busy machine.
    let policy = Policy { head_start: Duration::from_secs(2), ..Policy::default() };
    let connecting = scene.endpoint.preconnection(scene.target()).policy(policy).connect();
    let connection = wait(connecting).await.unwrap();
    assert_eq!(connection.info().transport, Transport::Quic);
    assert!(!connection.info().from_memory);
    assert!(!connection.info().reasons.is_empty());
    ping_pong(&scene.listener, connection).await;
}

#[tokio::test]
async fn tcp_wins_where_there_is_no_quic() {
    let scene = Scene::new([Transport::Tcp]).await;
    let connection = wait(scene.endpoint.preconnection(scene.target()).connect()).await.unwrap();
    assert_eq!(connection.info().transport, Transport::Tcp);
    assert_eq!(connection.info().alpn.as_deref(), Some("h2"));
    ping_pong(&scene.listener, connection).await;
}

#[tokio::test]
async fn failures_before_the_win_are_reported() {
    let scene = Scene::new([Transport::Tcp]).await;
    // A head start so long that TCP starts only because QUIC is refused.
    let policy = Policy { head_start: Duration::from_secs(2), ..Policy::default() };
    let connecting = scene.endpoint.preconnection(scene.target()).policy(policy).connect();
    let connection = wait(connecting).await.unwrap();
    let failed = &connection.info().failed;
    assert_eq!(connection.info().transport, Transport::Tcp);
    assert!(
        matches!(&failed[..], [(candidate, failure)]
            if candidate.transport == Transport::Quic && failure.cause == FailureCause::Refused),
        "{failed:?}"
    );
}

#[tokio::test]
async fn dropped_udp_is_remembered() {
    let identity = common::identity();
    // It receives every packet and answers none.
    let (tcp, _hole) = common::listen_beside_udp(&identity).await;
    let port = tcp.local_addr().port();
    let endpoint = builder_for(&[identity], port).build().unwrap();
    let policy = Policy { late_switch_for: Duration::from_millis(300), ..Policy::default() };
    let first = endpoint.preconnection(https(port)).policy(policy.clone());
    let mut initiation = first.initiate();
    let connection = wait(initiation.usable()).await.unwrap();
    assert_eq!(connection.info().transport, Transport::Tcp);
    assert!(!connection.info().from_memory);
    wait(initiation.finished()).await;
    let mut second = endpoint.preconnection(https(port)).policy(policy).initiate();
    let connection = wait(second.usable()).await.unwrap();
    assert_eq!(connection.info().transport, Transport::Tcp);
    assert!(connection.info().from_memory);
    let first_tried = &second.plan().entries[0].candidate;
    assert_eq!(first_tried.transport, Transport::Tcp, "TCP is tried first");
}

#[tokio::test]
async fn a_slower_but_more_preferred_transport_becomes_better() {
    let identity = common::identity();
    let quic = common::listen(&identity, [Transport::Quic]).await;
    let (tcp, udp) = common::listen_beside_udp(&identity).await;
    let _relay = SlowUdp::to(quic.local_addr(), udp, Duration::from_secs(2)).await;
    let port = tcp.local_addr().port();
    let endpoint = builder_for(&[identity], port).build().unwrap();
    let policy = Policy { late_switch_for: Duration::from_secs(20), ..Policy::default() };
    let mut initiation = endpoint.preconnection(https(port)).policy(policy).initiate();
    let usable = wait(initiation.usable()).await.unwrap();
    assert_eq!(usable.info().transport, Transport::Tcp);
    ping_pong(&tcp, usable).await;
    let better = wait(initiation.better()).await.unwrap();
    assert_eq!(better.info().transport, Transport::Quic);
    ping_pong(&quic, better).await;
    wait(initiation.finished()).await;
    assert!(wait(initiation.better()).await.is_none());
    trace::replay(&initiation.trace()).unwrap();
}

#[tokio::test]
async fn a_refused_connection_names_candidate_cause_and_what_to_do() {
    let closed = common::own_address();
    let endpoint = builder_for(&[common::identity()], closed.port()).build().unwrap();
    let policy = Policy { transports: vec![Transport::Tcp], ..Policy::default() };
    let connecting = endpoint.preconnection(https(closed.port())).policy(policy).connect();
    let error = wait(connecting).await.unwrap_err();
    assert_eq!(error.cause(), Some(FailureCause::Refused));
    let text = error.to_string();
    for part in [&format!("tcp {closed}"), NAME, "refused", "check the port"] {
        assert!(text.contains(part), "`{part}` is missing in: {text}");
    }
    trace::replay(error.trace()).unwrap();
}

#[tokio::test]
async fn a_host_without_a_server_refuses_every_transport() {
    let closed = common::own_address();
    let endpoint = builder_for(&[common::identity()], closed.port()).build().unwrap();
    let error = wait(endpoint.preconnection(https(closed.port())).connect()).await.unwrap_err();
    let RaceFailure::AllFailed(tried) = error.failure() else { panic!("{error}") };
    assert!(tried.iter().any(|(candidate, _)| candidate.transport == Transport::Quic));
    for (candidate, failure) in tried {
        assert_eq!(failure.cause, FailureCause::Refused, "{candidate}: {failure:?}");
    }
}

#[tokio::test]
async fn wrong_certificates_are_reported_as_such() {
    let unknown = common::identity();
    let expired = common::expired_identity();
    let elsewhere = ServerIdentity::self_signed(["somebody.else.example"]).unwrap();
    let trusted = [expired.clone(), elsewhere.clone()];
    for (identity, word) in
        [(unknown, "not trusted"), (expired, "expired"), (elsewhere, "somebody.else.example")]
    {
        let listener = common::listen(&identity, [Transport::Tcp, Transport::Quic]).await;
        let port = listener.local_addr().port();
        let endpoint = builder_for(&trusted, port).build().unwrap();
        let error = wait(endpoint.preconnection(https(port)).connect()).await.unwrap_err();
        let RaceFailure::AllFailed(tried) = error.failure() else { panic!("{error}") };
        assert!(tried.iter().any(|(candidate, _)| candidate.transport == Transport::Quic));
        assert_eq!(error.cause(), Some(FailureCause::Certificate));
        for (candidate, failure) in tried {
            // On a busy machine QUIC may not have been answered when the certificate is known.
            let cut_short = failure.detail.contains("while the certificate that the same host");
            assert!(
                failure.cause == FailureCause::Certificate || cut_short,
                "{candidate}: {failure:?}"
            );
        }
        assert!(error.to_string().contains(word), "`{word}` is missing in: {error}");
    }
}

#[tokio::test]
async fn a_wrong_certificate_is_reported_before_the_deadline_though_quic_is_silent() {
    // It receives every packet and answers none.
    let (tcp, _hole) = common::listen_beside_udp(&common::identity()).await;
    let port = tcp.local_addr().port();
    let endpoint = builder_for(&[common::identity()], port).build().unwrap();
    let error = wait(endpoint.preconnection(https(port)).connect()).await.unwrap_err();
    assert!(matches!(error.failure(), RaceFailure::AllFailed(_)), "{error}");
    assert_eq!(error.cause(), Some(FailureCause::Certificate), "{error}");
}

#[tokio::test]
async fn no_common_application_protocol_fails_on_every_transport() {
    let identity = common::identity();
    let parameters = ListenParameters::new("127.0.0.1:0".parse().unwrap())
        .transports([Transport::Tcp, Transport::Quic])
        .security(identity.clone())
        .with_alpn(["something-else"]);
    let listener = Listener::bind(parameters).await.unwrap();
    let port = listener.local_addr().port();
    let endpoint = builder_for(&[identity], port).build().unwrap();
    let error = wait(endpoint.preconnection(https(port)).connect()).await.unwrap_err();
    assert_eq!(error.cause(), Some(FailureCause::Tls), "{error}");
    assert!(error.to_string().contains("application protocols"), "{error}");
    // The output of a `main` that returns this error.
    let printed = format!("{error:?}");
    assert!(printed == error.to_string() && printed.lines().count() == 1, "{printed}");
}

#[tokio::test]
async fn a_server_that_accepts_and_stays_silent_is_given_up_at_the_deadline() {
    let (tcp, _hole) = common::silent_peer();
    let address = tcp.local_addr().unwrap();
    let endpoint = builder_for(&[common::identity()], address.port()).build().unwrap();
    let policy = Policy { deadline: Duration::from_secs(2), ..Policy::default() };
    let connecting = endpoint.preconnection(https(address.port())).policy(policy).connect();
    let error = wait(connecting).await.unwrap_err();
    assert!(matches!(error.failure(), RaceFailure::Deadline(_)), "{error}");
    for transport in ["tcp", "quic"] {
        assert!(error.to_string().contains(&format!("{transport} {address}")), "{error}");
    }
}

#[tokio::test]
async fn a_dry_run_connects_to_nothing() {
    let scene = Scene::new([Transport::Tcp]).await;
    let plan = wait(scene.endpoint.preconnection(scene.target()).plan()).await;
    let planned: Vec<_> = plan.entries.iter().map(|entry| entry.candidate.transport).collect();
    assert!(planned.contains(&Transport::Quic) && planned.contains(&Transport::Tcp), "{planned:?}");
    let accepted = tokio::time::timeout(Duration::from_millis(200), scene.listener.accept()).await;
    assert!(accepted.is_err());
}

#[tokio::test]
async fn an_unknown_name_is_reported() {
    let server = dns::serve(Response::NoSuchName).await;
    let endpoint = Endpoint::builder()
        .resolver(eyas::Resolver::server(server.address))
        .memory(MemoryStore::none())
        .build()
        .unwrap();
    let host = eyas::race::target::TargetHost::parse("nowhere.example").unwrap();
    let target = eyas::race::target::Target::https(host, 443);
    let error = wait(endpoint.preconnection(target).connect()).await.unwrap_err();
    assert!(matches!(error.failure(), RaceFailure::NoAddress(_)), "{error}");
    assert!(error.to_string().contains("no such name"), "{error}");
}

#[tokio::test]
async fn feedback_of_the_application_is_remembered() {
    let scene = Scene::new([Transport::Tcp, Transport::Quic]).await;
    let connection = wait(scene.endpoint.preconnection(scene.target()).connect()).await.unwrap();
    let feedback = connection.feedback();
    let outcomes = || -> Vec<EntryOutcome> {
        let rows = scene.endpoint.memory().entries().into_iter();
        rows.filter_map(|row| match row.entry {
            MemoryEntry::Peer(peer) => Some(peer.secured),
            MemoryEntry::Path(_) | MemoryEntry::Network(_) | MemoryEntry::Resolver(_) => None,
        })
        .flatten()
        .map(|secured| secured.seen.outcome)
        .collect()
    };
    assert!(!outcomes().contains(&EntryOutcome::Good { level: EvidenceLevel::FirstByte }));
    ping_pong(&scene.listener, connection).await;
    assert!(
        outcomes().contains(&EntryOutcome::Good { level: EvidenceLevel::FirstByte }),
        "{:?}",
        outcomes()
    );
    feedback.broke(AttemptFailure::new(
        FailureCause::Silent,
        EvidenceLevel::FirstByte,
        "it went dead",
    ));
    let is_bad = |outcome: &EntryOutcome| {
        matches!(outcome, EntryOutcome::Bad { cause: FailureCause::Silent, .. })
    };
    assert!(outcomes().iter().any(is_bad), "{:?}", outcomes());
}

#[tokio::test]
async fn all_races_together_keep_the_limit() {
    let transports = [Transport::Tcp, Transport::Quic];
    let scene = Scene::with(transports, |builder| builder.max_attempts_in_flight(1)).await;
    let races: Vec<_> = (0..4)
        .map(|_| tokio::spawn(scene.endpoint.preconnection(scene.target()).connect()))
        .collect();
    for race in races {
        assert!(wait(race).await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn a_silent_peer_does_not_win_where_the_first_byte_counts() {
    let scene = Scene::new([Transport::Tcp, Transport::Quic]).await;
    let target = scene.target();
    let (listener, endpoint) = (scene.listener, scene.endpoint);
    let serve = tokio::spawn(async move {
        let mut silent_peers = Vec::new();
        loop {
            let mut connection = listener.accept().await;
            if connection.info().transport == Transport::Tcp {
                connection.write_all(b"hello").await.unwrap();
                connection.flush().await.unwrap();
                return (connection, silent_peers);
            }
            silent_peers.push(connection);
        }
    });
    let policy = Policy { win_at: EvidenceLevel::FirstByte, ..Policy::default() };
    let connecting = endpoint.preconnection(target).policy(policy).connect();
    let mut connection = wait(connecting).await.unwrap();
    assert_eq!(connection.info().transport, Transport::Tcp);
    let mut received = [0; 5];
    wait(connection.read_exact(&mut received)).await.unwrap();
    assert_eq!(&received, b"hello", "no byte is lost");
    drop(wait(serve).await.unwrap());
}

#[test]
fn the_api_can_cross_threads() {
    fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<eyas::Connection>();
    is_send_and_sync::<eyas::ByteStream>();
    is_send_and_sync::<eyas::Endpoint>();
    is_send_and_sync::<eyas::Initiation>();
    is_send_and_sync::<eyas::Listener>();
    is_send_and_sync::<eyas::ConnectError>();
}
