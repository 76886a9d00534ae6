//! Clients and servers that exchange datagrams in memory.

mod loss;
mod paths;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use eyas_sctp::io::Unreachable;

use super::quotas::MAX_HANDSHAKES_PER_PEER;
use super::{DtlsEndReason, DtlsIdentity, Outcome, Role, Sessions, State};
use crate::tests::identities::{NAME, TestIdentity, TestTrust};

/// A client and a server, and the datagrams between them.
struct Pair {
    client: Sessions,
    server: Sessions,
    now: Instant,
    /// The packets that the server decrypted.
    at_server: Vec<Vec<u8>>,
    /// The packets that the client decrypted.
    at_client: Vec<Vec<u8>>,
    lost: usize,
    /// Bytes of the largest datagram so far.
    largest: usize,
}

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], port))
}

impl Pair {
    fn new(identity: &TestIdentity) -> Self {
        Self {
            client: Sessions::new(Role::Client),
            server: Sessions::new(Role::Server(identity.dtls())),
            now: Instant::now(),
            at_server: Vec::new(),
            at_client: Vec::new(),
            lost: 0,
            largest: 0,
        }
    }

    /// Opens a session and delivers datagrams until neither side has anything to send.
    fn open(&mut self, trust: &TestTrust, name: &str) -> State {
        let own_identity = DtlsIdentity::anonymous().expect("an identity");
        let trust = trust.of_server(name);
        let out = self.client.open(self.now, address(9899), &own_identity, trust, None);
        self.exchange(out, true);
        self.client.state(address(9899))
    }

    /// Delivers these datagrams, and all those sent in response.
    fn exchange(&mut self, out: Outcome, from_client: bool) {
        let mut in_flight = VecDeque::from([(out, from_client)]);
        while let Some((out, from_client)) = in_flight.pop_front() {
            let packets = out.packets.into_iter().map(|packet| packet.to_vec());
            // The side that decrypted the packets is the one that now responds.
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
                let response = match from_client {
                    true => {
                        self.server.handle_datagram(self.now, address(5000), &datagram, || true)
                    }
                    false => {
                        self.client.handle_datagram(self.now, address(9899), &datagram, || true)
                    }
                };
                in_flight.push_back((response, !from_client));
            }
        }
    }

    /// Advances the time of both.
    fn wait(&mut self, time: Duration) {
        self.now += time;
        for (_, out) in self.client.handle_timeout(self.now) {
            self.exchange(out, true);
        }
        for (_, out) in self.server.handle_timeout(self.now) {
            self.exchange(out, false);
        }
    }
}

fn trusting(identity: &TestIdentity) -> TestTrust {
    TestTrust::certificate(identity)
}

//= rfc8261 §3
//# one packet per record
#[test]
fn packets_are_delivered_both_ways_once_the_session_is_up() {
    let identity = TestIdentity::new();
    let mut pair = Pair::new(&identity);
    assert_eq!(pair.open(&trusting(&identity), NAME), State::Up("DTLSv1.3"));
    let big = vec![7; 1_300];
    let packets: [&[u8]; 2] = [b"hello", &big];
    let out = pair.client.send(pair.now, address(9899), packets.into_iter());
    assert_eq!(out.datagrams.len(), 2);
    assert!(
        out.datagrams.iter().all(|datagram| datagram.windows(5).all(|bytes| bytes != b"hello"))
    );
    pair.exchange(out, true);
    assert_eq!(pair.at_server, [b"hello".to_vec(), big]);
    let out = pair.server.send(pair.now, address(5000), [&b"back"[..]].into_iter());
    pair.exchange(out, false);
    assert_eq!(pair.at_client, [b"back".to_vec()]);
}

/// Such a record was reordered, or is forged.
#[test]
fn records_before_the_first_response_end_no_handshake() {
    let identity = TestIdentity::new();
    let mut pair = Pair::new(&identity);
    let own_identity = DtlsIdentity::anonymous().expect("an identity");
    let trust = trusting(&identity).of_server(NAME);
    let out = pair.client.open(pair.now, address(9899), &own_identity, trust, None);
    let mut protected = vec![0x2e, 0x12, 0x34, 0, 32];
    protected.extend([7; 32]);
    let responses = pair.client.handle_datagram(pair.now, address(9899), &protected, || true);
    assert!(responses.datagrams.is_empty());
    pair.exchange(out, true);
    assert_eq!(pair.client.state(address(9899)), State::Up("DTLSv1.3"));
}

/// The packets of a handshake over IPv6 are not fragmented, because many networks drop fragments.
#[test]
fn a_handshake_fits_every_path() {
    let identity = TestIdentity::new();
    let mut pair = Pair::new(&identity);
    assert_eq!(pair.open(&trusting(&identity), NAME), State::Up("DTLSv1.3"));
    assert!(pair.largest <= 1_280 - 40 - 8, "{} bytes", pair.largest);
}

//= rfc8261 §6.1
//# MUST NOT rely on ICMP; a refusal ends an unanswered handshake sooner
#[test]
fn only_a_refusal_ends_a_handshake() {
    let mut client = Sessions::new(Role::Client);
    let own_identity = DtlsIdentity::anonymous().expect("an identity");
    let server = address(9899);
    let parameters = TestTrust::any();
    client.open(Instant::now(), server, &own_identity, parameters.of_server(NAME), None);
    assert!(client.report(Instant::now(), server, Unreachable::TooBig(1_400)));
    assert_eq!(client.state(server), State::Handshake);
    assert!(!client.report(Instant::now(), address(9900), Unreachable::Protocol));
    assert!(client.report(Instant::now(), server, Unreachable::Protocol));
    assert_eq!(client.state(server), State::Over(DtlsEndReason::Refused));
}

/// Nothing queries how a server's handshake ended, so it must be removed at once, not by a timer.
#[test]
fn a_refused_handshake_leaves_no_state_at_the_server() {
    let identity = TestIdentity::new();
    let Pair { mut client, mut server, now, .. } = Pair::new(&identity);
    let own_identity = DtlsIdentity::anonymous().expect("an identity");
    let trust = trusting(&identity).of_server(NAME);
    let hello = client.open(now, address(9899), &own_identity, trust, None);
    let request = server.handle_datagram(now, address(5000), &hello.datagrams[0], || true);
    let second = client.handle_datagram(now, address(9899), &request.datagrams[0], || true);
    server.handle_datagram(now, address(5000), &second.datagrams[0], || true);
    assert_eq!(server.state(address(5000)), State::Handshake);
    assert!(server.report(Instant::now(), address(5000), Unreachable::Protocol));
    assert_eq!(server.count(), 0);
    assert!(!server.report(Instant::now(), address(5000), Unreachable::Protocol));
}

#[test]
fn an_untrusted_certificate_is_refused() {
    let mut pair = Pair::new(&TestIdentity::new());
    let state = pair.open(&trusting(&TestIdentity::new()), NAME);
    assert!(
        matches!(state, State::Over(DtlsEndReason::Failed(rustls::Error::InvalidCertificate(_)))),
        "{state:?}"
    );
}

#[test]
fn a_certificate_for_another_name_is_refused() {
    let identity = TestIdentity::new();
    let mut pair = Pair::new(&identity);
    let state = pair.open(&trusting(&identity), "other.test");
    assert!(
        matches!(state, State::Over(DtlsEndReason::Failed(rustls::Error::InvalidCertificate(_)))),
        "{state:?}"
    );
}

#[test]
fn any_certificate_is_accepted_if_verification_is_off() {
    let mut pair = Pair::new(&TestIdentity::new());
    let parameters = TestTrust::any();
    assert!(matches!(pair.open(&parameters, "other.test"), State::Up(_)));
}

#[test]
fn nothing_is_sent_before_the_peer_is_verified() {
    let mut pair = Pair::new(&TestIdentity::new());
    assert!(matches!(pair.open(&trusting(&TestIdentity::new()), NAME), State::Over(_)));
    let out = pair.client.send(pair.now, address(9899), [&b"secret"[..]].into_iter());
    assert!(out.datagrams.is_empty());
}

#[test]
fn a_lost_flight_is_retransmitted() {
    let identity = TestIdentity::new();
    let mut pair = Pair::new(&identity);
    pair.lost = 1;
    assert_eq!(pair.open(&trusting(&identity), NAME), State::Handshake);
    pair.wait(Duration::from_secs(2));
    assert!(matches!(pair.client.state(address(9899)), State::Up(_)));
}

#[test]
fn close_notify_ends_the_session_of_the_peer() {
    let identity = TestIdentity::new();
    let mut pair = Pair::new(&identity);
    pair.open(&trusting(&identity), NAME);
    let out = pair.client.close(address(9899));
    pair.exchange(out, true);
    assert_eq!(pair.server.state(address(5000)), State::Over(DtlsEndReason::Closed));
}

/// A client that ended without close_notify is replaced by another one with the same port.
#[test]
fn a_restarted_client_gets_a_session() {
    let identity = TestIdentity::new();
    let mut pair = Pair::new(&identity);
    pair.open(&trusting(&identity), NAME);
    pair.client = Sessions::new(Role::Client);
    assert_eq!(pair.open(&trusting(&identity), NAME), State::Up("DTLSv1.3"));
    let out = pair.client.send(pair.now, address(9899), [&b"hello"[..]].into_iter());
    pair.exchange(out, true);
    assert_eq!(pair.at_server, [b"hello".to_vec()]);
}

//= hostile dtls
//# a hello from the address of a session, or a replay
//= bound: it stays until a new cookie has come back (RFC 9147 §5.11)
#[test]
fn replaying_the_handshake_does_not_end_the_session() {
    let identity = TestIdentity::new();
    let mut pair = Pair::new(&identity);
    let own_identity = DtlsIdentity::anonymous().expect("an identity");
    let trust = trusting(&identity).of_server(NAME);
    let first = pair.client.open(pair.now, address(9899), &own_identity, trust, None).datagrams;
    let request = pair.server.handle_datagram(pair.now, address(5000), &first[0], || true);
    let second =
        pair.client.handle_datagram(pair.now, address(9899), &request.datagrams[0], || true);
    let replayed = second.datagrams.clone();
    pair.exchange(second, true);
    let is_up = |pair: &Pair| matches!(pair.server.state(address(5000)), State::Up(_));
    assert!(is_up(&pair));
    // A first flight alone proves nothing, and the second is the one that opened this session.
    for datagram in first.iter().chain(&replayed) {
        pair.server.handle_datagram(pair.now, address(5000), datagram, || true);
        assert!(is_up(&pair));
    }
    let out = pair.client.send(pair.now, address(9899), [&b"hello"[..]].into_iter());
    pair.exchange(out, true);
    assert_eq!(pair.at_server, [b"hello".to_vec()]);
}

#[test]
fn an_idle_session_is_closed() {
    let identity = TestIdentity::new();
    let mut pair = Pair::new(&identity);
    pair.open(&trusting(&identity), NAME);
    for _ in 0..30 {
        pair.wait(Duration::from_secs(10));
    }
    assert_eq!(pair.server.state(address(5000)), State::Over(DtlsEndReason::Closed));
    assert_eq!(pair.server.next_timeout(), None);
}

/// Returns the two flights with which a client at this address requests a session.
fn flights(server: &mut Sessions, now: Instant, client: SocketAddr) -> (Vec<u8>, Vec<u8>) {
    let own_identity = DtlsIdentity::anonymous().expect("an identity");
    let parameters = TestTrust::any();
    let mut sessions = Sessions::new(Role::Client);
    let trust = parameters.of_server(NAME);
    let first = sessions.open(now, address(9899), &own_identity, trust, None).datagrams;
    let response = server.handle_datagram(now, client, &first[0], || true).datagrams;
    let second = sessions.handle_datagram(now, address(9899), &response[0], || true).datagrams;
    (first[0].to_vec(), second[0].to_vec())
}

//= hostile dtls
//# a flood of first hellos
//= bound: nothing is held; no answer is longer than its request
#[test]
fn no_state_is_kept_for_a_client_without_a_cookie() {
    let mut server = Pair::new(&TestIdentity::new()).server;
    let now = Instant::now();
    let (first, _) = flights(&mut server, now, address(1));
    for port in 1..=10_000 {
        let out = server.handle_datagram(now, address(port), &first, || true);
        let sent: usize = out.datagrams.iter().map(|datagram| datagram.len()).sum();
        assert!((1..=first.len()).contains(&sent), "{sent} bytes");
        assert!(!server.contains(address(port)));
    }
    assert_eq!(server.next_timeout(), None);
}

//= hostile dtls
//# stolen, expired or modified cookies
//= bound: `COOKIE_LIFE`
#[test]
fn a_cookie_is_valid_for_its_address_and_for_a_limited_time() {
    let mut server = Pair::new(&TestIdentity::new()).server;
    let now = Instant::now();
    let (_, second) = flights(&mut server, now, address(1));
    let later = now + Duration::from_secs(62);
    for (now, client) in [(now, address(2)), (later, address(1))] {
        assert!(server.handle_datagram(now, client, &second, || true).datagrams.is_empty());
        assert!(!server.contains(client));
    }
    // An unencrypted association has this address, so no session begins.
    assert!(server.handle_datagram(now, address(1), &second, || false).datagrams.is_empty());
    assert!(!server.contains(address(1)));
    assert!(!server.handle_datagram(now, address(1), &second, || true).datagrams.is_empty());
    assert_eq!(server.state(address(1)), State::Handshake);
}

/// Neither a cookie nor the ClientHello that it authenticates can be changed.
#[test]
fn no_byte_of_a_second_hello_can_be_changed() {
    let mut server = Pair::new(&TestIdentity::new()).server;
    let now = Instant::now();
    let (_, second) = flights(&mut server, now, address(1));
    let padding = second.iter().rev().take_while(|byte| **byte == 0).count();
    // After the header of the record, whose version and sequence number are not checked.
    for index in 13..second.len() - padding {
        let mut forged = second.clone();
        forged[index] ^= 1;
        server.handle_datagram(now, address(1), &forged, || true);
        assert!(!server.contains(address(1)), "byte {index}");
    }
}

/// A client of DTLS 1.2 alone gets a HelloVerifyRequest.
#[test]
fn a_dtls_1_2_client_is_accepted_with_its_cookie() {
    let mut server = Pair::new(&TestIdentity::new()).server;
    let now = Instant::now();
    let own_identity = DtlsIdentity::anonymous().expect("an identity");
    let mut client = dimpl::Dtls::new_12(Arc::default(), own_identity.to_dtls(), now);
    client.set_active(true);
    let (mut buffer, mut in_flight) = (vec![0; 4096], VecDeque::new());
    let (mut flights, mut is_connected) = (0, false);
    client.handle_timeout(now).expect("a first flight");
    loop {
        loop {
            match client.poll_output(&mut buffer) {
                dimpl::Output::Packet(datagram) => in_flight.push_back(datagram.to_vec()),
                dimpl::Output::Connected => is_connected = true,
                dimpl::Output::Timeout(_) => break,
                _ => {}
            }
        }
        let Some(datagram) = in_flight.pop_front() else { break };
        flights += 1;
        for response in server.handle_datagram(now, address(1), &datagram, || true).datagrams {
            assert_eq!(server.contains(address(1)), flights > 1);
            client.handle_packet(&response).expect("a valid response");
        }
    }
    assert!(is_connected);
    assert_eq!(server.state(address(1)), State::Up("DTLSv1.2"));
}

//= hostile dtls
//# handshakes that are not finished
//= bound: `MAX_HANDSHAKES`, `MAX_HANDSHAKES_PER_PEER`
#[test]
fn a_flood_of_handshakes_evicts_only_handshakes_of_the_same_peer() {
    let mut server = Pair::new(&TestIdentity::new()).server;
    let now = Instant::now();
    let honest = SocketAddr::from(([198, 51, 100, 1], 1));
    let (_, second) = flights(&mut server, now, honest);
    server.handle_datagram(now, honest, &second, || true);
    let ports = || 1..=u16::try_from(MAX_HANDSHAKES_PER_PEER + 8).expect("few");
    for port in ports() {
        let (_, second) = flights(&mut server, now, address(port));
        server.handle_datagram(now, address(port), &second, || true);
    }
    let unfinished = ports().filter(|port| server.state(address(*port)) == State::Handshake);
    assert_eq!(unfinished.count(), MAX_HANDSHAKES_PER_PEER);
    assert_eq!(server.state(honest), State::Handshake);
}

#[test]
fn garbage_opens_nothing() {
    let mut server = Pair::new(&TestIdentity::new()).server;
    let now = Instant::now();
    let (first, second) = flights(&mut server, now, address(1));
    let mut garbage = vec![vec![], b"\x16".to_vec(), b"\x16\xfe\xfd garbage of the part".to_vec()];
    garbage.extend((0..first.len()).map(|end| first[..end].to_vec()));
    garbage.extend((0..second.len()).map(|end| second[..end].to_vec()));
    for datagram in garbage {
        assert!(server.handle_datagram(now, address(1), &datagram, || true).datagrams.is_empty());
        assert!(!server.contains(address(1)), "{datagram:x?}");
    }
}

/// Datagrams that an attacker can send from the address of a peer.
fn forgeries() -> Vec<Vec<u8>> {
    let mut all = vec![b"\x16\xfe\xfd garbage".to_vec(), b"\x30garbage".to_vec()];
    for (kind, epoch) in (20..=26).flat_map(|kind| (0..=3).map(move |epoch| (kind, epoch))) {
        for contents in [&[2, 40][..], &[1, 0], &[1], &[0; 64]] {
            let length = u8::try_from(contents.len()).expect("short");
            let header = [kind, 0xfe, 0xfd, 0, epoch, 0, 0, 0, 0, 0, 9, 0, length];
            all.push([&header[..], contents].concat());
        }
    }
    all.extend((0x20..=0x3f).map(|first| [&[first][..], &[7; 60]].concat()));
    all
}

//= hostile dtls
//# forged records, to end a session or keep it
//= bound: only authenticated ones count; `IDLE`
#[test]
fn forged_records_end_neither_a_session_nor_a_handshake() {
    let identity = TestIdentity::new();
    let mut pair = Pair::new(&identity);
    pair.open(&trusting(&identity), NAME);
    let (_, second) = flights(&mut pair.server, pair.now, address(6000));
    pair.server.handle_datagram(pair.now, address(6000), &second, || true);
    for forged in forgeries() {
        pair.server.handle_datagram(pair.now, address(5000), &forged, || true);
        assert!(matches!(pair.server.state(address(5000)), State::Up(_)), "{forged:x?}");
        pair.server.handle_datagram(pair.now, address(6000), &forged, || true);
        assert_eq!(pair.server.state(address(6000)), State::Handshake, "{forged:x?}");
        pair.client.handle_datagram(pair.now, address(9899), &forged, || true);
        assert!(matches!(pair.client.state(address(9899)), State::Up(_)), "{forged:x?}");
    }
}

/// Only authenticated records keep a session alive.
#[test]
fn forged_records_do_not_keep_an_idle_session_alive() {
    let identity = TestIdentity::new();
    let mut pair = Pair::new(&identity);
    pair.open(&trusting(&identity), NAME);
    for _ in 0..30 {
        pair.wait(Duration::from_secs(10));
        pair.server.handle_datagram(pair.now, address(5000), &[0x30; 100], || true);
    }
    assert!(!pair.server.contains(address(5000)));
}

#[test]
fn a_key_other_than_ecdsa_is_refused_with_the_reason() {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("a key");
    let certificate = rcgen::CertificateParams::new(vec!["peer.test".to_owned()])
        .and_then(|params| params.self_signed(&key))
        .expect("a certificate");
    let key = rustls_pki_types::PrivatePkcs8KeyDer::from(key.serialize_der()).into();
    let error = DtlsIdentity::new(certificate.der(), &key).expect_err("no ECDSA");
    assert!(error.to_string().contains("ECDSA"), "{error}");
}
