//! Datagrams of one client, and where they go: a state machine without sockets and clocks.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use eyas::race::target::Host;

use super::datagram::{self, Fault};
use crate::handshake::Destination;
use crate::rules::{Rules, Verdict};

/// A destination from which nothing came for so long, while the client sent more, may be reached at its
/// next address: what Happy Eyeballs waits for a connection (RFC 8305 §5).
pub const PATIENCE: Duration = Duration::from_millis(250);
/// Addresses of a name that are tried.
pub const MAX_ADDRESSES: usize = 8;
/// Datagrams that wait for DNS, of all destinations of an association.
pub const MAX_WAITING: usize = 16;

/// Why a datagram was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dropped {
    /// It is not of the client whose association it is.
    Stranger,
    /// It is a piece of one (RFC 1928 §7).
    Fragment,
    /// It makes no sense.
    Malformed,
    /// A rule keeps the client from there.
    NotAllowed,
    /// There is no way there: no address, or none that this machine can send to.
    NoWay,
    /// Too many wait for DNS.
    Full,
    /// The client has sent nothing to where it comes from, nor to another address of the same name.
    Unsolicited,
}

impl Dropped {
    /// All names, in the order of the variants.
    pub const NAMES: [&str; 7] =
        ["stranger", "fragment", "malformed", "not-allowed", "no-way", "full", "unsolicited"];
}

/// What there is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// This goes to a destination. Where the system refuses it, say so by [`Association::refused`].
    Send {
        /// Where to.
        to: SocketAddr,
        /// What.
        data: Bytes,
        /// To how many other addresses it may go yet.
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

/// What the datagrams of one client are held to.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The address that the client's connection is from.
    pub client: IpAddr,
    /// The port that it will send from, if it has said so.
    pub port: Option<u16>,
    /// Where it may go.
    pub rules: Arc<Rules>,
    /// Destinations at once; the one used least recently makes room.
    pub destinations: usize,
}

/// The association of one client (RFC 1928 §7).
#[derive(Debug)]
pub struct Association {
    setup: Setup,
    /// Where the client sends from, once it has.
    client: Option<SocketAddr>,
    routes: BTreeMap<(Host, u16), Route>,
    waiting: usize,
    outputs: VecDeque<Output>,
    dropped: [u64; Dropped::NAMES.len()],
}

/// How to reach a destination.
#[derive(Debug)]
struct Route {
    way: Way,
    /// When the client last sent there.
    used: Duration,
}

#[derive(Debug)]
enum Way {
    /// DNS is asked; these wait.
    Unknown(Vec<Bytes>),
    /// The addresses, best first.
    Known { addresses: Vec<SocketAddr>, at: usize, since: Duration, stage: Stage },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing has come from there: so many addresses have had their turn.
    Trying(usize),
    /// This is the one, as something came from there, or as good as the others.
    Settled,
}

impl Association {
    /// Of a client that has sent nothing yet.
    pub fn new(setup: Setup) -> Self {
        let (outputs, dropped) = (VecDeque::new(), Default::default());
        Self { setup, client: None, routes: BTreeMap::new(), waiting: 0, outputs, dropped }
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Datagrams that were dropped, by the reason, in the order of [`Dropped::NAMES`].
    pub fn dropped(&self) -> [u64; Dropped::NAMES.len()] {
        self.dropped
    }

    /// A datagram has come where the client sends to.
    pub fn handle_client(&mut self, now: Duration, from: SocketAddr, bytes: &[u8]) {
        let is_client = match self.client {
            Some(client) => from == client,
            None => {
                from.ip().to_canonical() == self.setup.client.to_canonical()
                    && self.setup.port.is_none_or(|port| port == from.port())
            }
        };
        if !is_client {
            return self.drop(Dropped::Stranger);
        }
        let (destination, data) = match datagram::read(bytes) {
            Ok(read) => read,
            Err(Fault::Fragment) => return self.drop(Dropped::Fragment),
            Err(Fault::Malformed) => return self.drop(Dropped::Malformed),
        };
        self.client = Some(from);
        self.send(now, destination, Bytes::copy_from_slice(data));
    }

    fn send(&mut self, now: Duration, to: Destination, data: Bytes) {
        if let Verdict::Denied(_) = self.setup.rules.of_destination(&to, self.setup.client) {
            return self.drop(Dropped::NotAllowed);
        }
        let key = (to.host.clone(), to.port);
        if !self.routes.contains_key(&key) {
            self.make_room();
            let way = match to.host {
                Host::Literal(ip, _) => Way::known(now, vec![SocketAddr::new(ip, to.port)]),
                Host::Name(_) => {
                    self.outputs.push_back(Output::Resolve(to));
                    Way::Unknown(Vec::new())
                }
            };
            self.routes.insert(key.clone(), Route { way, used: now });
        }
        let Some(route) = self.routes.get_mut(&key) else { return };
        route.used = now;
        match &mut route.way {
            Way::Unknown(_) if self.waiting >= MAX_WAITING => self.drop(Dropped::Full),
            Way::Unknown(held) => {
                held.push(data);
                self.waiting += 1;
            }
            way => self.outputs.extend(way.send(now, data)),
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
        let Way::Unknown(held) = &mut route.way else { return };
        let held = std::mem::take(held);
        self.waiting -= held.len();
        if ips.is_empty() {
            // It is asked again when the client sends again.
            self.routes.remove(&key);
            held.iter().for_each(|_| self.drop(why));
            return;
        }
        let addresses = ips.into_iter().map(|ip| SocketAddr::new(ip, to.port));
        route.way = Way::known(now, addresses.take(MAX_ADDRESSES).collect());
        let sent = held.into_iter().filter_map(|data| route.way.send(now, data));
        self.outputs.extend(sent);
    }

    /// The system refused to send this: there is no route to that family, or nobody takes it there.
    /// It goes to the next address, if there is one; `left` is what came with it.
    pub fn refused(&mut self, now: Duration, to: SocketAddr, data: Bytes, left: usize) {
        let next = self.routes.values_mut().find_map(|route| route.way.after(now, to));
        match (next, left.checked_sub(1)) {
            (Some(to), Some(left)) => self.outputs.push_back(Output::Send { to, data, left }),
            _ => self.drop(Dropped::NoWay),
        }
    }

    /// A datagram has come from elsewhere. Who was not sent to is not heard (RFC 4787 §5, address and
    /// port-dependent filtering); all addresses of a name are one in this.
    pub fn handle_peer(&mut self, from: SocketAddr, data: &[u8]) {
        let from = SocketAddr::new(from.ip().to_canonical(), from.port());
        let is_known =
            self.routes.values_mut().fold(false, |known, route| known | route.way.answered(from));
        match self.client {
            Some(to) if is_known => {
                let (datagram, length) = (datagram::write(from, data), data.len());
                self.outputs.push_back(Output::Deliver { to, datagram, length });
            }
            _ => self.drop(Dropped::Unsolicited),
        }
    }

    fn make_room(&mut self) {
        while self.routes.len() >= self.setup.destinations.max(1) {
            let oldest = self.routes.iter().min_by_key(|(_, route)| route.used);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else { return };
            if let Some(Route { way: Way::Unknown(held), .. }) = self.routes.remove(&key) {
                self.waiting -= held.len();
                held.iter().for_each(|_| self.drop(Dropped::Full));
            }
        }
    }

    fn drop(&mut self, why: Dropped) {
        self.dropped[why as usize] += 1;
    }
}

impl Way {
    fn known(now: Duration, addresses: Vec<SocketAddr>) -> Self {
        let stage = if addresses.len() == 1 { Stage::Settled } else { Stage::Trying(0) };
        Self::Known { addresses, at: 0, since: now, stage }
    }

    /// Sends this. While nothing comes back, each address has its turn once; then it stays with the best,
    /// for many a datagram is not answered at all.
    fn send(&mut self, now: Duration, data: Bytes) -> Option<Output> {
        let Self::Known { addresses, at, since, stage } = self else { return None };
        if let Stage::Trying(given_up) = stage
            && now.saturating_sub(*since) >= PATIENCE
        {
            *given_up += 1;
            (*at, *since) = ((*at + 1) % addresses.len(), now);
            if *given_up == addresses.len() {
                *stage = Stage::Settled;
            }
        }
        Some(Output::Send { to: *addresses.get(*at)?, data, left: addresses.len() - 1 })
    }

    /// The address after this one, which is used from now on, if this one was in use.
    fn after(&mut self, now: Duration, refused: SocketAddr) -> Option<SocketAddr> {
        let Self::Known { addresses, at, since, .. } = self else { return None };
        if addresses.get(*at) != Some(&refused) {
            return None;
        }
        (*at, *since) = ((*at + 1) % addresses.len(), now);
        addresses.get(*at).copied()
    }

    /// Whether this is one of the addresses; if so, and none has answered before, it is the one.
    fn answered(&mut self, from: SocketAddr) -> bool {
        let Self::Known { addresses, at, stage, .. } = self else { return false };
        let Some(place) = addresses.iter().position(|one| *one == from) else { return false };
        if let Stage::Trying(_) = stage {
            (*at, *stage) = (place, Stage::Settled);
        }
        true
    }
}
