//! SCTP in whole races over real sockets on loopback, and the state that they leave behind.

use std::net::Ipv4Addr;
use std::time::Duration;

use eyas::race::candidate::{Security, Transport};
use eyas::race::evidence::{EvidenceLevel, FailureCause};
use eyas::race::io::RaceOutput;
use eyas::race::memory::{EntryOutcome, MemoryEntry, MemorySubject};
use eyas::race::policy::Policy;
use eyas::race::report::RaceReport;
use eyas::race::target::{Target, TargetHost};
use eyas::race::trace::{self, Trace, TraceEvent};
use eyas::{Endpoint, ListenParameters, Listener, ServerIdentity};
use eyas_sctp_tokio::protocol::identifier::StreamId;
use eyas_sctp_tokio::protocol::message::SendInfo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::common::{self, NAME, SlowUdp, builder_for, ping_pong, wait};

/// TCP and SCTP inside UDP on one port number.
struct Scene {
    listener: Listener,
    endpoint: Endpoint,
    target: Target,
}

impl Scene {
    async fn new(transports: &[Transport], security: Security) -> Self {
        let identity = common::identity();
        let listener = listen(&identity, transports, security).await;
        let udp = listener.sctp().map_or(1, |sctp| sctp.encapsulation_port().unwrap());
        Self::reaching(listener, udp, &identity, security)
    }

    /// An endpoint that expects SCTP inside UDP at this port.
    fn reaching(
        listener: Listener,
        udp: u16,
        identity: &ServerIdentity,
        security: Security,
    ) -> Self {
        let port = listener.local_addr().port();
        let endpoint = builder_for(std::slice::from_ref(identity), port)
            .sctp_encapsulation_port(udp)
            .build()
            .unwrap();
        let transports = vec![Transport::SctpUdp, Transport::Tcp];
        let target = Target::plain(TargetHost::Name(NAME.into()), port, transports, security);
        Self { listener, endpoint, target }
    }

    fn packets_in(&self) -> u64 {
        self.listener.sctp().unwrap().counters().packets_in
    }

    fn associations(&self) -> usize {
        self.listener.sctp().unwrap().associations()
    }
}

async fn listen(
    identity: &ServerIdentity,
    transports: &[Transport],
    security: Security,
) -> Listener {
    let mut parameters = ListenParameters::new(common::own_address())
        .transports(transports.iter().copied())
        .sctp_encapsulation_port(0);
    if security != Security::None {
        parameters = parameters.security(identity.clone());
    }
    Listener::bind(parameters).await.unwrap()
}

fn prefer(transports: [Transport; 2]) -> Policy {
    Policy { transports: transports.to_vec(), ..Policy::default() }
}

const SCTP_FIRST: [Transport; 2] = [Transport::SctpUdp, Transport::Tcp];
const TCP_FIRST: [Transport; 2] = [Transport::Tcp, Transport::SctpUdp];

fn has_proceeded(trace: &Trace) -> bool {
    trace.steps.iter().any(|step| {
        matches!(&step.event, TraceEvent::Output(output) if matches!(**output, RaceOutput::Proceed { .. }))
    })
}

#[tokio::test]
async fn sctp_wins_where_it_is_preferred() {
    for security in [Security::None, Security::Tls] {
        let scene = Scene::new(&[Transport::Tcp, Transport::SctpUdp], security).await;
        let policy = Policy { head_start: Duration::from_secs(2), ..prefer(SCTP_FIRST) };
        let mut race = scene.endpoint.preconnection(scene.target.clone()).policy(policy).initiate();
        let connection = wait(race.usable()).await.unwrap();
        let info = connection.info();
        assert_eq!((info.transport, info.security), (Transport::SctpUdp, security));
        assert!(info.timings.answered < info.timings.transport);
        assert_eq!(info.protocol, (security == Security::Tls).then_some("TLSv1.3"));
        let report = RaceReport::from_trace(&race.trace()).unwrap();
        assert_eq!(report.attempts.len(), 1, "TCP is not needed");
        assert!(has_proceeded(&race.trace()));
        trace::replay(&race.trace()).unwrap();
        ping_pong(&scene.listener, connection).await;
    }
}

/// Every pair of streams has its own TLS session.
#[tokio::test]
async fn further_streams_are_secured_as_well() {
    let scene = Scene::new(&[Transport::SctpUdp], Security::Tls).await;
    let connecting = scene.endpoint.preconnection(scene.target.clone()).policy(prefer(SCTP_FIRST));
    let ours = wait(connecting.connect()).await.unwrap();
    let theirs = wait(scene.listener.accept()).await;
    let (one, other) = wait(async {
        tokio::join!(ours.sctp_stream(StreamId(4)), theirs.sctp_stream(StreamId(4)))
    })
    .await;
    let (mut one, mut other) = (one.unwrap().unwrap(), other.unwrap().unwrap());
    one.write_all(b"on stream four").await.unwrap();
    one.flush().await.unwrap();
    let mut read = [0; 14];
    wait(other.read_exact(&mut read)).await.unwrap();
    assert_eq!(&read, b"on stream four");
    assert!(ours.into_sctp().is_err(), "a connection with TLS does not expose its streams");
}

#[tokio::test]
async fn messages_keep_their_boundaries() {
    let scene = Scene::new(&[Transport::SctpUdp], Security::None).await;
    let connecting = scene.endpoint.preconnection(scene.target.clone()).policy(prefer(SCTP_FIRST));
    let ours = wait(connecting.connect()).await.unwrap().into_sctp().unwrap();
    let theirs = wait(scene.listener.accept()).await.into_sctp().unwrap();
    for text in ["one", "two, longer", "three"] {
        wait(ours.send(&SendInfo::default(), text.into())).await.unwrap();
    }
    for text in ["one", "two, longer", "three"] {
        let message = wait(theirs.receive()).await.unwrap().unwrap();
        assert_eq!(message.into_bytes(), text);
    }
}

/// The server keeps no state for the loser.
#[tokio::test]
async fn a_race_lost_by_sctp_leaves_no_association_and_no_cookie_state() {
    let identity = common::identity();
    let transports = [Transport::Tcp, Transport::SctpUdp];
    let listener = listen(&identity, &transports, Security::None).await;
    let direct = listener.sctp().unwrap().encapsulation_port().unwrap();
    // INIT and INIT ACK are delayed, so that TCP is ready first.
    let udp = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let detour = udp.local_addr().unwrap().port();
    let server = (Ipv4Addr::LOCALHOST, direct).into();
    let _relay = SlowUdp::to(server, udp, Duration::from_secs(1)).await;
    let scene = Scene::reaching(listener, detour, &identity, Security::None);
    // SCTP is more preferred, but without the late switch it does not continue after it has lost.
    let policy = Policy { late_switch: false, ..prefer(SCTP_FIRST) };
    let mut race = scene.endpoint.preconnection(scene.target.clone()).policy(policy).initiate();
    let connection = wait(race.usable()).await.unwrap();
    assert_eq!(connection.info().transport, Transport::Tcp);
    wait(race.finished()).await;
    wait(async {
        while scene.packets_in() == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    // Longer than a COOKIE ECHO would have taken.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let report = RaceReport::from_trace(&race.trace()).unwrap();
    assert!(report.attempts.iter().any(|attempt| attempt.transport == Transport::SctpUdp));
    assert!(!has_proceeded(&race.trace()), "the loser never sent COOKIE ECHO");
    assert_eq!(scene.associations(), 0);
    assert_eq!(scene.packets_in(), 1, "an INIT and nothing else");
    ping_pong(&scene.listener, connection).await;
}

#[tokio::test]
async fn the_late_switch_changes_to_a_preferred_sctp() {
    let identity = common::identity();
    let transports = [Transport::Tcp, Transport::SctpUdp];
    let listener = listen(&identity, &transports, Security::Tls).await;
    let direct = listener.sctp().unwrap().encapsulation_port().unwrap();
    let udp = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let detour = udp.local_addr().unwrap().port();
    let server = (Ipv4Addr::LOCALHOST, direct).into();
    let _relay = SlowUdp::to(server, udp, Duration::from_millis(500)).await;
    let scene = Scene::reaching(listener, detour, &identity, Security::Tls);
    let policy = Policy { late_switch_for: Duration::from_secs(20), ..prefer(SCTP_FIRST) };
    let mut race = scene.endpoint.preconnection(scene.target.clone()).policy(policy).initiate();
    let usable = wait(race.usable()).await.unwrap();
    assert_eq!(usable.info().transport, Transport::Tcp);
    let better = wait(race.better()).await.unwrap();
    assert_eq!(better.info().transport, Transport::SctpUdp);
    assert_eq!(scene.associations(), 1);
    drop((usable, better));
}

#[tokio::test]
async fn a_race_lost_by_tcp_leaves_no_socket() {
    let scene = Scene::new(&[Transport::Tcp, Transport::SctpUdp], Security::None).await;
    let mut accepted = Vec::new();
    // Both start at once, and the INIT ACK of the preferred one ends the other.
    let policy = Policy {
        simultaneous: true,
        grace: Duration::from_secs(2),
        late_switch: false,
        ..prefer(SCTP_FIRST)
    };
    let mut race = scene.endpoint.preconnection(scene.target.clone()).policy(policy).initiate();
    let connection = wait(race.usable()).await.unwrap();
    assert_eq!(connection.info().transport, Transport::SctpUdp);
    wait(race.finished()).await;
    for _ in 0..2 {
        accepted.push(wait(scene.listener.accept()).await);
    }
    let lost = accepted
        .iter_mut()
        .find(|connection| connection.info().transport == Transport::Tcp)
        .unwrap();
    let mut nothing = [0; 1];
    let end = wait(lost.read(&mut nothing)).await;
    assert!(matches!(end, Ok(0) | Err(_)), "the loser is closed: {end:?}");
    assert_eq!(scene.associations(), 1);
}

#[tokio::test]
async fn the_naive_race_leaves_state_at_the_server() {
    let scene = Scene::new(&[Transport::Tcp, Transport::SctpUdp], Security::None).await;
    let policy = prefer(TCP_FIRST).naive();
    let mut race = scene.endpoint.preconnection(scene.target.clone()).policy(policy).initiate();
    let connection = wait(race.usable()).await.unwrap();
    wait(race.finished()).await;
    let report = RaceReport::from_trace(&race.trace()).unwrap();
    assert_eq!(report.attempts.len(), 2);
    assert!(has_proceeded(&race.trace()));
    assert!(scene.packets_in() >= 2, "an INIT and a COOKIE ECHO");
    drop(connection);
}

#[tokio::test]
async fn a_host_without_sctp_is_remembered() {
    let scene = Scene::new(&[Transport::Tcp], Security::None).await;
    let policy = prefer(SCTP_FIRST);
    let first = scene.endpoint.preconnection(scene.target.clone()).policy(policy.clone());
    let mut race = first.initiate();
    let connection = wait(race.usable()).await.unwrap();
    assert_eq!(connection.info().transport, Transport::Tcp);
    wait(race.finished()).await;
    let refused = scene.endpoint.memory().entries().into_iter().any(|record| {
        matches!(record.key.subject, MemorySubject::Peer { transport: Transport::SctpUdp, .. })
            && matches!(&record.entry, MemoryEntry::Peer(entry) if matches!(
                entry.reach.map(|seen| seen.outcome),
                Some(EntryOutcome::Bad { cause: FailureCause::Refused, reached: EvidenceLevel::Started, .. })))
    });
    assert!(refused, "{:?}", scene.endpoint.memory().entries());
    let second = scene.endpoint.preconnection(scene.target.clone()).policy(policy).plan().await;
    assert_eq!(second.entries[0].candidate.transport, Transport::Tcp, "TCP is tried first");
}

/// Without privileges the candidate is left out with a reason; with them it is tried.
#[tokio::test]
async fn an_unavailable_transport_says_why() {
    let scene = Scene::new(&[Transport::Tcp], Security::None).await;
    let mut target = scene.target.clone();
    let transports = vec![Transport::Sctp, Transport::Tcp];
    target.service =
        eyas::race::target::TargetService::Plain { transports: transports.clone(), alpn: vec![] };
    let policy = Policy { transports, ..Policy::default() };
    let plan = scene.endpoint.preconnection(target).policy(policy).plan().await;
    match eyas_sctp_tokio::direct_access() {
        Ok(_) => assert_eq!(plan.entries[0].candidate.transport, Transport::Sctp),
        Err(why) => {
            assert_eq!(plan.dropped[0].candidate.transport, Transport::Sctp);
            assert!(plan.dropped[0].reasons[0].to_string().contains(&why.to_string()));
        }
    }
}
