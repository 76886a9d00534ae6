//! An association of the kernel's SCTP.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::{io, mem};

use bytes::Bytes;
use eyas_sctp::endpoint::Status;
use eyas_sctp::error::Error as Misuse;
use eyas_sctp::event::{Event, LossReason, PathChange};
use eyas_sctp::identifier::{PathId, StreamId};
use eyas_sctp::message::{Message, SendInfo};
use nix::libc;
use tokio::sync::Notify;

use super::control::{self, ReceiveInfo};
use super::notification::{self, Notification};
use super::options;
use super::socket::{KernelSocket, Received};
use crate::SctpError;
use crate::error::lost;
use crate::slot::{Slot, Stage};
use crate::stack::Stack;

/// The maximum number of peer addresses that are numbered as paths.
const MAX_PATHS: usize = 64;

/// An association of the kernel.
#[derive(Debug)]
pub(super) struct KernelAssociation(Arc<Shared>);

impl Drop for KernelAssociation {
    fn drop(&mut self) {
        self.0.lock().slot.is_orphan = true;
        self.0.wake.notify_one();
    }
}

/// The state that the task and the users of an association share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) socket: KernelSocket,
    state: Mutex<State>,
    /// Wakes the task when there is something to do.
    pub(super) wake: Notify,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) slot: Slot,
    /// Whether the peer opened it.
    by_peer: bool,
    /// The addresses of the peer, in the order in which they were learned; a path's number is its
    /// index.
    paths: Vec<IpAddr>,
    /// Whether a message has been delivered in part.
    is_within_message: bool,
    /// Whether the kernel reports when everything has been acknowledged.
    awaits_dry: bool,
}

impl KernelAssociation {
    /// Creates an established association, for its users and for its task.
    pub(super) fn new(
        socket: KernelSocket,
        remote: SocketAddr,
        by_peer: bool,
    ) -> (Self, Arc<Shared>) {
        let state = State {
            slot: Slot::new(Stage::Up),
            by_peer,
            paths: vec![remote.ip().to_canonical()],
            is_within_message: false,
            awaits_dry: false,
        };
        let shared = Arc::new(Shared { socket, state: Mutex::new(state), wake: Notify::new() });
        (Self(Arc::clone(&shared)), shared)
    }

    /// Returns why a message was not accepted. A loss of the association is also reported by a
    /// notification.
    fn send_error(&self, error: &io::Error) -> SctpError {
        match error.raw_os_error() {
            Some(libc::EMSGSIZE) => {
                let limit = self.0.socket.socket().send_buffer_size().unwrap_or(0);
                Misuse::MessageTooLarge { limit }.into()
            }
            Some(libc::EINVAL) => Misuse::NoSuchStream.into(),
            Some(libc::EPIPE | libc::ESHUTDOWN | libc::ENOTCONN | libc::ESRCH) => SctpError::Closed,
            _ => SctpError::Lost(reason(error)),
        }
    }

    /// Returns an address of this host with our port.
    fn with_local_port(&self, address: IpAddr) -> Result<SocketAddr, Misuse> {
        let local = self.local_address().ok_or(Misuse::NoAssociation)?;
        Ok(SocketAddr::new(address, local.port()))
    }
}

impl Stack for KernelAssociation {
    fn with_slot(&self, action: &mut dyn FnMut(&mut Slot)) {
        let mut state = self.0.lock();
        let was_full = state.slot.is_parking_full();
        action(&mut state.slot);
        let has_room = was_full && !state.slot.is_parking_full();
        drop(state);
        if has_room {
            self.0.wake.notify_one();
        }
    }

    fn status(&self) -> Option<Status> {
        let mut state = self.0.lock();
        if matches!(state.slot.stage, Stage::Ended(_)) {
            return None;
        }
        let paths = mem::take(&mut state.paths);
        let number = |remote: SocketAddr| path_id(&paths, remote.ip()).unwrap_or(PathId(0));
        let status = options::status(&self.0.socket.socket(), number);
        state.paths = paths;
        status
    }

    fn local_address(&self) -> Option<SocketAddr> {
        let address = self.0.socket.socket().local_addr().ok()?.as_socket()?;
        Some(SocketAddr::new(address.ip().to_canonical(), address.port()))
    }

    fn poll_send(
        &self,
        cx: &mut Context<'_>,
        info: &SendInfo,
        data: &mut dyn FnMut(usize) -> Bytes,
    ) -> Poll<Result<(), SctpError>> {
        // How much of its buffer can be used is up to the kernel.
        let data = data(usize::MAX);
        let mut state = self.0.lock();
        match &state.slot.stage {
            Stage::Ended(reason) => return Poll::Ready(Err(lost(reason))),
            _ if state.slot.peer_is_done => return Poll::Ready(Err(SctpError::Closed)),
            _ if data.is_empty() => return Poll::Ready(Err(Misuse::EmptyMessage.into())),
            _ => {}
        }
        match self.0.socket.try_send(&control::for_message(info), &data) {
            Ok(()) => Poll::Ready(Ok(())),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                state.slot.is_full = true;
                state.slot.writers.add(cx.waker());
                drop(state);
                self.0.wake.notify_one();
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(self.send_error(&error))),
        }
    }

    fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        stream: Option<StreamId>,
    ) -> Poll<Result<Option<Message>, SctpError>> {
        let mut received = Poll::Pending;
        self.with_slot(&mut |slot| {
            received = match slot.next(stream, || None) {
                Some(message) => Poll::Ready(Ok(Some(message))),
                None => slot.end_of(stream),
            };
            if received.is_pending() {
                slot.await_message(stream, cx.waker());
            }
        });
        received
    }

    fn shutdown(&self) -> Result<(), Misuse> {
        self.0.socket.shutdown();
        Ok(())
    }

    fn abort(&self, reason: Bytes) {
        self.0.socket.abort(&reason);
        self.0.end(LossReason::Aborted);
    }

    fn set_primary(&self, path: PathId) -> Result<(), Misuse> {
        let remote = self.0.socket.socket().peer_addr().ok();
        let port =
            remote.and_then(|remote| remote.as_socket()).ok_or(Misuse::NoAssociation)?.port();
        let address = self.0.lock().paths.get(usize::from(path.0)).copied();
        let address = SocketAddr::new(address.ok_or(Misuse::NoSuchPath)?, port);
        options::set_primary(&self.0.socket.socket(), address)
    }

    fn add_address(&self, address: IpAddr) -> Result<(), Misuse> {
        options::add_address(&self.0.socket.socket(), self.with_local_port(address)?)
    }

    fn remove_address(&self, address: IpAddr) -> Result<(), Misuse> {
        options::remove_address(&self.0.socket.socket(), self.with_local_port(address)?)
    }

    fn reset_streams(&self, outgoing: bool, streams: &[StreamId]) -> Result<(), Misuse> {
        options::reset_streams(&self.0.socket.socket(), outgoing, streams)
    }

    fn add_streams(&self, outbound: u16, inbound: u16) -> Result<(), Misuse> {
        options::add_streams(&self.0.socket.socket(), outbound, inbound)
    }

    /// Waits until the stream can be reset: the kernel does not reset one with data to send.
    fn poll_end_stream(&self, cx: &mut Context<'_>, stream: StreamId) -> Poll<Result<(), Misuse>> {
        let socket = self.0.socket.socket();
        let mut state = self.0.lock();
        if matches!(state.slot.stage, Stage::Ended(_)) {
            return Poll::Ready(Err(Misuse::NoAssociation));
        }
        let result = match options::can_reset(&socket) {
            true => options::reset_streams(&socket, true, &[stream]),
            false => Err(Misuse::NotSupported),
        };
        match result {
            Err(Misuse::Busy) => {
                state.slot.watchers.add(cx.waker());
                match mem::replace(&mut state.awaits_dry, true) {
                    true => Poll::Pending,
                    false => subscribe_to_dry(&socket),
                }
            }
            Err(Misuse::NotSupported) => {
                self.0.socket.shutdown();
                Poll::Ready(Ok(()))
            }
            ended => Poll::Ready(ended),
        }
    }
}

/// Makes the kernel report when everything has been acknowledged.
fn subscribe_to_dry(socket: &socket2::Socket) -> Poll<Result<(), Misuse>> {
    match options::subscribe(socket, true) {
        Ok(()) => Poll::Pending,
        Err(_) => Poll::Ready(Err(Misuse::WrongState)),
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the association is lost.
    pub(super) fn end(&self, reason: LossReason) {
        let mut state = self.lock();
        if !matches!(state.slot.stage, Stage::Ended(_)) {
            state.slot.handle_event(Event::Lost(reason));
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Passes what was received to its readers.
    pub(super) fn handle_received(&self, received: Received) {
        let mut state = self.lock();
        let event = match received {
            Received::Data(info, data, ends) => {
                let begins = !mem::replace(&mut state.is_within_message, !ends);
                return state.slot.park(message(info, data, begins, ends));
            }
            Received::Notification(bytes) => match notification::parse(&bytes, state.by_peer) {
                Some(Notification::Event(event)) => event,
                Some(Notification::Path(remote, change)) => match state.path(remote, change) {
                    Some(event) => event,
                    None => return,
                },
                None => return,
            },
            Received::End if state.slot.peer_is_done => return,
            Received::End => Event::PeerShutdown,
        };
        if event == Event::SenderDry && mem::take(&mut state.awaits_dry) {
            // The waiter checks again, and subscribes again if there is more to send.
            let _ = options::subscribe(&self.socket.socket(), false);
        }
        state.slot.handle_event(event);
    }
}

impl State {
    /// Returns the change of the path to this address, which gets a number if it is new.
    fn path(&mut self, remote: SocketAddr, change: PathChange) -> Option<Event> {
        let path = match path_id(&self.paths, remote.ip()) {
            Some(path) => path,
            None if self.paths.len() < MAX_PATHS => {
                self.paths.push(remote.ip());
                path_id(&self.paths, remote.ip())?
            }
            None => return None,
        };
        Some(Event::Path { path, remote: SocketAddr::new(remote.ip(), 0), change })
    }
}

/// Returns the number of the path to this address.
fn path_id(paths: &[IpAddr], address: IpAddr) -> Option<PathId> {
    let index = paths.iter().position(|path| *path == address)?;
    u16::try_from(index).ok().map(PathId)
}

fn message(info: ReceiveInfo, data: Bytes, begins: bool, ends: bool) -> Message {
    Message {
        stream: info.stream,
        ppid: info.ppid,
        unordered: info.unordered,
        number: info.number.into(),
        tsn: info.tsn,
        begins,
        ends,
        data: data.into(),
    }
}

/// Returns how the association was lost, according to the error of a call.
pub(super) fn reason(error: &io::Error) -> LossReason {
    match error.kind() {
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::ConnectionRefused => {
            LossReason::AbortedByPeer { causes: Vec::new(), reason: Bytes::new() }
        }
        _ => LossReason::PeerUnreachable,
    }
}
