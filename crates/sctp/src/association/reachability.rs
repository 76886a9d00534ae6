//! Whether the peer can be reached, and where: heartbeats, a new UDP port, what the network says
//! (RFC 9260 §8, §10, RFC 6951 §5.4).

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use super::{Arrival, Association};
use crate::counters::Counters;
use crate::error::Error;
use crate::event::{Event, PathChange};
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

    /// HEARTBEAT: goes back as it came (§8.3).
    pub(super) fn handle_heartbeat(
        &mut self,
        path: PathId,
        heartbeat: HeartbeatChunk,
        counters: &mut Counters,
    ) {
        if self.state.is_up() && heartbeat.info.len() <= MAX_ECHOED {
            self.waiting.push(Some(path), Chunk::HeartbeatAck(heartbeat), counters);
        } else {
            counters.unexpected_chunks += 1;
        }
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

    /// The network says that packets to an address of the peer's do not arrive. Only a handshake
    /// that nobody has answered ends by that: anybody can claim it.
    pub(crate) fn handle_unreachable(
        &mut self,
        now: Duration,
        remote: SocketAddr,
        reason: Unreachable,
    ) {
        let Some(path) = self.paths.by_remote(remote, None) else { return };
        if let Unreachable::TooBig(size) = reason {
            return self.paths.on_too_big(now, path, size);
        }
        if self.state.is_opening() {
            self.give_up_address(now, path, reason);
        } else if self.state.is_up() {
            // Ask the path itself.
            self.paths.request_heartbeat(path);
        }
    }

    /// The addresses of this host that have a route.
    pub(crate) fn set_local_addresses(
        &mut self,
        now: Duration,
        addresses: &[IpAddr],
        counters: &mut Counters,
    ) {
        self.paths.set_local_addresses(addresses);
        self.tell_own_addresses(now, addresses, counters);
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
