use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use bytes::Bytes;
use eyas_sctp::io::{Ecn, Fragmentation, Marking, Received, Unreachable};
use tokio::time::timeout;

use super::*;
use crate::test_ports::own_port;

/// Much longer than anything takes on loopback.
const TIMEOUT: Duration = Duration::from_secs(30);

fn train(remote: SocketAddr, contents: Bytes, segment_size: usize) -> Transmit {
    let ecn = Ecn::Capable0;
    let fragmentation = Fragmentation::default();
    let marking = Marking::default();
    Transmit {
        local: None,
        remote,
        ecn,
        marking,
        fragmentation,
        contents,
        segment_size,
        peer: None,
    }
}

/// Receives packets until they have this many bytes in total.
async fn packets(wire: &Wire, bytes: usize) -> Vec<Received> {
    let mut buffers = ReceiveBuffers::new();
    let mut found = Vec::new();
    let mut sum = 0;
    while sum < bytes {
        let mut arrivals = Vec::new();
        let ready = timeout(TIMEOUT, wire.readable()).await.unwrap().unwrap();
        wire.receive(ready, &mut buffers, &mut arrivals).unwrap();
        for input in arrivals {
            if let Input::Packets(received) = input {
                sum += received.contents.len();
                found.push(received);
            }
        }
    }
    found
}

async fn report(wire: &Wire) -> (SocketAddr, Unreachable, Option<Bytes>) {
    let mut buffers = ReceiveBuffers::new();
    loop {
        let mut arrivals = Vec::new();
        let ready = timeout(TIMEOUT, wire.readable()).await.unwrap().unwrap();
        wire.receive(ready, &mut buffers, &mut arrivals).unwrap();
        for input in arrivals {
            if let Input::Unreachable { remote, reason, quoted } = input {
                return (remote, reason, quoted);
            }
        }
    }
}

async fn check_trains(ip: IpAddr) {
    let (sender, receiver) =
        (Wire::udp((ip, 0).into()).unwrap(), Wire::udp((ip, 0).into()).unwrap());
    let contents: Bytes = (0..10_500_u32).map(|at| at.to_be_bytes()[3]).collect();
    sender.writable().await.unwrap();
    sender.try_send(&train(receiver.local(), contents.clone(), 1000)).unwrap();
    let received = packets(&receiver, contents.len()).await;
    let joined: Vec<u8> = received.iter().flat_map(|received| received.contents.to_vec()).collect();
    assert_eq!(joined, contents);
    for received in &received {
        assert_eq!(
            (received.segment_size, received.remote),
            (1000.min(received.contents.len()), sender.local())
        );
        assert_eq!((received.local, received.ecn), (Some(ip), Ecn::Capable0));
    }
}

#[tokio::test]
async fn trains_are_delivered_over_udp() {
    check_trains(Ipv4Addr::LOCALHOST.into()).await;
    check_trains(Ipv6Addr::LOCALHOST.into()).await;
}

#[tokio::test]
async fn an_unused_port_is_reported() {
    for ip in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
        let wire = Wire::udp((ip, 0).into()).unwrap();
        let unused = SocketAddr::new(ip, own_port());
        wire.writable().await.unwrap();
        wire.try_send(&train(unused, Bytes::from_static(b"hello"), 5)).unwrap();
        let quoted = Some(Bytes::from_static(b"hello"));
        assert_eq!(report(&wire).await, (unused, Unreachable::Protocol, quoted));
        // The socket still works after the report.
        let peer = Wire::udp((ip, 0).into()).unwrap();
        wire.try_send(&train(peer.local(), Bytes::from_static(b"hello"), 5)).unwrap();
        assert_eq!(packets(&peer, 5).await.len(), 1);
    }
}

/// Returns whether raw sockets can be tested here; prints the reason if not.
fn has_raw(test: &str) -> bool {
    match direct_access() {
        Ok(DirectAccess::Raw) => true,
        other => {
            println!("SKIPPED {test}: {other:?}");
            false
        }
    }
}

#[tokio::test]
async fn packets_are_delivered_over_protocol_132() {
    if !has_raw("packets_are_delivered_over_protocol_132") {
        return;
    }
    for ip in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
        let wire = Wire::raw(ip).unwrap();
        assert!(wire.is_shared() && wire.can_reach((ip, 0).into()));
        let contents = Bytes::from_static(b"twelve bytes, then nine");
        let to = SocketAddr::new(ip, 0);
        let mut transmit = train(to, contents, 12);
        transmit.local = Some(ip);
        wire.writable().await.unwrap();
        wire.try_send(&transmit).unwrap();
        let ours = |received: &Received| b"twelve bytes, then nine".ends_with(&received.contents);
        // Packets of other tests of protocol 132 may arrive as well.
        let mut found = Vec::new();
        while found.len() < 2 {
            found.extend(
                packets(&wire, 1)
                    .await
                    .into_iter()
                    .filter(|received| received.contents.starts_with(b"twelve") || ours(received)),
            );
        }
        assert_eq!(&found[0].contents[..], b"twelve bytes");
        assert_eq!((found[1].remote, found[1].local), (to, Some(ip)));
        assert_eq!(found[1].ecn, Ecn::Capable0);
    }
}
