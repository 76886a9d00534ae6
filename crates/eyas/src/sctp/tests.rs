//! Associations over sockets of this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use eyas_race::candidate::Transport;
use eyas_sctp::config::AssociationConfig;
use eyas_sctp::event::LossReason;
use eyas_sctp::identifier::{Ppid, StreamId};
use eyas_sctp::io::Unreachable;
use eyas_sctp::message::SendInfo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::client::{Clients, Known};
use super::*;
use crate::test_ports::own_port;

/// Long beyond what loopback takes.
const SOON: Duration = Duration::from_secs(30);
const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

fn listener(ip: IpAddr) -> SctpListener {
    let mut parameters = SctpListenParameters::new((ip, 5000).into());
    parameters.encapsulation_port = Some(0);
    parameters.over_ip = SctpOverIp::No;
    SctpListener::bind(&parameters).unwrap()
}

fn clients_of(listener: &SctpListener) -> Clients {
    Clients::new(listener.encapsulation_port().unwrap(), AssociationConfig::default())
}

async fn open(clients: &Clients, ip: IpAddr) -> SctpAssociation {
    let address = SocketAddr::new(ip, 5000);
    let opened = clients.open(Transport::SctpUdp, address, Known::default()).await.unwrap();
    timeout(SOON, opened.answered()).await.unwrap().unwrap();
    opened
}

/// An association from end to end.
async fn pair(ip: IpAddr) -> (Clients, SctpListener, SctpAssociation, SctpAssociation) {
    let listener = listener(ip);
    let clients = clients_of(&listener);
    let ours = open(&clients, ip).await;
    timeout(SOON, ours.established()).await.unwrap().unwrap();
    let theirs = timeout(SOON, listener.accept()).await.unwrap();
    (clients, listener, ours, theirs)
}

#[tokio::test]
async fn messages_pass_both_ways() {
    for ip in [V4, V6] {
        let (_clients, _listener, ours, theirs) = pair(ip).await;
        let info = SendInfo { stream: StreamId(7), ppid: Ppid(42), ..SendInfo::default() };
        ours.send(&info, Bytes::from_static(b"hello")).await.unwrap();
        let message = timeout(SOON, theirs.receive()).await.unwrap().unwrap().unwrap();
        assert_eq!((message.stream, message.ppid), (StreamId(7), Ppid(42)));
        assert_eq!(&message.into_bytes()[..], b"hello");
        theirs.send(&SendInfo::default(), Bytes::from_static(b"and back")).await.unwrap();
        let message = timeout(SOON, ours.receive()).await.unwrap().unwrap().unwrap();
        assert_eq!(&message.into_bytes()[..], b"and back");
        assert!(theirs.is_encapsulated());
        assert_eq!(ours.remote(), Some(SocketAddr::new(ip, 5000)));
        timeout(SOON, ours.shutdown()).await.unwrap().unwrap();
        assert_eq!(timeout(SOON, theirs.receive()).await.unwrap(), Ok(None));
    }
}

#[tokio::test]
async fn a_stream_of_bytes_is_whole_and_ends() {
    let (_clients, _listener, ours, theirs) = pair(V4).await;
    let sent: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    let mut writing = ours.stream(StreamId(0)).unwrap();
    let mut reading = theirs.stream(StreamId(0)).unwrap();
    let expected = sent.clone();
    let there = tokio::spawn(async move {
        writing.write_all(&sent).await.unwrap();
        writing.shutdown().await.unwrap();
        writing
    });
    let mut received = Vec::new();
    timeout(SOON, reading.read_to_end(&mut received)).await.unwrap().unwrap();
    assert!(received == expected, "{} bytes of {}", received.len(), expected.len());
    let mut writing = timeout(SOON, there).await.unwrap().unwrap();
    assert!(writing.write_all(b"more").await.is_err(), "what was shut is shut");
}

/// A stream that ends leaves the other direction open, where both sides can reset streams.
#[tokio::test]
async fn one_direction_can_end_alone() {
    let (_clients, _listener, ours, theirs) = pair(V4).await;
    let mut writing = ours.stream(StreamId(0)).unwrap();
    let mut reading = theirs.stream(StreamId(0)).unwrap();
    writing.write_all(b"question").await.unwrap();
    writing.shutdown().await.unwrap();
    let mut question = Vec::new();
    timeout(SOON, reading.read_to_end(&mut question)).await.unwrap().unwrap();
    assert_eq!(question, b"question");
    let answered = reading.write_all(b"answer").await.is_ok();
    if !ours.status().is_some_and(|status| status.agreed.reconfiguration) {
        println!("SKIPPED one_direction_can_end_alone: no reset of streams");
        return;
    }
    assert!(answered);
    reading.shutdown().await.unwrap();
    let mut answer = Vec::new();
    timeout(SOON, writing.read_to_end(&mut answer)).await.unwrap().unwrap();
    assert_eq!(answer, b"answer");
}

#[tokio::test]
async fn streams_are_kept_separate() {
    let (_clients, _listener, ours, theirs) = pair(V4).await;
    let mut one = ours.stream(StreamId(1)).unwrap();
    let mut two = ours.stream(StreamId(2)).unwrap();
    assert_eq!(ours.stream(StreamId(1)).unwrap_err(), SctpError::StreamTaken(1));
    two.write_all(b"two").await.unwrap();
    one.write_all(b"one").await.unwrap();
    let info = SendInfo { stream: StreamId(3), ..SendInfo::default() };
    ours.send(&info, Bytes::from_static(b"three")).await.unwrap();
    let mut read = [0; 3];
    let mut there = theirs.stream(StreamId(1)).unwrap();
    timeout(SOON, there.read_exact(&mut read)).await.unwrap().unwrap();
    assert_eq!(&read, b"one");
    let mut there = theirs.stream(StreamId(2)).unwrap();
    timeout(SOON, there.read_exact(&mut read)).await.unwrap().unwrap();
    assert_eq!(&read, b"two");
    let message = timeout(SOON, theirs.receive()).await.unwrap().unwrap().unwrap();
    assert_eq!(message.stream, StreamId(3));
}

#[tokio::test]
async fn send_waits_for_room() {
    let (_clients, _listener, ours, theirs) = pair(V4).await;
    let piece = Bytes::from(vec![7; 60_000]);
    let mut sent = 0;
    // Nobody reads: the peer's window and our buffer fill up.
    while timeout(Duration::from_millis(300), ours.send(&SendInfo::default(), piece.clone()))
        .await
        .map(|sent| sent.unwrap())
        .is_ok()
    {
        sent += piece.len();
        assert!(sent < 64 << 20, "nothing holds the sender back");
    }
    let reading = tokio::spawn(async move {
        let mut received = 0;
        while let Some(message) = theirs.receive().await.unwrap() {
            received += message.len();
        }
        received
    });
    timeout(SOON, ours.send(&SendInfo::default(), piece.clone())).await.unwrap().unwrap();
    timeout(SOON, ours.shutdown()).await.unwrap().unwrap();
    assert_eq!(timeout(SOON, reading).await.unwrap().unwrap(), sent + piece.len());
}

#[tokio::test]
async fn an_association_dropped_before_proceeding_leaves_nothing_behind() {
    let listener = listener(V4);
    let clients = clients_of(&listener);
    let opened = open(&clients, V4).await;
    drop(opened);
    // Another one, from end to end, shows that the server has had time to see anything there was.
    let ours = open(&clients, V4).await;
    timeout(SOON, ours.established()).await.unwrap().unwrap();
    let _theirs = timeout(SOON, listener.accept()).await.unwrap();
    assert_eq!(listener.associations(), 1);
}

#[tokio::test]
async fn dropping_shuts_down_gracefully_after_all_data_has_arrived() {
    let (_clients, listener, ours, theirs) = pair(V4).await;
    for _ in 0..50 {
        ours.send(&SendInfo::default(), Bytes::from(vec![1; 1000])).await.unwrap();
    }
    drop(ours);
    let mut received = 0;
    while let Some(message) = timeout(SOON, theirs.receive()).await.unwrap().unwrap() {
        received += message.len();
    }
    assert_eq!(received, 50_000);
    drop(theirs);
    timeout(SOON, async {
        while listener.associations() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .expect("the server keeps nothing");
}

#[tokio::test]
async fn those_that_were_opened_have_ended_once_the_peer_knows() {
    let (clients, _listener, ours, theirs) = pair(V4).await;
    let early = timeout(Duration::from_millis(50), clients.ended()).await;
    assert!(early.is_err(), "it is in use");
    drop(ours);
    timeout(SOON, clients.ended()).await.unwrap();
    assert_eq!(timeout(SOON, theirs.receive()).await.unwrap(), Ok(None));
    let abandoned = open(&clients, V4).await;
    drop(abandoned);
    timeout(SOON, clients.ended()).await.unwrap();
}

#[tokio::test]
async fn an_abort_is_reported_with_its_reason() {
    let (_clients, _listener, ours, theirs) = pair(V4).await;
    ours.abort("no more of this");
    let lost = timeout(SOON, theirs.receive()).await.unwrap().unwrap_err();
    assert!(lost.to_string().contains("no more of this"), "{lost}");
    assert_eq!(
        timeout(SOON, ours.receive()).await.unwrap(),
        Err(SctpError::Lost(LossReason::Aborted))
    );
}

#[tokio::test]
async fn a_host_without_sctp_refuses_at_once() {
    let clients = Clients::new(own_port(), AssociationConfig::default());
    let address = SocketAddr::new(V4, 5000);
    let opened = clients.open(Transport::SctpUdp, address, Known::default()).await.unwrap();
    let refused = timeout(SOON, opened.answered()).await.unwrap();
    assert_eq!(refused, Err(SctpError::Lost(LossReason::Refused(Unreachable::Protocol))));
}

#[tokio::test]
async fn associations_pass_over_protocol_132() {
    if *carrier::access() != carrier::Access::Raw {
        println!("SKIPPED associations_pass_over_protocol_132: {:?}", carrier::access());
        return;
    }
    for ip in [V4, V6] {
        let mut parameters = SctpListenParameters::new((ip, 5132).into());
        parameters.encapsulation_port = None;
        let listener = SctpListener::bind(&parameters).unwrap();
        assert!(listener.is_direct());
        let clients = Clients::default();
        let address = SocketAddr::new(ip, 5132);
        let ours = clients.open(Transport::Sctp, address, Known::default()).await.unwrap();
        timeout(SOON, ours.answered()).await.unwrap().unwrap();
        timeout(SOON, ours.established()).await.unwrap().unwrap();
        let theirs = timeout(SOON, listener.accept()).await.unwrap();
        assert!(!theirs.is_encapsulated());
        ours.send(&SendInfo::default(), Bytes::from(vec![9; 100_000])).await.unwrap();
        let mut received = 0;
        while received < 100_000 {
            received += timeout(SOON, theirs.receive()).await.unwrap().unwrap().unwrap().len();
        }
        timeout(SOON, theirs.shutdown()).await.unwrap().unwrap();
    }
}

/// Both sides end their streams and then the association, at about the same time.
#[tokio::test]
async fn both_sides_can_end_at_once() {
    for _ in 0..10 {
        let (_clients, _listener, ours, theirs) = pair(V4).await;
        let end = |association: SctpAssociation, stream: StreamId| async move {
            let info = SendInfo { stream, ..SendInfo::default() };
            association.send(&info, Bytes::from_static(b"last words")).await.unwrap();
            association.end_stream(stream).await.unwrap();
            let heard = association.receive().await.unwrap().unwrap();
            assert_eq!(&heard.into_bytes()[..], b"last words");
            association.shutdown().await
        };
        let ended =
            timeout(SOON, async { tokio::join!(end(ours, StreamId(5)), end(theirs, StreamId(0))) });
        assert_eq!(ended.await.expect("in time"), (Ok(()), Ok(())));
    }
}
