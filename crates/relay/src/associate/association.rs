//! Datagrams of one client, and where they go: a state machine without sockets and clocks.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use eyas::race::target::Host;

use super::address_selection::{AddressSelection, Sent};
use super::datagram;
use super::owner::{Dropped, Owner, Setup};
use crate::handshake::Destination;
use crate::rules::Verdict;

/// Datagrams that wait for DNS, of all destinations of an association.
pub const MAX_WAITING: usize = 16;

/// What there is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// This goes to a destination. Where the system refuses it, say so by [`Association::refused`].
    Send {
        /// Where to.
        to: SocketAddr,
        /// What.
        data: Bytes,
        /// How many other addresses remain to be tried.
        left: usize,
    },
    /// This goes to the client.
    Deliver {
        /// The client.
        to: SocketAddr,
        /// With its header.
        datagram: Bytes,
        /// Octets in it that are not of the header.
        length: usize,
    },
    /// The addresses of this name are wanted, by [`Association::handle_addresses`].
    Resolve(Destination),
}

/// The association of one client (RFC 1928 §7).
#[derive(Debug)]
pub struct Association {
    setup: Setup,
    owner: Owner,
    routes: BTreeMap<(Host, u16), Route>,
    waiting: usize,
    outputs: VecDeque<Output>,
}

/// How to reach a destination.
#[derive(Debug)]
struct Route {
    progress: Progress,
    /// When the client last sent there.
    used: Duration,
}

#[derive(Debug)]
enum Progress {
    /// DNS is asked; these wait.
    Asking(Vec<Bytes>),
    /// The addresses are known.
    Known(AddressSelection),
}

impl Association {
    /// Of a client that has sent nothing yet.
    pub fn new(setup: Setup) -> Self {
        let (owner, outputs) = (Owner::new(&setup), VecDeque::new());
        Self { setup, owner, routes: BTreeMap::new(), waiting: 0, outputs }
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Datagrams that were dropped, by the reason, in the order of [`Dropped::NAMES`].
    pub fn dropped(&self) -> [u64; Dropped::NAMES.len()] {
        self.owner.dropped
    }

    /// A datagram has come where the client sends to.
    pub fn handle_client(&mut self, now: Duration, from: SocketAddr, bytes: &[u8]) {
        if let Some((to, data)) = self.owner.take(from, bytes) {
            self.send(now, to, Bytes::copy_from_slice(data));
        }
    }

    fn send(&mut self, now: Duration, to: Destination, data: Bytes) {
        let key = (to.host.clone(), to.port);
        if !self.routes.contains_key(&key) {
            self.make_room();
            let progress = match to.host {
                Host::Literal(ip, _) => {
                    Progress::Known(AddressSelection::new(now, vec![SocketAddr::new(ip, to.port)]))
                }
                Host::Name(_) => {
                    self.outputs.push_back(Output::Resolve(to));
                    Progress::Asking(Vec::new())
                }
            };
            self.routes.insert(key.clone(), Route { progress, used: now });
        }
        let Some(route) = self.routes.get_mut(&key) else { return };
        route.used = now;
        match &mut route.progress {
            Progress::Asking(_) if self.waiting >= MAX_WAITING => self.owner.drop(Dropped::Full),
            Progress::Asking(held) => {
                held.push(data);
                self.waiting += 1;
            }
            Progress::Known(selection) => self.outputs.extend(sent(selection, now, data)),
        }
    }

    /// DNS gives these addresses of a name, best first; none if it knows none, or does not answer.
    pub fn handle_addresses(&mut self, now: Duration, to: &Destination, mut ips: Vec<IpAddr>) {
        let (rules, client) = (&self.setup.rules, self.setup.client);
        let had = ips.len();
        if rules.of_destination(to, client) != Verdict::Allowed {
            ips.retain(|ip| rules.of_address(*ip, to.port, client).is_ok());
        }
        let why = if had > ips.len() { Dropped::NotAllowed } else { Dropped::NoWay };
        let key = (to.host.clone(), to.port);
        let Some(route) = self.routes.get_mut(&key) else { return };
        let Progress::Asking(held) = &mut route.progress else { return };
        let held = std::mem::take(held);
        self.waiting -= held.len();
        if ips.is_empty() {
            // It is asked again when the client sends again.
            self.routes.remove(&key);
            held.iter().for_each(|_| self.owner.drop(why));
            return;
        }
        let addresses = ips.into_iter().map(|ip| SocketAddr::new(ip, to.port));
        let mut selection = AddressSelection::new(now, addresses.collect());
        self.outputs.extend(held.into_iter().filter_map(|data| sent(&mut selection, now, data)));
        route.progress = Progress::Known(selection);
    }

    /// The system refused to send this: there is no route to that family, or nobody takes it there.
    /// It goes to the next address, if there is one; `left` is what came with it.
    pub fn refused(&mut self, now: Duration, to: SocketAddr, data: Bytes, left: usize) {
        let next = self.selections().find_map(|selection| selection.after(now, to));
        match (next, left.checked_sub(1)) {
            (Some(to), Some(left)) => self.outputs.push_back(Output::Send { to, data, left }),
            _ => self.owner.drop(Dropped::NoWay),
        }
    }

    /// A datagram has come from elsewhere. Who was not sent to is not heard (RFC 4787 §5, address and
    /// port-dependent filtering); all addresses of a name are one in this.
    pub fn handle_peer(&mut self, from: SocketAddr, data: &[u8]) {
        let from = SocketAddr::new(from.ip().to_canonical(), from.port());
        let is_known =
            self.selections().fold(false, |known, selection| known | selection.answered(from));
        match self.owner.address() {
            Some(to) if is_known => {
                let (datagram, length) = (datagram::write(from, data), data.len());
                self.outputs.push_back(Output::Deliver { to, datagram, length });
            }
            _ => self.owner.drop(Dropped::Unsolicited),
        }
    }

    fn make_room(&mut self) {
        while self.routes.len() >= self.setup.destinations.max(1) {
            let oldest = self.routes.iter().min_by_key(|(_, route)| route.used);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else { return };
            if let Some(Route { progress: Progress::Asking(held), .. }) = self.routes.remove(&key) {
                self.waiting -= held.len();
                held.iter().for_each(|_| self.owner.drop(Dropped::Full));
            }
        }
    }

    fn selections(&mut self) -> impl Iterator<Item = &mut AddressSelection> {
        self.routes.values_mut().filter_map(|route| match &mut route.progress {
            Progress::Asking(_) => None,
            Progress::Known(selection) => Some(selection),
        })
    }
}

/// The output for a datagram to the selected address.
fn sent(selection: &mut AddressSelection, now: Duration, data: Bytes) -> Option<Output> {
    let Sent { to, left } = selection.next(now)?;
    Some(Output::Send { to, data, left })
}
