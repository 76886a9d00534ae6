//! Associations inside DTLS, on loopback sockets.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use eyas_sctp::config::AssociationConfig;
use eyas_sctp::identifier::VerificationTag;
use eyas_sctp::io::{Ecn, Input, Received};
use eyas_sctp::message::SendInfo;
use eyas_sctp::wire::{ChecksumKind, CommonHeader};
use tokio::time::timeout;

use super::{MAX_TRAIN, Shared, is_record, trains};
use crate::connector::over_dtls;
use crate::dtls::{DtlsEndReason, DtlsIdentity, MAX_OVERHEAD, Role};
use crate::test_ports::own_port;
use crate::tests::identities::{NAME, TestIdentity, TestTrust};
use crate::{
    PendingDtlsAssociation, SctpConnectError, SctpConnector, SctpListenParameters, SctpListener,
    SctpOverIp,
};

/// Longer than anything takes here.
const TIMEOUT: Duration = Duration::from_secs(20);

fn listen(identity: &TestIdentity) -> SctpListener {
    let mut parameters = SctpListenParameters::new(SocketAddr::from(([127, 0, 0, 1], 0)));
    parameters.encapsulation_port = Some(0);
    parameters.over_ip = SctpOverIp::No;
    parameters.dtls = Some(identity.dtls());
    SctpListener::bind(&parameters).expect("a listener")
}

async fn open(
    listener: &SctpListener,
    trust: &TestTrust,
) -> Result<PendingDtlsAssociation, SctpConnectError> {
    let port = listener.encapsulation_port().expect("a UDP port");
    let connector = SctpConnector::new(port, AssociationConfig::default());
    let own_identity = DtlsIdentity::anonymous().expect("an identity");
    let address = SocketAddr::from(([127, 0, 0, 1], listener.port()));
    timeout(TIMEOUT, connector.open_dtls(address, &own_identity, trust.of_server(NAME)))
        .await
        .expect("in time")
}

//= rfc8261 §6.1
//# several associations MAY share a connection; a client opens one per session
#[tokio::test]
async fn messages_pass_both_ways() {
    let identity = TestIdentity::new();
    let listener = listen(&identity);
    let trusting = TestTrust::certificate(&identity);
    let pending = open(&listener, &trusting).await.expect("a session");
    assert_eq!(pending.version(), "DTLSv1.3");
    pending.association().answered().await.expect("an INIT ACK");
    let association = pending.established().await.expect("an association");
    let accepted = timeout(TIMEOUT, listener.accept_dtls()).await.expect("in time");
    // The association survives, although its packets arrive at the listener's socket.
    drop(listener);
    // More than the congestion window, so that records are exchanged for a while.
    let body = Bytes::from(vec![7; 300_000]);
    let info = SendInfo::default();
    association.send(&info, body.clone()).await.expect("sent");
    let mut received = Vec::new();
    while received.len() < body.len() {
        let message = timeout(TIMEOUT, accepted.receive()).await.expect("in time");
        received.extend_from_slice(&message.expect("alive").expect("a message").into_bytes());
    }
    assert_eq!(received, body);
    accepted.send(&info, Bytes::from_static(b"back")).await.expect("sent");
    let answer = timeout(TIMEOUT, association.receive()).await.expect("in time");
    assert_eq!(answer.expect("alive").expect("a message").into_bytes(), &b"back"[..]);
}

/// When a program ends, and with it the runtime, the server is notified and keeps no session.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_runtime_that_ends_sends_close_notify() {
    let identity = TestIdentity::new();
    let listener = listen(&identity);
    let trusting = TestTrust::certificate(&identity);
    let connect_and_end = || {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let opened = runtime.block_on(open(&listener, &trusting)).expect("a session");
        assert_eq!(listener.sessions(), 1);
        drop(runtime);
        drop(opened);
    };
    std::thread::scope(|scope| scope.spawn(connect_and_end).join()).expect("no panic");
    let ended = async {
        while listener.sessions() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(TIMEOUT, ended).await.expect("close_notify");
}

//= rfc8261 §6.1
//# no INIT before the peer is verified
#[tokio::test]
async fn an_untrusted_server_receives_no_init() {
    let listener = listen(&TestIdentity::new());
    let other = TestIdentity::new();
    let trusting = TestTrust::certificate(&other);
    let refused = open(&listener, &trusting).await.expect_err("its certificate is not trusted");
    assert!(matches!(refused, SctpConnectError::Dtls(DtlsEndReason::Failed(_))), "{refused:?}");
    assert_eq!(listener.counters().packets_in, 0);
    assert_eq!(listener.associations(), 0);
}

#[tokio::test]
async fn a_host_without_a_listener_refuses() {
    let connector = SctpConnector::new(own_port(), AssociationConfig::default());
    let own_identity = DtlsIdentity::anonymous().expect("an identity");
    let address = SocketAddr::from(([127, 0, 0, 1], 5_000));
    let open = connector.open_dtls(address, &own_identity, TestTrust::any().of_server(NAME));
    let refused = timeout(TIMEOUT, open).await.expect("in time").expect_err("nothing is listening");
    assert!(matches!(refused, SctpConnectError::Dtls(DtlsEndReason::Refused)), "{refused:?}");
}

/// An SCTP packet with a COOKIE ACK.
fn packet(source_port: u16, destination_port: u16) -> Vec<u8> {
    let header = CommonHeader { source_port, destination_port, tag: VerificationTag(7) };
    let mut packet = [&header.encode()[..], &[11, 0, 0, 4]].concat();
    ChecksumKind::Crc32c.patch(&mut packet);
    packet
}

fn train(datagrams: &[Vec<u8>]) -> Input {
    Input::Packets(Received {
        local: None,
        remote: SocketAddr::from(([192, 0, 2, 1], 40_000)),
        ecn: Ecn::NotCapable,
        peer: None,
        contents: datagrams.concat().into(),
        segment_size: datagrams[0].len(),
    })
}

#[test]
fn records_and_packets_are_distinguished_whatever_the_ports() {
    for source in [1, 5_000, 5_886, 5_887, 0x2000, 0x3fff, 40_000] {
        for port in [7, 9_899, 64_768, 65_279] {
            assert!(!is_record(&packet(source, port), Some(port)));
        }
    }
    let plain = [&[22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3][..], &[1, 2, 3]].concat();
    let protected = [&[0x2f, 0, 1, 0, 17][..], &[9; 17]].concat();
    for record in [plain, protected] {
        assert!(is_record(&record, Some(64_768)), "{record:x?}");
        assert!(is_record(&record, Some(1)), "{record:x?}");
    }
}

//= hostile dtls
//# a forged hello from the address of an unencrypted association
//= bound: port and checksum, 48 bits
/// An attacker that knows the address of an unencrypted client can forge a datagram from it.
#[test]
fn a_forged_hello_does_not_affect_a_plaintext_association() {
    let identity = TestIdentity::new();
    let shared = Shared::new(Role::Server(identity.dtls()));
    let forged = [&b"\x16\xfe\xfd"[..], &[0; 28]].concat();
    let mut arrivals = vec![train(&[forged])];
    shared.divert(&mut arrivals, Some(7), |_| true);
    assert_eq!(arrivals, []);
    for source in [40_000, 5_886, 0x2001] {
        let unencrypted = vec![train(&[packet(source, 7)])];
        let mut arrivals = unencrypted.clone();
        shared.divert(&mut arrivals, Some(7), |_| true);
        assert_eq!(arrivals, unencrypted);
    }
}

/// The kernel coalesces what arrives from one address into one train.
#[test]
fn records_among_packets_are_extracted_one_by_one() {
    let identity = TestIdentity::new();
    let shared = Shared::new(Role::Server(identity.dtls()));
    let unencrypted = packet(40_000, 7);
    let forged = [&[22, 0xfe, 0xfd][..], &[0; 13]].concat();
    let mut arrivals = vec![train(&[unencrypted.clone(), forged, unencrypted.clone()])];
    shared.divert(&mut arrivals, Some(7), |_| true);
    let single = train(&[unencrypted]);
    assert_eq!(arrivals, vec![single.clone(), single]);
}

//= rfc8261 §6.2
//# HEARTBEAT with PAD finds the MTU inside records
/// Loopback carries packets larger than any that is probed for.
#[tokio::test]
async fn larger_packets_are_probed_for_inside_records() {
    let identity = TestIdentity::new();
    let listener = listen(&identity);
    let trusting = TestTrust::certificate(&identity);
    let pending = open(&listener, &trusting).await.expect("a session");
    let association = pending.established().await.expect("an association");
    let accepted = timeout(TIMEOUT, listener.accept_dtls()).await.expect("in time");
    let largest = AssociationConfig::default().largest_mtu - 20 - 8 - u16::from(MAX_OVERHEAD);
    let info = SendInfo::default();
    let search = async {
        while association.paths()[0].mtu != usize::from(largest & !3) {
            association.send(&info, Bytes::from(vec![7; 3_000])).await.expect("sent");
            accepted.receive().await.expect("alive").expect("a message");
        }
    };
    timeout(TIMEOUT, search).await.expect("in time");
}

//= rfc8261 §5, §6.1, §6.3, §8
//# no ECN, one path, no ASCONF
#[test]
fn an_association_inside_records_has_one_path_and_no_ecn() {
    let mut config = AssociationConfig::default();
    config.association_max_retrans = 7;
    (config.extensions.ecn, config.extensions.dynamic_addresses) = (true, true);
    let inside = over_dtls(&config);
    assert_eq!((inside.path_max_retrans, inside.max_peer_addresses), (7, 0));
    assert!(!inside.extensions.ecn && !inside.extensions.dynamic_addresses);
}

#[test]
fn datagrams_of_equal_sizes_leave_together() {
    let of = |sizes: &[usize]| {
        let mut memory = BytesMut::with_capacity(1 << 20);
        let datagrams = sizes.iter().zip(0..).map(|(size, number)| {
            memory.resize(*size, number);
            memory.split()
        });
        let joined = trains(datagrams.collect());
        joined.map(|(contents, size)| (contents.len(), size)).collect::<Vec<_>>()
    };
    assert_eq!(of(&[]), []);
    assert_eq!(of(&[10, 10, 10]), [(30, 10)]);
    // A shorter one is the last of its train, and a longer one begins the next.
    assert_eq!(of(&[10, 10, 4, 4, 10]), [(24, 10), (4, 4), (10, 10)]);
    assert_eq!(of(&[9_000; 20]), [(63_000, 9_000), (63_000, 9_000), (54_000, 9_000)]);
    assert_eq!(of(&[1; 100]), [(MAX_TRAIN.1, 1), (36, 1)]);
}
