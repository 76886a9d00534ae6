//! A model of Linux 6.1: one-to-many and peeled-off sockets, with an idle network between calls.
//! Based on measurements of the kernel, and on its source where there are none, not on our
//! implementation.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use eyas_sockets::Errno;
use eyas_sockets::abi::number::event;
use eyas_sockets::abi::number::poll::{POLLIN, POLLOUT};

/// The identifier of a socket, in the order of creation.
pub(crate) type Id = usize;
/// The identifier of an association, in the order of creation, the same at both ends.
pub(crate) type Link = usize;

/// The sizes of `SCTP_ASSOC_CHANGE`, of `SCTP_SHUTDOWN_EVENT`, and of the header of
/// `SCTP_SEND_FAILED`.
const CHANGE: usize = 20;
const SHUTDOWN: usize = 12;
const FAILED: usize = 48;
/// The size of the header of an error cause.
const CAUSE: usize = 4;

/// A queued message or notification, with its remaining length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Item {
    link: Option<Link>,
    left: usize,
    is_notification: bool,
}

/// The result of a receiving call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReceivedPart {
    pub(crate) length: usize,
    pub(crate) is_whole: bool,
    pub(crate) is_notification: bool,
}

#[derive(Clone, Debug)]
struct Socket {
    host: usize,
    port: Option<u16>,
    listens: bool,
    /// Whether the program has enabled notifications.
    notifies: bool,
    autoclose: Option<Duration>,
    is_peeled: bool,
    queue: VecDeque<Item>,
}

#[derive(Clone, Debug)]
struct Association {
    /// The sockets of both hosts.
    ends: [Id; 2],
    /// The autoclose time of each end.
    autoclose_times: [Option<Duration>; 2],
    last_traffic: Duration,
}

/// The destination of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum To {
    Port(u16),
    Link(Link),
}

/// All sockets of both hosts, and the established associations.
#[derive(Debug, Default)]
pub(crate) struct Kernel {
    pub(crate) now: Duration,
    sockets: BTreeMap<Id, Socket>,
    associations: BTreeMap<Link, Association>,
    created: Id,
    opened: Link,
}

impl Kernel {
    pub(crate) fn socket(
        &mut self,
        host: usize,
        notifies: bool,
        autoclose: Option<Duration>,
    ) -> Id {
        self.created += 1;
        let socket = Socket {
            host,
            port: None,
            listens: false,
            notifies,
            autoclose,
            is_peeled: false,
            queue: VecDeque::new(),
        };
        self.sockets.insert(self.created, socket);
        self.created
    }

    fn socket_mut(&mut self, id: Id) -> &mut Socket {
        self.sockets.get_mut(&id).expect("calls are made only on open sockets")
    }

    pub(crate) fn open(&self) -> Vec<Id> {
        self.sockets.keys().copied().collect()
    }

    pub(crate) fn is_peeled(&self, id: Id) -> bool {
        self.sockets[&id].is_peeled
    }

    /// Returns the associations of a socket.
    pub(crate) fn links(&self, id: Id) -> Vec<Link> {
        let here = self.associations.iter().filter(|(_, one)| one.ends.contains(&id));
        here.map(|(link, _)| *link).collect()
    }

    pub(crate) fn bind(&mut self, id: Id, port: u16) -> Result<(), Errno> {
        let (host, has_one) = (self.socket_mut(id).host, self.socket_mut(id).port.is_some());
        if has_one {
            return Err(Errno::EINVAL);
        }
        if self.sockets.values().any(|one| one.host == host && one.port == Some(port)) {
            return Err(Errno::EADDRINUSE);
        }
        self.socket_mut(id).port = Some(port);
        Ok(())
    }

    /// Listens; a socket without a port is assigned `port`.
    pub(crate) fn listen(&mut self, id: Id, port: u16) {
        let socket = self.socket_mut(id);
        socket.listens = true;
        socket.port.get_or_insert(port);
    }

    /// Returns the association of a socket with this port on the other host.
    fn link_to(&self, id: Id, port: u16) -> Option<Link> {
        let there = 1 - self.sockets[&id].host;
        self.links(id)
            .into_iter()
            .find(|link| self.sockets[&self.associations[link].ends[there]].port == Some(port))
    }

    /// Returns whether another socket of this port, a peeled-off one, has an association with that
    /// port.
    fn is_elsewhere(&self, id: Id, port: u16) -> bool {
        let own = &self.sockets[&id];
        let same = |one: &Socket| (one.host, one.port) == (own.host, own.port);
        let others = self.sockets.iter().filter(|(other, one)| **other != id && same(one));
        own.port.is_some()
            && others.into_iter().any(|(other, _)| self.link_to(*other, port).is_some())
    }

    /// Opens an association with the listener at this port.
    fn open_to(&mut self, id: Id, port: u16, own: u16) -> Result<Link, Errno> {
        let socket = self.socket_mut(id);
        socket.port.get_or_insert(own);
        let (host, autoclose_times) = (socket.host, socket.autoclose);
        let listener = self
            .sockets
            .iter()
            .find(|(_, one)| (one.host, one.port, one.listens) == (1 - host, Some(port), true));
        let Some((peer, found)) = listener else {
            self.queue_notification(id, None, CHANGE);
            return Err(Errno::ECONNREFUSED);
        };
        let (mut ends, mut times) = ([id, *peer], [autoclose_times, found.autoclose]);
        if host == 1 {
            ends.reverse();
            times.reverse();
        }
        self.opened += 1;
        let association = Association { ends, autoclose_times: times, last_traffic: self.now };
        self.associations.insert(self.opened, association);
        ends.into_iter().for_each(|end| self.queue_notification(end, Some(self.opened), CHANGE));
        Ok(self.opened)
    }

    /// Queues a notification, if the program has enabled it and the socket is open.
    fn queue_notification(&mut self, id: Id, link: Option<Link>, length: usize) {
        if let Some(socket) = self.sockets.get_mut(&id).filter(|socket| socket.notifies) {
            socket.queue.push_back(Item { link, left: length, is_notification: true });
        }
    }

    /// A blocking connect; `own` is the port assigned to the socket if it has none.
    pub(crate) fn connect(&mut self, id: Id, port: u16, own: u16) -> Result<(), Errno> {
        if self.link_to(id, port).is_some() {
            return Err(Errno::EISCONN);
        }
        if self.is_elsewhere(id, port) {
            return Err(Errno::EADDRNOTAVAIL);
        }
        self.open_to(id, port, own).map(drop)
    }

    /// Sends a message, which may open an association.
    pub(crate) fn send(&mut self, id: Id, to: To, length: usize, own: u16) -> Result<(), Errno> {
        let link = match to {
            To::Link(link) if self.links(id).contains(&link) => link,
            To::Link(_) => return Err(Errno::EPIPE),
            To::Port(port) => match self.link_to(id, port) {
                Some(link) => link,
                None if self.is_elsewhere(id, port) => return Err(Errno::EADDRNOTAVAIL),
                None => match self.open_to(id, port, own) {
                    Ok(link) => link,
                    Err(_) => {
                        // It was accepted, and its failure is reported after that of the
                        // association.
                        self.queue_notification(id, None, FAILED + length);
                        return Ok(());
                    }
                },
            },
        };
        let host = self.socket_mut(id).host;
        let now = self.now;
        let association = self.associations.get_mut(&link).expect("an established association");
        association.last_traffic = now;
        let there = association.ends[1 - host];
        self.socket_mut(there).queue.push_back(Item {
            link: Some(link),
            left: length,
            is_notification: false,
        });
        Ok(())
    }

    /// `SCTP_EOF`.
    pub(crate) fn finish(&mut self, id: Id, link: Link) -> Result<(), Errno> {
        if !self.links(id).contains(&link) {
            return Err(Errno::EPIPE);
        }
        self.end(link, Some(id));
        Ok(())
    }

    /// A graceful shutdown, initiated by one end.
    fn end(&mut self, link: Link, by: Option<Id>) {
        let Some(association) = self.associations.remove(&link) else { return };
        for end in association.ends {
            if by != Some(end) {
                self.queue_notification(end, Some(link), SHUTDOWN);
            }
            self.queue_notification(end, Some(link), CHANGE);
        }
    }

    /// `SCTP_ABORT`, with a reason of this length.
    pub(crate) fn abort(&mut self, id: Id, link: Link, reason: usize) -> Result<(), Errno> {
        if !self.links(id).contains(&link) {
            return Err(Errno::EPIPE);
        }
        let Some(association) = self.associations.remove(&link) else { return Ok(()) };
        for end in association.ends {
            // Only the peer is notified of the cause.
            let info = if end == id { 0 } else { CAUSE + reason };
            self.queue_notification(end, Some(link), CHANGE + info);
        }
        Ok(())
    }

    pub(crate) fn receive(&mut self, id: Id, room: usize) -> Result<ReceivedPart, Errno> {
        let queue = &mut self.socket_mut(id).queue;
        let first = queue.front_mut().ok_or(Errno::EAGAIN)?;
        let length = room.min(first.left);
        first.left -= length;
        let got = ReceivedPart {
            length,
            is_whole: first.left == 0,
            is_notification: first.is_notification,
        };
        if got.is_whole {
            queue.pop_front();
        }
        Ok(got)
    }

    /// `FIONREAD`.
    pub(crate) fn readable(&mut self, id: Id) -> usize {
        self.socket_mut(id).queue.front().map_or(0, |item| item.left)
    }

    pub(crate) fn peel(&mut self, id: Id, link: Link) -> Result<Id, Errno> {
        if self.is_peeled(id) || !self.links(id).contains(&link) {
            return Err(Errno::EINVAL);
        }
        let parent = self.socket_mut(id);
        let host = parent.host;
        let (moved, kept): (VecDeque<Item>, VecDeque<Item>) =
            parent.queue.iter().partition(|item| item.link == Some(link));
        parent.queue = kept;
        let child = Socket { is_peeled: true, listens: false, queue: moved, ..parent.clone() };
        self.created += 1;
        self.sockets.insert(self.created, child);
        let association = self.associations.get_mut(&link).expect("an established association");
        association.ends[host] = self.created;
        Ok(self.created)
    }

    /// `close`: if any message of any association is unread, all are aborted.
    pub(crate) fn close(&mut self, id: Id) {
        let links = self.links(id);
        let Some(socket) = self.sockets.remove(&id) else { return };
        let has_unread = socket.queue.iter().any(|item| !item.is_notification);
        for link in links {
            if !has_unread {
                self.end(link, Some(id));
                continue;
            }
            let Some(association) = self.associations.remove(&link) else { continue };
            self.queue_notification(association.ends[1 - socket.host], Some(link), CHANGE + CAUSE);
        }
    }

    /// Advances time, and closes associations without traffic.
    pub(crate) fn wait(&mut self, time: Duration) {
        self.now += time;
        let idle = self.associations.iter().filter_map(|(link, one)| {
            let since = self.now - one.last_traffic;
            let ends = one.ends.iter().zip(one.autoclose_times);
            let by = ends
                .filter(|(_, autoclose_times)| autoclose_times.is_some_and(|most| since > most));
            by.map(|(end, _)| (*link, *end)).next()
        });
        for (link, by) in idle.collect::<Vec<_>>() {
            self.end(link, Some(by));
        }
    }

    pub(crate) fn poll(&mut self, id: Id) -> u16 {
        let readable = if self.socket_mut(id).queue.is_empty() { 0 } else { POLLIN };
        POLLOUT | readable
    }

    pub(crate) fn port(&mut self, id: Id) -> Option<u16> {
        self.socket_mut(id).port
    }

    /// Returns the number of unread bytes.
    pub(crate) fn unread(&self) -> usize {
        let all = self.sockets.values().flat_map(|socket| &socket.queue);
        all.map(|item| item.left).sum()
    }
}

/// The enabled notifications.
pub(crate) const EVENTS: [u8; 14] = {
    let mut events = [0; 14];
    events[0] = 1;
    events[(event::SCTP_ASSOC_CHANGE & 0xff) as usize] = 1;
    events[(event::SCTP_SEND_FAILED & 0xff) as usize] = 1;
    events[(event::SCTP_SHUTDOWN_EVENT & 0xff) as usize] = 1;
    events
};
