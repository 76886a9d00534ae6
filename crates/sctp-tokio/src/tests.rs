//! Associations over sockets of this machine.

pub(crate) mod identities;

use std::io::IoSlice;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use eyas_sctp::config::AssociationConfig;
use eyas_sctp::event::LossReason;
use eyas_sctp::identifier::{Ppid, StreamId};
use eyas_sctp::io::Unreachable;
use eyas_sctp::message::SendInfo;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::*;
use crate::test_ports::own_port;

/// Much longer than anything takes on loopback.
const TIMEOUT: Duration = Duration::from_secs(30);
const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

fn listener(ip: IpAddr) -> SctpListener {
    let mut parameters = SctpListenParameters::new((ip, 5000).into());
    parameters.encapsulation_port = Some(0);
    parameters.over_ip = SctpOverIp::No;
    SctpListener::bind(&parameters).unwrap()
}

fn connector_to(listener: &SctpListener) -> SctpConnector {
    SctpConnector::new(listener.encapsulation_port().unwrap(), AssociationConfig::default())
}

async fn open(connector: &SctpConnector, ip: IpAddr) -> PendingAssociation {
    let address = SocketAddr::new(ip, 5000);
    let opened = connector.open(SctpCarrier::Udp, address).await.unwrap();
    timeout(TIMEOUT, opened.answered()).await.unwrap().unwrap();
    opened
}

/// Returns both ends of an association.
async fn pair(ip: IpAddr) -> (SctpConnector, SctpListener, SctpAssociation, SctpAssociation) {
    let listener = listener(ip);
    let connector = connector_to(&listener);
    let ours = open(&connector, ip).await;
    let ours = timeout(TIMEOUT, ours.established()).await.unwrap().unwrap();
    let theirs = timeout(TIMEOUT, listener.accept()).await.unwrap();
    (connector, listener, ours, theirs)
}

#[tokio::test]
async fn messages_pass_both_ways() {
    for ip in [V4, V6] {
        let (_connector, _listener, ours, theirs) = pair(ip).await;
        let info = SendInfo { stream: StreamId(7), ppid: Ppid(42), ..SendInfo::default() };
        ours.send(&info, Bytes::from_static(b"hello")).await.unwrap();
        let message = timeout(TIMEOUT, theirs.receive()).await.unwrap().unwrap().unwrap();
        assert_eq!((message.stream, message.ppid), (StreamId(7), Ppid(42)));
        assert_eq!(&message.into_bytes()[..], b"hello");
        theirs.send(&SendInfo::default(), Bytes::from_static(b"and back")).await.unwrap();
        let message = timeout(TIMEOUT, ours.receive()).await.unwrap().unwrap().unwrap();
        assert_eq!(&message.into_bytes()[..], b"and back");
        assert!(theirs.is_encapsulated());
        assert_eq!(ours.remote(), Some(SocketAddr::new(ip, 5000)));
        timeout(TIMEOUT, ours.shutdown()).await.unwrap().unwrap();
        assert_eq!(timeout(TIMEOUT, theirs.receive()).await.unwrap(), Ok(None));
    }
}

#[tokio::test]
async fn a_byte_stream_is_complete_and_ends() {
    let (_connector, _listener, ours, theirs) = pair(V4).await;
    let sent: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    let mut writer = ours.stream(StreamId(0)).unwrap();
    let mut reader = theirs.stream(StreamId(0)).unwrap();
    let expected = sent.clone();
    let written = tokio::spawn(async move {
        writer.write_all(&sent).await.unwrap();
        writer.shutdown().await.unwrap();
        writer
    });
    let mut received = Vec::new();
    timeout(TIMEOUT, reader.read_to_end(&mut received)).await.unwrap().unwrap();
    assert!(received == expected, "{} bytes of {}", received.len(), expected.len());
    let mut writer = timeout(TIMEOUT, written).await.unwrap().unwrap();
    assert!(writer.write_all(b"more").await.is_err(), "the stream is shut down");
}

/// However small the send buffer is, or what may be used of it, a write sends what fits well.
#[tokio::test]
async fn writes_fit_into_the_send_buffer() {
    let listener = listener(V4);
    for (send_buffer, most) in [(1 << 20, 64 << 10), (64 << 10, 16 << 10), (8 << 10, 2 << 10)] {
        let mut config = AssociationConfig::default();
        config.send_buffer = send_buffer;
        let connector = SctpConnector::new(listener.encapsulation_port().unwrap(), config);
        let ours = open(&connector, V4).await;
        let ours = timeout(TIMEOUT, ours.established()).await.unwrap().unwrap();
        let mut writer = ours.stream(StreamId(0)).unwrap();
        let (head, body) = ([1; 100], vec![2; 100_000]);
        let bufs = [IoSlice::new(&head), IoSlice::new(&body)];
        assert!(writer.is_write_vectored(), "nobody has to join the parts before");
        assert_eq!(writer.write_vectored(&bufs).await.unwrap(), most);
        let theirs = timeout(TIMEOUT, listener.accept()).await.unwrap();
        let mut received = vec![0; most];
        let mut reader = theirs.stream(StreamId(0)).unwrap();
        timeout(TIMEOUT, reader.read_exact(&mut received)).await.unwrap().unwrap();
        assert_eq!((&received[..100], &received[100..]), (&head[..], &body[..most - 100]));
    }
}

/// Ending a stream leaves the other direction open, if both sides can reset streams.
#[tokio::test]
async fn one_direction_can_end_alone() {
    let (_connector, _listener, ours, theirs) = pair(V4).await;
    let mut writer = ours.stream(StreamId(0)).unwrap();
    let mut reader = theirs.stream(StreamId(0)).unwrap();
    writer.write_all(b"question").await.unwrap();
    writer.shutdown().await.unwrap();
    let mut question = Vec::new();
    timeout(TIMEOUT, reader.read_to_end(&mut question)).await.unwrap().unwrap();
    assert_eq!(question, b"question");
    let written = reader.write_all(b"answer").await.is_ok();
    if !ours.status().is_some_and(|status| status.agreed.reconfiguration) {
        println!("SKIPPED one_direction_can_end_alone: streams cannot be reset");
        return;
    }
    assert!(written);
    reader.shutdown().await.unwrap();
    let mut answer = Vec::new();
    timeout(TIMEOUT, writer.read_to_end(&mut answer)).await.unwrap().unwrap();
    assert_eq!(answer, b"answer");
}

#[tokio::test]
async fn streams_are_kept_separate() {
    let (_connector, _listener, ours, theirs) = pair(V4).await;
    let mut first = ours.stream(StreamId(1)).unwrap();
    let mut second = ours.stream(StreamId(2)).unwrap();
    assert_eq!(ours.stream(StreamId(1)).unwrap_err(), SctpError::StreamTaken(1));
    second.write_all(b"two").await.unwrap();
    first.write_all(b"one").await.unwrap();
    let info = SendInfo { stream: StreamId(3), ..SendInfo::default() };
    ours.send(&info, Bytes::from_static(b"three")).await.unwrap();
    let mut read = [0; 3];
    let mut their_first = theirs.stream(StreamId(1)).unwrap();
    timeout(TIMEOUT, their_first.read_exact(&mut read)).await.unwrap().unwrap();
    assert_eq!(&read, b"one");
    let mut their_second = theirs.stream(StreamId(2)).unwrap();
    timeout(TIMEOUT, their_second.read_exact(&mut read)).await.unwrap().unwrap();
    assert_eq!(&read, b"two");
    let message = timeout(TIMEOUT, theirs.receive()).await.unwrap().unwrap().unwrap();
    assert_eq!(message.stream, StreamId(3));
}

#[tokio::test]
async fn send_waits_for_room() {
    let (_connector, _listener, ours, theirs) = pair(V4).await;
    let message = Bytes::from(vec![7; 60_000]);
    let mut sent = 0;
    // Nothing is read, so the peer's window and our buffer fill up.
    while timeout(Duration::from_millis(300), ours.send(&SendInfo::default(), message.clone()))
        .await
        .map(|sent| sent.unwrap())
        .is_ok()
    {
        sent += message.len();
        assert!(sent < 64 << 20, "the sender is never blocked");
    }
    let reader = tokio::spawn(async move {
        let mut received = 0;
        while let Some(message) = theirs.receive().await.unwrap() {
            received += message.len();
        }
        received
    });
    timeout(TIMEOUT, ours.send(&SendInfo::default(), message.clone())).await.unwrap().unwrap();
    timeout(TIMEOUT, ours.shutdown()).await.unwrap().unwrap();
    assert_eq!(timeout(TIMEOUT, reader).await.unwrap().unwrap(), sent + message.len());
}

#[tokio::test]
async fn an_association_dropped_before_proceeding_leaves_nothing_behind() {
    let listener = listener(V4);
    let connector = connector_to(&listener);
    let opened = open(&connector, V4).await;
    drop(opened);
    // Once another association is established, the server has seen all earlier packets.
    let ours = open(&connector, V4).await;
    let _ours = timeout(TIMEOUT, ours.established()).await.unwrap().unwrap();
    let _theirs = timeout(TIMEOUT, listener.accept()).await.unwrap();
    assert_eq!(listener.associations(), 1);
}

#[tokio::test]
async fn dropping_shuts_down_gracefully_after_all_data_has_arrived() {
    let (_connector, listener, ours, theirs) = pair(V4).await;
    for _ in 0..50 {
        ours.send(&SendInfo::default(), Bytes::from(vec![1; 1000])).await.unwrap();
    }
    drop(ours);
    let mut received = 0;
    while let Some(message) = timeout(TIMEOUT, theirs.receive()).await.unwrap().unwrap() {
        received += message.len();
    }
    assert_eq!(received, 50_000);
    drop(theirs);
    timeout(TIMEOUT, async {
        while listener.associations() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .expect("the server keeps no association");
}

#[tokio::test]
async fn ended_waits_until_the_peer_has_acknowledged_the_shutdown() {
    let (connector, _listener, ours, theirs) = pair(V4).await;
    let early = timeout(Duration::from_millis(50), connector.ended()).await;
    assert!(early.is_err(), "it is in use");
    drop(ours);
    timeout(TIMEOUT, connector.ended()).await.unwrap();
    assert_eq!(timeout(TIMEOUT, theirs.receive()).await.unwrap(), Ok(None));
    let cancelled = open(&connector, V4).await;
    drop(cancelled);
    timeout(TIMEOUT, connector.ended()).await.unwrap();
}

#[tokio::test]
async fn an_abort_is_reported_with_its_reason() {
    let (_connector, _listener, ours, theirs) = pair(V4).await;
    ours.abort("no more of this");
    let lost = timeout(TIMEOUT, theirs.receive()).await.unwrap().unwrap_err();
    assert!(lost.to_string().contains("no more of this"), "{lost}");
    assert_eq!(
        timeout(TIMEOUT, ours.receive()).await.unwrap(),
        Err(SctpError::Lost(LossReason::Aborted))
    );
}

#[tokio::test]
async fn a_host_without_sctp_refuses_at_once() {
    let connector = SctpConnector::new(own_port(), AssociationConfig::default());
    let address = SocketAddr::new(V4, 5000);
    let opened = connector.open(SctpCarrier::Udp, address).await.unwrap();
    let refused = timeout(TIMEOUT, opened.answered()).await.unwrap();
    assert_eq!(refused, Err(SctpError::Lost(LossReason::Refused(Unreachable::Protocol))));
}

#[tokio::test]
async fn associations_work_over_protocol_132() {
    if direct_access() != Ok(DirectAccess::Raw) {
        println!("SKIPPED associations_work_over_protocol_132: {:?}", direct_access());
        return;
    }
    for ip in [V4, V6] {
        let mut parameters = SctpListenParameters::new((ip, 5132).into());
        parameters.encapsulation_port = None;
        let listener = SctpListener::bind(&parameters).unwrap();
        assert!(listener.is_direct());
        let connector = SctpConnector::default();
        let address = SocketAddr::new(ip, 5132);
        let ours = connector.open(SctpCarrier::Ip, address).await.unwrap();
        timeout(TIMEOUT, ours.answered()).await.unwrap().unwrap();
        assert!(!ours.is_established());
        let ours = timeout(TIMEOUT, ours.established()).await.unwrap().unwrap();
        let theirs = timeout(TIMEOUT, listener.accept()).await.unwrap();
        assert!(!theirs.is_encapsulated());
        ours.send(&SendInfo::default(), Bytes::from(vec![9; 100_000])).await.unwrap();
        let mut received = 0;
        while received < 100_000 {
            received += timeout(TIMEOUT, theirs.receive()).await.unwrap().unwrap().unwrap().len();
        }
        timeout(TIMEOUT, theirs.shutdown()).await.unwrap().unwrap();
    }
}

/// Both sides end their streams and then the association, at about the same time.
#[tokio::test]
async fn both_sides_can_end_at_once() {
    for _ in 0..10 {
        let (_connector, _listener, ours, theirs) = pair(V4).await;
        let end = |association: SctpAssociation, stream: StreamId| async move {
            let info = SendInfo { stream, ..SendInfo::default() };
            association.send(&info, Bytes::from_static(b"last words")).await.unwrap();
            association.end_stream(stream).await.unwrap();
            let received = association.receive().await.unwrap().unwrap();
            assert_eq!(&received.into_bytes()[..], b"last words");
            association.shutdown().await
        };
        let ended = timeout(TIMEOUT, async {
            tokio::join!(end(ours, StreamId(5)), end(theirs, StreamId(0)))
        });
        assert_eq!(ended.await.expect("in time"), (Ok(()), Ok(())));
    }
}
