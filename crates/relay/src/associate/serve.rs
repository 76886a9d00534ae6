//! An association whose datagrams go to their destinations directly.

use std::io;
use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use eyas::race::candidate::Family;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::io::AsyncReadExt as _;
use tokio::net::UdpSocket;
use tokio::time::Instant;

use super::association::{Association, Output};
use super::owner::Setup;
use super::resolve::resolve;
use super::sockets::{PeerSockets, hear};
use crate::client::Client;
use crate::handshake::Destination;
use crate::report::Ending;
use crate::shared::Shared;
use crate::traffic::Traffic;

/// An association at work.
struct Running<'a> {
    shared: &'a Shared,
    association: Association,
    /// Where the client sends to.
    socket: UdpSocket,
    peers: PeerSockets,
    resolving: FuturesUnordered<BoxFuture<'static, (Destination, Vec<IpAddr>)>>,
    epoch: Instant,
    traffic: Traffic<'a>,
}

/// Passes datagrams on until the client's connection ends, or nothing has moved for long.
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
        let mut said = [0; 64];
        loop {
            let idle = self.traffic.idle(self.shared.limits.idle_time);
            tokio::select! {
                // What it says is of no meaning; that it is there is.
                read = tcp.read(&mut said) => match read {
                    Ok(0) => return Ending::Done,
                    Ok(_) => {}
                    Err(error) => return Ending::Client(error.to_string()),
                },
                ready = self.socket.readable() => match ready {
                    Ok(()) => self.hear_client(),
                    Err(error) => return Ending::Client(error.to_string()),
                },
                family = self.peers.heard() => self.hear_peers(family),
                Some((to, ips)) = self.resolving.next() => {
                    self.association.handle_addresses(self.epoch.elapsed(), &to, ips);
                }
                () = idle => return Ending::Idle,
            }
            self.perform();
        }
    }

    fn hear_client(&mut self) {
        let now = self.epoch.elapsed();
        hear(&self.socket, |bytes, from| {
            self.association.handle_client(now, from, bytes);
            true
        });
    }

    fn hear_peers(&mut self, family: Family) {
        self.peers.hear(family, |bytes, from| {
            self.association.handle_peer(from, bytes);
            true
        });
    }

    /// Does what there is to do. What a socket does not take at once is lost, as on any line.
    fn perform(&mut self) {
        while let Some(output) = self.association.poll_output() {
            match output {
                Output::Send { to, data, left } => self.send(to, data, left),
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

    fn send(&mut self, to: SocketAddr, data: Bytes, left: usize) {
        match self.peers.send(&data, to) {
            Ok(()) => self.traffic.sent(data.len()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.association.refused(self.epoch.elapsed(), to, data, left),
        }
    }
}
