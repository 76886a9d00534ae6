//! Whether the peer can be reached, and where: heartbeats, a new UDP port, what the network says
//! (RFC 9260 §8, §10, RFC 6951 §5.4).

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use super::state::State;
use super::{Arrival, Association, Ending};
use crate::counters::Counters;
use crate::error::Error;
use crate::event::{Event, LossReason, PathChange};
use crate::identifier::PathId;
use crate::io::Unreachable;
use crate::wire::{Chunk, HeartbeatChunk};

/// The most bytes of heartbeat information that are sent back.
const MAX_ECHOED: usize = 1024;

impl Association {
    /// The path that a packet with our tag came on; follows the peer to another UDP port.
    pub(super) fn path_of(&mut self, arrival: &Arrival) -> PathId {
        if let Some(path) = self.paths.by_remote(arrival.remote, arrival.local) {
            return path;
        }
        let Some(path) = self.paths.by_address(arrival.remote.ip()) else {
            return self.paths.primary();
        };
        self.paths.rebind(path, arrival.remote);
        self.moved = true;
        path
    }

    /// HEARTBEAT: goes back as it came, from the COOKIE ECHO on, if only with it (§8.3).
    pub(super) fn handle_heartbeat(
        &mut self,
        path: PathId,
        heartbeat: HeartbeatChunk,
        counters: &mut Counters,
    ) {
        if self.holds_state_at_peer() && heartbeat.info.len() <= MAX_ECHOED {
            self.waiting.push(Some(path), Chunk::HeartbeatAck(heartbeat), counters);
        } else {
            counters.unexpected_chunks += 1;
        }
    }

    /// Whether an address that the peer listed is to be verified now and needs the endpoint's
    /// permission; the address that counts for the peer.
    pub(crate) fn wants_to_verify(&self, now: Duration) -> Option<IpAddr> {
        let wants = self.state.is_up() && self.paths.wants_permit(now, &self.config);
        if wants { self.source() } else { None }
    }

    /// The answer to that.
    pub(crate) fn permit_verification(&mut self, now: Duration, permitted: bool) {
        self.paths.permit_verification(now, permitted);
    }

    /// How many addresses were verified since this was last asked, and the address that counts for
    /// the peer.
    pub(crate) fn take_verified(&mut self) -> (u8, Option<IpAddr>) {
        (self.paths.take_verified(), self.source())
    }

    fn source(&self) -> Option<IpAddr> {
        self.paths.get(self.paths.primary()).map(|path| path.remote.ip())
    }

    /// HEARTBEAT ACK.
    pub(super) fn handle_heartbeat_ack(
        &mut self,
        now: Duration,
        arrival: &Arrival,
        heartbeat: &HeartbeatChunk,
        counters: &mut Counters,
    ) {
        if !self.paths.on_heartbeat_ack(now, &heartbeat.info, arrival.local) {
            counters.unexpected_chunks += 1;
        }
    }

    /// The network says that packets to an address of the peer's do not arrive. `quoted`: it showed
    /// one of them, so it is no guess. Who shows one and says that SCTP is not spoken there ends the
    /// association, as an ABORT with the T bit does (§10, ICMP8); what this host itself says ends
    /// only a handshake that nobody has answered.
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
        let is_refusal = reason == Unreachable::Protocol && quoted && self.holds_state_at_peer();
        if is_refusal && !self.is_beside(remote, None) {
            return self.end_by_refusal(reason);
        }
        if self.state.is_opening() {
            self.give_up_address(now, path, reason);
        } else if self.state.is_up() {
            // Ask the path itself.
            self.paths.request_heartbeat(path);
        }
    }

    /// As if the peer had sent an ABORT with the T bit.
    fn end_by_refusal(&mut self, reason: Unreachable) {
        let last = match self.state {
            // It has ended, as it was to: only its SHUTDOWN COMPLETE was late or lost.
            State::ShutdownAckSent(_) => Event::Closed,
            _ => Event::Lost(LossReason::Refused(reason)),
        };
        self.end(Ending::Quiet, last);
    }

    /// Whether a COOKIE ECHO was sent, so that there is something at the peer to be ended.
    fn holds_state_at_peer(&self) -> bool {
        self.state.is_up() || matches!(self.state, State::CookieEchoed(_))
    }

    /// The addresses of this host that have a route.
    pub(crate) fn set_local_addresses(
        &mut self,
        now: Duration,
        addresses: &[IpAddr],
        counters: &mut Counters,
    ) {
        self.paths.set_local_addresses(addresses);
        self.announce_own_addresses(now, addresses, counters);
    }

    /// The user wants to know now whether a path works.
    pub(crate) fn request_heartbeat(&mut self, path: PathId) -> Result<(), Error> {
        if self.paths.get(path).is_none() {
            return Err(Error::NoSuchPath);
        }
        self.paths.request_heartbeat(path);
        Ok(())
    }

    /// The user wants new data to go this way.
    pub(crate) fn set_primary(&mut self, now: Duration, path: PathId) -> Result<(), Error> {
        if !self.paths.set_primary(path) {
            return Err(Error::NoSuchPath);
        }
        self.collect_path_changes(now);
        Ok(())
    }

    /// Tells the user what became of paths, and moves data away from those that failed.
    pub(super) fn collect_path_changes(&mut self, now: Duration) {
        let mut changed = false;
        while let Some((path, change)) = self.paths.poll_change() {
            changed |= !matches!(change, PathChange::Rebound | PathChange::MadePrimary);
            let Some(remote) = self.paths.get(path).map(|path| path.remote) else { continue };
            self.notify(Event::Path { path, remote, change });
            if change == PathChange::Confirmed {
                self.prefer_if_wanted(path, remote.ip());
            }
        }
        if changed {
            self.sender.paths_changed(now, &mut self.paths);
        }
    }
}
