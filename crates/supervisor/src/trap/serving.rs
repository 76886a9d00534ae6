//! One call: request, wait, answer.

use std::future::pending;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use libc::{c_int, seccomp_notif};
use rustix::fs::OFlags;
use tokio::time::{Instant, sleep, sleep_until};

use super::Errno;
use super::asked::{Asked, Call, NamePlace, Plan, Reader, Then};
use super::given::{Ending, write};
use super::line::{Line, Reply};
use super::listener::{Giving, Listener};
use super::numbers::Numbers;
use super::thread::Thread;
use crate::client::Address;
use crate::local::subject::KIND_FLAGS;
use crate::local::{Descriptor, Op};

/// The interval of checking whether a signal interrupts a call, which grows the longer the call
/// waits.
const FIRST_CHECK_AFTER: Duration = Duration::from_millis(10);
const MAX_CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// The number of connections that are kept for the next call.
const KEPT: usize = 32;

/// Answers calls with the sockets of a supervisor.
#[derive(Debug)]
pub(super) struct Serving {
    pub(super) listener: Arc<Listener>,
    address: Address,
    lines: Mutex<Vec<Line>>,
    numbers: Mutex<Numbers>,
    /// Read-locked while a copy of a program's descriptor is held although the program continues:
    /// what the program closes remains open until the copy is closed, too.
    copies: RwLock<()>,
}

/// A thread, its call, and the descriptor that it concerns, if that is an SCTP socket.
struct Stopped {
    thread: Thread,
    call: Call,
    socket: Option<(OwnedFd, Descriptor)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn errno(error: &io::Error) -> Errno {
    Errno(error.raw_os_error().unwrap_or(libc::EIO))
}

impl Serving {
    pub(super) fn new(listener: Listener, address: Address) -> Self {
        Self {
            listener: Arc::new(listener),
            address,
            lines: Mutex::default(),
            numbers: Mutex::new(Numbers::new()),
            copies: RwLock::default(),
        }
    }

    /// Answers one call.
    pub(super) async fn serve(&self, said: &seccomp_notif) {
        let call = Call { number: said.data.nr.into(), arguments: said.data.args };
        let Some(thread) = Thread::of(&self.listener, said.id, said.pid) else {
            // It has ended, or may not be inspected: its descriptors are not ours.
            let _ = self.listener.pass(said.id);
            return;
        };
        let socket = thread.socket(call.fd());
        let stopped = Stopped { thread, call, socket };
        if let Some((stopped, asked)) = self.answer_at_once(stopped) {
            self.ask(&stopped, &asked).await;
        }
    }

    /// Answers a call, or returns the request to the supervisor.
    fn answer_at_once(&self, mut stopped: Stopped) -> Option<(Stopped, Box<Asked>)> {
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
        // Before the call ends or waits: the program, or another thread of it, may close its own
        // descriptor then.
        stopped.socket = None;
        let answered = match (copied, plan) {
            (Some((answered, _copies)), _) => answered,
            (None, Ok(Plan::Ask(asked))) => return Some((stopped, asked)),
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

    fn copy(&self, stopped: &Stopped, close_on_exec: bool) -> io::Result<()> {
        let Some((copy, _)) = &stopped.socket else {
            return self.listener.pass(stopped.thread.call);
        };
        match self.give(&stopped.thread, copy.as_fd(), close_on_exec, true) {
            Ok(_) => Ok(()),
            Err(Errno(libc::ENOENT)) => Err(io::ErrorKind::NotFound.into()),
            Err(Errno(errno)) => self.listener.answer(stopped.thread.call, Err(errno)),
        }
    }

    async fn ask(&self, stopped: &Stopped, asked: &Asked) {
        let mut replied = self.exchange(&stopped.thread, asked).await;
        if matches!(&replied, Ok(reply) if reply.response.result == -libc::EADDRINUSE) {
            // Possibly because of a socket that the program has closed and of which we have a copy.
            drop(self.copies.write());
            replied = self.exchange(&stopped.thread, asked).await;
        }
        let _copies = self.copies();
        match replied {
            Ok(reply) => self.deliver(stopped, asked, &reply),
            Err(error) => self.answer(stopped, asked, Err(error)),
        }
    }

    /// Sends the request to the supervisor, and waits.
    async fn exchange(&self, thread: &Thread, asked: &Asked) -> Result<Reply, Errno> {
        let lost = |error: io::Error| match (asked.request.op, error.kind()) {
            // The error of a kernel without SCTP.
            (Op::Socket, _) | (_, io::ErrorKind::InvalidData) => Errno(libc::EPROTONOSUPPORT),
            (Op::Send, _) => Errno(libc::EPIPE),
            _ => Errno(libc::ECONNRESET),
        };
        let mut line = self.send(asked).await.map_err(lost)?;
        let limit = asked.patience.map(|(time, late)| (Instant::now() + time, late));
        let (mut instead, mut check_after) = (None, FIRST_CHECK_AFTER);
        let reply = loop {
            let too_late = async {
                match limit {
                    Some((until, _)) => sleep_until(until).await,
                    None => pending().await,
                }
            };
            let ends = tokio::select! {
                biased;
                ready = line.is_answered() => {
                    ready.map_err(lost)?;
                    match line.receive().await.map_err(lost)? {
                        Some(reply) => break reply,
                        None => None,
                    }
                }
                () = too_late, if instead.is_none() => limit.map(|(_, late)| late),
                () = sleep(check_after), if instead.is_none() => {
                    check_after = MAX_CHECK_INTERVAL.min(2 * check_after);
                    disturbance(thread, asked)
                }
            };
            if ends.is_some() {
                instead = ends;
                line.cancel(self.address.key()).await.map_err(lost)?;
            }
        };
        let mut lines = lock(&self.lines);
        if lines.len() < KEPT {
            lines.push(line);
        }
        match instead {
            Some(errno) if reply.response.result == -libc::EINTR => Err(errno),
            _ => Ok(reply),
        }
    }

    /// Sends a request on a kept connection, or on a new one.
    async fn send(&self, asked: &Asked) -> io::Result<Line> {
        let mut request = asked.request;
        request.key = self.address.key();
        request.name = asked.name.len() as u32;
        request.control = asked.control.len() as u32;
        request.data = asked.data.len() as u32;
        let parts: [&[u8]; 3] = [&asked.name, &asked.control, &asked.data];
        let kept = lock(&self.lines).pop();
        if let Some(mut line) = kept {
            // The supervisor may have ended since, and another one may serve there.
            if line.is_open() && line.send(&request, parts).await.is_ok() {
                return Ok(line);
            }
        }
        let mut line = Line::open(&self.address).await?;
        line.send(&request, parts).await?;
        Ok(line)
    }

    /// Delivers the result of a call to its thread.
    fn deliver(&self, stopped: &Stopped, asked: &Asked, reply: &Reply) {
        let thread = &stopped.thread;
        let (instance, socket) = (asked.request.instance, asked.request.socket);
        thread.settle(stopped.call.fd(), Descriptor { instance, socket }, reply.response.marks);
        let written = match reply.response.result {
            errno if errno < 0 => Err(Errno(-errno)),
            _ => write(thread, asked, reply),
        };
        let result = match written {
            Ok(Ending::Returns(value)) => Ok(value),
            Ok(Ending::Descriptor { flags }) => match self.new_one(thread, reply, flags, true) {
                // This has answered the call.
                Ok(_) => return,
                Err(error) => Err(error),
            },
            Ok(Ending::Peeled { flags, place }) => {
                self.new_one(thread, reply, flags, false).and_then(|number| {
                    let bytes = number.to_ne_bytes();
                    place.map_or(Ok(()), |place| thread.write_at(place, &bytes))?;
                    Ok(number.into())
                })
            }
            Err(error) => Err(error),
        };
        self.answer(stopped, asked, result);
    }

    /// Ends a call.
    fn answer(&self, stopped: &Stopped, asked: &Asked, result: Result<i64, Errno>) {
        let thread = &stopped.thread;
        if self.listener.answer(thread.call, result.map_err(|Errno(errno)| errno)).is_err() {
            // The thread has ended.
            return;
        }
        let says_so = asked.request.a & libc::MSG_NOSIGNAL == 0;
        if asked.request.op == Op::Send && result == Err(Errno(libc::EPIPE)) && says_so {
            thread.broken_pipe();
        }
    }

    /// Adds the descriptor received with a reply to a program.
    fn new_one(
        &self,
        thread: &Thread,
        reply: &Reply,
        flags: c_int,
        answers: bool,
    ) -> Result<c_int, Errno> {
        let fd = reply.descriptor.as_ref().ok_or(Errno(libc::EMFILE))?;
        if flags & libc::SOCK_NONBLOCK != 0 {
            let set = rustix::fs::fcntl_setfl(fd, OFlags::RDWR | OFlags::NONBLOCK);
            set.map_err(|error| Errno(error.raw_os_error()))?;
        }
        self.give(thread, fd.as_fd(), flags & libc::SOCK_CLOEXEC != 0, answers)
    }

    /// Adds a descriptor to a program, at a number whose calls stop.
    fn give(
        &self,
        thread: &Thread,
        fd: BorrowedFd<'_>,
        close_on_exec: bool,
        answers: bool,
    ) -> Result<c_int, Errno> {
        let mut numbers = lock(&self.numbers);
        let number = numbers.free(thread)?;
        let given = self.listener.give(thread.call, fd, Giving { number, close_on_exec, answers });
        given.map_err(|error| match errno(&error) {
            // The program has reached its limit of descriptors.
            Errno(libc::EBADF) => Errno(libc::EMFILE),
            error => error,
        })
    }
}

/// Returns the result of a call that cannot continue to wait: because of a signal, or because its
/// thread has ended.
fn disturbance(thread: &Thread, asked: &Asked) -> Option<Errno> {
    if !thread.waits() {
        return Some(Errno(libc::EINTR));
    }
    // A call with a timeout would start over.
    thread.disturbance().map(|errno| match asked.patience {
        Some(_) => Errno(libc::EINTR),
        None => errno,
    })
}

/// Returns how a stopped call is handled.
fn plan(stopped: &Stopped) -> Result<Plan, Errno> {
    let Stopped { thread, call, socket, .. } = stopped;
    match (call.number, socket) {
        (libc::SYS_socket, _) => {
            let [domain, kind, protocol] = [0, 1, 2].map(|index| call.arguments[index] as c_int);
            let name = NamePlace { name: 0, length: 0 };
            let then = Then::Descriptor { flags: kind & KIND_FLAGS, name };
            let mut asked = Asked::new(Op::Socket, then);
            let request = &mut asked.request;
            (request.a, request.b, request.c) = (domain, kind & !KIND_FLAGS, protocol);
            Ok(Plan::Ask(Box::new(asked)))
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
