//! The proxy's end of a tunnel for datagrams: a stream to the client, and sockets to its destination.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use eyas::RaceRecording;
use eyas::race::candidate::AddressFamily;
use eyas::race::target::TargetHost;
use eyas_http::HttpDatagrams;
use eyas_relay::destination::{Destination, RefusedRequest, RequestRefusal};
use eyas_relay::destination_stream::DestinationStream;
use eyas_relay::proxy_status::ErrorType;
use eyas_relay::rules::{ClientRules, RuleVerdict};
use eyas_relay::via::TunnelKind;
use http::HeaderValue;
use tokio::sync::SemaphorePermit;
use tokio::time::Instant;

use super::{CapsuleEvent, CapsuleStream};
use crate::client::ClientStream;
use crate::peers::{AddressSelection, DatagramTarget, PeerSockets, resolve};
use crate::report::{ClientEnding, DropReason};
use crate::shared::SharedProxy;
use crate::traffic::DatagramTraffic;

/// How datagrams get to a destination.
pub(crate) enum UdpRoute {
    /// Through these sockets.
    Direct(DatagramPeer),
    /// Through another proxy, to which capsules are forwarded unchanged.
    Via(DestinationStream),
}

/// Forwards datagrams between a client and another proxy, until one of them ends its stream.
pub(crate) async fn forward(
    idle_time: Duration,
    client: &mut ClientStream,
    (rest, frames): (&[u8], Option<HttpDatagrams>),
    mut upstream: DestinationStream,
    traffic: &mut DatagramTraffic<'_>,
) -> ClientEnding {
    let mut client_stream = CapsuleStream::new(client, rest).with_frames(frames, false);
    let datagrams = upstream.take_datagrams();
    let mut upstream = CapsuleStream::new(upstream, b"").with_frames(datagrams, true);
    let ending = loop {
        tokio::select! {
            event = client_stream.next() => match event {
                // A datagram for which the other side has no room is lost, as on any link.
                Ok(CapsuleEvent::Datagram(_)) if !upstream.has_room() => traffic.dropped(DropReason::Full),
                Ok(CapsuleEvent::Datagram(data)) => {
                    traffic.begins(&data);
                    upstream.send_datagram(&data);
                    traffic.sent(data.len());
                }
                Ok(CapsuleEvent::Room) => {}
                Ok(CapsuleEvent::End) => break ClientEnding::Done,
                Err(error) => break ClientEnding::Client(error.to_string()),
            },
            event = upstream.next() => match event {
                Ok(CapsuleEvent::Datagram(_)) if !client_stream.has_room() => traffic.dropped(DropReason::Full),
                Ok(CapsuleEvent::Datagram(data)) => {
                    client_stream.send_datagram(&data);
                    traffic.received(data.len());
                }
                Ok(CapsuleEvent::Room) => {}
                Ok(CapsuleEvent::End) => break ClientEnding::Done,
                Err(error) => break ClientEnding::Destination(error.to_string()),
            },
            () = traffic.idle(idle_time) => break ClientEnding::Idle,
        }
    };
    match &ending {
        ClientEnding::Client(_) => upstream.end().await,
        ClientEnding::Destination(_) => client_stream.end().await,
        _ => _ = tokio::join!(upstream.end(), client_stream.end()),
    }
    ending
}

/// A destination that datagrams can be sent to.
pub(crate) struct DatagramPeer {
    selection: AddressSelection,
    sockets: PeerSockets,
}

/// Prepares to send datagrams to a destination, if this client may. The tunnel counts until its permit is
/// dropped.
pub(crate) async fn reach<'a>(
    shared: &'a SharedProxy,
    to: &Destination,
    (client, hops): (IpAddr, Option<&HeaderValue>),
    race: &mut Option<RaceRecording>,
) -> Result<(UdpRoute, SemaphorePermit<'a>), RefusedRequest> {
    let rules = shared.rules_for(client).await;
    let verdict = rules.of_destination(to);
    if let RuleVerdict::Denied(why) = verdict {
        return Err(RequestRefusal::NotAllowed(why.to_string()).into());
    }
    if let Some(left) = shared.unanswered_for(to) {
        let seconds = left.as_secs().max(1);
        let why = RequestRefusal::TimedOut(format!(
            "{to} has not answered QUIC datagrams; use TCP, or try again in {seconds} s"
        ));
        return Err(RefusedRequest::new(ErrorType::DestinationUnavailable, why));
    }
    let permit = shared.admit_udp()?;
    let route = match &shared.via {
        Some(via) => UdpRoute::Via(via.reach((TunnelKind::Datagrams, to), hops, race).await?),
        None => UdpRoute::Direct(peer(shared, to, (&rules, verdict)).await?),
    };
    Ok((route, permit))
}

/// Resolves a destination and opens sockets for it.
async fn peer(
    shared: &SharedProxy,
    to: &Destination,
    (rules, verdict): (&ClientRules, RuleVerdict),
) -> Result<DatagramPeer, RefusedRequest> {
    let mut ips = addresses(shared, &rules.to_resolve(to, shared.endpoint.resolver())).await;
    if ips.is_empty() {
        return Err(RequestRefusal::NoAddress(format!(
            "DNS returned no address for {}",
            to.given_host()
        ))
        .into());
    }
    if verdict == RuleVerdict::ByAddress {
        ips.retain(|ip| rules.of_address(*ip, to.port).is_ok());
    }
    if ips.is_empty() {
        return Err(RefusedRequest::prohibited(to));
    }
    let addresses = ips.into_iter().map(|ip| SocketAddr::new(ip, to.port));
    // It has sent nothing yet, so no time has passed.
    let selection = AddressSelection::new(Duration::ZERO, addresses.collect());
    let has = |family| selection.addresses().iter().any(|one| family_of(*one) == family);
    let network = shared.endpoint.network_view().await;
    let sockets = PeerSockets::open(network, shared.policy.only_family, has).map_err(|error| {
        RequestRefusal::Failed(format!("cannot send datagrams to {to}: {error}"))
    })?;
    Ok(DatagramPeer { selection, sockets })
}

fn family_of(address: SocketAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::V4 } else { AddressFamily::V6 }
}

async fn addresses(shared: &SharedProxy, to: &Destination) -> Vec<IpAddr> {
    match &to.host {
        TargetHost::Literal(ip, _) => vec![*ip],
        TargetHost::Name(_) => {
            let (endpoint, policy) = (shared.endpoint.clone(), shared.policy.clone());
            resolve(endpoint, policy, shared.limits.connect_time, to.clone()).await.1
        }
    }
}

/// A running tunnel.
struct RunningTunnel<'a, 'b> {
    stream: CapsuleStream<&'a mut ClientStream>,
    peer: DatagramPeer,
    epoch: Instant,
    traffic: &'a mut DatagramTraffic<'b>,
}

/// Forwards datagrams until the client ends its stream or the idle time is over. `rest` is data that the client
/// has already sent, and `frames` are its datagrams beside the stream.
pub(crate) async fn serve(
    shared: &SharedProxy,
    client: &mut ClientStream,
    (rest, frames): (&[u8], Option<HttpDatagrams>),
    peer: DatagramPeer,
    traffic: &mut DatagramTraffic<'_>,
) -> ClientEnding {
    let stream = CapsuleStream::new(client, rest).with_frames(frames, false);
    let mut running = RunningTunnel { stream, peer, epoch: Instant::now(), traffic };
    let ending = running.run(shared).await;
    if !matches!(ending, ClientEnding::Client(_)) {
        running.stream.end().await;
    }
    ending
}

impl RunningTunnel<'_, '_> {
    async fn run(&mut self, shared: &SharedProxy) -> ClientEnding {
        let mut networks = shared.endpoint.network_changes();
        loop {
            let idle = self.traffic.idle(shared.limits.idle_time);
            tokio::select! {
                event = self.stream.next() => match event {
                    Ok(CapsuleEvent::Datagram(data)) => self.send(&data),
                    Ok(CapsuleEvent::Room) => {}
                    Ok(CapsuleEvent::End) => return ClientEnding::Done,
                    Err(error) => return ClientEnding::Client(error.to_string()),
                },
                // While the client does not read, datagrams for it stay in the socket's buffer, or are lost there.
                family = self.peer.sockets.readable(), if self.stream.has_room() => {
                    self.receive(family);
                }
                Some(network) = networks.next() => self.peer.sockets.move_to(network),
                () = idle => return ClientEnding::Idle,
            }
        }
    }

    /// Sends a datagram to the destination. If the socket does not accept it at once, it is lost, as on any link.
    fn send(&mut self, data: &[u8]) {
        let now = self.epoch.elapsed();
        let Some(DatagramTarget { mut to, mut remaining }) = self.peer.selection.next(now) else {
            return;
        };
        loop {
            match self.peer.sockets.send(data, to) {
                Ok(()) => {
                    self.traffic.begins(data);
                    return self.traffic.sent(data.len());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => match (self.peer.selection.next_after(now, to), remaining.checked_sub(1))
                {
                    (Some(next), Some(fewer)) => (to, remaining) = (next, fewer),
                    _ => return self.traffic.dropped(DropReason::Unreachable),
                },
            }
        }
    }

    fn receive(&mut self, family: AddressFamily) {
        let Self { stream, peer: DatagramPeer { selection, sockets }, traffic, .. } = self;
        sockets.receive(family, |data, from| {
            let from = SocketAddr::new(from.ip().to_canonical(), from.port());
            if selection.answered(from) {
                stream.send_datagram(data);
                traffic.received(data.len());
            } else {
                traffic.dropped(DropReason::Unsolicited);
            }
            stream.has_room()
        });
    }
}
