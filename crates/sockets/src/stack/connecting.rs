//! `connect`, `connectx`, `listen`, `accept` and `peeloff`.

use alloc::vec::Vec;
use core::net::SocketAddr;
use core::time::Duration;

use eyas_sctp::config::ConnectOptions;

use super::Stack;
use super::association::{AssocPhase, SocketAssociation};
use super::names::{check_peer, read_name, read_names, with_port};
use super::socket::{SctpSocket, SocketState};
use crate::abi::{Errno, SocketName};
use crate::io::{AssocId, SocketId, SocketStyle};
use crate::settings::{InitMsg, association_config};

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
        let (address, _) =
            read_name(self.sockets.find(socket)?, name).map_err(|_| Errno::EINVAL)?;
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
        let addresses = read_names(self.sockets.find(socket)?, names)?;
        self.connect_to(socket, &addresses)
    }

    fn connect_to(&mut self, socket: SocketId, addresses: &[SocketAddr]) -> Result<AssocId, Errno> {
        let found = self.sockets.find(socket)?;
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
            if let Some(known) = self.associations.find_peer(found, *address) {
                let is_up = self.associations.get(known).is_some_and(SocketAssociation::is_up);
                return Err(if is_up { Errno::EISCONN } else { Errno::EALREADY });
            }
        }
        if found.is_one_to_one() && self.associations.live_of(found).is_some() {
            return Err(Errno::EALREADY);
        }
        let id = self.open(socket, addresses, None)?;
        if let Ok(found) = self.sockets.find_mut(socket) {
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
        let found = self.sockets.find(socket)?;
        let port = found.port.ok_or(Errno::EINVAL)?;
        let mut settings = found.settings.clone();
        if let Some(init) = init {
            settings.init = init;
        }
        let encapsulation = found.shared.encapsulation_port;
        let encapsulation = encapsulation.unwrap_or(self.config.encapsulation_port);
        let mut options = ConnectOptions::new(first, first.port());
        options.remotes = unique.iter().map(|one| with_port(*one, encapsulation)).collect();
        options.association =
            association_config(&self.config.association, &found.shared, &settings);
        let key = self.ports.connect(self.now, port, options)?;
        let mut assoc = SocketAssociation::new(key, first, settings, self.now);
        assoc.socket = Some(socket);
        assoc.paths = unique.iter().zip(0..).map(|(one, n)| (path(n), *one)).collect();
        let id = self.add_association(assoc);
        let found = self.sockets.find_mut(socket)?;
        found.associations.insert(id);
        found.error = None;
        self.sockets.touch(socket);
        Ok(id)
    }

    /// Updates whether peers can open associations with a socket.
    pub(super) fn refresh_listening(&mut self, socket: SocketId) {
        if let Some(found) = self.sockets.get(socket) {
            found.update_listening(socket, &self.config.association, &mut self.ports);
        }
    }

    /// Adds an association to its table and to its port.
    pub(super) fn add_association(&mut self, mut assoc: SocketAssociation) -> AssocId {
        let holder = assoc.notified_socket().and_then(|id| self.sockets.get(id));
        let seconds = holder.map_or(0, |found| found.shared.autoclose);
        assoc.autoclose = (seconds > 0).then(|| Duration::from_secs(seconds.into()));
        let key = assoc.key;
        let id = self.associations.insert(assoc);
        self.ports.add_association(key, id);
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
        let found = self.sockets.find_mut(socket)?;
        let assoc = self.associations.get_mut(association);
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
        let assoc = self.associations.get(association);
        let opens =
            assoc.is_some_and(|it| it.socket == Some(socket) && it.phase == AssocPhase::Opening);
        if let Some(found) = self.sockets.get_mut(socket) {
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
        let found = self.sockets.find(socket)?;
        let is_idle = matches!(found.state, SocketState::Closed | SocketState::Listening);
        let is_connecting = found.is_one_to_one() && self.associations.live_of(found).is_some();
        if found.is_peeled || !is_idle || is_connecting {
            return Err(Errno::EINVAL);
        }
        if backlog == 0 && found.state == SocketState::Closed {
            return Ok(());
        }
        self.bind_if_needed(socket)?;
        let key = self.sockets.find(socket)?.port.ok_or(Errno::EINVAL)?;
        let listens = backlog != 0;
        if listens {
            self.ports.check_listening(&self.sockets.find(socket)?.claim(socket), key)?;
        }
        self.ports.set_listening(key, listens);
        let found = self.sockets.find_mut(socket)?;
        found.state = if listens { SocketState::Listening } else { SocketState::Closed };
        // A negative backlog means no limit.
        found.backlog = usize::try_from(backlog).unwrap_or(MAX_BACKLOG).min(MAX_BACKLOG);
        self.refresh_listening(socket);
        self.sockets.touch(socket);
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
        let listener = self.sockets.find_mut(socket)?;
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
        self.sockets.touch(socket);
        let peer = self.associations.get(id).map(|assoc| assoc.peer).ok_or(Errno::EINVAL)?;
        Ok((child, self.sockets.find(child)?.name(peer)))
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
        let found = self.sockets.find(listener)?;
        let child = self.sockets.find(accepted)?;
        let listens = found.is_one_to_one() && found.state == SocketState::Listening;
        let is_its = child.is_one_to_one() && child.port == found.port && listener != accepted;
        let id = child.only().filter(|_| listens && is_its).ok_or(Errno::EINVAL)?;
        self.sockets.remove(accepted);
        let assoc = self.associations.get_mut(id).ok_or(Errno::EINVAL)?;
        (assoc.socket, assoc.listener) = (None, Some(listener));
        assoc.delivery.unschedule();
        self.ports.remove_socket(assoc.key.port, accepted);
        let found = self.sockets.find_mut(listener)?;
        found.accepting.push_front(id);
        found.has_arrived = true;
        self.refresh_listening(listener);
        self.sockets.touch(listener);
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
        let parent = self.sockets.find_mut(socket)?;
        let is_of_socket = parent.associations.contains(&association);
        if parent.is_single() || parent.style != SocketStyle::OneToMany || !is_of_socket {
            return Err(Errno::EINVAL);
        }
        let assoc = self.associations.get_mut(association).ok_or(Errno::EINVAL)?;
        if !assoc.is_alive() {
            return Err(Errno::EINVAL);
        }
        assoc.delivery.unschedule();
        parent.remove_association(association, assoc.is_full);
        let child = self.detach(socket, association)?;
        self.sockets.touch(socket);
        Ok(child)
    }

    /// Creates a socket for an association that has been removed from `parent`.
    fn detach(&mut self, parent: SocketId, id: AssocId) -> Result<SocketId, Errno> {
        let from = self.sockets.find(parent)?;
        let assoc = self.associations.get_mut(id).ok_or(Errno::EINVAL)?;
        let mut child = SctpSocket::from_parent(from, id, assoc.settings.clone());
        child.is_peeled = from.style == SocketStyle::OneToMany;
        child.state = match assoc.phase {
            AssocPhase::Ended => SocketState::Closed,
            _ if assoc.peer_ended => SocketState::Closing,
            _ => SocketState::Established,
        };
        child.shut_read = assoc.peer_ended || assoc.phase == AssocPhase::Ended;
        child.full = usize::from(assoc.is_full);
        let child_id = self.sockets.insert(child);
        (assoc.socket, assoc.listener) = (Some(child_id), None);
        self.ports.add_socket(assoc.key.port, child_id);
        self.schedule(id);
        Ok(child_id)
    }
}

/// The maximum backlog, whatever a program requests (`net.core.somaxconn`).
const MAX_BACKLOG: usize = 4096;

fn path(number: u16) -> eyas_sctp::identifier::PathId {
    eyas_sctp::identifier::PathId(number)
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
