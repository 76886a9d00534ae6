//! One association: a file for each procedure of RFC 9260.
//!
//! | file | procedure | source |
//! | --- | --- | --- |
//! | `state` | states, and what only they need | RFC 9260 §4 |
//! | `dispatch` | which procedure a chunk is for | |
//! | `init_params` | INIT and INIT ACK, read and written | RFC 9260 §3.3.2, §3.3.3 |
//! | `handshake` | INIT to COOKIE ACK, T1-init and T1-cookie | RFC 9260 §5.1 |
//! | `collision` | INIT and COOKIE ECHO where an association is already | RFC 9260 §5.2 |
//! | `addresses` | which of a peer's addresses are believed | RFC 9260 §5.1.2 |
//! | `tags` | verification tags | RFC 9260 §8.5 |
//! | `transfer` | data, and its acknowledgement | RFC 9260 §6 |
//! | `reachability` | errors of paths, heartbeats, a peer's new UDP port | RFC 9260 §8, RFC 6951 §5.4 |
//! | `shutdown` | the graceful end | RFC 9260 §9.2 |
//! | `out_of_band` | one whose INITs went another way | draft-hancke-tsvwg-snap |
//! | `lingering` | a deadline for data that holds up the end | |
//! | `abort` | the end at once | RFC 9260 §9.1 |
//! | `dynamic_address`, `own_addresses` | addresses added and removed | RFC 5061 |
//! | `authentication` | AUTH, put in front and checked | RFC 4895 §6 |
//! | `notifications` | what the user is to be told | RFC 9260 §11.2 |
//! | `report` | ERROR, unknown chunks | RFC 9260 §3.2, §3.3.10 |
//! | `reconfiguration`, `streams` | streams reset and added | RFC 6525 |
//! | `control`, `output` | what waits to be sent, and packets made of it | RFC 9260 §6.10 |
//! | `configuring` | settings changed by the user | RFC 6458 §8.1 |
//! | `timing` | timers | |

mod abort;
pub(crate) mod addresses;
pub(crate) mod authentication;
mod collision;
mod configuring;
mod control;
mod dispatch;
pub(crate) mod dynamic_address;
#[cfg(test)]
mod footprint;
mod handshake;
pub(crate) mod init_params;
mod lingering;
mod notifications;
mod out_of_band;
mod output;
mod own_addresses;
mod reachability;
pub(crate) mod reconfiguration;
mod report;
mod shutdown;
pub(crate) mod state;
mod status;
mod streams;
mod tags;
mod timing;
mod transfer;

use alloc::{boxed::Box, sync::Arc};
use core::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use crate::auth::Authentication;
use crate::config::{AssociationConfig, InitialThreshold};
use crate::counters::Counters;
use crate::endpoint::Agreed;
use crate::endpoint::cookie::Cookie;
use crate::endpoint::registry::Peer;
use crate::event::Event;
use crate::identifier::{AssociationId, PathId, VerificationTag};
use crate::io::Ecn;
use crate::path::Paths;
use crate::receive::Receiver;
use crate::send::{Sender, Terms};

use control::Waiting;
use dynamic_address::DynamicAddress;
use init_params::InitParams;
use lingering::Lingering;
use notifications::Notifications;
use reconfiguration::Reconfiguration;
use state::{CookieWait, Retry, State};

pub(crate) use collision::{CookieVerdict, InitVerdict};

/// How a packet came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) remote: SocketAddr,
    pub(crate) local: Option<IpAddr>,
    pub(crate) ecn: Ecn,
}

/// What is still sent when an association ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// Nothing.
    Quiet,
    /// The packets that carry one chunk alone.
    Last,
}

/// One association.
#[derive(Debug)]
pub(crate) struct Association {
    pub(crate) id: AssociationId,
    config: Arc<AssociationConfig>,
    local_port: u16,
    remote_port: u16,
    local_tag: VerificationTag,
    peer_tag: VerificationTag,
    state: State,
    agreed: Agreed,
    authentication: Option<Box<Authentication>>,
    dynamic_address: Option<Box<DynamicAddress>>,
    paths: Paths,
    sender: Sender,
    receiver: Receiver,
    reconfiguration: Reconfiguration,
    waiting: Waiting,
    events: Notifications,
    /// Whether the tag or the addresses by which packets find the association have changed.
    moved: bool,
    /// When pacing lets the next packet go, if packets wait for that.
    paced_until: Option<Duration>,
    /// What the peer has to take before the association can end.
    lingering: Option<Box<Lingering>>,
}

/// What an association is called by and set up with, whichever side opened it.
#[derive(Debug)]
pub(crate) struct AssociationSeed {
    pub(crate) id: AssociationId,
    pub(crate) config: Arc<AssociationConfig>,
    pub(crate) local_port: u16,
    pub(crate) remote_port: u16,
    /// What nonces and jitter are drawn from.
    pub(crate) seed: [u8; 32],
}

impl AssociationSeed {
    /// Paths to the addresses that the user named.
    fn paths_to(&self, remotes: &[SocketAddr], local: Option<IpAddr>) -> Paths {
        let config = &self.config;
        let first = remotes.first().copied().unwrap_or(SocketAddr::from(([0, 0, 0, 0], 0)));
        let mut paths = Paths::new(first, local, config, self.seed);
        for remote in remotes.iter().skip(1).take(config.max_peer_addresses) {
            // The user vouches for them (RFC 9260 §5.4, rule 1).
            if let Some(path) = paths.add(*remote, local, config) {
                paths.confirm(path);
            }
        }
        // The user knows them.
        while paths.poll_change().is_some() {}
        paths
    }
}

impl Association {
    fn new(
        base: AssociationSeed,
        own: &InitParams,
        peer: &InitParams,
        mut paths: Paths,
        state: State,
    ) -> Self {
        paths.ask_before_verifying();
        begin_with_threshold(&mut paths, peer, &base.config);
        let agreed = own.offers.and(peer.offers);
        let authentication = authentication::agree(own, peer, agreed, &base.config, None);
        let reserved = authentication::reserved(authentication.as_deref(), agreed);
        let sender = Sender::new(&base.config, terms(own, peer, agreed, reserved));
        let inbound = own.inbound.min(peer.outbound);
        let (first, config) = (peer.initial_tsn, &*base.config);
        let receiver = Receiver::new(config, first, inbound, agreed.interleaving, agreed.nr_sack);
        Self {
            id: base.id,
            config: base.config,
            local_port: base.local_port,
            remote_port: base.remote_port,
            local_tag: own.tag,
            peer_tag: peer.tag,
            state,
            agreed,
            authentication,
            dynamic_address: own_addresses::agree(own, peer, agreed),
            paths,
            sender,
            receiver,
            reconfiguration: Reconfiguration::new(own.initial_tsn, peer.initial_tsn),
            waiting: Waiting::default(),
            events: Notifications::default(),
            moved: false,
            paced_until: None,
            lingering: None,
        }
    }

    /// One that this side opens: its INIT waits to be sent. Until the INIT ACK nothing is known of
    /// the peer.
    pub(crate) fn open(
        now: Duration,
        base: AssociationSeed,
        own: InitParams,
        remotes: &[SocketAddr],
        local: Option<IpAddr>,
        hold: bool,
    ) -> Box<Self> {
        let paths = base.paths_to(remotes, local);
        let t1 = Retry::new(now, base.config.rto_initial, paths.primary());
        let unknown = InitParams::unknown();
        let state = State::CookieWait(Box::new(CookieWait {
            own: own.clone(),
            t1,
            hold,
            preserve: Duration::ZERO,
            stale: 0,
            shutdown: false,
        }));
        let mut association = Box::new(Self::new(base, &own, &unknown, paths, state));
        association.send_init();
        association
    }

    /// One that a peer opened, from the cookie that it brought back: it is up.
    pub(crate) fn accept(
        now: Duration,
        base: AssociationSeed,
        cookie: &Cookie,
        arrival: &Arrival,
        counters: &mut Counters,
    ) -> Box<Self> {
        // The address that the INIT ACK went to is confirmed by the cookie (RFC 9260 §5.4, rule 2).
        let paths = Paths::new(cookie.remote, arrival.local, &base.config, base.seed);
        let mut association =
            Box::new(Self::new(base, &cookie.own, &cookie.peer, paths, State::Established));
        association.add_listed(&cookie.peer.addresses, cookie.remote);
        let primary = association.paths.primary();
        association.note_round_trip(now, primary, now.checked_sub(cookie.created));
        association.announce_up(true);
        association.acknowledge_cookie(now, arrival, counters);
        association
    }

    /// The tag that packets for this association carry.
    pub(crate) fn local_tag(&self) -> VerificationTag {
        self.local_tag
    }

    /// Under which addresses packets without our tag are its: none once it is over.
    pub(crate) fn peers(&self) -> impl Iterator<Item = Peer> + '_ {
        let (remote_port, local_port) = (self.remote_port, self.local_port);
        let paths = self.paths.iter().filter(|_| !matches!(self.state, State::Closed));
        paths.map(move |path| Peer { remote: path.remote, remote_port, local_port })
    }

    /// Whether packets between these ports are its.
    pub(crate) fn has_ports(&self, local: u16, remote: u16) -> bool {
        self.local_port == local && self.remote_port == remote
    }

    /// Whether [`Self::peers`] or [`Self::local_tag`] changed since this was last asked.
    pub(crate) fn take_moved(&mut self) -> bool {
        core::mem::take(&mut self.moved)
    }

    /// Whether packets without a checksum are taken (RFC 9653 §5.3): we said so, and an association
    /// is there.
    pub(crate) fn takes_zero_checksum(&self) -> bool {
        self.config.extensions.zero_checksum
    }

    /// Whether nothing of it is left to be had.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, State::Closed)
            && self.events.is_empty()
            && self.waiting.alone.is_empty()
            && !self.receiver.is_readable()
    }

    /// Whether nothing but last words is left.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state, State::Closed)
    }

    /// Whether there is something to tell.
    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// The next notification. What an ended association says last is that it ended.
    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// It is over, in whatever way; the last notification says how.
    fn end(&mut self, ending: Ending, last: Event) {
        // What stands behind the end in the same packet is too late: the first ending is told.
        if matches!(self.state, State::Closed) {
            return;
        }
        self.sender.fail_all(&mut self.paths);
        self.paths.stop();
        self.collect_events();
        self.state = State::Closed;
        self.moved = true;
        self.waiting.control.clear();
        if ending == Ending::Quiet {
            self.waiting.alone.clear();
        }
        self.paced_until = None;
        self.events.push_always(last);
    }

    fn notify(&mut self, event: Event) {
        self.events.push(event);
    }

    /// How long to wait for an answer on a path.
    fn timeout_of(&self, path: PathId) -> Duration {
        self.paths.get(path).map_or(self.config.rto_initial, |path| path.rto.current())
    }

    /// Streams that this side may send on.
    fn outbound(&self) -> u16 {
        self.sender.terms().outbound
    }

    /// Takes over what the peer says of itself. Both halves of the transfer begin anew; messages of
    /// which nothing was sent are kept.
    fn adopt_peer(&mut self, own: &InitParams, peer: &InitParams) {
        let agreed = own.offers.and(peer.offers);
        self.agreed = agreed;
        self.peer_tag = peer.tag;
        begin_with_threshold(&mut self.paths, peer, &self.config);
        let before = self.authentication.as_deref();
        self.authentication = authentication::agree(own, peer, agreed, &self.config, before);
        self.dynamic_address = own_addresses::agree(own, peer, agreed);
        let reserved = authentication::reserved(self.authentication.as_deref(), agreed);
        self.sender.restart(terms(own, peer, agreed, reserved), &mut self.paths);
        let inbound = own.inbound.min(peer.outbound);
        let first = peer.initial_tsn;
        self.receiver.restart(first, inbound, agreed.interleaving, agreed.nr_sack);
        self.reconfiguration = Reconfiguration::new(own.initial_tsn, first);
    }

    /// Further addresses that the peer listed, with the UDP port that it used (RFC 6951 §5.1).
    fn add_listed(&mut self, listed: &[IpAddr], from: SocketAddr) {
        for &address in listed {
            if self.paths.by_address(address).is_none() {
                self.paths.add(addresses::beside(address, from), None, &self.config);
            }
        }
        self.moved = true;
    }
}

/// The slow-start threshold to begin with, if that is the peer's window.
fn begin_with_threshold(paths: &mut Paths, peer: &InitParams, config: &AssociationConfig) {
    if config.initial_threshold == InitialThreshold::PeerWindow && peer.window > 0 {
        paths.begin_with_threshold(peer.window as usize);
    }
}

/// What the sending half goes by.
fn terms(own: &InitParams, peer: &InitParams, agreed: Agreed, reserved: usize) -> Terms {
    Terms {
        initial_tsn: own.initial_tsn,
        peer_window: peer.window,
        outbound: own.outbound.min(peer.inbound),
        interleaving: agreed.interleaving,
        partial_reliability: agreed.partial_reliability,
        reserved,
    }
}
