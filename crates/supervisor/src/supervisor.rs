//! The descriptors of the sockets, and the waiting calls.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use nix::libc;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{Notify, watch};

use crate::connection::serve;
use crate::descriptor::{End, Ends};
use crate::local::{Op, Response};
use crate::place::{ListeningSocket, SupervisorPlace, open};
use crate::service::{
    CallAnswer, CallOutcome, SocketCall, SocketClosing, SocketNotice, SocketService,
};
use crate::socket_file::SocketFile;
use crate::user_quotas::{NOBODY, UserQuotas};
use crate::written::WrittenMessage;

/// The number of written messages that are sent before other sockets get a turn.
const MAX_AT_ONCE: usize = 64;
/// How often that is repeated where everything has to be sent: the largest buffer of a descriptor
/// has 256 KiB, of which the kernel counts more than 512 bytes for each message.
const MAX_TURNS: usize = 8;

/// Provides the sockets of a service to programs.
#[derive(Debug)]
pub struct Supervisor<S> {
    state: Mutex<State<S>>,
    address: OsString,
    /// The number of descriptors and connections that programs have.
    users: watch::Sender<usize>,
}

#[derive(Debug)]
struct State<S> {
    service: S,
    ends: Ends,
    /// Closed sockets that a call waits for.
    lingering: BTreeMap<u64, Arc<Notify>>,
    /// The socket file at which new programs connect.
    file: Option<SocketFile>,
}

/// The content of a response.
pub(crate) struct Reply {
    pub(crate) response: Response,
    pub(crate) data: bytes::Bytes,
    pub(crate) descriptor: Option<OwnedFd>,
}

impl Reply {
    pub(crate) fn errno(errno: i32) -> Self {
        Self { response: Response::new(-errno), data: bytes::Bytes::new(), descriptor: None }
    }
}

/// The result of an attempt at a call.
pub(crate) enum Attempt {
    Answered(Box<Reply>),
    /// This result, but a blocking call returns once this association is established or has failed.
    Opens(Box<CallAnswer>, i32),
    /// No result yet; a non-blocking call gets this errno.
    Blocked(i32),
}

impl<S: SocketService> Supervisor<S> {
    /// Starts serving. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// If there is no source of randomness, or the place is in use.
    pub fn start(service: S, place: &SupervisorPlace) -> io::Result<Arc<Self>> {
        let opened = open(place)?;
        let (ends, lingering) = (Ends::default(), BTreeMap::new());
        let state = Mutex::new(State { service, ends, lingering, file: opened.file });
        let (address, users) = (opened.address, watch::Sender::new(0));
        let supervisor = Arc::new(Self { state, address, users });
        let quotas = Arc::new(UserQuotas::from_this_process());
        for listening_socket in opened.listening_sockets {
            let (supervisor, quotas) = (Arc::downgrade(&supervisor), Arc::clone(&quotas));
            tokio::spawn(accept(listening_socket, supervisor, quotas));
        }
        Ok(supervisor)
    }

    /// Returns the value of [`crate::local::ENVIRONMENT`] for programs.
    pub fn address(&self) -> &OsString {
        &self.address
    }

    /// Waits until no program has a socket or a connection.
    pub async fn until_unused(&self) {
        // The sender exists as long as this does.
        let _ = self.users.subscribe().wait_for(|users| *users == 0).await;
    }

    /// Accepts no new programs at its path, and ends every socket: programs see a hang-up, and
    /// their calls fail.
    pub fn end(&self) {
        let mut state = self.lock();
        state.file = None;
        let sockets: Vec<u64> = state.ends.iter().map(|(socket, _)| socket).collect();
        for socket in sockets {
            if let Some(end) = state.ends.get(socket) {
                end.hang_up();
            }
            state.close(socket);
        }
    }

    /// Performs an action on the service, and reports the changes to the programs.
    pub fn with_service<T>(&self, action: impl FnOnce(&mut S) -> T) -> T {
        let mut state = self.lock();
        let result = action(&mut state.service);
        state.pass_on_notices();
        result
    }

    fn lock(&self) -> MutexGuard<'_, State<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a user until it is dropped.
    pub(crate) fn user(self: &Arc<Self>) -> User<S> {
        self.users.send_modify(|users| *users += 1);
        User(Arc::clone(self))
    }

    /// Returns what wakes calls that wait for this socket.
    pub(crate) fn retry(&self, socket: u64) -> Option<Arc<Notify>> {
        self.lock().ends.get(socket).map(|end| Arc::clone(&end.retry))
    }

    /// Finds the socket of which a call has the capability. Returns whether there is one: not if
    /// the capability is of a supervisor that served at the same place earlier and has ended, or is
    /// a guess.
    pub(crate) fn resolve(&self, call: &mut SocketCall) -> bool {
        let state = self.lock();
        let Some(socket) = state.ends.socket(call.request.capability) else { return false };
        call.socket = socket;
        if call.request.op == Op::GiveBack {
            let accepted = call.data.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes));
            call.given_back = accepted.and_then(|accepted| state.ends.socket(accepted));
        }
        true
    }

    /// Returns whether this socket is open.
    pub(crate) fn has_socket(&self, socket: u64) -> bool {
        self.lock().ends.get(socket).is_some()
    }

    /// Makes or repeats a call.
    pub(crate) fn attempt(self: &Arc<Self>, call: &SocketCall, is_first: bool) -> Attempt {
        let mut state = self.lock();
        let mut outcome = state.call(call, is_first);
        if outcome == CallOutcome::Failed(libc::EADDRINUSE) && state.close_stale_sockets() {
            outcome = state.service.call(call);
        }
        if call.request.op == Op::GiveBack && matches!(outcome, CallOutcome::Done(_)) {
            // Its descriptor is closed next, which no longer closes the connection.
            call.given_back.map(|accepted| state.ends.remove(accepted));
        }
        if let CallOutcome::Opens(answer, association) = outcome {
            state.pass_on_notices();
            return Attempt::Opens(Box::new(answer), association);
        }
        state.adapt_inbox(call, &outcome);
        let reply = self.reply(&mut state, call, outcome);
        // Now that there is a new end that can show it.
        state.pass_on_notices();
        match reply {
            Ok(reply) => Attempt::Answered(Box::new(state.reply(call, reply))),
            Err(errno) => Attempt::Blocked(errno),
        }
    }

    /// Converts an outcome for the program: a reply, or an errno for a non-blocking call.
    fn reply(
        self: &Arc<Self>,
        state: &mut State<S>,
        call: &SocketCall,
        outcome: CallOutcome,
    ) -> Result<Reply, i32> {
        let answer = match outcome {
            CallOutcome::Done(answer) | CallOutcome::Opens(answer, _) => answer,
            CallOutcome::Failed(errno) => return Ok(Reply::errno(errno)),
            CallOutcome::Wait(errno) => return Err(errno),
        };
        let Some(socket) = answer.socket else { return Ok(reply_of(answer, None)) };
        match End::pair() {
            Ok((end, theirs)) => {
                self.watch(socket, &end);
                state.ends.insert(socket, end);
                Ok(reply_of(answer, Some(theirs)))
            }
            Err(error) => {
                tracing::warn!(%error, op = ?call.request.op, "no descriptor for a socket");
                state.service.close(socket);
                Ok(Reply::errno(libc::ENFILE))
            }
        }
    }

    /// Returns whether an association that this call opened is being established.
    pub(crate) fn is_opening(&self, call: &SocketCall, association: i32) -> bool {
        self.with_service(|service| service.is_opening(call.socket, association))
    }

    /// Returns the reply to a call that has opened an association.
    pub(crate) fn opened(&self, call: &SocketCall, answer: CallAnswer) -> Reply {
        self.lock().reply(call, reply_of(answer, None))
    }

    /// Returns the reply to a call that no longer waits.
    pub(crate) fn cancel_call(&self, call: &SocketCall, errno: i32) -> Reply {
        let mut state = self.lock();
        state.service.call_cancelled(call);
        state.reply(call, Reply::errno(errno))
    }

    /// Waits until the last copy of a descriptor is closed.
    fn watch(self: &Arc<Self>, socket: u64, end: &End) {
        let (fd, supervisor) = (Arc::clone(&end.fd), self.user());
        let has_more = Arc::clone(&end.has_more);
        tokio::spawn(async move {
            let mut interest = Interest::READABLE;
            let Ok(mut registered) = register(&fd, interest) else { return };
            loop {
                tokio::select! {
                    ready = registered.ready(interest) => match ready {
                        // First, so that later events are not missed.
                        Ok(mut ready) => ready.clear_ready(),
                        Err(_) => return,
                    },
                    () = has_more.notified() => {}
                }
                while supervisor.0.accept_some_written(socket) {
                    tokio::task::yield_now().await;
                }
                if supervisor.0.close_if_unused(socket) {
                    break;
                }
                if interest == Interest::READABLE && supervisor.0.refuses_writes(socket) {
                    // tokio would report again and again that nothing more can be read. The kernel
                    // reports a closed descriptor whatever the interest.
                    interest = Interest::PRIORITY;
                    drop(registered);
                    let Ok(again) = register(&fd, interest) else { return };
                    registered = again;
                }
            }
        });
    }

    fn refuses_writes(&self, socket: u64) -> bool {
        self.lock().ends.get(socket).is_some_and(|end| end.refuses_writes)
    }

    /// Sends what a program has written, and removes late fillers; returns whether there may be
    /// more, of which no further event tells.
    fn accept_some_written(&self, socket: u64) -> bool {
        let mut state = self.lock();
        let has_more = state.accept_written(socket, Drain::Room);
        state.pass_on_notices();
        has_more
    }

    /// Closes the socket once no program has it; returns whether it needs no watching any more.
    fn close_if_unused(&self, socket: u64) -> bool {
        let mut state = self.lock();
        match state.ends.get(socket) {
            Some(end) if !end.is_closed() => return false,
            Some(end) if end.waiting > 0 => return true,
            None => return true,
            Some(_) => state.close(socket),
        };
        true
    }

    /// Records that a blocking call waits for a socket, until the result is dropped: it stays open
    /// even if the program closes its last descriptor meanwhile, as in a kernel.
    pub(crate) fn wait(self: &Arc<Self>, socket: u64) -> Waiting<S> {
        if let Some(end) = self.lock().ends.get_mut(socket) {
            end.waiting += 1;
        }
        Waiting { supervisor: Arc::clone(self), socket }
    }

    /// Handles a descriptor closed by a program, and returns what to wait for if it was the last
    /// one.
    pub(crate) fn closed(&self, socket: u64) -> Option<(std::time::Duration, Arc<Notify>)> {
        let mut state = self.lock();
        if !state.ends.get(socket).is_some_and(End::is_unused) {
            return None;
        }
        let done = Arc::new(Notify::new());
        state.lingering.insert(socket, Arc::clone(&done));
        match state.close(socket) {
            SocketClosing::Lingers(time) if state.lingering.contains_key(&socket) => {
                Some((time, done))
            }
            _ => {
                state.lingering.remove(&socket);
                None
            }
        }
    }

    /// Records that no call still waits for a closed socket.
    pub(crate) fn stop_lingering(&self, socket: u64) {
        self.lock().lingering.remove(&socket);
    }
}

/// Which of the messages that a program has written are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Drain {
    /// Those that the socket has room for.
    Room,
    /// All of an honest program, because what follows must not come before them.
    Reserve,
}

impl<S: SocketService> State<S> {
    /// Makes or repeats a call, after what the program has written before it.
    fn call(&mut self, call: &SocketCall, is_first: bool) -> CallOutcome {
        let socket = call.socket;
        let has_messages =
            self.ends.get(socket).is_some_and(|end| end.inbox.may_have_messages()) && is_first;
        if has_messages {
            let needs_order = matches!(call.request.op, Op::Send | Op::SetOption | Op::Shutdown);
            let drain = if needs_order { Drain::Reserve } else { Drain::Room };
            self.accept_all_written(socket, drain);
            let has_kept = self.ends.get(socket).is_some_and(|end| end.inbox.has_kept());
            if has_kept && call.request.op == Op::Send {
                return CallOutcome::Wait(libc::EAGAIN);
            }
        }
        match is_first {
            true => self.service.call(call),
            false => self.service.retry(call),
        }
    }

    /// Decides whether the program may write its messages, after a call.
    fn adapt_inbox(&mut self, call: &SocketCall, outcome: &CallOutcome) {
        let Some(end) = self.ends.get_mut(call.socket) else { return };
        let is_done = matches!(outcome, CallOutcome::Done(_));
        match call.request.op {
            Op::Send if is_done && call.request.b == 1 => {
                if end.shows_out()
                    && end.inbox.counts_request()
                    && let Some(room) = self.service.begin_writing(call.socket)
                {
                    end.inbox.open(room);
                }
            }
            // Its buffer cannot hide `POLLOUT` from a call that does not use it.
            Op::Send if matches!(outcome, CallOutcome::Wait(_)) && end.inbox.is_open() => {
                end.inbox.demand_more();
                end.close_inbox();
                self.service.end_writing(call.socket);
            }
            // Options decide what can be written, and nothing can after the end.
            Op::SetOption | Op::Shutdown if is_done && end.inbox.is_open() => {
                end.close_inbox();
                self.service.end_writing(call.socket);
            }
            _ => {}
        }
    }

    /// Sends messages that a program has written; returns whether there may be more.
    fn accept_written(&mut self, socket: u64, drain: Drain) -> bool {
        for _ in 0..MAX_AT_ONCE {
            let Some(end) = self.ends.get_mut(socket) else { return false };
            let Some(message) = end.next_written(drain != Drain::Room) else { return false };
            let call = message.call(socket);
            let sent = match &message {
                WrittenMessage::Request(_) => {
                    self.service.send_written(&call, drain != Drain::Room)
                }
                WrittenMessage::Plain(_) => self.service.call(&call),
                WrittenMessage::Invalid => CallOutcome::Failed(libc::EINVAL),
            };
            let Some(end) = self.ends.get_mut(socket) else { return false };
            match sent {
                CallOutcome::Wait(_) if matches!(message, WrittenMessage::Request(_)) => {
                    end.inbox.keep(message);
                    return false;
                }
                // The association has ended meanwhile, and the next call fails.
                CallOutcome::Failed(_) if matches!(message, WrittenMessage::Request(_)) => {}
                CallOutcome::Failed(_) | CallOutcome::Wait(_) => end.refuse_writes(),
                CallOutcome::Done(_) | CallOutcome::Opens(..) => {}
            }
        }
        true
    }

    /// Sends all that a program had written before, and not endlessly what it writes meanwhile.
    fn accept_all_written(&mut self, socket: u64, drain: Drain) {
        let has_more = (0..MAX_TURNS).all(|_| self.accept_written(socket, drain));
        if has_more && let Some(end) = self.ends.get(socket) {
            end.has_more.notify_one();
        }
    }

    /// Ends writing to a socket whose association takes no more: the library sees `POLLRDHUP`.
    fn end_inbox(&mut self, socket: u64) {
        let is_open = self.ends.get(socket).is_some_and(|end| end.inbox.is_open());
        if !is_open || self.service.accepts_written(socket) {
            return;
        }
        // Calls that wait for room in the descriptor's buffer continue.
        self.accept_all_written(socket, Drain::Reserve);
        if let Some(end) = self.ends.get_mut(socket) {
            end.close_inbox();
        }
        self.service.end_writing(socket);
    }

    /// Reports changes to the programs.
    fn pass_on_notices(&mut self) {
        while let Some(notice) = self.service.notice() {
            match notice {
                SocketNotice::Ready(socket, bits) => {
                    if let Some(end) = self.ends.get_mut(socket) {
                        end.show(bits);
                        if end.inbox.has_kept() {
                            end.has_more.notify_one();
                        }
                    }
                    self.end_inbox(socket);
                }
                SocketNotice::Arrived(socket) => {
                    if let Some(end) = self.ends.get_mut(socket) {
                        end.show_arrival();
                    }
                }
                SocketNotice::Retry(socket) => {
                    let Some(end) = self.ends.get(socket) else { continue };
                    end.retry.notify_waiters();
                    if end.inbox.may_have_messages() {
                        // Calls that wait go first.
                        end.has_more.notify_one();
                    }
                }
                SocketNotice::Ending(socket) => self.accept_all_written(socket, Drain::Reserve),
                SocketNotice::Closed(socket) => {
                    if let Some(done) = self.lingering.remove(&socket) {
                        done.notify_one();
                    }
                }
            }
        }
    }

    /// Closes sockets whose last descriptor was closed without notice, before their watcher has
    /// run; returns whether there were any. The port of a closed socket is thus free at once.
    fn close_stale_sockets(&mut self) -> bool {
        let gone = self.ends.iter().filter(|(_, end)| end.is_unused());
        let gone: Vec<u64> = gone.map(|(socket, _)| socket).collect();
        for socket in &gone {
            self.close(*socket);
        }
        !gone.is_empty()
    }

    fn close(&mut self, socket: u64) -> SocketClosing {
        // No program can write any more.
        while self.accept_written(socket, Drain::Reserve) {}
        let Some(end) = self.ends.remove(socket) else { return SocketClosing::Done };
        let closing = self.service.close(socket);
        self.pass_on_notices();
        end.retry.notify_waiters();
        closing
    }

    /// Adds what the library must do to the descriptor of the call.
    fn reply(&mut self, call: &SocketCall, mut reply: Reply) -> Reply {
        if let Some(end) = self.ends.get_mut(call.socket) {
            reply.response.marks = end.take_marks();
        }
        reply
    }
}

fn reply_of(answer: CallAnswer, descriptor: Option<OwnedFd>) -> Reply {
    let mut response =
        Response::new(answer.result).with_peer(&answer.peer).with_control(&answer.control);
    response.flags = answer.flags;
    response.data = u32::try_from(answer.data.len()).unwrap_or_default();
    Reply { response, data: answer.data, descriptor }
}

/// A blocking call that waits for a socket.
pub(crate) struct Waiting<S: SocketService> {
    supervisor: Arc<Supervisor<S>>,
    socket: u64,
}

impl<S: SocketService> Drop for Waiting<S> {
    fn drop(&mut self) {
        let mut state = self.supervisor.lock();
        let Some(end) = state.ends.get_mut(self.socket) else { return };
        end.waiting = end.waiting.saturating_sub(1);
        if end.is_unused() {
            state.close(self.socket);
        }
    }
}

/// A user of a supervisor.
pub(crate) struct User<S>(pub(crate) Arc<Supervisor<S>>);

impl<S> Drop for User<S> {
    fn drop(&mut self) {
        self.0.users.send_modify(|users| *users -= 1);
    }
}

/// Registers our end of a pair with the runtime.
fn register(fd: &Arc<OwnedFd>, interest: Interest) -> io::Result<AsyncFd<Arc<OwnedFd>>> {
    #[expect(unsafe_code, reason = "tokio asks for a promise about the descriptor")]
    // SAFETY: the descriptor remains open, and the same, as long as the `Arc` exists.
    let registered = unsafe { AsyncFd::register_with_interest(Arc::clone(fd), interest) };
    Ok(registered?)
}

async fn accept<S: SocketService>(
    listening_socket: ListeningSocket,
    supervisor: Weak<Supervisor<S>>,
    quotas: Arc<UserQuotas>,
) {
    loop {
        match listening_socket.listener.accept().await {
            Ok((stream, _)) => {
                let Some(supervisor) = supervisor.upgrade() else { return };
                let user = stream.peer_cred().map_or(NOBODY, |peer| peer.uid());
                let Some(place) = quotas.acquire(user) else {
                    tracing::warn!(user, "a user has too many connections: one is refused");
                    continue;
                };
                let (key, supervisor) = (listening_socket.key, supervisor.user());
                tokio::spawn(async move {
                    let _place = place;
                    serve(stream, (key, user), supervisor).await;
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections of programs at the moment");
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
    }
}
