//! A model of Linux 6.1: one-to-one sockets, with an idle network between calls. Based on
//! measurements of the kernel, not on our implementation. Associations are modelled only as far as
//! programs can observe them.

use std::collections::{BTreeMap, VecDeque};

use eyas_sockets::Errno;
use eyas_sockets::abi::number::poll::{POLLERR, POLLHUP, POLLIN, POLLOUT, POLLRDHUP};

/// The identifier of a socket, in the order of creation.
pub(crate) type Id = usize;

/// The state of the association of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    /// Both may send.
    Up,
    /// Shut down by this side.
    EndedHere,
    /// Shut down by the peer.
    EndedThere,
    /// Shut down by the peer, and then by this side, too.
    EndedTwice,
    /// Aborted by the peer.
    Aborted,
}

#[derive(Clone, Debug)]
enum State {
    Closed,
    /// The sockets of peers that wait to be accepted, and their ends in the kernel.
    Listening {
        backlog: usize,
        waiting: VecDeque<(Id, End)>,
    },
    Connected(End),
}

/// One end of an association.
#[derive(Clone, Debug)]
struct End {
    link: Link,
    /// The socket at the other end; `None` if it is closed or not accepted yet.
    peer: Option<Id>,
    unread: VecDeque<usize>,
    /// Whether it was accepted after its end: a closed socket with unread data.
    is_late: bool,
}

impl End {
    const fn with(peer: Option<Id>) -> Self {
        Self { link: Link::Up, peer, unread: VecDeque::new(), is_late: false }
    }
}

#[derive(Clone, Debug)]
struct Socket {
    host: usize,
    port: Option<u16>,
    state: State,
    error: Option<Errno>,
}

/// All sockets of both hosts.
#[derive(Debug, Default)]
pub(crate) struct Kernel {
    sockets: BTreeMap<Id, Socket>,
    created: Id,
}

impl Kernel {
    pub(crate) fn socket(&mut self, host: usize) -> Id {
        self.created += 1;
        let socket = Socket { host, port: None, state: State::Closed, error: None };
        self.sockets.insert(self.created, socket);
        self.created
    }

    fn socket_mut(&mut self, id: Id) -> &mut Socket {
        self.sockets.get_mut(&id).expect("calls are made only on open sockets")
    }

    /// Returns the end of an association: that of a connected socket, or the one of this peer that
    /// waits at a listener.
    fn end_at(&mut self, peer: Option<Id>, from: Id) -> Option<&mut End> {
        let ends = self.sockets.iter_mut().filter_map(|(id, socket)| match &mut socket.state {
            State::Connected(end) if peer == Some(*id) => Some(end),
            State::Listening { waiting, .. } => {
                waiting.iter_mut().find(|(who, _)| *who == from).map(|(_, end)| end)
            }
            _ => None,
        });
        ends.into_iter().next()
    }

    fn is_taken(&self, host: usize, port: u16) -> bool {
        self.sockets.values().any(|one| one.host == host && one.port == Some(port))
    }

    pub(crate) fn bind(&mut self, id: Id, port: u16) -> Result<(), Errno> {
        let (host, has_one) = (self.socket_mut(id).host, self.socket_mut(id).port.is_some());
        if has_one {
            return Err(Errno::EINVAL);
        }
        if self.is_taken(host, port) {
            return Err(Errno::EADDRINUSE);
        }
        self.socket_mut(id).port = Some(port);
        Ok(())
    }

    /// Listens; a socket without a port is assigned `port`.
    pub(crate) fn listen(&mut self, id: Id, backlog: usize, port: u16) -> Result<(), Errno> {
        let socket = self.socket_mut(id);
        match &mut socket.state {
            State::Connected(_) => return Err(Errno::EINVAL),
            State::Listening { backlog: before, .. } => *before = backlog,
            State::Closed => {
                socket.state = State::Listening { backlog, waiting: VecDeque::new() };
            }
        }
        socket.port.get_or_insert(port);
        Ok(())
    }

    /// A completed connect to a port of the other host; a socket without a port is assigned this
    /// one.
    pub(crate) fn connect(&mut self, id: Id, to: u16, port: u16) -> Result<(), Errno> {
        let socket = self.socket_mut(id);
        match socket.state {
            State::Connected(_) | State::Listening { .. } => return Err(Errno::EISCONN),
            State::Closed => {}
        }
        socket.port.get_or_insert(port);
        // The outcome of the previous connect is no longer reported.
        socket.error = None;
        let there = 1 - socket.host;
        let listener = self.sockets.values_mut().find_map(|one| match &mut one.state {
            State::Listening { backlog, waiting }
                if (one.host, one.port) == (there, Some(to)) && waiting.len() <= *backlog =>
            {
                Some(waiting)
            }
            _ => None,
        });
        let Some(waiting) = listener else {
            self.socket_mut(id).error = Some(Errno::ECONNREFUSED);
            return Err(Errno::ECONNREFUSED);
        };
        waiting.push_back((id, End::with(Some(id))));
        self.socket_mut(id).state = State::Connected(End::with(None));
        Ok(())
    }

    pub(crate) fn accept(&mut self, id: Id) -> Result<Id, Errno> {
        let socket = self.socket_mut(id);
        let (host, port) = (socket.host, socket.port);
        let State::Listening { waiting, .. } = &mut socket.state else {
            return Err(Errno::EINVAL);
        };
        let (peer, mut end) = waiting.pop_front().ok_or(Errno::EAGAIN)?;
        end.is_late = end.link != Link::Up;
        self.created += 1;
        let created = self.created;
        let state = State::Connected(end);
        self.sockets.insert(created, Socket { host, port, state, error: None });
        if let Some(Socket { state: State::Connected(end), .. }) = self.sockets.get_mut(&peer) {
            end.peer = Some(created);
        }
        Ok(created)
    }

    pub(crate) fn send(&mut self, id: Id, length: usize) -> Result<(), Errno> {
        let socket = self.socket_mut(id);
        if length == 0 && !matches!(socket.state, State::Listening { .. }) {
            return Err(Errno::EINVAL);
        }
        let peer = match &socket.state {
            State::Connected(End { link: Link::Up, peer, .. }) => *peer,
            _ => return Err(socket.error.take().unwrap_or(Errno::EPIPE)),
        };
        if let Some(end) = self.end_at(peer, id) {
            end.unread.push_back(length);
        }
        Ok(())
    }

    /// A non-blocking receive: returns the length, and whether the message ends there.
    pub(crate) fn receive(&mut self, id: Id, room: usize) -> Result<(usize, bool), Errno> {
        let socket = self.socket_mut(id);
        let end = match &mut socket.state {
            State::Listening { .. } => return Err(Errno::ENOTCONN),
            State::Closed => return Err(socket.error.take().unwrap_or(Errno::EAGAIN)),
            State::Connected(end) => end,
        };
        if let Some(first) = end.unread.front_mut() {
            let got = room.min(*first);
            *first -= got;
            let is_whole = *first == 0;
            if is_whole {
                end.unread.pop_front();
            }
            return Ok((got, is_whole));
        }
        match (socket.error.take(), end.link) {
            (Some(error), _) => Err(error),
            (None, Link::EndedThere | Link::EndedTwice) => Ok((0, false)),
            (None, _) => Err(Errno::EAGAIN),
        }
    }

    /// `SHUT_WR`, until it is complete.
    pub(crate) fn shutdown(&mut self, id: Id) -> Result<(), Errno> {
        let (link, peer) = match &mut self.socket_mut(id).state {
            State::Closed => return Err(Errno::ENOTCONN),
            State::Listening { .. } => return Ok(()),
            State::Connected(end) => (end.link, end.peer),
        };
        let after = match link {
            Link::Up => Link::EndedHere,
            Link::EndedThere => Link::EndedTwice,
            link => link,
        };
        if link == Link::Up {
            self.end(id, peer, Link::EndedThere);
        }
        if let State::Connected(end) = &mut self.socket_mut(id).state {
            end.link = after;
        }
        Ok(())
    }

    /// Updates the peer's end of an association that has ended here.
    fn end(&mut self, from: Id, peer: Option<Id>, how: Link) {
        if let Some(end) = self.end_at(peer, from).filter(|end| end.link == Link::Up) {
            end.link = how;
        }
        if how == Link::Aborted
            && let Some(Socket { error, .. }) = peer.and_then(|peer| self.sockets.get_mut(&peer))
        {
            *error = Some(Errno::ECONNRESET);
        }
    }

    /// `close`: an ABORT if anything of any association is unread, otherwise a graceful shutdown.
    pub(crate) fn close(&mut self, id: Id) {
        let Some(socket) = self.sockets.remove(&id) else { return };
        let ends = match socket.state {
            State::Closed => Vec::new(),
            State::Connected(end) => vec![end],
            State::Listening { waiting, .. } => waiting.into_iter().map(|(_, end)| end).collect(),
        };
        let all_read = ends.iter().all(|end| end.unread.is_empty());
        for end in ends.iter().filter(|end| end.link == Link::Up) {
            let how = if all_read { Link::EndedThere } else { Link::Aborted };
            self.end(id, end.peer, how);
        }
    }

    /// Returns whether it was accepted after its end.
    pub(crate) fn is_late(&mut self, id: Id) -> bool {
        matches!(&self.socket_mut(id).state, State::Connected(end) if end.is_late)
    }

    /// `SO_ERROR`.
    pub(crate) fn error(&mut self, id: Id) -> Option<Errno> {
        self.socket_mut(id).error.take()
    }

    /// Returns whether the socket has the name of a peer.
    pub(crate) fn peer_name(&mut self, id: Id) -> bool {
        matches!(self.socket_mut(id).state, State::Connected(_))
    }

    pub(crate) fn port(&mut self, id: Id) -> Option<u16> {
        self.socket_mut(id).port
    }

    pub(crate) fn poll(&mut self, id: Id) -> u16 {
        let socket = self.socket_mut(id);
        let error = if socket.error.is_some() { POLLERR } else { 0 };
        let end = match &socket.state {
            State::Closed => return error,
            State::Listening { waiting, .. } if waiting.is_empty() => return 0,
            State::Listening { .. } => return POLLIN,
            State::Connected(end) => end,
        };
        let readable = if end.unread.is_empty() { 0 } else { POLLIN };
        let more = match end.link {
            Link::EndedTwice => return error | POLLIN | POLLHUP,
            Link::EndedThere => POLLIN | POLLRDHUP,
            Link::Up | Link::EndedHere | Link::Aborted => 0,
        };
        let writable = if end.is_late { 0 } else { POLLOUT };
        error | readable | more | writable
    }

    /// Returns the number of unread bytes.
    pub(crate) fn unread(&self) -> usize {
        let of = |end: &End| end.unread.iter().sum::<usize>();
        let all = self.sockets.values().map(|socket| match &socket.state {
            State::Closed => 0,
            State::Connected(end) => of(end),
            State::Listening { waiting, .. } => waiting.iter().map(|(_, end)| of(end)).sum(),
        });
        all.sum()
    }

    pub(crate) fn open(&self) -> Vec<Id> {
        self.sockets.keys().copied().collect()
    }
}
