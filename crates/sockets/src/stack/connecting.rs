//! `connect`, `connectx`, `listen`, `accept` and `peeloff`.

use alloc::vec::Vec;
use core::net::SocketAddr;
use core::time::Duration;

use eyas_sctp::config::ConnectOptions;
use eyas_sctp::error::Error;

use super::Stack;
use super::association::{AssocPhase, SocketAssociation, next_id, notified_socket};
use super::naming::{check_peer, read_name, read_names};
use super::socket::{SctpSocket, SocketState};
use crate::abi::{Errno, SocketName};
use crate::io::{AssocId, SocketId, SocketStyle};
use crate::settings::InitMsg;

impl Stack {
    /// `connect`. `Ok` means that the association is being established: a non-blocking call returns
    /// `EINPROGRESS`, a blocking one waits for [`Self::connect_result`].
    ///
    /// # Errors
    /// `EALREADY`, `EISCONN`, `EINVAL`, …
    pub fn connect(
        &mut self,
        now: Duration,
        socket: SocketId,
        name: &[u8],
    ) -> Result<AssocId, Errno> {
        self.advance_to(now);
        let (address, _) = read_name(self.socket_of(socket)?, name).map_err(|_| Errno::EINVAL)?;
        self.connect_to(socket, &[address])
    }

    /// `sctp_connectx`, with packed `sockaddr`s, for `SCTP_SOCKOPT_CONNECTX_OLD`, `CONNECTX` and
    /// `CONNECTX3`: the latter two return the identifier to the program, even with `EINPROGRESS`.
    ///
    /// # Errors
    /// The same as for `connect`.
    pub fn connectx(
        &mut self,
        now: Duration,
        socket: SocketId,
        names: &[u8],
    ) -> Result<AssocId, Errno> {
        self.advance_to(now);
        let addresses = read_names(self.socket_of(socket)?, names)?;
        self.connect_to(socket, &addresses)
    }

    fn connect_to(&mut self, socket: SocketId, addresses: &[SocketAddr]) -> Result<AssocId, Errno> {
        let found = self.socket_of(socket)?;
        let is_connected = matches!(found.state, SocketState::Established | SocketState::Closing);
        if is_connected || (found.is_one_to_one() && found.state == SocketState::Listening) {
            return Err(Errno::EISCONN);
        }
        let port = addresses.first().map_or(0, SocketAddr::port);
        // Linux sends an INIT to port 0, which is refused.
        if port == 0 && !addresses.is_empty() {
            check_peer(with_port(addresses[0], 1))?;
            return Err(Errno::ECONNREFUSED);
        }
        for address in addresses {
            check_peer(*address)?;
            if address.port() != port {
                return Err(Errno::EINVAL);
            }
        }
        for address in addresses {
            if let Some(known) = self.find_peer(socket, *address) {
                let is_up = self.associations.get(&known).is_some_and(SocketAssociation::is_up);
                return Err(if is_up { Errno::EISCONN } else { Errno::EALREADY });
            }
        }
        let found = self.socket_of(socket)?;
        if found.is_one_to_one() && self.live_association(found).is_some() {
            return Err(Errno::EALREADY);
        }
        let id = self.open(socket, addresses, None)?;
        if let Ok(found) = self.socket_mut(socket) {
            found.awaited = true;
        }
        Ok(id)
    }

    /// Opens an association to a peer with these addresses.
    pub(super) fn open(
        &mut self,
        socket: SocketId,
        addresses: &[SocketAddr],
        init: Option<InitMsg>,
    ) -> Result<AssocId, Errno> {
        let (first, unique) = distinct(addresses).ok_or(Errno::EINVAL)?;
        self.bind_if_needed(socket)?;
        self.forget_ended(socket);
        let found = self.socket_of(socket)?;
        let key = found.port.ok_or(Errno::EINVAL)?;
        let mut settings = found.settings.clone();
        if let Some(init) = init {
            settings.init = init;
        }
        let encapsulation = found.shared.encapsulation_port;
        let encapsulation = encapsulation.unwrap_or(self.config.encapsulation_port);
        let association = self.association_config(&found.shared, &settings);
        let port = self.ports.get(&key).ok_or(Errno::EINVAL)?;
        let mut options = ConnectOptions::new(first, first.port());
        options.local_port = port.number;
        options.remotes = unique.iter().map(|one| with_port(*one, encapsulation)).collect();
        options.association = association;
        let opened = self.at_port(key, |endpoint, now| endpoint.connect(now, &options));
        let inner = opened.ok_or(Errno::EINVAL)?.map_err(|error| match error {
            // Another socket at this port has an association with that peer.
            Error::Busy => Errno::EADDRNOTAVAIL,
            Error::TooManyAssociations => Errno::ENOMEM,
            _ => Errno::EINVAL,
        })?;
        let mut assoc = SocketAssociation::new(key, inner, first, settings, self.now);
        assoc.socket = Some(socket);
        assoc.paths = unique.iter().zip(0..).map(|(one, n)| (path(n), *one)).collect();
        let id = self.add_association(assoc);
        let found = self.socket_mut(socket)?;
        found.associations.insert(id);
        found.error = None;
        self.touch_socket(socket);
        Ok(id)
    }

    pub(super) fn add_association(&mut self, mut assoc: SocketAssociation) -> AssocId {
        let holder = notified_socket(&assoc).and_then(|id| self.sockets.get(&id));
        let seconds = holder.map_or(0, |found| found.shared.autoclose);
        assoc.autoclose = (seconds > 0).then(|| Duration::from_secs(seconds.into()));
        let mut id = next_id(self.last_association);
        while self.associations.contains_key(&id) {
            id = next_id(id);
        }
        self.last_association = id;
        self.associations_opened += 1;
        if let Some(port) = self.ports.get_mut(&assoc.port) {
            port.associations.insert(assoc.inner, id);
        }
        self.associations.insert(id, assoc);
        id
    }

    /// Returns the outcome of an association that this socket opened, as a blocking `connect` does.
    /// An error is returned only once.
    ///
    /// # Errors
    /// `EINPROGRESS` until it is established; `ECONNREFUSED`, `ETIMEDOUT`, …
    pub fn connect_result(
        &mut self,
        now: Duration,
        socket: SocketId,
        association: AssocId,
    ) -> Result<(), Errno> {
        self.advance_to(now);
        let found = self.sockets.get_mut(&socket).ok_or(Errno::EBADF)?;
        let assoc = self.associations.get_mut(&association);
        let Some(assoc) = assoc.filter(|assoc| assoc.socket == Some(socket)) else {
            return Err(Errno::ECONNREFUSED);
        };
        match assoc.phase {
            AssocPhase::Opening => {
                found.awaited = true;
                Err(Errno::EINPROGRESS)
            }
            AssocPhase::Up | AssocPhase::Ending => Ok(()),
            // It is also reported by `SO_ERROR`, and by `poll` until that is read.
            AssocPhase::Ended => assoc.failure.take().map_or(Ok(()), Err),
        }
    }

    /// Returns whether an association that a message of this socket opened is still being
    /// established ([`crate::SendResult::connecting`]). [`crate::StackOutput::Retry`] reports when to query
    /// this again.
    pub fn is_opening(&mut self, now: Duration, socket: SocketId, association: AssocId) -> bool {
        self.advance_to(now);
        let assoc = self.associations.get(&association);
        let opens =
            assoc.is_some_and(|it| it.socket == Some(socket) && it.phase == AssocPhase::Opening);
        if let Some(found) = self.sockets.get_mut(&socket) {
            found.awaited |= opens;
        }
        opens
    }

    /// `listen`.
    ///
    /// # Errors
    /// `EADDRINUSE`, `EINVAL`.
    pub fn listen(&mut self, now: Duration, socket: SocketId, backlog: i32) -> Result<(), Errno> {
        self.advance_to(now);
        let found = self.socket_of(socket)?;
        let is_idle = matches!(found.state, SocketState::Closed | SocketState::Listening);
        let is_connecting = found.is_one_to_one() && self.live_association(found).is_some();
        if found.is_peeled || !is_idle || is_connecting {
            return Err(Errno::EINVAL);
        }
        if backlog == 0 && found.state == SocketState::Closed {
            return Ok(());
        }
        self.bind_if_needed(socket)?;
        let key = self.socket_of(socket)?.port.ok_or(Errno::EINVAL)?;
        let listens = backlog != 0;
        if listens {
            let port = self.ports.get(&key).ok_or(Errno::EINVAL)?;
            if !self.port_is_free(socket, port.number, &port.addresses, true) {
                return Err(Errno::EADDRINUSE);
            }
            if !port.listens && !self.may_join_listeners(key) {
                return Err(Errno::EEXIST);
            }
        }
        if let Some(port) = self.ports.get_mut(&key) {
            port.listens = listens;
        }
        let found = self.socket_mut(socket)?;
        found.state = if listens { SocketState::Listening } else { SocketState::Closed };
        // A negative backlog means no limit.
        found.backlog = usize::try_from(backlog).unwrap_or(MAX_BACKLOG).min(MAX_BACKLOG);
        self.refresh_listening(socket);
        self.touch_socket(socket);
        Ok(())
    }

    /// `accept`: returns the new socket and the peer's name.
    ///
    /// # Errors
    /// `EAGAIN` if there is no connection; `EINVAL`, `EOPNOTSUPP`.
    pub fn accept(
        &mut self,
        now: Duration,
        socket: SocketId,
    ) -> Result<(SocketId, SocketName), Errno> {
        self.advance_to(now);
        let listener = self.socket_mut(socket)?;
        if !listener.is_one_to_one() {
            return Err(Errno::EOPNOTSUPP);
        }
        if listener.state != SocketState::Listening {
            return Err(Errno::EINVAL);
        }
        let Some(id) = listener.accepting.pop_front() else {
            listener.awaited = true;
            return Err(Errno::EAGAIN);
        };
        let child = self.detach(socket, id)?;
        self.refresh_listening(socket);
        self.touch_socket(socket);
        let peer = self.associations.get(&id).map(|assoc| assoc.peer).ok_or(Errno::EINVAL)?;
        Ok((child, self.socket_of(child)?.name(peer)))
    }

    /// Takes an accepted socket back that no program has received: the next `accept` returns its
    /// connection.
    ///
    /// # Errors
    /// `EINVAL` if the listener no longer listens, or the socket is not one that it accepted.
    pub fn unaccept(
        &mut self,
        now: Duration,
        listener: SocketId,
        accepted: SocketId,
    ) -> Result<(), Errno> {
        self.advance_to(now);
        let found = self.socket_of(listener)?;
        let child = self.socket_of(accepted)?;
        let listens = found.is_one_to_one() && found.state == SocketState::Listening;
        let is_its = child.is_one_to_one() && child.port == found.port && listener != accepted;
        let id = child.only().filter(|_| listens && is_its).ok_or(Errno::EINVAL)?;
        self.sockets.remove(&accepted);
        let assoc = self.associations.get_mut(&id).ok_or(Errno::EINVAL)?;
        (assoc.socket, assoc.listener) = (None, Some(listener));
        assoc.scheduled = assoc.delivered;
        if let Some(port) = self.ports.get_mut(&assoc.port) {
            port.sockets.remove(&accepted);
        }
        let found = self.socket_mut(listener)?;
        found.accepting.push_front(id);
        found.has_arrived = true;
        self.refresh_listening(listener);
        self.touch_socket(listener);
        Ok(())
    }

    /// `sctp_peeloff`: moves one association to a new socket (RFC 6458 §9.2).
    ///
    /// # Errors
    /// `EINVAL`.
    pub fn peeloff(
        &mut self,
        now: Duration,
        socket: SocketId,
        association: AssocId,
    ) -> Result<SocketId, Errno> {
        self.advance_to(now);
        let parent = self.sockets.get_mut(&socket).ok_or(Errno::EBADF)?;
        let is_of_socket = parent.associations.contains(&association);
        if parent.is_single() || parent.style != SocketStyle::OneToMany || !is_of_socket {
            return Err(Errno::EINVAL);
        }
        let assoc = self.associations.get_mut(&association).ok_or(Errno::EINVAL)?;
        if !assoc.is_alive() {
            return Err(Errno::EINVAL);
        }
        assoc.scheduled = assoc.delivered;
        parent.associations.remove(&association);
        parent.turns.retain(|(other, _)| *other != association);
        parent.sticky = parent.sticky.filter(|other| *other != association);
        parent.full -= usize::from(assoc.is_full);
        let child = self.detach(socket, association)?;
        self.touch_socket(socket);
        Ok(child)
    }

    /// Creates a socket for an association that has been removed from `parent`.
    fn detach(&mut self, parent: SocketId, id: AssocId) -> Result<SocketId, Errno> {
        let from = self.sockets.get(&parent).ok_or(Errno::EBADF)?;
        let assoc = self.associations.get_mut(&id).ok_or(Errno::EINVAL)?;
        let mut child = SctpSocket::from_parent(from, id, assoc.settings.clone());
        child.is_peeled = from.style == SocketStyle::OneToMany;
        child.state = match assoc.phase {
            AssocPhase::Ended => SocketState::Closed,
            _ if assoc.peer_ended => SocketState::Closing,
            _ => SocketState::Established,
        };
        child.shut_read = assoc.peer_ended || assoc.phase == AssocPhase::Ended;
        child.full = usize::from(assoc.is_full);
        let child_id = SocketId(self.next_socket);
        self.next_socket += 1;
        assoc.socket = Some(child_id);
        assoc.listener = None;
        let key = assoc.port;
        self.sockets.insert(child_id, child);
        if let Some(port) = self.ports.get_mut(&key) {
            port.sockets.insert(child_id);
        }
        self.schedule(id);
        self.touch_socket(child_id);
        Ok(child_id)
    }

    /// Returns the association of a socket with a peer at this address.
    pub(super) fn find_peer(&self, socket: SocketId, address: SocketAddr) -> Option<AssocId> {
        let found = self.sockets.get(&socket)?;
        found.associations.iter().copied().find(|id| {
            self.associations.get(id).is_some_and(|assoc| {
                assoc.is_alive() && assoc.paths.iter().any(|(_, peer)| *peer == address)
            })
        })
    }

    /// Returns the association of a one-to-one socket, unless it has ended.
    pub(super) fn live_association(&self, socket: &SctpSocket) -> Option<AssocId> {
        let id = socket.only()?;
        self.associations.get(&id).filter(|assoc| assoc.is_alive()).map(|_| id)
    }
}

/// The maximum backlog, whatever a program requests (`net.core.somaxconn`).
const MAX_BACKLOG: usize = 4096;

fn path(number: u16) -> eyas_sctp::identifier::PathId {
    eyas_sctp::identifier::PathId(number)
}

/// Returns the address with another port: that of the encapsulation instead of the SCTP port.
pub(super) fn with_port(mut address: SocketAddr, port: u16) -> SocketAddr {
    address.set_port(port);
    address
}

/// Removes duplicates from a list of addresses, and also returns the first address.
fn distinct(addresses: &[SocketAddr]) -> Option<(SocketAddr, Vec<SocketAddr>)> {
    let mut unique: Vec<SocketAddr> = Vec::new();
    for address in addresses {
        if !unique.contains(address) {
            unique.push(*address);
        }
    }
    Some((*unique.first()?, unique))
}
