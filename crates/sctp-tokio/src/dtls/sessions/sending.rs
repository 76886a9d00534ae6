//! Sending on paths: finds the session for packets, and at a client opens the one that is missing.

use std::net::SocketAddr;
use std::time::Instant;

use eyas_sctp::io::PeerIdentity;
use rustls::Error as TlsError;

use super::super::on_demand::Opening;
use super::super::session::{Outcome, Stage};
use super::super::session_path::SessionPath;
use super::{Entry, Sessions};

impl Sessions {
    /// Opens the session of a path, if sessions are opened on demand and it has not failed just
    /// now; the first one with any peer that is trusted.
    pub(crate) fn open_path(
        &mut self,
        now: Instant,
        path: SessionPath,
        peer: Option<PeerIdentity>,
    ) -> Outcome {
        let on_demand = self.on_demand.as_mut().filter(|on_demand| !on_demand.is_full_for(path));
        match on_demand
            .map(|on_demand| (on_demand.begin(now, path, peer), on_demand.opening.clone()))
        {
            Some((true, Opening { identity, trust, initial_rto })) => {
                self.open(now, path, &identity, trust, initial_rto)
            }
            _ => Outcome::default(),
        }
    }

    /// Returns whether this side opens a session for each path.
    pub(crate) fn opens_paths(&self) -> bool {
        self.on_demand.is_some()
    }

    /// Opens the session of a path on which nothing was sent yet, so that the peer can send there.
    pub(crate) fn open_missing(
        &mut self,
        now: Instant,
        path: SessionPath,
        peer: PeerIdentity,
    ) -> Outcome {
        let has_session = self.all.get(&path).is_some_and(|entry| !entry.session.is_over());
        if has_session { Outcome::default() } else { self.open_path(now, path, Some(peer)) }
    }

    /// Encrypts packets for the peer at these addresses, each in a separate datagram.
    #[cfg(test)]
    pub(crate) fn send<'a>(
        &mut self,
        now: Instant,
        path: impl Into<SessionPath>,
        packets: impl Iterator<Item = &'a [u8]>,
    ) -> Outcome {
        self.send_to(now, path.into(), None, packets).1
    }

    /// Encrypts packets for this peer, each in a separate datagram, if there is a session with it
    /// on this path, or at a server on another one to the same address. A client opens one that is
    /// missing. Returns the path that was used.
    pub(crate) fn send_to<'a>(
        &mut self,
        now: Instant,
        path: SessionPath,
        peer: Option<PeerIdentity>,
        packets: impl Iterator<Item = &'a [u8]>,
    ) -> (SessionPath, Outcome) {
        let used = self.sendable(path, peer);
        let is_stale =
            self.on_demand.as_ref().is_some_and(|on_demand| on_demand.is_stale(now, path));
        if let Some(used) = used.filter(|_| !is_stale) {
            let out = self.with_session(now, used, |session, out| {
                packets.for_each(|packet| session.send(now, packet, out))
            });
            return (used, out);
        }
        let stage = self.all.get(&path).map(|entry| entry.session.stage());
        // With another peer than that of the packets.
        let is_taken = !is_stale && stage == Some(&Stage::Up);
        let out = match stage {
            Some(Stage::Handshake { .. }) => Outcome::default(),
            _ if is_taken => Outcome::default(),
            _ => self.open_path(now, path, peer),
        };
        match &mut self.on_demand {
            Some(on_demand) if !is_taken && on_demand.is_open(path) => {
                on_demand.wait(path, peer, packets);
            }
            _ => {
                self.unsendable += packets.count() as u64;
                tracing::trace!(?path, total = self.unsendable, "no DTLS session for packets");
            }
        }
        (path, out)
    }

    /// Returns whether packets for this peer can be sent on this path, or will be once a session is
    /// open.
    pub(crate) fn can_send(&self, path: SessionPath, peer: Option<PeerIdentity>) -> bool {
        self.on_demand.is_some() || self.sendable(path, peer).is_some()
    }

    /// Returns the path of the session for packets to this peer. A server cannot choose its source:
    /// where the session of that is missing, it uses one that the client opened.
    fn sendable(&self, path: SessionPath, peer: Option<PeerIdentity>) -> Option<SessionPath> {
        let is_server = self.role.is_server();
        let is_usable = |entry: &Entry| {
            let is_peer = match peer {
                // An INIT is for whomever the client trusts.
                None if !is_server => true,
                peer => entry.session.identity() == peer,
            };
            is_peer && *entry.session.stage() == Stage::Up
        };
        if self.all.get(&path).is_some_and(is_usable) {
            return Some(path);
        }
        if !is_server || peer.is_none() {
            return None;
        }
        let others = self.sessions_to(path.remote).filter(|(_, entry)| is_usable(entry));
        others.max_by_key(|(_, entry)| entry.last_heard).map(|(path, _)| *path)
    }

    /// Replaces the sessions with this address when packets are next sent there, because the path
    /// does not work: the peer may have lost them.
    pub(crate) fn renew(&mut self, now: Instant, remote: SocketAddr) {
        let mut paths = self.paths_to(remote);
        paths.retain(|path| !self.all.get(path).is_some_and(|entry| entry.session.is_opening()));
        let Some(on_demand) = &mut self.on_demand else { return };
        paths.into_iter().for_each(|path| on_demand.fail(now, path));
    }

    /// Sends what has waited for a session that is now up, or records that it works or has failed.
    pub(super) fn meet_demand(
        &mut self,
        now: Instant,
        path: SessionPath,
        is_new: bool,
        out: &mut Outcome,
    ) {
        let Some(on_demand) = &mut self.on_demand else { return };
        let Some(entry) = self.all.get_mut(&path) else { return };
        let session = &mut entry.session;
        let expected = on_demand.expected_peer(path);
        if is_new && expected.is_some() && session.identity() != expected {
            let reason = "the key on this path is not that of the other paths".to_owned();
            session.close(out);
            session.fail(TlsError::General(reason));
        }
        if session.is_over() {
            on_demand.fail(now, path);
        } else if is_new {
            let peer = session.identity();
            for (receiver, packet) in on_demand.take_waiting(path) {
                if receiver.is_none() || receiver == peer {
                    session.send(now, &packet, out);
                }
            }
        } else {
            on_demand.works(path);
        }
    }
}
