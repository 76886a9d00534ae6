//! Sessions against sessions, in memory.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use eyas_sctp::io::Unreachable;
use rustls_pki_types::ServerName;

use super::sessions::MAX_HANDSHAKES;
use super::{Acceptance, Ending, Identity, Outcome, Sessions, State, Trust, opens_session};
use crate::{SecurityParameters, ServerIdentity};

/// A client and a server, and the datagrams between them.
struct Pair {
    client: Sessions,
    server: Sessions,
    now: Instant,
    /// What the server took out of the datagrams.
    at_server: Vec<Vec<u8>>,
    /// What the client took out.
    at_client: Vec<Vec<u8>>,
    lost: usize,
    /// Bytes of the largest datagram so far.
    largest: usize,
}

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], port))
}

fn trust(parameters: &SecurityParameters, name: &str) -> Trust {
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    Trust { verifier: parameters.server_verifier().expect("a verifier"), name }
}

impl Pair {
    fn new(identity: &ServerIdentity) -> Self {
        let own = Identity::new(identity.certificate(), identity.key()).expect("an identity");
        Self {
            client: Sessions::new(Acceptance::Nobody),
            server: Sessions::new(Acceptance::Anyone(own)),
            now: Instant::now(),
            at_server: Vec::new(),
            at_client: Vec::new(),
            lost: 0,
            largest: 0,
        }
    }

    /// Opens a session and lets both talk until neither has anything to say.
    fn open(&mut self, parameters: &SecurityParameters, name: &str) -> State {
        let own = Identity::nobody().expect("an identity");
        let trust = trust(parameters, name);
        let out = self.client.open(self.now, address(9899), &own, trust, None);
        self.talk(out, true);
        self.client.state(address(9899))
    }

    fn talk(&mut self, out: Outcome, from_client: bool) {
        let mut under_way = VecDeque::from([(out, from_client)]);
        while let Some((out, from_client)) = under_way.pop_front() {
            let packets = out.packets.into_iter().map(|one| one.to_vec());
            // Packets were taken out by the side that now answers.
            if from_client {
                self.at_client.extend(packets)
            } else {
                self.at_server.extend(packets)
            }
            for datagram in out.datagrams {
                self.largest = self.largest.max(datagram.len());
                if self.lost > 0 {
                    self.lost -= 1;
                    continue;
                }
                let answer = match from_client {
                    true => self.server.handle_datagram(self.now, address(5000), &datagram),
                    false => self.client.handle_datagram(self.now, address(9899), &datagram),
                };
                under_way.push_back((answer, !from_client));
            }
        }
    }

    /// Lets time pass for both.
    fn wait(&mut self, time: Duration) {
        self.now += time;
        for (_, out) in self.client.handle_timeout(self.now) {
            self.talk(out, true);
        }
        for (_, out) in self.server.handle_timeout(self.now) {
            self.talk(out, false);
        }
    }
}

fn identity() -> ServerIdentity {
    ServerIdentity::self_signed(["peer.test"]).expect("an identity")
}

fn trusting(identity: &ServerIdentity) -> SecurityParameters {
    SecurityParameters::platform().with_roots([identity.certificate().clone()])
}

#[test]
fn packets_pass_both_ways_once_the_session_is_up() {
    let identity = identity();
    let mut pair = Pair::new(&identity);
    assert_eq!(pair.open(&trusting(&identity), "peer.test"), State::Up("DTLSv1.3"));
    let big = vec![7; 1_300];
    let packets: [&[u8]; 2] = [b"hello", &big];
    let out = pair.client.send(pair.now, address(9899), packets.into_iter());
    assert_eq!(out.datagrams.len(), 2);
    assert!(out.datagrams.iter().all(|one| one.windows(5).all(|five| five != b"hello")));
    pair.talk(out, true);
    assert_eq!(pair.at_server, [b"hello".to_vec(), big]);
    let out = pair.server.send(pair.now, address(5000), [&b"back"[..]].into_iter());
    pair.talk(out, false);
    assert_eq!(pair.at_client, [b"back".to_vec()]);
}

/// The packets of a handshake over IPv6 are not cut into fragments, which many networks drop.
#[test]
fn a_handshake_fits_every_path() {
    let identity = identity();
    let mut pair = Pair::new(&identity);
    assert_eq!(pair.open(&trusting(&identity), "peer.test"), State::Up("DTLSv1.3"));
    assert!(pair.largest <= 1_280 - 40 - 8, "{} bytes", pair.largest);
}

#[test]
fn only_a_refusal_ends_a_handshake() {
    let mut client = Sessions::new(Acceptance::Nobody);
    let own = Identity::nobody().expect("an identity");
    let server = address(9899);
    let parameters = SecurityParameters::platform().accept_any_certificate();
    client.open(Instant::now(), server, &own, trust(&parameters, "peer.test"), None);
    assert!(client.report(server, Unreachable::TooBig(1_400)));
    assert_eq!(client.state(server), State::Handshake);
    assert!(!client.report(address(9900), Unreachable::Protocol));
    assert!(client.report(server, Unreachable::Protocol));
    assert_eq!(client.state(server), State::Over(Ending::Refused));
}

#[test]
fn a_certificate_that_nobody_vouches_for_is_refused() {
    let mut pair = Pair::new(&identity());
    let state = pair.open(&trusting(&identity()), "peer.test");
    assert!(
        matches!(state, State::Over(Ending::Broken(rustls::Error::InvalidCertificate(_)))),
        "{state:?}"
    );
}

#[test]
fn a_certificate_for_another_name_is_refused() {
    let identity = identity();
    let mut pair = Pair::new(&identity);
    let state = pair.open(&trusting(&identity), "other.test");
    assert!(
        matches!(state, State::Over(Ending::Broken(rustls::Error::InvalidCertificate(_)))),
        "{state:?}"
    );
}

#[test]
fn any_certificate_will_do_if_the_caller_says_so() {
    let mut pair = Pair::new(&identity());
    let parameters = SecurityParameters::platform().accept_any_certificate();
    assert!(matches!(pair.open(&parameters, "other.test"), State::Up(_)));
}

#[test]
fn nothing_passes_before_the_peer_is_verified() {
    let mut pair = Pair::new(&identity());
    assert!(matches!(pair.open(&trusting(&identity()), "peer.test"), State::Over(_)));
    let out = pair.client.send(pair.now, address(9899), [&b"secret"[..]].into_iter());
    assert!(out.datagrams.is_empty());
}

#[test]
fn a_lost_flight_is_sent_again() {
    let identity = identity();
    let mut pair = Pair::new(&identity);
    pair.lost = 1;
    assert_eq!(pair.open(&trusting(&identity), "peer.test"), State::Handshake);
    pair.wait(Duration::from_secs(2));
    assert!(matches!(pair.client.state(address(9899)), State::Up(_)));
}

#[test]
fn goodbye_ends_the_session_of_the_peer() {
    let identity = identity();
    let mut pair = Pair::new(&identity);
    pair.open(&trusting(&identity), "peer.test");
    let out = pair.client.close(address(9899));
    pair.talk(out, true);
    assert_eq!(pair.server.state(address(5000)), State::Over(Ending::Closed));
}

#[test]
fn an_idle_session_is_given_up() {
    let identity = identity();
    let mut pair = Pair::new(&identity);
    pair.open(&trusting(&identity), "peer.test");
    for _ in 0..30 {
        pair.wait(Duration::from_secs(10));
    }
    assert_eq!(pair.server.state(address(5000)), State::Over(Ending::Closed));
    assert_eq!(pair.server.next_timeout(), None);
}

#[test]
fn a_flood_of_handshakes_is_bounded() {
    let identity = identity();
    let mut pair = Pair::new(&identity);
    let own = Identity::nobody().expect("an identity");
    let trust = trust(&trusting(&identity), "peer.test");
    let hello = pair.client.open(pair.now, address(9899), &own, trust, None).datagrams;
    let ports = || 1..=u16::try_from(MAX_HANDSHAKES + 20).expect("few");
    for port in ports() {
        pair.server.handle_datagram(pair.now, address(port), &hello[0]);
    }
    let begun = ports().filter(|port| pair.server.state(address(*port)) == State::Handshake);
    assert_eq!(begun.count(), MAX_HANDSHAKES);
}

#[test]
fn garbage_opens_nothing() {
    let mut pair = Pair::new(&identity());
    for datagram in [&b""[..], b"\x16", b"\x16\xfe", b"\x00\x16\xfe\xfd", &[0x30; 100]] {
        assert!(!opens_session(datagram));
        assert!(!pair.server.takes(address(1), datagram));
    }
    pair.server.handle_datagram(pair.now, address(1), b"\x16\xfe\xfd garbage that looks the part");
    assert!(matches!(pair.server.state(address(1)), State::Handshake | State::Over(_)));
}

#[test]
fn a_key_of_another_kind_is_refused_with_the_reason() {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("a key");
    let certificate = rcgen::CertificateParams::new(vec!["peer.test".to_owned()])
        .and_then(|params| params.self_signed(&key))
        .expect("a certificate");
    let key = rustls_pki_types::PrivatePkcs8KeyDer::from(key.serialize_der()).into();
    let error = Identity::new(certificate.der(), &key).expect_err("no ECDSA");
    assert!(error.to_string().contains("ECDSA"), "{error}");
}
