//! Packets as SCTP messages.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use eyas::race::candidate::Transport;
use eyas_relay::tunnel::{Forwards, Sessions};
use tokio::net::UdpSocket;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::packets::{Wire, packet};
use crate::{Stage, wait};

/// A payload that makes datagrams of a length that no others have.
const PAYLOAD: usize = 1111;
/// Bytes of a UDP datagram with a packet that has it, and perhaps a SACK beside it.
const RECOGNISED: Range<usize> = 1190..1260;

/// Passes UDP on between one client and a server.
struct Sieve {
    port: u16,
    /// What is recognised of the client's is lost, however often it is sent.
    is_there: Arc<AtomicBool>,
    has_lost: Arc<Notify>,
}

impl Sieve {
    async fn before(server: SocketAddr) -> Self {
        let near = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
        let far = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
        far.connect(server).await.expect("loopback");
        let port = near.local_addr().expect("an address").port();
        let (is_there, has_lost) = (Arc::<AtomicBool>::default(), Arc::<Notify>::default());
        let sieve = Self { port, is_there, has_lost };
        let (is_there, lost) = (Arc::clone(&sieve.is_there), Arc::clone(&sieve.has_lost));
        tokio::spawn(async move {
            let (mut there, mut back) = (vec![0; 65_536], vec![0; 65_536]);
            let mut client = None;
            loop {
                tokio::select! {
                    Ok((length, from)) = near.recv_from(&mut there) => {
                        client = Some(from);
                        if is_there.load(SeqCst) && RECOGNISED.contains(&length) {
                            lost.notify_one();
                        } else {
                            // A server that has gone hears nothing.
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
        sieve
    }
}

/// A server with an interface, and the host's end of that.
async fn stage() -> (Stage, Wire) {
    let (interface, there) = Wire::new(&["10.9.0.1/24"]);
    let stage = Stage::new(r#"permit-tun="10.9.0.2""#).await;
    (stage.with_interface(interface, String::new()).await, there)
}

fn of(payload: &[u8]) -> Vec<u8> {
    packet("10.9.0.2", "10.9.0.1", payload)
}

/// Packets that the client has sent, and those of them that were messages.
fn sent(sessions: &Sessions) -> (u64, u64) {
    let counts = sessions.read().iter().find_map(|one| one.packets).unwrap_or_default();
    (counts.sent, counts.sent_as_datagrams)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_packet_that_is_lost_again_and_again_holds_up_none() {
    let (mut stage, there) = stage().await;
    let sieve = Sieve::before((Ipv4Addr::LOCALHOST, stage.sctp_port).into()).await;
    stage.sctp_port = sieve.port;
    // What the sieve takes looks as if it were too large for the path, which is not to be divided.
    stage.association.path_mtu_discovery = false;
    let (interface, here) = Wire::new(&["10.9.0.2/24"]);
    let forwards = Forwards { interface: Some(interface), ..Forwards::default() };
    let (stop, _notices, running, sessions) =
        stage.client_over(stage.address.port(), &[Transport::SctpUdp], forwards).await;
    // Until both ends have said that they take messages.
    wait(async {
        while sent(&sessions).1 == 0 {
            here.send(&of(b"first")).await;
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    here.reaches(&there, &of(&[9; PAYLOAD])).await;
    sieve.is_there.store(true, SeqCst);
    for round in 0..3 {
        here.send(&of(&[round; PAYLOAD])).await;
        wait(sieve.has_lost.notified()).await;
        here.reaches(&there, &of(&[round])).await;
    }
    sieve.is_there.store(false, SeqCst);
    here.reaches(&there, &of(&[7; PAYLOAD])).await;
    assert!(!running.is_finished(), "the session goes on");
    stop.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_that_cannot_give_messages_up_use_the_channel() {
    let (mut stage, there) = stage().await;
    stage.association.extensions.partial_reliability = false;
    let (interface, here) = Wire::new(&["10.9.0.2/24"]);
    let forwards = Forwards { interface: Some(interface), ..Forwards::default() };
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
