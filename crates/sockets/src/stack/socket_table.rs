//! All sockets.

use alloc::collections::{BTreeMap, BTreeSet};

use super::socket::SctpSocket;
use crate::abi::Errno;
use crate::io::SocketId;

/// The sockets by their identifiers, which are never reused, and those whose `poll` result may have
/// changed.
#[derive(Debug)]
pub(super) struct SocketTable {
    sockets: BTreeMap<SocketId, SctpSocket>,
    next: u64,
    touched: BTreeSet<SocketId>,
}

impl SocketTable {
    pub(super) fn new() -> Self {
        Self { sockets: BTreeMap::new(), next: 1, touched: BTreeSet::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.sockets.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (SocketId, &SctpSocket)> {
        self.sockets.iter().map(|(id, socket)| (*id, socket))
    }

    pub(super) fn get(&self, id: SocketId) -> Option<&SctpSocket> {
        self.sockets.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: SocketId) -> Option<&mut SctpSocket> {
        self.sockets.get_mut(&id)
    }

    /// Returns the socket of a call, which fails with `EBADF` if it is closed.
    pub(super) fn find(&self, id: SocketId) -> Result<&SctpSocket, Errno> {
        self.sockets.get(&id).ok_or(Errno::EBADF)
    }

    /// Returns the socket of a call, to change it.
    pub(super) fn find_mut(&mut self, id: SocketId) -> Result<&mut SctpSocket, Errno> {
        self.sockets.get_mut(&id).ok_or(Errno::EBADF)
    }

    /// Adds a socket, and returns its identifier.
    pub(super) fn insert(&mut self, socket: SctpSocket) -> SocketId {
        let id = SocketId(self.next);
        self.next += 1;
        self.sockets.insert(id, socket);
        self.touch(id);
        id
    }

    pub(super) fn remove(&mut self, id: SocketId) -> Option<SctpSocket> {
        self.sockets.remove(&id)
    }

    /// Marks a socket whose `poll` result may have changed.
    pub(super) fn touch(&mut self, id: SocketId) {
        self.touched.insert(id);
    }

    /// Returns a socket that was marked, once.
    pub(super) fn pop_touched(&mut self) -> Option<SocketId> {
        self.touched.pop_first()
    }
}
