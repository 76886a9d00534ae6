//! Sessions for several paths of one association, with certificates on both sides.

use std::net::IpAddr;

use bytes::Bytes;
use eyas_sctp::io::PeerIdentity;
use ring::digest::{SHA256, digest};
use rustls::server::ParsedCertificate;

use super::*;
use crate::dtls::{Opening, SessionPath};

/// What arrived at one end: the path there, who sent it, and the packet.
type Arrived = Vec<(SessionPath, Option<PeerIdentity>, Bytes)>;

/// A client and servers at its paths, all of which are one server unless a test replaces some.
struct Paths {
    /// Who the client is.
    own: PeerIdentity,
    client: Sessions,
    server: Sessions,
    /// Another server, at the addresses with this number.
    impostor: Option<(u8, Sessions)>,
    now: Instant,
    at_client: Arrived,
    at_server: Arrived,
    /// Whether a datagram is lost, by the number of the path and whether the client sent it.
    is_lost: Box<dyn FnMut(u8, bool) -> bool>,
}

const CLIENT_PORT: u16 = 5000;
const SERVER_PORT: u16 = 9899;

/// The ends of the path with this number, as the client sees it.
fn path(number: u8) -> SessionPath {
    between(number, number)
}

/// The same between addresses with different numbers.
fn between(client: u8, server: u8) -> SessionPath {
    let remote = SocketAddr::from(([192, 0, 2, server], SERVER_PORT));
    SessionPath { remote, local: Some(IpAddr::from([198, 51, 100, client])) }
}

/// Returns the same path as the other end sees it.
fn mirrored(path: SessionPath, to_client: bool) -> SessionPath {
    let port = if to_client { SERVER_PORT } else { CLIENT_PORT };
    let remote = SocketAddr::new(path.local.expect("a local address"), port);
    SessionPath { remote, local: Some(path.remote.ip()) }
}

fn of(path: SessionPath) -> u8 {
    match path.remote.ip() {
        IpAddr::V4(ip) => ip.octets()[3],
        IpAddr::V6(_) => 0,
    }
}

/// Half of the hash of a key, as the sessions report it.
fn identity_of(identity: &TestIdentity) -> PeerIdentity {
    let parsed = ParsedCertificate::try_from(&identity.certificate).expect("a certificate");
    let hash = digest(&SHA256, &parsed.subject_public_key_info());
    PeerIdentity(*hash.as_ref().first_chunk().expect("32 bytes"))
}

fn server(identity: &TestIdentity, allowed: &TestIdentity) -> Sessions {
    let verifier = Arc::new(TestTrust::pinned(&[allowed]));
    Sessions::new(Role::ServerOfPaths(identity.dtls(), verifier))
}

fn client(identity: &TestIdentity, servers: &[&TestIdentity]) -> Sessions {
    let trust = TestTrust::pinned(servers).of_server(NAME);
    let opening = Opening { identity: identity.dtls(), trust, initial_rto: None };
    Sessions::new(Role::ClientOfPaths(opening))
}

impl Paths {
    fn new(own: &TestIdentity, peer: &TestIdentity) -> Self {
        Self {
            own: identity_of(own),
            client: client(own, &[peer]),
            server: server(peer, own),
            impostor: None,
            now: Instant::now(),
            at_client: Vec::new(),
            at_server: Vec::new(),
            is_lost: Box::new(|_, _| false),
        }
    }

    /// A client and a server with a session on path 1, and the server's identity.
    fn up() -> (Self, PeerIdentity) {
        let peer = TestIdentity::new();
        let mut paths = Self::new(&TestIdentity::new(), &peer);
        paths.open_first();
        (paths, identity_of(&peer))
    }

    fn open_first(&mut self) {
        let out = self.client.open_path(self.now, path(1), None);
        self.exchange(path(1), out, true);
        assert_eq!(self.client.state(path(1)), State::Up("DTLSv1.3"));
    }

    fn client_sends(&mut self, path: SessionPath, peer: Option<PeerIdentity>, packet: &[u8]) {
        let (used, out) = self.client.send_to(self.now, path, peer, [packet].into_iter());
        self.exchange(used, out, true);
    }

    /// The server sends to the client on the path that the client knows by this name.
    fn server_sends(&mut self, path: SessionPath, packet: &[u8]) {
        let (peer, path) = (Some(self.own), mirrored(path, false));
        let (used, out) = self.server.send_to(self.now, path, peer, [packet].into_iter());
        self.exchange(used, out, false);
    }

    /// Delivers these datagrams, which leave on this path, and all those sent in response.
    fn exchange(&mut self, path: SessionPath, out: Outcome, from_client: bool) {
        let mut in_flight = VecDeque::from([(path, out, from_client)]);
        while let Some((path, out, from_client)) = in_flight.pop_front() {
            let packets = out.packets.into_iter().map(|packet| (path, out.peer, packet.freeze()));
            match from_client {
                true => self.at_client.extend(packets),
                false => self.at_server.extend(packets),
            }
            for datagram in out.datagrams {
                let number = if from_client { of(path) } else { of(mirrored(path, true)) };
                if (self.is_lost)(number, from_client) {
                    continue;
                }
                let there = mirrored(path, !from_client);
                let at = match (from_client, &mut self.impostor) {
                    (false, _) => &mut self.client,
                    (true, Some((at, impostor))) if *at == number => impostor,
                    (true, _) => &mut self.server,
                };
                let response = at.handle_datagram(self.now, there, &datagram, || true);
                in_flight.push_back((there, response, !from_client));
            }
        }
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
        for (path, out) in self.client.handle_timeout(self.now) {
            self.exchange(path, out, true);
        }
        for (path, out) in self.server.handle_timeout(self.now) {
            self.exchange(path, out, false);
        }
    }

    fn packets_at_server(&self) -> Vec<(u8, &[u8])> {
        let number = |path: &SessionPath| of(mirrored(*path, true));
        self.at_server.iter().map(|(path, _, packet)| (number(path), &packet[..])).collect()
    }
}

#[test]
fn a_further_path_gets_a_session_when_something_is_sent_there() {
    let (mut paths, peer) = Paths::up();
    for (number, packet) in [(2, b"two"), (1, b"one"), (3, b"tri"), (2, b"zwo")] {
        paths.client_sends(path(number), Some(peer), packet);
    }
    let expected: [(u8, &[u8]); 4] = [(2, b"two"), (1, b"one"), (3, b"tri"), (2, b"zwo")];
    assert_eq!(paths.packets_at_server(), expected);
    assert!(paths.at_server.iter().all(|(_, from, _)| *from == Some(paths.own)));
    for number in 1..=3 {
        paths.server_sends(path(number), b"back");
    }
    assert_eq!(paths.at_client.len(), 3);
    assert!(paths.at_client.iter().all(|(_, from, _)| *from == Some(peer)));
    let of_client = paths.server.certificate_of(paths.own).expect("a certificate");
    assert!(ParsedCertificate::try_from(of_client).is_ok());
}

#[test]
fn a_few_packets_wait_for_the_session_of_their_path() {
    let (mut paths, peer) = Paths::up();
    let packets: Vec<[u8; 1]> = (0..9).map(|number| [number]).collect();
    let (used, hello) = paths.client.send_to(
        paths.now,
        path(2),
        Some(peer),
        packets[..3].iter().map(|packet| &packet[..]),
    );
    // The handshake is under way when the others follow.
    for packet in &packets[3..] {
        let out = paths.client.send_to(paths.now, path(2), Some(peer), [&packet[..]].into_iter());
        assert!(out.1.datagrams.is_empty());
    }
    paths.exchange(used, hello, true);
    let arrived: Vec<u8> = paths.packets_at_server().iter().map(|(_, packet)| packet[0]).collect();
    assert_eq!(arrived, [0, 1, 2, 3]);
}

#[test]
fn a_server_waits_for_the_session_of_the_client() {
    let (mut paths, peer) = Paths::up();
    paths.server_sends(path(2), b"too early");
    assert_eq!((paths.at_client.len(), paths.server.unsendable()), (0, 1));
    paths.client_sends(path(2), Some(peer), b"first");
    paths.server_sends(path(2), b"then");
    assert_eq!(paths.at_client.len(), 1);
    // The routing of the server chooses a source to which there is no session.
    paths.server_sends(between(2, 1), b"by another way");
    assert_eq!(paths.at_client.last().map(|(at, ..)| *at), Some(path(2)));
    assert_eq!(paths.server.unsendable(), 1);
}

#[test]
fn packets_are_sent_to_no_other_peer_than_theirs() {
    let (mut paths, _) = Paths::up();
    let other = PeerIdentity([7; 16]);
    paths.client_sends(path(1), Some(other), b"for another");
    assert_eq!(paths.packets_at_server(), []);
    for peer in [Some(other), None] {
        let there = mirrored(path(1), false);
        let (_, out) =
            paths.server.send_to(paths.now, there, peer, [&b"for another"[..]].into_iter());
        assert!(out.datagrams.is_empty());
    }
    assert_eq!(paths.server.unsendable(), 2);
}

#[test]
fn a_key_that_may_not_connect_is_refused_and_learns_it() {
    let peer = TestIdentity::new();
    let mut paths = Paths::new(&TestIdentity::new(), &peer);
    paths.server = server(&peer, &TestIdentity::new());
    let out = paths.client.open_path(paths.now, path(1), None);
    paths.exchange(path(1), out, true);
    assert_eq!(paths.client.state(path(1)), State::Over(DtlsEndReason::Closed));
    assert_eq!(paths.server.count(), 0);
    paths.client_sends(path(1), None, b"anything");
    assert_eq!(paths.packets_at_server(), []);
}

//= hostile dtls
//# a client without a known key
//= bound: the session ends with its handshake
/// Neither DTLS 1.2, nor a certificate made for the occasion.
#[test]
fn a_client_without_a_known_key_gets_no_session() {
    let peer = TestIdentity::new();
    let mut paths = Paths::new(&TestIdentity::new(), &peer);
    paths.client = Sessions::new(Role::Client);
    let anonymous = DtlsIdentity::anonymous().expect("an identity");
    let trust = trusting(&peer).of_server(NAME);
    let out = paths.client.open(paths.now, path(1), &anonymous, trust, None);
    paths.exchange(path(1), out, true);
    assert_eq!(paths.server.count(), 0);
    assert_eq!(paths.client.state(path(1)), State::Over(DtlsEndReason::Closed));
}

//= hostile dtls
//# another key on a further path
//= bound: packets are for one identity
/// The client trusts both servers, but the association is with the first one.
#[test]
fn another_key_on_a_further_path_is_no_part_of_the_association() {
    let (own, peer, other) = (TestIdentity::new(), TestIdentity::new(), TestIdentity::new());
    let mut paths = Paths::new(&own, &peer);
    paths.client = client(&own, &[&peer, &other]);
    paths.impostor = Some((2, server(&other, &own)));
    paths.open_first();
    paths.client_sends(path(2), Some(identity_of(&peer)), b"for the first");
    let state = paths.client.state(path(2));
    assert!(matches!(state, State::Over(DtlsEndReason::Failed(_))), "{state:?}");
    let (_, impostor) = paths.impostor.as_ref().expect("it is there");
    assert_eq!(impostor.count(), 0, "it was told");
    assert_eq!((paths.packets_at_server(), paths.at_client.len()), (vec![], 0));
}

#[test]
fn an_unknown_key_on_a_further_path_is_refused() {
    let (own, peer, other) = (TestIdentity::new(), TestIdentity::new(), TestIdentity::new());
    let mut paths = Paths::new(&own, &peer);
    paths.impostor = Some((2, server(&other, &own)));
    paths.open_first();
    paths.client_sends(path(2), Some(identity_of(&peer)), b"for the first");
    assert!(matches!(paths.client.state(path(2)), State::Over(DtlsEndReason::Failed(_))));
    paths.client_sends(path(1), Some(identity_of(&peer)), b"goes on");
    assert_eq!(paths.packets_at_server(), [(1, &b"goes on"[..])]);
}

/// The path fails for SCTP, because a restarted server has none of its sessions.
#[test]
fn the_session_of_a_path_that_failed_is_renewed() {
    let (own, peer) = (TestIdentity::new(), TestIdentity::new());
    let mut paths = Paths::new(&own, &peer);
    paths.open_first();
    let there = Some(identity_of(&peer));
    paths.server = server(&peer, &own);
    paths.client_sends(path(1), there, b"lost");
    assert_eq!(paths.packets_at_server(), []);
    paths.client.renew(paths.now, path(1).remote);
    paths.client_sends(path(1), there, b"lost, too");
    assert_eq!(paths.packets_at_server(), []);
    paths.wait(Duration::from_secs(1));
    paths.client_sends(path(1), there, b"by a new session");
    assert_eq!(paths.packets_at_server(), [(1, &b"by a new session"[..])]);
    assert_eq!(paths.client.state(path(1)), State::Up("DTLSv1.3"));
}

/// A path that was interrupted keeps its session. When the server is restarted later, there is a new one all the same.
#[test]
fn a_path_that_came_back_may_fail_again() {
    let (own, peer) = (TestIdentity::new(), TestIdentity::new());
    let mut paths = Paths::new(&own, &peer);
    paths.open_first();
    let there = Some(identity_of(&peer));
    paths.client.renew(paths.now, path(1).remote);
    paths.server_sends(path(1), b"it works");
    assert_eq!(paths.at_client.len(), 1);
    paths.wait(Duration::from_secs(5));
    paths.client_sends(path(1), there, b"by the same session");
    assert_eq!(paths.packets_at_server(), [(1, &b"by the same session"[..])]);
    paths.server = server(&peer, &own);
    paths.client.renew(paths.now, path(1).remote);
    paths.wait(Duration::from_secs(1));
    paths.client_sends(path(1), there, b"by a new session");
    assert_eq!(paths.packets_at_server()[1..], [(1, &b"by a new session"[..])]);
}

#[test]
fn a_path_that_carries_nothing_is_tried_again_with_pauses() {
    let (mut paths, peer) = Paths::up();
    paths.is_lost = Box::new(|number, _| number == 2);
    let (mut begun, mut was_over) = (Vec::new(), true);
    let start = paths.now;
    for _ in 0..6_000 {
        paths.wait(Duration::from_millis(50));
        paths.client_sends(path(2), Some(peer), b"is anyone there");
        let is_over = matches!(paths.client.state(path(2)), State::Over(_));
        if was_over && !is_over {
            begun.push(paths.now - start);
        }
        was_over = is_over;
    }
    // A handshake takes half a minute to fail; the pauses between them are at most 16 s.
    assert!((6..=10).contains(&begun.len()), "{begun:?}");
    paths.is_lost = Box::new(|_, _| false);
    for _ in 0..1_000 {
        paths.wait(Duration::from_millis(50));
        paths.client_sends(path(2), Some(peer), b"now");
    }
    assert!(paths.packets_at_server().contains(&(2, &b"now"[..])));
}

#[test]
fn sessions_come_up_over_paths_that_lose_datagrams() {
    for seed in 0..20_u32 {
        let (mut paths, peer) = Paths::up();
        let mut random = seed;
        paths.is_lost = Box::new(move |_, _| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            random >> 30 == 0
        });
        let arrived = |paths: &Paths, number| {
            paths.packets_at_server().iter().any(|(path, _)| *path == number)
        };
        for _ in 0..200 {
            for number in [2, 3] {
                paths.client_sends(path(number), Some(peer), b"heartbeat");
            }
            paths.wait(Duration::from_millis(500));
        }
        assert!(arrived(&paths, 2) && arrived(&paths, 3), "seed {seed}");
    }
}

#[test]
fn the_session_of_a_removed_path_is_closed_at_both_ends() {
    let (mut paths, peer) = Paths::up();
    paths.client_sends(path(2), Some(peer), b"heartbeat");
    assert_eq!((paths.client.count(), paths.server.count()), (2, 2));
    for (path, out) in paths.client.close_to(path(2).remote) {
        paths.exchange(path, out, true);
    }
    assert_eq!((paths.client.count(), paths.server.count()), (1, 1));
}

//= hostile dtls
//# many handshakes on further paths
//= bound: `MAX_PATHS`
/// One host opens handshakes on many paths and completes none.
#[test]
fn handshakes_on_further_paths_are_bounded() {
    let (own, peer) = (TestIdentity::new(), TestIdentity::new());
    let mut paths = Paths::new(&own, &peer);
    for port in 1..=150 {
        let mut other = client(&own, &[&peer]);
        let at = SessionPath {
            remote: SocketAddr::from(([198, 51, 100, 1], port)),
            local: Some(IpAddr::from([192, 0, 2, (port % 4) as u8])),
        };
        let hello = other.open_path(paths.now, path(1), None);
        let request = paths.server.handle_datagram(paths.now, at, &hello.datagrams[0], || true);
        let second = other.handle_datagram(paths.now, path(1), &request.datagrams[0], || true);
        paths.server.handle_datagram(paths.now, at, &second.datagrams[0], || true);
        assert!(paths.server.count() <= MAX_HANDSHAKES_PER_PEER);
    }
    assert_eq!(paths.server.count(), MAX_HANDSHAKES_PER_PEER);
}
