//! The reachability of the peer: heartbeats, a new UDP port, ICMP errors (RFC 9260 §8, §10, RFC
//! 6951 §5.4).

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use crate::association::state::AssociationPhase;
use crate::association::{Association, AssociationEnding, PacketArrival};
use crate::counters::EndpointCounters;
use crate::event::{Event, LossReason, PathChange};
use crate::identifier::PathId;
use crate::io::Unreachable;
use crate::wire::{Chunk, HeartbeatChunk};

/// The maximum length in bytes of heartbeat information that is echoed.
const MAX_ECHOED: usize = 1024;

impl Association {
    /// Returns the path that a packet with our tag arrived on; follows the peer to a new UDP port.
    pub(super) fn path_of(&mut self, arrival: &PacketArrival) -> PathId {
        if let Some(path) = self.paths.by_remote(arrival.remote, arrival.local) {
            return path;
        }
        let Some(path) = self.paths.by_address(arrival.remote.ip()) else {
            return self.paths.primary();
        };
        self.paths.rebind(path, arrival.remote);
        self.identity.addresses_changed();
        path
    }

    /// Echoes a HEARTBEAT, at the earliest together with the COOKIE ECHO (§8.3).
    pub(super) fn handle_heartbeat(
        &mut self,
        now: Duration,
        path: PathId,
        heartbeat: &HeartbeatChunk,
        counters: &mut EndpointCounters,
    ) {
        if self.state.peer_has_state() && heartbeat.info.len() <= MAX_ECHOED {
            self.queues.push(Some(path), Chunk::HeartbeatAck(heartbeat.clone()), counters);
            let own = match self.state.is_up() {
                true => self.paths.repeated_verification(now, path, &self.config),
                false => None,
            };
            if let Some(own) = own {
                self.queues.push(Some(path), own.chunk(), counters);
            }
        } else {
            counters.unexpected_chunks += 1;
        }
    }

    /// Returns the peer's primary address if an address that the peer listed is to be verified now
    /// and needs the endpoint's permission.
    pub(crate) fn wants_to_verify(&self, now: Duration) -> Option<IpAddr> {
        let wants = self.state.is_up() && self.paths.wants_permit(now, &self.config);
        if wants { self.paths.primary_address() } else { None }
    }

    /// Permits or denies the verification that [`Self::wants_to_verify`] requested.
    pub(crate) fn permit_verification(&mut self, now: Duration, permitted: bool) {
        self.paths.permit_verification(now, permitted);
    }

    /// Returns the number of addresses verified since the last call, if any, and the peer's primary
    /// address.
    pub(crate) fn take_verified(&mut self) -> Option<(u8, IpAddr)> {
        match self.paths.take_verified() {
            0 => None,
            verified => Some((verified, self.paths.primary_address()?)),
        }
    }

    /// Handles a HEARTBEAT ACK.
    pub(super) fn handle_heartbeat_ack(
        &mut self,
        now: Duration,
        arrival: &PacketArrival,
        heartbeat: &HeartbeatChunk,
        counters: &mut EndpointCounters,
    ) {
        if !self.paths.on_heartbeat_ack(now, &heartbeat.info, arrival.local) {
            counters.unexpected_chunks += 1;
        }
    }

    /// Handles an error that reports an address of the peer as unreachable. `quoted`: an ICMP
    /// message that quotes one of our packets, and so is no guess. If such a message reports that
    /// SCTP is not supported, it ends the association, as an ABORT with the T bit does (§10,
    /// ICMP8); errors of this host end only a handshake that has had no response.
    pub(crate) fn handle_unreachable(
        &mut self,
        now: Duration,
        remote: SocketAddr,
        reason: Unreachable,
        quoted: bool,
    ) {
        let Some(path) = self.paths.by_remote(remote, None) else { return };
        if let Unreachable::TooBig(size) = reason {
            return self.paths.on_too_big(now, path, size);
        }
        let is_refusal = reason == Unreachable::Protocol && quoted && self.state.peer_has_state();
        if is_refusal && !self.paths.is_unconfirmed_beside_others(remote, None) {
            return self.end_by_refusal(reason);
        }
        if self.state.is_opening() {
            self.give_up_address(now, path, reason);
        } else if self.state.is_up() {
            // Check the path with a heartbeat.
            self.paths.request_heartbeat(path);
        }
    }

    /// Handles an ICMP error for an address of the peer (RFC 9260 §10). It is only trusted while
    /// nothing has been received from the peer; other addresses are tried first.
    fn give_up_address(&mut self, now: Duration, path: PathId, reason: Unreachable) {
        if !self.state.awaits_init_ack() {
            return;
        }
        if self.paths.len() == 1 {
            return self
                .end(AssociationEnding::DiscardQueued, Event::Lost(LossReason::Refused(reason)));
        }
        self.paths.remove(path);
        self.identity.addresses_changed();
        if let Some((handshake, mut context)) = self.handshake_and_context(now) {
            handshake.leave(path, &mut context);
        }
    }

    /// Ends the association as an ABORT with the T bit does.
    fn end_by_refusal(&mut self, reason: Unreachable) {
        let last = match self.state {
            // The peer closed as intended: only its SHUTDOWN COMPLETE was late or lost.
            AssociationPhase::ShutdownAckSent(_) => Event::Closed,
            _ => Event::Lost(LossReason::Refused(reason)),
        };
        self.end(AssociationEnding::DiscardQueued, last);
    }

    /// Sets the addresses of this host that have a route, and tells the peer if the user enabled
    /// that (RFC 6458 §8.1.23).
    pub(crate) fn set_local_addresses(
        &mut self,
        now: Duration,
        addresses: &[IpAddr],
        counters: &mut EndpointCounters,
    ) {
        self.paths.set_local_addresses(addresses);
        let announces =
            matches!(self.state, AssociationPhase::Established) && self.config.auto_asconf;
        if announces && let Some((dynamic, mut context)) = self.dynamic_address_and_context(now) {
            dynamic.announce(addresses, &mut context, counters);
        }
    }

    /// Reports path changes to the user, and moves data away from failed paths.
    pub(in crate::association) fn collect_path_changes(&mut self, now: Duration) {
        let mut changed = false;
        while let Some((path, change)) = self.paths.poll_change() {
            changed |= !matches!(change, PathChange::Rebound | PathChange::MadePrimary);
            let Some(remote) = self.paths.get(path).map(|path| path.remote) else { continue };
            self.events.push(Event::Path { path, remote, change });
            if change == PathChange::Confirmed
                && let Some(dynamic) = &mut self.dynamic_address
            {
                dynamic.set_primary_if_wanted(path, remote.ip(), &mut self.paths);
            }
        }
        if changed {
            self.sender.paths_changed(now, &mut self.paths);
        }
    }
}
