//! The associations of all sockets.

use alloc::collections::{BTreeMap, BTreeSet};
use core::net::{SocketAddr, SocketAddrV6};
use core::time::Duration;

use eyas_sctp::endpoint::Status;

use super::association::{AssocPhase, SocketAssociation};
use super::names::{scope_of, with_port};
use super::ports::{AssociationKey, PortTable};
use super::socket::SctpSocket;
use crate::io::{AssocId, SocketId};

/// The first usable identifier: those below are reserved.
const FIRST: AssocId = AssocId(3);

/// The associations by the identifiers that programs use, which ascend and are not reused; who waits
/// for their end, and when those that are idle are closed.
#[derive(Debug)]
pub(super) struct AssociationTable {
    associations: BTreeMap<AssocId, SocketAssociation>,
    next: AssocId,
    opened: u64,
    /// Associations whose end a `close` waits for.
    lingering: BTreeMap<AssocId, SocketId>,
    /// When to check whether associations have been idle for too long (`SCTP_AUTOCLOSE`).
    idle: BTreeSet<(Duration, AssocId)>,
}

impl AssociationTable {
    pub(super) fn new() -> Self {
        Self {
            associations: BTreeMap::new(),
            next: FIRST,
            opened: 0,
            lingering: BTreeMap::new(),
            idle: BTreeSet::new(),
        }
    }

    pub(super) fn get(&self, id: AssocId) -> Option<&SocketAssociation> {
        self.associations.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: AssocId) -> Option<&mut SocketAssociation> {
        self.associations.get_mut(&id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (AssocId, &SocketAssociation)> {
        self.associations.iter().map(|(id, assoc)| (*id, assoc))
    }

    /// Returns the number of associations that were opened or accepted.
    pub(super) fn opened(&self) -> u64 {
        self.opened
    }

    /// Adds an association, and returns its identifier.
    pub(super) fn insert(&mut self, assoc: SocketAssociation) -> AssocId {
        let mut id = self.next;
        while self.associations.contains_key(&id) {
            id = following(id);
        }
        self.next = following(id);
        self.opened += 1;
        self.associations.insert(id, assoc);
        id
    }

    /// Removes an association, and also returns the closed socket that waits for its end.
    pub(super) fn remove(&mut self, id: AssocId) -> Option<(SocketAssociation, Option<SocketId>)> {
        Some((self.associations.remove(&id)?, self.lingering.remove(&id)))
    }

    /// Lets a closed socket wait for the end of an association.
    pub(super) fn linger(&mut self, id: AssocId, socket: SocketId) {
        self.lingering.insert(id, socket);
    }

    /// Begins to shut an association down, unless it has ended, and returns its key.
    pub(super) fn begin_ending(&mut self, id: AssocId) -> Option<AssociationKey> {
        let assoc = self.associations.get_mut(&id).filter(|assoc| assoc.is_alive())?;
        if assoc.phase == AssocPhase::Up {
            assoc.phase = AssocPhase::Ending;
        }
        Some(assoc.key)
    }

    /// Returns whether an association exists and has not ended.
    pub(super) fn is_alive(&self, id: AssocId) -> bool {
        self.get(id).is_some_and(SocketAssociation::is_alive)
    }

    /// Returns whether an association has something to receive.
    pub(super) fn is_receivable(&self, ports: &PortTable, id: AssocId) -> bool {
        self.get(id).is_some_and(|assoc| assoc.is_receivable(ports))
    }

    /// Returns what the endpoint reports of an association.
    pub(super) fn status(&self, ports: &PortTable, id: AssocId) -> Option<Status> {
        ports.status(self.get(id)?.key)
    }

    /// Returns the association of a socket that has at most one.
    pub(super) fn only_of(&self, socket: &SctpSocket) -> Option<&SocketAssociation> {
        self.get(socket.only()?)
    }

    /// Returns whether a program reads the end from a socket, once it has read everything else.
    pub(super) fn is_at_end(&self, socket: &SctpSocket) -> bool {
        let awaits = SocketAssociation::awaits_shutdown_complete;
        socket.shut_read && !self.only_of(socket).is_some_and(awaits)
    }

    /// Returns the association of a socket that has at most one, unless it has ended.
    pub(super) fn live_of(&self, socket: &SctpSocket) -> Option<AssocId> {
        socket.only().filter(|id| self.is_alive(*id))
    }

    /// Returns the association of a socket with a peer at this address.
    pub(super) fn find_peer(&self, socket: &SctpSocket, address: SocketAddr) -> Option<AssocId> {
        let all = socket.associations.iter().copied();
        let mut with_peer = all.filter(|id| {
            self.get(*id).is_some_and(|assoc| assoc.is_alive() && assoc.has_peer(address))
        });
        with_peer.next()
    }

    /// Returns an own address with its scope, if it has one: that of the peer, or of the address that
    /// the socket was bound to. Linux omits it here.
    pub(super) fn own_name(&self, socket: &SctpSocket, address: SocketAddr) -> SocketAddr {
        let mut all = socket.associations.iter();
        let peer = all.find_map(|id| scope_of(self.get(*id)?.peer));
        match (address, socket.bound.and_then(scope_of).or(peer)) {
            (SocketAddr::V6(v6), Some(scope)) if v6.ip().is_unicast_link_local() => {
                SocketAddrV6::new(*v6.ip(), v6.port(), 0, scope).into()
            }
            _ => address,
        }
    }

    /// Refreshes the peer's addresses and the primary one.
    pub(super) fn refresh_paths(&mut self, ports: &PortTable, id: AssocId) {
        let Some(assoc) = self.associations.get_mut(&id) else { return };
        let Some(status) = ports.status(assoc.key) else { return };
        let known = status.paths.iter();
        assoc.paths =
            known.map(|path| (path.id, with_port(path.remote, status.remote_port))).collect();
        let primary = assoc.paths.iter().find(|(path, _)| *path == status.primary);
        if let Some((_, peer)) = primary {
            assoc.peer = *peer;
        }
    }

    /// Sets the timer that closes an established association when it is idle, if `SCTP_AUTOCLOSE`
    /// is set.
    pub(super) fn schedule_autoclose(&mut self, id: AssocId) {
        if let Some(assoc) = self.associations.get(&id)
            && let Some(idle_limit) = assoc.autoclose
        {
            self.idle.insert((assoc.idle_since.saturating_add(idle_limit), id));
        }
    }

    /// Returns an association that has been idle for too long, once.
    pub(super) fn pop_idle(&mut self, now: Duration) -> Option<AssocId> {
        while let Some(&(due, id)) = self.idle.first()
            && due <= now
        {
            self.idle.pop_first();
            let Some(assoc) = self.associations.get(&id) else { continue };
            let (AssocPhase::Up, Some(idle_limit)) = (assoc.phase, assoc.autoclose) else {
                continue;
            };
            if assoc.idle_since.saturating_add(idle_limit) <= now {
                return Some(id);
            }
            self.schedule_autoclose(id);
        }
        None
    }

    /// Returns when to check for idle associations again.
    pub(super) fn next_idle_check(&self) -> Option<Duration> {
        self.idle.first().map(|(due, _)| *due)
    }
}

/// Returns the identifier after another one.
fn following(id: AssocId) -> AssocId {
    id.0.checked_add(1).map_or(FIRST, AssocId)
}
