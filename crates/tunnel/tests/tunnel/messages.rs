//! Packets as SCTP messages.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use eyas::race::candidate::Transport;
use eyas_tunnel::{ClientForwards, CurrentSessions};
use tokio::net::UdpSocket;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::packets::{Wire, packet};
use crate::{Stage, wait};

/// The length of a payload whose datagrams have a unique length.
const PAYLOAD: usize = 1111;
/// The length of a UDP datagram with such a packet, and possibly a SACK.
const RECOGNISED: Range<usize> = 1190..1260;

/// Forwards UDP between one client and a server.
struct LossyLink {
    port: u16,
    /// Whether the client's datagrams of a recognised length are lost, including retransmissions.
    is_active: Arc<AtomicBool>,
    has_lost: Arc<Notify>,
}

impl LossyLink {
    async fn before(server: SocketAddr) -> Self {
        let near = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
        let far = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
        far.connect(server).await.expect("loopback");
        let port = near.local_addr().expect("an address").port();
        let (is_active, has_lost) = (Arc::<AtomicBool>::default(), Arc::<Notify>::default());
        let link = Self { port, is_active, has_lost };
        let (is_active, lost) = (Arc::clone(&link.is_active), Arc::clone(&link.has_lost));
        tokio::spawn(async move {
            let (mut there, mut back) = (vec![0; 65_536], vec![0; 65_536]);
            let mut client = None;
            loop {
                tokio::select! {
                    Ok((length, from)) = near.recv_from(&mut there) => {
                        client = Some(from);
                        if is_active.load(SeqCst) && RECOGNISED.contains(&length) {
                            lost.notify_one();
                        } else {
                            // The server may be gone.
                            let _ = far.send(&there[..length]).await;
                        }
                    }
                    Ok(length) = far.recv(&mut back) => {
                        if let Some(client) = client {
                            let _ = near.send_to(&back[..length], client).await;
                        }
                    }
                }
            }
        });
        link
    }
}

/// Starts a server with an interface, and returns its host's end.
async fn stage() -> (Stage, Wire) {
    let (interface, there) = Wire::new(&["10.9.0.1/24"]);
    let stage = Stage::new(r#"permit-tun="10.9.0.2""#).await;
    (stage.with_interface(interface, String::new()).await, there)
}

fn of(payload: &[u8]) -> Vec<u8> {
    packet("10.9.0.2", "10.9.0.1", payload)
}

/// Returns how many packets the client has sent, and how many of them as messages.
fn sent(sessions: &CurrentSessions) -> (u64, u64) {
    let counts = sessions.read().iter().find_map(|one| one.packets).unwrap_or_default();
    (counts.sent, counts.sent_as_datagrams)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_packet_that_is_lost_repeatedly_delays_no_others() {
    let (mut stage, there) = stage().await;
    let link = LossyLink::before((Ipv4Addr::LOCALHOST, stage.sctp_port).into()).await;
    stage.sctp_port = link.port;
    // The lost datagrams would look too large for the path, and be split.
    stage.association.path_mtu_discovery = false;
    let (interface, here) = Wire::new(&["10.9.0.2/24"]);
    let forwards = ClientForwards { interface: Some(interface), ..ClientForwards::default() };
    let (stop, _notices, running, sessions) =
        stage.client_over(stage.address.port(), &[Transport::SctpUdp], forwards).await;
    // Until both ends have announced that they accept messages.
    wait(async {
        while sent(&sessions).1 == 0 {
            here.send(&of(b"first")).await;
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    here.reaches(&there, &of(&[9; PAYLOAD])).await;
    link.is_active.store(true, SeqCst);
    for round in 0..3 {
        here.send(&of(&[round; PAYLOAD])).await;
        wait(link.has_lost.notified()).await;
        here.reaches(&there, &of(&[round])).await;
    }
    link.is_active.store(false, SeqCst);
    here.reaches(&there, &of(&[7; PAYLOAD])).await;
    assert!(!running.is_finished(), "the session continues");
    stop.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_partial_reliability_packets_use_the_channel() {
    let (mut stage, there) = stage().await;
    stage.association.extensions.partial_reliability = false;
    let (interface, here) = Wire::new(&["10.9.0.2/24"]);
    let forwards = ClientForwards { interface: Some(interface), ..ClientForwards::default() };
    let (stop, _notices, _running, sessions) =
        stage.client_over(stage.address.port(), &[Transport::SctpUdp], forwards).await;
    for round in 0..3 {
        here.reaches(&there, &of(&[round])).await;
        let answer = packet("10.9.0.1", "10.9.0.2", &[round]);
        there.reaches(&here, &answer).await;
    }
    let (all, messages) = sent(&sessions);
    assert!(all >= 3 && messages == 0, "{messages} of {all} were messages");
    stop.cancel();
}
