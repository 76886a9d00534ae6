//! The proxy's end of a tunnel for datagrams: a stream to the client, and sockets to its destination.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use eyas::Recording;
use eyas::race::candidate::AddressFamily;
use eyas::race::target::TargetHost;
use eyas_http::HttpDatagrams;
use eyas_relay::destination::{Destination, Refusal, Refused};
use eyas_relay::destination_stream::DestinationStream;
use eyas_relay::proxy_status::ErrorType;
use eyas_relay::rules::{ClientRules, Verdict};
use eyas_relay::via::TunnelKind;
use http::HeaderValue;
use tokio::sync::SemaphorePermit;
use tokio::time::Instant;

use super::{CapsuleStream, Event};
use crate::client::Client;
use crate::peers::{AddressSelection, PeerSockets, Sent, resolve};
use crate::report::{Dropped, Ending};
use crate::shared::Shared;
use crate::traffic::Traffic;

/// How datagrams get to a destination.
pub(crate) enum UdpRoute {
    /// Through these sockets.
    Direct(Peer),
    /// Through another proxy, to which capsules are forwarded unchanged.
    Via(DestinationStream),
}

/// Forwards datagrams between a client and another proxy, until one of them ends its stream.
pub(crate) async fn forward(
    idle_time: Duration,
    client: &mut Client,
    (rest, frames): (&[u8], Option<HttpDatagrams>),
    mut upstream: DestinationStream,
    traffic: &mut Traffic<'_>,
) -> Ending {
    let mut client_stream = CapsuleStream::new(client, rest).with_frames(frames, false);
    let datagrams = upstream.take_datagrams();
    let mut upstream = CapsuleStream::new(upstream, b"").with_frames(datagrams, true);
    let ending = loop {
        tokio::select! {
            event = client_stream.next() => match event {
                // A datagram for which the other side has no room is lost, as on any link.
                Ok(Event::Datagram(_)) if !upstream.has_room() => traffic.dropped(Dropped::Full),
                Ok(Event::Datagram(data)) => {
                    traffic.begins(&data);
                    upstream.put(&data);
                    traffic.sent(data.len());
                }
                Ok(Event::Room) => {}
                Ok(Event::End) => break Ending::Done,
                Err(error) => break Ending::Client(error.to_string()),
            },
            event = upstream.next() => match event {
                Ok(Event::Datagram(_)) if !client_stream.has_room() => traffic.dropped(Dropped::Full),
                Ok(Event::Datagram(data)) => {
                    client_stream.put(&data);
                    traffic.received(data.len());
                }
                Ok(Event::Room) => {}
                Ok(Event::End) => break Ending::Done,
                Err(error) => break Ending::Destination(error.to_string()),
            },
            () = traffic.idle(idle_time) => break Ending::Idle,
        }
    };
    match &ending {
        Ending::Client(_) => upstream.end().await,
        Ending::Destination(_) => client_stream.end().await,
        _ => _ = tokio::join!(upstream.end(), client_stream.end()),
    }
    ending
}

/// A destination that datagrams can be sent to.
pub(crate) struct Peer {
    selection: AddressSelection,
    sockets: PeerSockets,
}

/// Prepares to send datagrams to a destination, if this client may. The tunnel counts until its permit is
/// dropped.
pub(crate) async fn reach<'a>(
    shared: &'a Shared,
    to: &Destination,
    (client, hops): (IpAddr, Option<&HeaderValue>),
    race: &mut Option<Recording>,
) -> Result<(UdpRoute, SemaphorePermit<'a>), Refused> {
    let rules = shared.rules_for(client).await;
    let verdict = rules.of_destination(to);
    if let Verdict::Denied(why) = verdict {
        return Err(Refusal::NotAllowed(why.to_string()).into());
    }
    if let Some(left) = shared.unanswered_for(to) {
        let seconds = left.as_secs().max(1);
        let why = Refusal::TimedOut(format!(
            "{to} has not answered QUIC datagrams; use TCP, or try again in {seconds} s"
        ));
        return Err(Refused::new(ErrorType::DestinationUnavailable, why));
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
    shared: &Shared,
    to: &Destination,
    (rules, verdict): (&ClientRules, Verdict),
) -> Result<Peer, Refused> {
    let mut ips = addresses(shared, to).await;
    if ips.is_empty() {
        return Err(
            Refusal::NoAddress(format!("DNS returned no address for {}", to.given_host())).into()
        );
    }
    if verdict == Verdict::ByAddress {
        ips.retain(|ip| rules.of_address(*ip, to.port).is_ok());
    }
    if ips.is_empty() {
        return Err(Refused::prohibited(to));
    }
    let addresses = ips.into_iter().map(|ip| SocketAddr::new(ip, to.port));
    // It has sent nothing yet, so no time has passed.
    let selection = AddressSelection::new(Duration::ZERO, addresses.collect());
    let has = |family| selection.addresses().iter().any(|one| family_of(*one) == family);
    let network = shared.endpoint.network_view().await;
    let sockets = PeerSockets::open(network, shared.policy.only_family, has)
        .map_err(|error| Refusal::Failed(format!("cannot send datagrams to {to}: {error}")))?;
    Ok(Peer { selection, sockets })
}

fn family_of(address: SocketAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::V4 } else { AddressFamily::V6 }
}

async fn addresses(shared: &Shared, to: &Destination) -> Vec<IpAddr> {
    match &to.host {
        TargetHost::Literal(ip, _) => vec![*ip],
        TargetHost::Name(_) => {
            let (endpoint, policy) = (shared.endpoint.clone(), shared.policy.clone());
            resolve(endpoint, policy, shared.limits.connect_time, to.clone()).await.1
        }
    }
}

/// A running tunnel.
struct Running<'a, 'b> {
    stream: CapsuleStream<&'a mut Client>,
    peer: Peer,
    epoch: Instant,
    traffic: &'a mut Traffic<'b>,
}

/// Forwards datagrams until the client ends its stream or the idle time is over. `rest` is data that the client
/// has already sent, and `frames` are its datagrams beside the stream.
pub(crate) async fn serve(
    shared: &Shared,
    client: &mut Client,
    (rest, frames): (&[u8], Option<HttpDatagrams>),
    peer: Peer,
    traffic: &mut Traffic<'_>,
) -> Ending {
    let stream = CapsuleStream::new(client, rest).with_frames(frames, false);
    let mut running = Running { stream, peer, epoch: Instant::now(), traffic };
    let ending = running.run(shared).await;
    if !matches!(ending, Ending::Client(_)) {
        running.stream.end().await;
    }
    ending
}

impl Running<'_, '_> {
    async fn run(&mut self, shared: &Shared) -> Ending {
        let mut networks = shared.endpoint.network_changes();
        loop {
            let idle = self.traffic.idle(shared.limits.idle_time);
            tokio::select! {
                event = self.stream.next() => match event {
                    Ok(Event::Datagram(data)) => self.send(&data),
                    Ok(Event::Room) => {}
                    Ok(Event::End) => return Ending::Done,
                    Err(error) => return Ending::Client(error.to_string()),
                },
                // While the client does not read, datagrams for it stay in the socket's buffer, or are lost there.
                family = self.peer.sockets.readable(), if self.stream.has_room() => {
                    self.receive(family);
                }
                Some(network) = networks.next() => self.peer.sockets.move_to(network),
                () = idle => return Ending::Idle,
            }
        }
    }

    /// Sends a datagram to the destination. If the socket does not accept it at once, it is lost, as on any link.
    fn send(&mut self, data: &[u8]) {
        let now = self.epoch.elapsed();
        let Some(Sent { mut to, mut remaining }) = self.peer.selection.next(now) else { return };
        loop {
            match self.peer.sockets.send(data, to) {
                Ok(()) => {
                    self.traffic.begins(data);
                    return self.traffic.sent(data.len());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => match (self.peer.selection.after(now, to), remaining.checked_sub(1)) {
                    (Some(next), Some(fewer)) => (to, remaining) = (next, fewer),
                    _ => return self.traffic.dropped(Dropped::Unreachable),
                },
            }
        }
    }

    fn receive(&mut self, family: AddressFamily) {
        let Self { stream, peer: Peer { selection, sockets }, traffic, .. } = self;
        sockets.receive(family, |data, from| {
            let from = SocketAddr::new(from.ip().to_canonical(), from.port());
            if selection.answered(from) {
                stream.put(data);
                traffic.received(data.len());
            } else {
                traffic.dropped(Dropped::Unsolicited);
            }
            stream.has_room()
        });
    }
}
