//! Handles one call: request, wait, answer.

use std::future::pending;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use libc::{c_int, seccomp_notif};
use rustix::fs::OFlags;
use tokio::time::{Instant, sleep, sleep_until};

use super::Errno;
use super::connection::{Connection, Reply};
use super::decode::{Delivery, NameBuffer, Plan, Reader, SupervisorRequest, TrappedCall};
use super::listener::{Listener, NewDescriptor};
use super::numbers::Numbers;
use super::thread::Thread;
use super::write_back::{Ending, write};
use crate::client::SupervisorAddress;
use crate::descriptor::capability_of;
use crate::local::subject::KIND_FLAGS;
use crate::local::{Capability, Op};

/// The first and the longest interval between checks whether a signal interrupts a call; the
/// interval grows while the call waits.
const FIRST_CHECK_AFTER: Duration = Duration::from_millis(10);
const MAX_CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// The number of idle connections kept for later calls.
const MAX_IDLE_CONNECTIONS: usize = 32;

/// Answers calls with the sockets of a supervisor.
#[derive(Debug)]
pub(super) struct Handler {
    pub(super) listener: Arc<Listener>,
    address: SupervisorAddress,
    idle_connections: Mutex<Vec<Connection>>,
    numbers: Mutex<Numbers>,
    /// Read-locked while a copy of a program's descriptor is held and the program continues to run:
    /// a socket that the program closes meanwhile stays open until the copy is closed.
    copies: RwLock<()>,
}

/// A stopped call with its thread and, if it is on an SCTP socket, a copy of the descriptor.
struct StoppedCall {
    thread: Thread,
    call: TrappedCall,
    socket: Option<(OwnedFd, Capability)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn errno(error: &io::Error) -> Errno {
    Errno(error.raw_os_error().unwrap_or(libc::EIO))
}

impl Handler {
    pub(super) fn new(listener: Listener, address: SupervisorAddress) -> Self {
        Self {
            listener: Arc::new(listener),
            address,
            idle_connections: Mutex::default(),
            numbers: Mutex::new(Numbers::new()),
            copies: RwLock::default(),
        }
    }

    /// Answers one call.
    pub(super) async fn serve(&self, notification: &seccomp_notif) {
        let call =
            TrappedCall { number: notification.data.nr.into(), arguments: notification.data.args };
        let Some(thread) =
            Thread::from_notification(&self.listener, notification.id, notification.pid)
        else {
            // The thread has ended, or must not be inspected, so its descriptors are not SCTP
            // sockets of ours.
            let _ = self.listener.pass(notification.id);
            return;
        };
        let socket = thread.socket(call.fd());
        let stopped = StoppedCall { thread, call, socket };
        if let Some((stopped, request)) = self.answer_at_once(stopped) {
            self.request_and_answer(&stopped, &request).await;
        }
    }

    /// Answers a call, or returns the request to send to the supervisor.
    fn answer_at_once(
        &self,
        mut stopped: StoppedCall,
    ) -> Option<(StoppedCall, Box<SupervisorRequest>)> {
        let (call, number) = (stopped.thread.call, stopped.call.number);
        let plan = plan(&stopped);
        let copied = match plan {
            // The program continues at once, and may close the descriptor of which we still have a
            // copy.
            Ok(Plan::Copy { close_on_exec }) => {
                let copies = self.copies();
                Some((self.copy(&stopped, close_on_exec), copies))
            }
            _ => None,
        };
        // Drop our copy before the call ends or waits, because then the program may close its own
        // descriptor.
        stopped.socket = None;
        let answered = match (copied, plan) {
            (Some((answered, _copies)), _) => answered,
            (None, Ok(Plan::Ask(request))) => return Some((stopped, request)),
            (None, Err(Errno(errno))) => self.listener.answer(call, Err(errno)),
            (None, Ok(_)) => self.listener.pass(call),
        };
        if let Err(error) = answered {
            tracing::debug!(%error, call = number, "a call was not answered");
        }
        None
    }

    fn copies(&self) -> RwLockReadGuard<'_, ()> {
        self.copies.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn copy(&self, stopped: &StoppedCall, close_on_exec: bool) -> io::Result<()> {
        let Some((copy, _)) = &stopped.socket else {
            return self.listener.pass(stopped.thread.call);
        };
        match self.add_descriptor(&stopped.thread, copy.as_fd(), close_on_exec, true) {
            Ok(_) => Ok(()),
            Err(Errno(libc::ENOENT)) => Err(io::ErrorKind::NotFound.into()),
            Err(Errno(errno)) => self.listener.answer(stopped.thread.call, Err(errno)),
        }
    }

    async fn request_and_answer(&self, stopped: &StoppedCall, request: &SupervisorRequest) {
        let mut replied = self.exchange(&stopped.thread, request).await;
        if matches!(&replied, Ok(reply) if reply.response.result == -libc::EADDRINUSE) {
            // Possibly because we hold a copy of a socket that the program has closed.
            drop(self.copies.write());
            replied = self.exchange(&stopped.thread, request).await;
        }
        let reply = match replied {
            Ok(reply) => reply,
            Err(error) => {
                let _copies = self.copies();
                return self.answer(stopped, request, Err(error));
            }
        };
        let is_delivered = {
            let _copies = self.copies();
            self.deliver(stopped, request, &reply)
        };
        if !is_delivered {
            self.give_back(request, &reply).await;
        }
    }

    /// Gives an accepted connection back to its listener, because the thread has ended or its
    /// process has no room for a descriptor.
    async fn give_back(&self, request: &SupervisorRequest, reply: &Reply) {
        let accepted = reply.descriptor.as_ref().and_then(capability_of);
        let Some(accepted) = accepted.filter(|_| request.header.op == Op::Accept) else { return };
        let mut back = SupervisorRequest::new(Op::GiveBack, Delivery::Return);
        back.header.capability = request.header.capability;
        back.data = accepted.number().to_ne_bytes().to_vec();
        let Ok(mut connection) = self.send(&back).await else { return };
        // The descriptor stays open until the answer.
        while connection.readable().await.is_ok() {
            match connection.receive().await {
                Ok(None) => {}
                Ok(Some(_)) => return self.keep(connection),
                Err(_) => return,
            }
        }
    }

    /// Keeps a connection for later calls.
    fn keep(&self, connection: Connection) {
        let mut idle_connections = lock(&self.idle_connections);
        if idle_connections.len() < MAX_IDLE_CONNECTIONS {
            idle_connections.push(connection);
        }
    }

    /// Sends the request to the supervisor, and waits.
    async fn exchange(&self, thread: &Thread, request: &SupervisorRequest) -> Result<Reply, Errno> {
        let lost = |error: io::Error| match (request.header.op, error.kind()) {
            // The error of a kernel without SCTP.
            (Op::Socket, _) | (_, io::ErrorKind::InvalidData) => Errno(libc::EPROTONOSUPPORT),
            (Op::Send, _) => Errno(libc::EPIPE),
            _ => Errno(libc::ECONNRESET),
        };
        let mut connection = self.send(request).await.map_err(lost)?;
        let limit =
            request.timeout.map(|(time, timeout_errno)| (Instant::now() + time, timeout_errno));
        let (mut cancelled_with, mut check_after) = (None, FIRST_CHECK_AFTER);
        let reply = loop {
            let timed_out = async {
                match limit {
                    Some((until, _)) => sleep_until(until).await,
                    None => pending().await,
                }
            };
            let cancel_with = tokio::select! {
                biased;
                ready = connection.readable() => {
                    ready.map_err(lost)?;
                    match connection.receive().await.map_err(lost)? {
                        Some(reply) => break reply,
                        None => None,
                    }
                }
                () = timed_out, if cancelled_with.is_none() => limit.map(|(_, timeout_errno)| timeout_errno),
                () = sleep(check_after), if cancelled_with.is_none() => {
                    check_after = MAX_CHECK_INTERVAL.min(2 * check_after);
                    interruption(thread, request)
                }
            };
            if cancel_with.is_some() {
                cancelled_with = cancel_with;
                connection.cancel(self.address.key()).await.map_err(lost)?;
            }
        };
        self.keep(connection);
        match cancelled_with {
            Some(errno) if reply.response.result == -libc::EINTR => Err(errno),
            _ => Ok(reply),
        }
    }

    /// Sends a request on a kept connection, or on a new one.
    async fn send(&self, request: &SupervisorRequest) -> io::Result<Connection> {
        let mut header = request.header;
        header.key = self.address.key();
        header.name = request.name.len() as u32;
        header.control = request.control.len() as u32;
        header.data = request.data.len() as u32;
        let parts: [&[u8]; 3] = [&request.name, &request.control, &request.data];
        let idle = lock(&self.idle_connections).pop();
        if let Some(mut connection) = idle {
            // The supervisor may have ended since, and another one may be listening there.
            if connection.is_open() && connection.send(&header, parts).await.is_ok() {
                return Ok(connection);
            }
        }
        let mut connection = Connection::open(&self.address).await?;
        connection.send(&header, parts).await?;
        Ok(connection)
    }

    /// Delivers the result of a call to its thread; returns whether that got its descriptor, if
    /// there is one.
    fn deliver(&self, stopped: &StoppedCall, request: &SupervisorRequest, reply: &Reply) -> bool {
        let thread = &stopped.thread;
        let (fd, capability) = (stopped.call.fd(), request.header.capability);
        thread.apply_marks(fd, capability, reply.response.marks);
        let written = match reply.response.result {
            errno if errno < 0 => Err(Errno(-errno)),
            _ => write(thread, request, reply),
        };
        let result = match written {
            Ok(Ending::Returns(value)) => Ok(value),
            Ok(Ending::Descriptor { flags }) => match self.add_new(thread, reply, flags, true) {
                // This has completed the call.
                Ok(_) => return true,
                Err(error) => Err(error),
            },
            Ok(Ending::Peeled { flags, place }) => {
                self.add_new(thread, reply, flags, false).and_then(|number| {
                    let bytes = number.to_ne_bytes();
                    place.map_or(Ok(()), |place| thread.write_at(place, &bytes))?;
                    Ok(number.into())
                })
            }
            Err(error) => Err(error),
        };
        self.answer(stopped, request, result);
        result.is_ok() || reply.descriptor.is_none()
    }

    /// Ends a call.
    fn answer(
        &self,
        stopped: &StoppedCall,
        request: &SupervisorRequest,
        result: Result<i64, Errno>,
    ) {
        let thread = &stopped.thread;
        if self.listener.answer(thread.call, result.map_err(|Errno(errno)| errno)).is_err() {
            // The thread has ended.
            return;
        }
        let raises_sigpipe = request.header.a & libc::MSG_NOSIGNAL == 0;
        if request.header.op == Op::Send && result == Err(Errno(libc::EPIPE)) && raises_sigpipe {
            thread.send_sigpipe();
        }
    }

    /// Adds the descriptor received with a reply to a program.
    fn add_new(
        &self,
        thread: &Thread,
        reply: &Reply,
        flags: c_int,
        completes_call: bool,
    ) -> Result<c_int, Errno> {
        let fd = reply.descriptor.as_ref().ok_or(Errno(libc::EMFILE))?;
        if flags & libc::SOCK_NONBLOCK != 0 {
            let set = rustix::fs::fcntl_setfl(fd, OFlags::RDWR | OFlags::NONBLOCK);
            set.map_err(|error| Errno(error.raw_os_error()))?;
        }
        self.add_descriptor(thread, fd.as_fd(), flags & libc::SOCK_CLOEXEC != 0, completes_call)
    }

    /// Adds a descriptor to a program, at a number whose calls stop.
    fn add_descriptor(
        &self,
        thread: &Thread,
        fd: BorrowedFd<'_>,
        close_on_exec: bool,
        completes_call: bool,
    ) -> Result<c_int, Errno> {
        let mut numbers = lock(&self.numbers);
        let number = numbers.free(thread)?;
        let added = self.listener.add_descriptor(
            thread.call,
            fd,
            NewDescriptor { number, close_on_exec, completes_call },
        );
        added.map_err(|error| match errno(&error) {
            // The program has reached its limit of descriptors.
            Errno(libc::EBADF) => Errno(libc::EMFILE),
            error => error,
        })
    }
}

/// Returns the result of a call that cannot continue to wait: because of a signal, or because its
/// thread has ended.
fn interruption(thread: &Thread, request: &SupervisorRequest) -> Option<Errno> {
    if !thread.is_waiting() {
        return Some(Errno(libc::EINTR));
    }
    // A call with a timeout would start over.
    thread.interruption().map(|errno| match request.timeout {
        Some(_) => Errno(libc::EINTR),
        None => errno,
    })
}

/// Returns how a stopped call is handled.
fn plan(stopped: &StoppedCall) -> Result<Plan, Errno> {
    let StoppedCall { thread, call, socket, .. } = stopped;
    match (call.number, socket) {
        (libc::SYS_socket, _) => {
            let [domain, kind, protocol] = [0, 1, 2].map(|index| call.arguments[index] as c_int);
            let name = NameBuffer { name: 0, length: 0 };
            let delivery = Delivery::Descriptor { flags: kind & KIND_FLAGS, name };
            let mut request = SupervisorRequest::new(Op::Socket, delivery);
            let header = &mut request.header;
            (header.a, header.b, header.c) = (domain, kind & !KIND_FLAGS, protocol);
            Ok(Plan::Ask(Box::new(request)))
        }
        // The kernel would move tokens. Programs interpret this as a descriptor that cannot be
        // spliced.
        (libc::SYS_splice, _) if thread.socket(call.arguments[2] as c_int).is_some() => {
            Err(Errno(libc::EINVAL))
        }
        (_, Some((copy, socket))) => Reader { thread, call: *call, socket: *socket, copy }.plan(),
        (_, None) => Ok(Plan::Pass),
    }
}
