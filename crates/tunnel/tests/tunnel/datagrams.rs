//! Packets as QUIC datagrams, and together with connections.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use eyas::race::candidate::Transport;
use eyas_tunnel::ClientForwards;
use eyas_tunnel::PacketCounts;
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};

use crate::packets::{Wire, packet};
use crate::{Stage, converse, echo, forward, ports, wait};

/// The length of a UDP datagram with a packet of 700 bytes, which no other datagram has.
const RECOGNISED: Range<usize> = 700..800;
/// The longest time that a datagram waits for a slow link.
const QUEUE: Duration = Duration::from_millis(100);

/// The longest datagram of a link. Longer ones, which loopback would carry, fill the queue at once and leave no room
/// for acknowledgments.
const MAX_DATAGRAM: usize = 1472;

/// Forwards UDP between one client and a server.
struct Line {
    port: u16,
    /// Whether the client's datagrams are lost.
    is_broken: Arc<AtomicBool>,
    /// Notified when a datagram of a recognised length was lost.
    has_lost: Arc<Notify>,
}

impl Line {
    /// Starts a link with this rate from the client to the server, in bytes per second.
    async fn to(server: SocketAddr, rate: u32) -> Self {
        let near = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
        let far = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
        far.connect(server).await.expect("loopback");
        let port = near.local_addr().expect("an address").port();
        let (is_broken, has_lost) = (Arc::<AtomicBool>::default(), Arc::<Notify>::default());
        let line = Self { port, is_broken, has_lost };
        let (broken, lost, far) =
            (Arc::clone(&line.is_broken), Arc::clone(&line.has_lost), Arc::new(far));
        tokio::spawn(async move {
            let (mut there, mut back) = (vec![0; 65_536], vec![0; 65_536]);
            let (mut client, mut free_at) = (None, Instant::now());
            loop {
                tokio::select! {
                    Ok((length, from)) = near.recv_from(&mut there) => {
                        client = Some(from);
                        if length > MAX_DATAGRAM {
                            continue;
                        }
                        free_at = free_at.max(Instant::now());
                        if broken.load(SeqCst) {
                            if RECOGNISED.contains(&length) {
                                lost.notify_one();
                            }
                        } else if free_at - Instant::now() <= QUEUE {
                            free_at += Duration::from_secs(length as u64) / rate;
                            let (datagram, far) = (there[..length].to_vec(), Arc::clone(&far));
                            tokio::spawn(async move {
                                sleep_until(free_at).await;
                                // The server may be gone.
                                let _ = far.send(&datagram).await;
                            });
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
        line
    }
}

/// Starts a server with an interface, and returns its host's end.
async fn stage() -> (Stage, Wire) {
    let (interface, there) = Wire::new(&["10.9.0.1/24"]);
    let stage = Stage::new(r#"permit-tun="10.9.0.2""#).await;
    (stage.with_interface(interface, String::new()).await, there)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_packet_delays_no_others_and_is_not_retransmitted() {
    let (stage, there) = stage().await;
    let line = Line::to(stage.address, u32::MAX).await;
    let (interface, here) = Wire::new(&["10.9.0.2/24"]);
    let forwards = ClientForwards { interface: Some(interface), ..ClientForwards::default() };
    let (stop, _notices, _running, sessions) =
        stage.client_over(line.port, &[Transport::Quic], forwards).await;
    let of = |payload: &[u8]| packet("10.9.0.2", "10.9.0.1", payload);
    // Until both ends have announced that they accept datagrams.
    wait(async {
        let by_datagram = || {
            let all = sessions.read();
            all.iter().filter_map(|one| one.packets).any(|counts| counts.sent_as_datagrams > 0)
        };
        while !by_datagram() {
            here.send(&of(b"first")).await;
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let whole = of(b"all of that");
    here.send(&whole).await;
    there.receives(&whole).await;
    for round in 0..3 {
        line.is_broken.store(true, SeqCst);
        here.send(&of(&[round; 700])).await;
        wait(line.has_lost.notified()).await;
        line.is_broken.store(false, SeqCst);
        let next = of(&[round]);
        here.send(&next).await;
        assert_eq!(there.receive().await, next);
    }
    stop.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_that_fill_a_link_leave_room_for_connections() {
    for over in [Transport::Quic, Transport::SctpUdp] {
        let (mut stage, _there) = stage().await;
        stage.stop().await;
        stage.options = r#"permit-tun="10.9.0.2",permit-open="*""#;
        stage.start().await;
        let (server, sctp) = (stage.address, (Ipv4Addr::LOCALHOST, stage.sctp_port).into());
        let line = Line::to(if over == Transport::Quic { server } else { sctp }, 250_000).await;
        stage.sctp_port = line.port;
        let target = if over == Transport::Quic { line.port } else { server.port() };
        let (interface, here) = Wire::new(&["10.9.0.2/24"]);
        let (port, own) = (echo().await, ports::own_port());
        let local = vec![forward(format!("{own}:127.0.0.1:{port}"))];
        let forwards =
            ClientForwards { local, interface: Some(interface), ..ClientForwards::default() };
        let (stop, _notices, running, sessions) =
            stage.client_over(target, &[over], forwards).await;
        let flood = tokio::spawn(async move {
            loop {
                for _ in 0..4 {
                    // Too long for a STREAM frame in the same packet.
                    here.send(&packet("10.9.0.2", "10.9.0.1", &[7; 1380])).await;
                }
                sleep(Duration::from_millis(2)).await;
            }
        });
        // Packets queue, since the link is too slow for them.
        wait(async {
            let is_full = |counts: PacketCounts| counts.late > 0 && counts.sent_as_datagrams > 0;
            while !sessions.read().iter().filter_map(|one| one.packets).any(is_full) {
                sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
        let in_packets = || {
            let all = sessions.read();
            all.iter().filter_map(|one| one.packets).map(|counts| counts.sent_bytes).sum::<u64>()
        };
        let before = in_packets();
        let client = TcpStream::connect((Ipv4Addr::LOCALHOST, own)).await.expect("it listens");
        converse(client, 300_000).await;
        let meanwhile = in_packets() - before;
        // Half of the link would be 300,000.
        assert!(meanwhile < 900_000, "{meanwhile} bytes in packets over {over}");
        assert!(!running.is_finished(), "the session continues over {over}");
        flood.abort();
        stop.cancel();
    }
}
