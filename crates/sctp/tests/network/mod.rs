//! The network between the hosts of a test, in virtual time: links of `eyas-netem`.
//!
//! Hosts come in pairs, 0 and 1, 2 and 3, and so on. On network N the first of a pair has the
//! address 10.0.N.1 and the second 10.0.N.2, or 2001:db8:N::1 and 2001:db8:N::2; a packet goes over
//! the network of its destination.

mod links;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use eyas_netem::link::LinkConfig;
use eyas_sctp::endpoint::Endpoint;
use eyas_sctp::event::Event;
use eyas_sctp::identifier::AssociationId;
use eyas_sctp::io::{Fragmentation, Input, Output, Transmit};

pub(crate) use links::{Datagram, Network, late, link, lost};

/// The first host: the one that connects, as a rule.
pub(crate) const A: usize = 0;
/// The second host: the one that listens, as a rule.
pub(crate) const B: usize = 1;
/// The SCTP port of hosts that listen.
pub(crate) const PORT: u16 = 7;
/// The UDP encapsulation port.
pub(crate) const UDP: u16 = 9899;

/// Milliseconds.
pub(crate) const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// The address of `host` on network `network`.
pub(crate) fn address(host: usize, network: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, network, host as u8 % 2 + 1).into()
}

/// The same for IPv6.
pub(crate) fn address_v6(host: usize, network: u8) -> IpAddr {
    Ipv6Addr::new(0x2001, 0xdb8, network.into(), 0, 0, 0, 0, host as u16 % 2 + 1).into()
}

/// The network that an address is on.
fn network_of(address: IpAddr) -> Option<u8> {
    match address {
        IpAddr::V4(v4) if v4.octets()[..2] == [10, 0] => Some(v4.octets()[2]),
        IpAddr::V4(_) => None,
        IpAddr::V6(v6) => u8::try_from(v6.segments()[2]).ok(),
    }
}

/// An endpoint and its user.
pub(crate) trait Host {
    fn endpoint(&mut self) -> &mut Endpoint;

    /// The UDP port of its packets; 0 means directly over IP.
    fn port(&self) -> u16 {
        UDP
    }

    /// The actions of the user before the endpoint's outputs are polled.
    fn act(&mut self, _now: Duration) {}

    fn poll_output(&mut self, now: Duration) -> Output {
        self.endpoint().poll_output(now)
    }

    fn on_event(&mut self, now: Duration, id: AssociationId, event: Event);
}

/// A packet that a host sends.
pub(crate) struct OutgoingPacket {
    pub(crate) now: Duration,
    pub(crate) from: usize,
    /// `None` if its destination is on no network.
    pub(crate) network: Option<u8>,
    pub(crate) datagram: Datagram,
}

/// Observes all packets.
pub(crate) trait Tap {
    /// A packet is sent; returns whether it may pass.
    fn on_sent(&mut self, _packet: &mut OutgoingPacket) -> bool {
        true
    }

    /// The packet that was sent last will not arrive.
    fn on_lost(&mut self) {}

    fn on_arrival(&mut self, _now: Duration, _to: usize, _packet: &Datagram) {}
}

impl Tap for () {}

/// Hosts and the network between them.
pub(crate) struct World<H, T> {
    pub(crate) now: Duration,
    pub(crate) hosts: Vec<H>,
    pub(crate) network: Network,
    pub(crate) tap: T,
    /// How often an endpoint was called because of its timeout.
    pub(crate) calls: u64,
    timeouts: Vec<Option<Duration>>,
}

impl<H: Host, T: Tap> World<H, T> {
    pub(crate) fn between(hosts: Vec<H>, network: Network, tap: T) -> Self {
        let timeouts = vec![None; hosts.len()];
        Self { now: Duration::ZERO, hosts, network, tap, calls: 0, timeouts }
    }

    /// Changes the links of both directions of each network, from now on.
    pub(crate) fn change_links(&mut self, change: impl Fn(u8, &mut LinkConfig)) {
        self.network.change(self.now, change);
    }

    /// Loses this many packets per thousand from now on.
    pub(crate) fn lose_per_thousand(&mut self, count: u32) {
        self.change_links(|_, link| link.loss = lost(count));
    }

    /// Advances to this time.
    pub(crate) fn run_to(&mut self, end: Duration) {
        while self.step(end) {}
        self.now = end;
    }

    /// Advances by `time`.
    pub(crate) fn run_for(&mut self, time: Duration) {
        self.run_to(self.now + time);
    }

    /// Advances to the next event until `end`: timeouts, or the arrival of one packet. Returns
    /// `false` if there is none.
    pub(crate) fn step(&mut self, end: Duration) -> bool {
        self.drain();
        let timeouts = self.timeouts.iter().copied().flatten();
        let next = timeouts.chain(self.network.next_timeout()).min();
        let Some(next) = next.filter(|next| *next <= end) else { return false };
        self.now = self.now.max(next);
        for (host, timeout) in self.hosts.iter_mut().zip(&mut self.timeouts) {
            if timeout.take_if(|at| *at <= self.now).is_some() {
                self.calls += 1;
                host.endpoint().handle_input(self.now, Input::Tick);
            }
        }
        if let Some(datagram) = self.network.arrival(self.now) {
            self.tap.on_arrival(self.now, datagram.host, &datagram);
            let (host, input) = (datagram.host, Input::Packets(datagram.into_received()));
            self.hosts[host].endpoint().handle_input(self.now, input);
        }
        true
    }

    /// Polls all outputs of all hosts and sends their packets.
    pub(crate) fn drain(&mut self) {
        for host in 0..self.hosts.len() {
            self.drain_host(host);
        }
    }

    pub(crate) fn drain_host(&mut self, host: usize) {
        let now = self.now;
        self.hosts[host].act(now);
        loop {
            match self.hosts[host].poll_output(now) {
                Output::Transmit(transmit) => self.transmit(host, &transmit),
                Output::Event(id, event) => self.hosts[host].on_event(now, id, event),
                Output::Timeout(at) => {
                    assert!(at.is_none_or(|at| at > now), "a timeout that is due");
                    self.timeouts[host] = at;
                    return;
                }
                other => panic!("an output that the test does not know: {other:?}"),
            }
        }
    }

    fn transmit(&mut self, from: usize, transmit: &Transmit) {
        let (length, size) = (transmit.contents.len(), transmit.segment_size);
        assert!(length > 0 && size > 0);
        for start in (0..length).step_by(size) {
            self.send_packet(
                from,
                transmit,
                transmit.contents.slice(start..length.min(start + size)),
            );
        }
    }

    fn send_packet(&mut self, from: usize, transmit: &Transmit, contents: Bytes) {
        let (host, remote) = (from ^ 1, transmit.remote);
        let address = if remote.is_ipv6() { address_v6 } else { address };
        let network = network_of(remote.ip());
        let source = transmit.local.unwrap_or_else(|| address(from, network.unwrap_or_default()));
        let datagram = Datagram {
            source: SocketAddr::new(source, self.hosts[from].port()),
            destination: remote,
            ecn: transmit.ecn,
            may_be_cut: transmit.fragmentation == Fragmentation::Allowed,
            contents,
            host,
            network: network.unwrap_or_default(),
        };
        let mut outgoing = OutgoingPacket { now: self.now, from, network, datagram };
        let may_leave = self.tap.on_sent(&mut outgoing);
        let is_sent = network.is_some_and(|network| {
            let wanted = SocketAddr::new(address(host, network), self.hosts[host].port());
            may_leave
                && remote == wanted
                && self.network.offer(self.now, from, network, outgoing.datagram)
        });
        if !is_sent {
            self.tap.on_lost();
        }
    }
}
