//! Routes the datagrams of one client: a state machine without sockets and clocks.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use eyas::race::io::NetworkView;
use eyas::race::target::TargetHost;
use eyas_relay::destination::Destination;
use eyas_relay::rules::{ClientRules, RuleVerdict};

use super::datagram;
use super::owner::{AssociationOwner, AssociationSetup};
use crate::peers::{AddressSelection, DatagramTarget};
use crate::report::DropReason;

/// The limit on datagrams that wait for DNS, for all destinations of an association.
pub(super) const MAX_WAITING: usize = 16;

/// An action for the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AssociationOutput {
    /// Send a datagram to a destination. If the system refuses to, call [`UdpAssociation::refused`].
    Send {
        /// The address.
        to: SocketAddr,
        /// The payload.
        data: Bytes,
        /// How many other addresses remain to be tried.
        remaining: usize,
    },
    /// Send a datagram to the client.
    Deliver {
        /// The client's address.
        to: SocketAddr,
        /// The datagram with its header.
        datagram: Bytes,
        /// The length of its payload in octets.
        length: usize,
    },
    /// Resolve this name, and report its addresses with [`UdpAssociation::handle_addresses`].
    Resolve(Destination),
}

/// The association of one client (RFC 1928 §7).
#[derive(Debug)]
pub(super) struct UdpAssociation {
    /// The limit on destinations.
    destinations: usize,
    owner: AssociationOwner,
    routes: BTreeMap<(TargetHost, u16), DestinationRoute>,
    waiting: usize,
    outputs: VecDeque<AssociationOutput>,
}

/// The route to a destination.
#[derive(Debug)]
struct DestinationRoute {
    progress: RouteProgress,
    /// When the client last sent a datagram to it.
    used: Duration,
}

#[derive(Debug)]
enum RouteProgress {
    /// The name is being resolved, and these datagrams wait.
    Resolving(Vec<Bytes>),
    /// The addresses are known.
    Known(AddressSelection),
}

impl UdpAssociation {
    /// Creates the association of a client that has sent nothing yet.
    pub(super) fn new(setup: AssociationSetup) -> Self {
        let (destinations, owner) = (setup.destinations.max(1), AssociationOwner::new(&setup));
        let outputs = VecDeque::new();
        Self { destinations, owner, routes: BTreeMap::new(), waiting: 0, outputs }
    }

    /// Continues on another network, whose addresses the rules know.
    pub(super) fn move_to(&mut self, network: Arc<NetworkView>) {
        self.owner.rules.move_to(network);
    }

    /// Returns the next action.
    pub(super) fn poll_output(&mut self) -> Option<AssociationOutput> {
        self.outputs.pop_front()
    }

    /// Returns the numbers of dropped datagrams by reason, in the order of [`DropReason::NAMES`].
    pub(super) fn dropped(&self) -> [u64; DropReason::NAMES.len()] {
        self.owner.dropped
    }

    /// Handles a datagram that arrived on the socket for the client.
    pub(super) fn handle_client(&mut self, now: Duration, from: SocketAddr, bytes: &[u8]) {
        if let Some((to, data)) = self.owner.accept(from, bytes) {
            self.send(now, to, Bytes::copy_from_slice(data));
        }
    }

    fn send(&mut self, now: Duration, to: Destination, data: Bytes) {
        let key = (to.host.clone(), to.port);
        if !self.routes.contains_key(&key) {
            self.make_room();
            let progress = match to.host {
                TargetHost::Literal(ip, _) => RouteProgress::Known(AddressSelection::new(
                    now,
                    vec![SocketAddr::new(ip, to.port)],
                )),
                TargetHost::Name(_) => {
                    self.outputs.push_back(AssociationOutput::Resolve(to));
                    RouteProgress::Resolving(Vec::new())
                }
            };
            self.routes.insert(key.clone(), DestinationRoute { progress, used: now });
        }
        let Some(route) = self.routes.get_mut(&key) else { return };
        route.used = now;
        match &mut route.progress {
            RouteProgress::Resolving(_) if self.waiting >= MAX_WAITING => {
                self.owner.drop(DropReason::Full)
            }
            RouteProgress::Resolving(waiting) => {
                waiting.push(data);
                self.waiting += 1;
            }
            RouteProgress::Known(selection) => self.outputs.extend(send(selection, now, data)),
        }
    }

    /// Returns the rules for its client.
    pub(super) fn rules(&self) -> &ClientRules {
        &self.owner.rules
    }

    /// Handles the addresses of a name, best first. There are none if DNS returned none in time.
    pub(super) fn handle_addresses(
        &mut self,
        now: Duration,
        to: &Destination,
        mut ips: Vec<IpAddr>,
    ) {
        let (rules, all) = (&self.owner.rules, ips.len());
        if rules.of_destination(to) != RuleVerdict::Allowed {
            ips.retain(|ip| rules.of_address(*ip, to.port).is_ok());
        }
        let why = if all > ips.len() { DropReason::NotAllowed } else { DropReason::Unreachable };
        let key = (to.host.clone(), to.port);
        let Some(route) = self.routes.get_mut(&key) else { return };
        let RouteProgress::Resolving(waiting) = &mut route.progress else { return };
        let waiting = std::mem::take(waiting);
        self.waiting -= waiting.len();
        if ips.is_empty() {
            // The next datagram for this name starts another query.
            self.routes.remove(&key);
            waiting.iter().for_each(|_| self.owner.drop(why));
            return;
        }
        let addresses = ips.into_iter().map(|ip| SocketAddr::new(ip, to.port));
        let mut selection = AddressSelection::new(now, addresses.collect());
        let sent = waiting.into_iter().filter_map(|data| send(&mut selection, now, data));
        self.outputs.extend(sent);
        route.progress = RouteProgress::Known(selection);
    }

    /// Sends a datagram to the next address, if there is one, because the system refused to send it to this
    /// one: there is no route for its family, or the port is closed. `remaining` comes from its [`AssociationOutput::Send`].
    pub(super) fn refused(&mut self, now: Duration, to: SocketAddr, data: Bytes, remaining: usize) {
        let next = self.selections().find_map(|selection| selection.next_after(now, to));
        match (next, remaining.checked_sub(1)) {
            (Some(to), Some(remaining)) => {
                self.outputs.push_back(AssociationOutput::Send { to, data, remaining })
            }
            _ => self.owner.drop(DropReason::Unreachable),
        }
    }

    /// Handles a datagram from a peer, which is dropped unless the client has sent something to that address
    /// and port before (RFC 4787 §5), or to another address of the same name.
    pub(super) fn handle_peer(&mut self, from: SocketAddr, data: &[u8]) {
        let from = SocketAddr::new(from.ip().to_canonical(), from.port());
        let is_known =
            self.selections().fold(false, |known, selection| known | selection.answered(from));
        match self.owner.address() {
            Some(to) if is_known => {
                let (datagram, length) = (datagram::write(from, data), data.len());
                self.outputs.push_back(AssociationOutput::Deliver { to, datagram, length });
            }
            _ => self.owner.drop(DropReason::Unsolicited),
        }
    }

    fn make_room(&mut self) {
        while self.routes.len() >= self.destinations {
            let oldest = self.routes.iter().min_by_key(|(_, route)| route.used);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else { return };
            let removed = self.routes.remove(&key);
            if let Some(DestinationRoute { progress: RouteProgress::Resolving(waiting), .. }) =
                removed
            {
                self.waiting -= waiting.len();
                waiting.iter().for_each(|_| self.owner.drop(DropReason::Full));
            }
        }
    }

    fn selections(&mut self) -> impl Iterator<Item = &mut AddressSelection> {
        self.routes.values_mut().filter_map(|route| match &mut route.progress {
            RouteProgress::Resolving(_) => None,
            RouteProgress::Known(selection) => Some(selection),
        })
    }
}

/// Returns the output for a datagram to the selected address.
fn send(selection: &mut AddressSelection, now: Duration, data: Bytes) -> Option<AssociationOutput> {
    let DatagramTarget { to, remaining } = selection.next(now)?;
    Some(AssociationOutput::Send { to, data, remaining })
}
