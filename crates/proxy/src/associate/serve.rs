//! Serves an association whose datagrams go directly to their destinations.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use eyas::race::candidate::AddressFamily;
use eyas_relay::destination::Destination;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::io::AsyncReadExt as _;
use tokio::net::UdpSocket;
use tokio::time::Instant;

use super::association::{Association, Output};
use super::owner::Setup;
use crate::client::Client;
use crate::peers::{PeerSockets, receive, resolve};
use crate::report::Ending;
use crate::shared::Shared;
use crate::traffic::Traffic;

/// A running association.
struct Running<'a> {
    shared: &'a Shared,
    association: Association,
    /// The socket to which the client sends.
    socket: UdpSocket,
    peers: PeerSockets,
    resolving: FuturesUnordered<BoxFuture<'static, (Destination, Vec<IpAddr>)>>,
    epoch: Instant,
    traffic: Traffic<'a>,
}

/// Forwards datagrams until the client's connection ends or the idle time is over.
pub(crate) async fn serve(
    shared: &Shared,
    tcp: &mut Client,
    setup: Setup,
    (socket, peers): (UdpSocket, PeerSockets),
    traffic: Traffic<'_>,
) -> Ending {
    let mut running = Running {
        shared,
        association: Association::new(setup),
        socket,
        peers,
        resolving: FuturesUnordered::new(),
        epoch: Instant::now(),
        traffic,
    };
    let ending = running.run(tcp).await;
    running.traffic.datagrams.dropped = running.association.dropped();
    ending
}

impl Running<'_> {
    async fn run(&mut self, tcp: &mut Client) -> Ending {
        let mut ignored = [0; 64];
        let mut networks = self.shared.endpoint.network_changes();
        loop {
            let idle = self.traffic.idle(self.shared.limits.idle_time);
            tokio::select! {
                // Its data has no meaning, but its end does.
                read = tcp.read(&mut ignored) => match read {
                    Ok(0) => return Ending::Done,
                    Ok(_) => {}
                    Err(error) => return Ending::Client(error.to_string()),
                },
                ready = self.socket.readable() => match ready {
                    Ok(()) => self.receive_from_client(),
                    Err(error) => return Ending::Client(error.to_string()),
                },
                family = self.peers.readable() => self.receive_from_peers(family),
                Some((to, ips)) = self.resolving.next() => {
                    self.association.handle_addresses(self.epoch.elapsed(), &to, ips);
                }
                Some(network) = networks.next() => {
                    self.association.move_to(Arc::clone(&network));
                    self.peers.move_to(network);
                }
                () = idle => return Ending::Idle,
            }
            self.perform();
        }
    }

    fn receive_from_client(&mut self) {
        let now = self.epoch.elapsed();
        receive(&self.socket, |bytes, from| {
            self.association.handle_client(now, from, bytes);
            true
        });
    }

    fn receive_from_peers(&mut self, family: AddressFamily) {
        self.peers.receive(family, |bytes, from| {
            self.association.handle_peer(from, bytes);
            true
        });
    }

    /// Performs the outputs. A datagram that a socket does not accept at once is lost, as on any link.
    fn perform(&mut self) {
        while let Some(output) = self.association.poll_output() {
            match output {
                Output::Send { to, data, remaining } => self.send(to, data, remaining),
                Output::Deliver { to, datagram, length } => {
                    if self.socket.try_send_to(&datagram, to).is_ok() {
                        self.traffic.received(length);
                    }
                }
                Output::Resolve(to) => {
                    let Shared { endpoint, policy, limits, .. } = self.shared;
                    let resolving =
                        resolve(endpoint.clone(), policy.clone(), limits.connect_time, to);
                    self.resolving.push(Box::pin(resolving));
                }
            }
        }
    }

    fn send(&mut self, to: SocketAddr, data: Bytes, remaining: usize) {
        match self.peers.send(&data, to) {
            Ok(()) => self.traffic.sent(data.len()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.association.refused(self.epoch.elapsed(), to, data, remaining),
        }
    }
}
