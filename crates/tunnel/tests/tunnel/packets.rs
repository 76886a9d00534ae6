//! Packets of interfaces, with a pair of sockets as each device.

use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, channel};

use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
use eyas::race::candidate::Transport;
use eyas::{KeyFingerprint, ServerIdentity};
use eyas_tunnel::RefuseReason;
use eyas_tunnel::SessionLimits;
use eyas_tunnel::{
    ClientForwards, ProbingTimes, ServerTunnel, TunnelClient, TunnelError, TunnelNotice, reach,
};
use eyas_tunnel::{InterfaceConfig, PacketCounts, TunnelInterface};
use tokio::net::UnixDatagram;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::line::{Line, forward_tcp, forward_udp};
use crate::{ALL, Stage, wait};

/// The host's end of an interface.
pub(crate) struct Wire(UnixDatagram);

impl Wire {
    /// Returns an interface with these addresses, and the host's end of it.
    pub(crate) fn new(addresses: &[&str]) -> (TunnelInterface, Self) {
        let (device, host) = std::os::unix::net::UnixDatagram::pair().expect("a pair");
        device.set_nonblocking(true).expect("it does not block");
        host.set_nonblocking(true).expect("it does not block");
        let addresses = addresses.iter().map(|one| one.parse().expect("a network")).collect();
        let config = InterfaceConfig { name: "t0".to_owned(), addresses, ..Default::default() };
        let interface = TunnelInterface::new(OwnedFd::from(device), config).expect("an interface");
        (interface, Self(UnixDatagram::from_std(host).expect("a socket")))
    }

    pub(crate) async fn send(&self, packet: &[u8]) {
        wait(self.0.send(packet)).await.expect("it is sent");
    }

    pub(crate) async fn receive(&self) -> Vec<u8> {
        let mut packet = vec![0; 65_536];
        let length = wait(self.0.recv(&mut packet)).await.expect("it is received");
        packet.truncate(length);
        packet
    }

    /// Receives packets until this one arrives. Before it there may be ICMP errors from before its route was known.
    pub(crate) async fn receives(&self, packet: &[u8]) {
        while self.receive().await != packet {}
    }

    /// Sends a packet until the other end receives it, since its route may not be known at first.
    pub(crate) async fn reaches(&self, other: &Self, packet: &[u8]) {
        let mut received = vec![0; 65_536];
        wait(async {
            loop {
                self.send(packet).await;
                let pause = std::time::Duration::from_millis(100);
                match tokio::time::timeout(pause, other.0.recv(&mut received)).await {
                    Ok(Ok(length)) if received[..length] == *packet => return,
                    _ => {}
                }
            }
        })
        .await;
    }
}

/// Returns a UDP datagram.
pub(crate) fn packet(from: &str, to: &str, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    let step = match (from.parse().expect("an address"), to.parse().expect("an address")) {
        (IpAddr::V4(from), IpAddr::V4(to)) => PacketBuilder::ipv4(from.octets(), to.octets(), 9),
        (IpAddr::V6(from), IpAddr::V6(to)) => PacketBuilder::ipv6(from.octets(), to.octets(), 9),
        _ => panic!("one family"),
    };
    step.udp(7, 8).write(&mut packet, payload).expect("it is short");
    packet
}

type Running = (JoinHandle<Result<(), TunnelError>>, Receiver<TunnelNotice>, DropGuard);

/// Starts a client with this key and this interface, over one transport.
async fn client(
    stage: &Stage,
    own: &ServerIdentity,
    over: Transport,
    interface: &TunnelInterface,
) -> Running {
    let endpoint = stage.endpoint(own, &stage.server);
    let (target, policy) = stage.target(&[over]);
    let (connection, _) = wait(reach(&endpoint, &target, &policy, None)).await.expect("a server");
    let first =
        wait(ServerTunnel::begin(connection, SessionLimits::default())).await.expect("a session");
    let forwards =
        ClientForwards { interface: Some(interface.clone()), ..ClientForwards::default() };
    let (sender, notices) = channel();
    let observer = move |notice| {
        // The test may be over already.
        let _ = sender.send(notice);
    };
    let client =
        TunnelClient::new(endpoint, (target, policy), forwards, ProbingTimes::default(), observer);
    let client = client.expect("a client");
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let running = tokio::spawn(async move { client.run(first, stopped).await });
    (running, notices, stop.drop_guard())
}

/// Returns the server's counts of packets, once they fulfil a condition.
async fn counts(stage: &Stage, condition: impl Fn(&PacketCounts) -> bool) -> PacketCounts {
    wait(async {
        loop {
            let all = stage.sessions.read();
            if let Some(counts) = all.iter().filter_map(|one| one.packets).find(&condition) {
                return counts;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_go_both_ways_over_every_transport() {
    let options = r#"permit-tun="10.9.0.2",permit-tun="fd00:9::2",permit-open="none""#;
    let (interface, there) = Wire::new(&["10.9.0.1/24", "fd00:9::1/64"]);
    let stage = Stage::new(options).await.with_interface(interface, String::new()).await;
    for over in ALL {
        let (interface, here) = Wire::new(&["10.9.0.2/24", "fd00:9::2/64"]);
        let (running, _notices, stop) = client(&stage, &stage.client, over, &interface).await;
        // The last one is too long for a QUIC datagram.
        let payload = vec![7; 3000];
        here.reaches(&there, &packet("10.9.0.2", "10.9.0.1", over.to_string().as_bytes())).await;
        for (own, other) in [("10.9.0.2", "10.9.0.1"), ("fd00:9::2", "fd00:9::1")] {
            for length in [0, 1, 1200, 3000] {
                let request = packet(own, other, &payload[..length]);
                here.send(&request).await;
                there.receives(&request).await;
                let answers = packet(other, own, &payload[..length]);
                there.send(&answers).await;
                here.receives(&answers).await;
            }
        }
        let counted = counts(&stage, |counts| counts.received >= 9).await;
        assert_eq!((counted.sent, counted.forged, counted.malformed), (8, 0, 0));
        drop(stop);
        wait(running).await.expect("it runs").expect("it ends well");
    }
}

//= hostile tunnel
//# packets with another client's address
//= bound: the client's own addresses
#[tokio::test(flavor = "multi_thread")]
async fn a_client_sends_only_from_its_own_addresses() {
    let (interface, there) = Wire::new(&["10.9.0.1/24"]);
    let stage = Stage::new(r#"permit-tun="10.9.0.2""#).await;
    let stage = stage.with_interface(interface, String::new()).await;
    let (interface, here) = Wire::new(&["10.9.0.2/24"]);
    let (_running, _notices, _stop) =
        client(&stage, &stage.client, Transport::Tcp, &interface).await;
    let good = packet("10.9.0.2", "10.9.0.1", b"its own");
    here.reaches(&there, &good).await;
    here.send(&packet("10.9.0.3", "10.9.0.1", b"another one's")).await;
    here.send(&packet("10.9.0.1", "10.9.0.1", b"the server's")).await;
    let last = packet("10.9.0.2", "10.9.0.1", b"the last");
    here.send(&last).await;
    loop {
        let received = there.receive().await;
        if received == last {
            break;
        }
        assert!(received == good, "{received:?}");
    }
    assert_eq!(counts(&stage, |counts| counts.forged >= 2).await.forged, 2);
    // No client has this address, so the sender gets an error.
    let lost = packet("10.9.0.1", "10.9.0.9", b"lost");
    there.send(&lost).await;
    let error = there.receive().await;
    let error = SlicedPacket::from_ip(&error).expect("a packet");
    let Some(NetSlice::Ipv4(ip)) = error.net else { panic!("IPv4") };
    let ends = [ip.header().source_addr(), ip.header().destination_addr()];
    assert_eq!(ends.map(|ip| ip.to_string()), ["10.9.0.9", "10.9.0.1"]);
    assert!(matches!(error.transport, Some(TransportSlice::Icmpv4(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_get_packets_for_their_addresses_and_cannot_take_over_others() {
    let other = ServerIdentity::self_signed(["other.test"]).expect("an identity");
    let third = ServerIdentity::self_signed(["third.test"]).expect("an identity");
    let line = |own: &ServerIdentity, network: &str| {
        let key = KeyFingerprint::from_certificate(own.certificate()).expect("a key");
        format!("permit-tun=\"{network}\" {key}\n")
    };
    let (interface, there) = Wire::new(&["10.9.0.1/24"]);
    let others = line(&other, "10.9.0.3") + &line(&third, "10.9.0.3");
    let stage =
        Stage::new(r#"permit-tun="10.9.0.0/24""#).await.with_interface(interface, others).await;
    let (interface, here) = Wire::new(&["10.9.0.2/24"]);
    let _one = client(&stage, &stage.client, Transport::Tcp, &interface).await;
    here.reaches(&there, &packet("10.9.0.2", "10.9.0.1", b"one")).await;
    let (interface, beside) = Wire::new(&["10.9.0.3/24"]);
    let _other = client(&stage, &other, Transport::Tcp, &interface).await;
    beside.reaches(&there, &packet("10.9.0.3", "10.9.0.1", b"other")).await;
    // The first client has the larger network, except for the address of the other one.
    for (to, wire) in [("10.9.0.2", &here), ("10.9.0.3", &beside), ("10.9.0.4", &here)] {
        let sent = packet("10.9.0.1", to, to.as_bytes());
        there.send(&sent).await;
        wire.receives(&sent).await;
    }
    here.send(&packet("10.9.0.3", "10.9.0.1", b"the other's")).await;
    counts(&stage, |counts| counts.forged == 1).await;
    // The addresses are in use.
    let (interface, _) = Wire::new(&["10.9.0.3/24"]);
    let (running, ..) = client(&stage, &third, Transport::Tcp, &interface).await;
    let refused = wait(running).await.expect("it runs").expect_err("it is taken");
    assert!(
        refused.to_string().contains("another session has the packets of 10.9.0.3/32"),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_permission_is_reported() {
    let refused = async |stage: &Stage, address: &str| {
        let (interface, _wire) = Wire::new(&[address]);
        let (running, ..) = client(stage, &stage.client, Transport::Tcp, &interface).await;
        match wait(running).await.expect("it runs") {
            Err(TunnelError::Refused { why, text, .. }) => (why, text),
            other => panic!("{other:?}"),
        }
    };
    let stage = Stage::new(r#"permit-tun="10.9.0.2""#).await;
    let (why, text) = refused(&stage, "10.9.0.2/24").await;
    assert!(why == RefuseReason::Unsupported && text.contains("--tun"), "{text}");
    let (interface, _wire) = Wire::new(&["10.9.0.1/24"]);
    let stage = stage.with_interface(interface.clone(), String::new()).await;
    let (why, text) = refused(&stage, "10.9.0.3/24").await;
    assert!(why == RefuseReason::NotAllowed && text.contains("10.9.0.3 (permit-tun)"), "{text}");
    let stage = Stage::new("").await.with_interface(interface, String::new()).await;
    let (why, text) = refused(&stage, "10.9.0.2/24").await;
    assert!(why == RefuseReason::NotAllowed && text.contains("10.9.0.2 (permit-tun)"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reconnected_client_gets_its_packets_back_and_an_active_one_keeps_them() {
    let (interface, there) = Wire::new(&["10.9.0.1/24"]);
    let stage = Stage::new(r#"permit-tun="10.9.0.2""#).await;
    let stage = stage.with_interface(interface, String::new()).await;
    let forwards = |interface: &TunnelInterface| ClientForwards {
        interface: Some(interface.clone()),
        ..ClientForwards::default()
    };
    let (former, here) = Wire::new(&["10.9.0.2/24"]);
    let line = Line::to(stage.address).await;
    let (former_stop, ..) = stage.client_at(line.port, forwards(&former)).await;
    here.reaches(&there, &packet("10.9.0.2", "10.9.0.1", b"former")).await;
    let (latter, beside) = Wire::new(&["10.9.0.2/24"]);
    let port = stage.address.port();
    let (_stop, _, refused) = stage.client_at(port, forwards(&latter)).await;
    let refused = wait(refused).await.expect("it ends").expect_err("they are in use");
    assert!(matches!(refused, TunnelError::Refused { .. }), "{refused}");
    line.go_silent().await;
    let (stop, ..) = stage.client_at(port, forwards(&latter)).await;
    beside.reaches(&there, &packet("10.9.0.2", "10.9.0.1", b"latter")).await;
    let answer = packet("10.9.0.1", "10.9.0.2", b"to the latter");
    there.send(&answer).await;
    beside.receives(&answer).await;
    former_stop.cancel();
    stop.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_move_to_a_transport_with_streams_once_there_is_one() {
    let (interface, there) = Wire::new(&["10.9.0.1/24"]);
    let stage = Stage::new(r#"permit-tun="10.9.0.2""#).await;
    let stage = stage.with_interface(interface, String::new()).await;
    let (interface, here) = Wire::new(&["10.9.0.2/24"]);
    let middlebox = crate::ports::own_port();
    forward_tcp(middlebox, stage.address).await;
    let forwards = ClientForwards { interface: Some(interface), ..ClientForwards::default() };
    let both = [Transport::Quic, Transport::Tcp];
    let (_stop, _notices, _running, sessions) = stage.client_over(middlebox, &both, forwards).await;
    here.reaches(&there, &packet("10.9.0.2", "10.9.0.1", b"before")).await;
    forward_udp(middlebox, stage.address).await;
    wait(async {
        loop {
            let all = sessions.read();
            let only = (all.len() == 1).then(|| &all[0]);
            if only.is_some_and(|one| one.transport == Transport::Quic && one.packets.is_some()) {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    })
    .await;
    here.reaches(&there, &packet("10.9.0.2", "10.9.0.1", b"after")).await;
    let answer = packet("10.9.0.1", "10.9.0.2", b"answer");
    there.send(&answer).await;
    here.receives(&answer).await;
}
