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

use super::association::{AssociationOutput, UdpAssociation};
use super::owner::AssociationSetup;
use crate::client::ClientStream;
use crate::peers::{PeerSockets, receive, resolve};
use crate::report::ClientEnding;
use crate::shared::SharedProxy;
use crate::traffic::DatagramTraffic;

/// A running association.
struct RunningAssociation<'a> {
    shared: &'a SharedProxy,
    association: UdpAssociation,
    /// The socket to which the client sends.
    socket: UdpSocket,
    peers: PeerSockets,
    resolving: FuturesUnordered<BoxFuture<'static, (Destination, Vec<IpAddr>)>>,
    epoch: Instant,
    traffic: DatagramTraffic<'a>,
}

/// Forwards datagrams until the client's connection ends or the idle time is over.
pub(crate) async fn serve(
    shared: &SharedProxy,
    tcp: &mut ClientStream,
    setup: AssociationSetup,
    (socket, peers): (UdpSocket, PeerSockets),
    traffic: DatagramTraffic<'_>,
) -> ClientEnding {
    let mut running = RunningAssociation {
        shared,
        association: UdpAssociation::new(setup),
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

impl RunningAssociation<'_> {
    async fn run(&mut self, tcp: &mut ClientStream) -> ClientEnding {
        let mut ignored = [0; 64];
        let mut networks = self.shared.endpoint.network_changes();
        loop {
            let idle = self.traffic.idle(self.shared.limits.idle_time);
            tokio::select! {
                // Its data has no meaning, but its end does.
                read = tcp.read(&mut ignored) => match read {
                    Ok(0) => return ClientEnding::Done,
                    Ok(_) => {}
                    Err(error) => return ClientEnding::Client(error.to_string()),
                },
                ready = self.socket.readable() => match ready {
                    Ok(()) => self.receive_from_client(),
                    Err(error) => return ClientEnding::Client(error.to_string()),
                },
                family = self.peers.readable() => self.receive_from_peers(family),
                Some((to, ips)) = self.resolving.next() => {
                    self.association.handle_addresses(self.epoch.elapsed(), &to, ips);
                }
                Some(network) = networks.next() => {
                    self.association.move_to(Arc::clone(&network));
                    self.peers.move_to(network);
                }
                () = idle => return ClientEnding::Idle,
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
                AssociationOutput::Send { to, data, remaining } => self.send(to, data, remaining),
                AssociationOutput::Deliver { to, datagram, length } => {
                    if self.socket.try_send_to(&datagram, to).is_ok() {
                        self.traffic.received(length);
                    }
                }
                AssociationOutput::Resolve(to) => {
                    let SharedProxy { endpoint, policy, limits, .. } = self.shared;
                    let to = self.association.rules().to_resolve(&to, endpoint.resolver());
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
