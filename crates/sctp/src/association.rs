//! One association: its parts, each with the state of a procedure, and the dispatch between them.
//!
//! | part | state | source |
//! | --- | --- | --- |
//! | `identity` | ports, verification tags, who the peer is | RFC 9260 §8.5 |
//! | `state` | states and their data | RFC 9260 §4 |
//! | `init_params` | INIT and INIT ACK, parsed and built | RFC 9260 §3.3.2, §3.3.3 |
//! | `handshake` | INIT to COOKIE ACK, T1-init and T1-cookie | RFC 9260 §5.1 |
//! | `shutdown` | T2-shutdown and T5-shutdown-guard | RFC 9260 §9.2 |
//! | `lingering` | a deadline for data that delays the shutdown | |
//! | `addresses` | which of a peer's addresses are used | RFC 9260 §5.1.2 |
//! | `dynamic_address` | addresses added and removed | RFC 5061 |
//! | `authentication` | AUTH, sent and verified | RFC 4895 §6 |
//! | `reconfiguration` | streams reset and added | RFC 6525 |
//! | `control` | queued chunks | RFC 9260 §6.10 |
//! | `notifications` | events for the user | RFC 9260 §11.2 |
//!
//! The sender, the receiver and the paths are parts too, in modules beside this one. None of them
//! knows [`Association`]: they are passed the others that they need.
//!
//! | file | calls and inputs that reach several parts | source |
//! | --- | --- | --- |
//! | `user` | of the user | RFC 9260 §11.1, RFC 6458 §8 |
//! | `dispatch` | chunks, each to its procedure | |
//! | `dispatch/handshake`, `dispatch/collision` | of the handshake, for existing associations too | RFC 9260 §5.1, §5.2 |
//! | `dispatch/transfer` | data and its acknowledgement | RFC 9260 §6 |
//! | `dispatch/reachability` | path errors, a peer's new UDP port | RFC 9260 §8, RFC 6951 §5.4 |
//! | `dispatch/streams` | RE-CONFIG | RFC 6525 §5 |
//! | `dispatch/shutdown`, `dispatch/abort` | termination | RFC 9260 §9 |
//! | `dispatch/timing` | timers | |
//! | `dispatch/output` | packets assembled from what the parts have to send | RFC 9260 §6.10 |

pub(crate) mod addresses;
pub(crate) mod authentication;
mod control;
mod dispatch;
pub(crate) mod dynamic_address;
#[cfg(test)]
mod footprint;
mod handshake;
mod identity;
pub(crate) mod init_params;
mod lingering;
mod notifications;
pub(crate) mod reconfiguration;
mod report;
mod retransmission_timer;
mod shutdown;
pub(crate) mod state;
mod user;

use alloc::{boxed::Box, sync::Arc};
use core::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use crate::config::{AssociationConfig, InitialThreshold};
use crate::counters::EndpointCounters;
use crate::endpoint::AgreedExtensions;
use crate::endpoint::cookie::CookieContents;
use crate::endpoint::registry::PeerPorts;
use crate::event::Event;
use crate::identifier::AssociationId;
use crate::io::{Ecn, PeerIdentity};
use crate::path::AssociationPaths;
use crate::receive::AssociationReceiver;
use crate::send::{AssociationSender, SenderTerms};
use crate::wire::PacketChunks;

use authentication::PacketAuthentication;
use control::ChunkQueues;
use dynamic_address::DynamicAddress;
use handshake::Handshake;
use identity::AssociationIdentity;
use init_params::InitParams;
use lingering::ShutdownProgress;
use notifications::NotificationQueue;
use reconfiguration::ReconfigurationState;
use state::AssociationPhase;

pub(crate) use dispatch::{CookieVerdict, InitVerdict};

/// How a packet arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketArrival {
    pub(crate) remote: SocketAddr,
    pub(crate) local: Option<IpAddr>,
    pub(crate) ecn: Ecn,
    pub(crate) peer: Option<PeerIdentity>,
}

/// What is still sent after an association has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AssociationEnding {
    /// Nothing.
    DiscardQueued,
    /// The queued standalone chunks.
    SendQueued,
}

/// One association.
#[derive(Debug)]
pub(crate) struct Association {
    pub(crate) id: AssociationId,
    config: Arc<AssociationConfig>,
    identity: AssociationIdentity,
    state: AssociationPhase,
    agreed: AgreedExtensions,
    authentication: PacketAuthentication,
    dynamic_address: Option<Box<DynamicAddress>>,
    paths: AssociationPaths,
    sender: AssociationSender,
    receiver: AssociationReceiver,
    reconfiguration: ReconfigurationState,
    queues: ChunkQueues,
    events: NotificationQueue,
    /// When pacing allows the next packet, if packets wait for that.
    paced_until: Option<Duration>,
    /// The progress that the peer has to make before the association can shut down.
    lingering: ShutdownProgress,
}

/// The identity and the configuration of a new association, whichever side initiated it.
#[derive(Debug)]
pub(crate) struct AssociationSeed {
    pub(crate) id: AssociationId,
    pub(crate) config: Arc<AssociationConfig>,
    pub(crate) local_port: u16,
    pub(crate) remote_port: u16,
    /// The seed for nonces and jitter.
    pub(crate) seed: [u8; 32],
}

impl AssociationSeed {
    /// Creates paths to the addresses that the user passed.
    fn paths_to(&self, remotes: &[SocketAddr], local: Option<IpAddr>) -> AssociationPaths {
        let config = &self.config;
        let first = remotes.first().copied().unwrap_or(SocketAddr::from(([0, 0, 0, 0], 0)));
        let mut paths = AssociationPaths::new(first, local, config, self.seed);
        for remote in remotes.iter().skip(1).take(config.max_peer_addresses) {
            // The user vouches for them (RFC 9260 §5.4, rule 1).
            if let Some(path) = paths.add(*remote, local, config) {
                paths.confirm(path);
            }
        }
        // The user knows these paths: no events for them.
        while paths.poll_change().is_some() {}
        paths
    }
}

impl Association {
    fn new(
        base: AssociationSeed,
        own: &InitParams,
        peer: &InitParams,
        mut paths: AssociationPaths,
        state: AssociationPhase,
    ) -> Self {
        paths.require_permit();
        set_initial_threshold(&mut paths, peer, &base.config);
        let agreed = own.offers.and(peer.offers);
        let mut authentication = PacketAuthentication::default();
        authentication.agree(own, peer, agreed, &base.config);
        let reserved = authentication.reserved(agreed);
        let sender = AssociationSender::new(&base.config, terms(own, peer, agreed, reserved));
        let inbound = own.inbound.min(peer.outbound);
        let (first, config) = (peer.initial_tsn, &*base.config);
        let receiver =
            AssociationReceiver::new(config, first, inbound, agreed.interleaving, agreed.nr_sack);
        Self {
            id: base.id,
            config: base.config,
            identity: AssociationIdentity::new(
                base.local_port,
                base.remote_port,
                own.tag,
                peer.tag,
            ),
            state,
            agreed,
            authentication,
            dynamic_address: dynamic_address::agree(own, peer, agreed),
            paths,
            sender,
            receiver,
            reconfiguration: ReconfigurationState::new(own.initial_tsn, peer.initial_tsn),
            queues: ChunkQueues::default(),
            events: NotificationQueue::default(),
            paced_until: None,
            lingering: ShutdownProgress::default(),
        }
    }

    /// Initiates an association: queues the INIT. Until the INIT ACK arrives, nothing is known about
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
        let unknown = InitParams::unknown();
        let handshake = Handshake::new(now, own.clone(), paths.primary(), hold, &base.config);
        let state = AssociationPhase::Opening(Box::new(handshake));
        let mut association = Box::new(Self::new(base, &own, &unknown, paths, state));
        if let Some((handshake, mut context)) = association.handshake_and_context(now) {
            handshake.send_init(&mut context);
        }
        association
    }

    /// Creates an established association that a peer initiated, from the cookie that it returned.
    pub(crate) fn accept(
        now: Duration,
        base: AssociationSeed,
        cookie: &CookieContents,
        arrival: &PacketArrival,
        counters: &mut EndpointCounters,
    ) -> Box<Self> {
        // The address that the INIT ACK went to is confirmed by the cookie (RFC 9260 §5.4, rule 2).
        let paths = AssociationPaths::new(cookie.remote, arrival.local, &base.config, base.seed);
        let mut association = Box::new(Self::new(
            base,
            &cookie.own,
            &cookie.peer,
            paths,
            AssociationPhase::Established,
        ));
        association.identity.set_peer(arrival);
        association.add_listed(&cookie.peer.addresses, cookie.remote);
        let primary = association.paths.primary();
        let round_trip = now.checked_sub(cookie.created);
        association.paths.record_round_trip(now, primary, round_trip, &association.config);
        association.notify_up(true);
        let Self { queues, paths, .. } = &mut *association;
        queues.acknowledge_cookie(now, arrival, paths, counters);
        association
    }

    /// Creates an established association from INITs that both sides exchanged out of band, as in SDP:
    /// steps A to E of RFC 9260 §5.1 are complete (draft-hancke-tsvwg-snap, "SCTP considerations").
    pub(crate) fn agreed_out_of_band(
        base: AssociationSeed,
        own: &InitParams,
        peer: &InitParams,
        remotes: &[SocketAddr],
        local: Option<IpAddr>,
    ) -> Box<Self> {
        let paths = base.paths_to(remotes, local);
        let mut association =
            Box::new(Self::new(base, own, peer, paths, AssociationPhase::Established));
        association.notify_up(false);
        association
    }

    /// Returns the addresses by which packets without our tag are matched: none once the
    /// association has ended.
    pub(crate) fn peers(&self) -> impl Iterator<Item = PeerPorts> + '_ {
        let (remote_port, local_port) = (self.identity.remote_port(), self.identity.local_port());
        let identity = self.identity.peer();
        let paths = self.paths.iter().filter(|_| !matches!(self.state, AssociationPhase::Closed));
        paths.map(move |path| PeerPorts { remote: path.remote, remote_port, local_port, identity })
    }

    /// Returns whether the packet is from the peer, as far as the layer below knows. Any may be
    /// while an INIT is on its way, because its answer shows who the peer is.
    pub(crate) fn is_from_peer(&self, arrival: &PacketArrival) -> bool {
        let is_unknown = self.identity.peer().is_none() && self.state.awaits_init_ack();
        is_unknown || self.identity.peer() == arrival.peer
    }

    /// Returns whether a packet with our tag is accepted from `source`: one of the peer's
    /// addresses, or any while the peer's addresses are unknown.
    ///
    /// Packets for a closed association are out of the blue: a peer that waits for our SHUTDOWN
    /// COMPLETE gets it even while the user has not read the last messages.
    #[inline]
    pub(crate) fn accepts_from(&self, source: IpAddr) -> bool {
        match &self.state {
            AssociationPhase::Opening(handshake) if handshake.awaits_init_ack() => true,
            AssociationPhase::Closed => false,
            _ => self.paths.by_address(source).is_some(),
        }
    }

    /// Returns whether the peer may change its addresses.
    pub(crate) fn has_dynamic_addresses(&self) -> bool {
        self.dynamic_address.is_some() && self.state.is_up()
    }

    /// Returns whether to accept a packet with our tag from an unknown address, which may announce
    /// that.
    pub(crate) fn accepts_from_unknown_address(&self, chunks: PacketChunks<'_>) -> bool {
        self.authentication.admits_from_unknown_address(chunks, &self.paths)
    }

    /// Returns what the association's packets are recognized by.
    pub(crate) fn identity(&self) -> &AssociationIdentity {
        &self.identity
    }

    /// Returns whether [`Self::peers`] or our tag has changed since the last call.
    pub(crate) fn take_lookup_changed(&mut self) -> bool {
        self.identity.take_lookup_changed()
    }

    /// Returns the authentication of packets.
    pub(crate) fn authentication(&self) -> &PacketAuthentication {
        &self.authentication
    }

    /// Returns the sender.
    pub(crate) fn sender(&self) -> &AssociationSender {
        &self.sender
    }

    /// Returns the receiver.
    pub(crate) fn receiver(&self) -> &AssociationReceiver {
        &self.receiver
    }

    /// Returns the paths to the peer.
    pub(crate) fn paths(&self) -> &AssociationPaths {
        &self.paths
    }

    /// Returns whether the association has ended and nothing is left to send or read.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, AssociationPhase::Closed)
            && self.events.is_empty()
            && !self.queues.has_standalone()
            && !self.receiver.is_readable()
    }

    /// Returns whether the association has ended; queued chunks and events may remain.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state, AssociationPhase::Closed)
    }

    /// Returns whether events are queued.
    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Returns the next event. The last one reports how the association ended.
    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// Ends the association; `last` is its final event.
    fn end(&mut self, ending: AssociationEnding, last: Event) {
        // Later chunks of the same packet cannot end it again: the first reason is reported.
        if matches!(self.state, AssociationPhase::Closed) {
            return;
        }
        self.sender.fail_all(&mut self.paths);
        self.paths.stop();
        self.collect_events();
        self.state = AssociationPhase::Closed;
        self.identity.addresses_changed();
        self.queues.discard_control();
        if ending == AssociationEnding::DiscardQueued {
            self.queues.discard_standalone();
        }
        self.paced_until = None;
        self.events.push_always(last);
    }

    /// Applies the peer's parameters. Sender and receiver restart; messages of which nothing has
    /// been sent are kept.
    fn adopt_peer(&mut self, own: &InitParams, peer: &InitParams) {
        let agreed = own.offers.and(peer.offers);
        self.agreed = agreed;
        self.identity.set_peer_tag(peer.tag);
        set_initial_threshold(&mut self.paths, peer, &self.config);
        self.authentication.agree(own, peer, agreed, &self.config);
        self.dynamic_address = dynamic_address::agree(own, peer, agreed);
        let reserved = self.authentication.reserved(agreed);
        self.sender.restart(terms(own, peer, agreed, reserved), &mut self.paths);
        let inbound = own.inbound.min(peer.outbound);
        let first = peer.initial_tsn;
        self.receiver.restart(first, inbound, agreed.interleaving, agreed.nr_sack);
        self.reconfiguration = ReconfigurationState::new(own.initial_tsn, first);
    }

    /// Adds the further addresses that the peer listed.
    fn add_listed(&mut self, listed: &[IpAddr], from: SocketAddr) {
        addresses::add_listed(&mut self.paths, listed, from, &self.config);
        self.identity.addresses_changed();
    }
}

/// Sets the initial slow-start threshold, if that is the peer's window.
fn set_initial_threshold(
    paths: &mut AssociationPaths,
    peer: &InitParams,
    config: &AssociationConfig,
) {
    if config.initial_threshold == InitialThreshold::PeerWindow && peer.window > 0 {
        paths.set_initial_threshold(peer.window as usize);
    }
}

/// Returns the negotiated parameters of the sender.
fn terms(
    own: &InitParams,
    peer: &InitParams,
    agreed: AgreedExtensions,
    reserved: usize,
) -> SenderTerms {
    SenderTerms {
        initial_tsn: own.initial_tsn,
        peer_window: peer.window,
        outbound: own.outbound.min(peer.inbound),
        interleaving: agreed.interleaving,
        partial_reliability: agreed.partial_reliability,
        reserved,
    }
}
