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

use crate::connection::{NOBODY, serve};
use crate::descriptor::{End, Ends};
use crate::local::{Op, Request, Response};
use crate::place::{ListeningSocket, Place, open};
use crate::service::{Answer, Call, Closing, Notice, Outcome, Service};
use crate::socket_file::SocketFile;
use crate::user_quotas::UserQuotas;

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
    Opens(Box<Answer>, i32),
    /// No result yet; a non-blocking call gets this errno.
    Blocked(i32),
}

impl<S: Service> Supervisor<S> {
    /// Starts serving. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// If there is no source of randomness, or the place is in use.
    pub fn start(service: S, place: &Place) -> io::Result<Arc<Self>> {
        let opened = open(place)?;
        let (ends, lingering) = (Ends::default(), BTreeMap::new());
        let state = Mutex::new(State { service, ends, lingering, file: opened.file });
        let (address, users) = (opened.address, watch::Sender::new(0));
        let supervisor = Arc::new(Self { state, address, users });
        let quotas = Arc::new(UserQuotas::of_this_process());
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
    pub(crate) fn resolve(&self, call: &mut Call) -> bool {
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
    pub(crate) fn attempt(self: &Arc<Self>, call: &Call, is_first: bool) -> Attempt {
        let mut state = self.lock();
        let mut outcome = match is_first {
            true => state.service.call(call),
            false => state.service.retry(call),
        };
        if outcome == Outcome::Failed(libc::EADDRINUSE) && state.close_stale_sockets() {
            outcome = state.service.call(call);
        }
        if call.request.op == Op::GiveBack && matches!(outcome, Outcome::Done(_)) {
            // Its descriptor is closed next, which no longer closes the connection.
            call.given_back.map(|accepted| state.ends.remove(accepted));
        }
        if let Outcome::Opens(answer, association) = outcome {
            state.pass_on_notices();
            return Attempt::Opens(Box::new(answer), association);
        }
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
        call: &Call,
        outcome: Outcome,
    ) -> Result<Reply, i32> {
        let answer = match outcome {
            Outcome::Done(answer) | Outcome::Opens(answer, _) => answer,
            Outcome::Failed(errno) => return Ok(Reply::errno(errno)),
            Outcome::Wait(errno) => return Err(errno),
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
    pub(crate) fn is_opening(&self, call: &Call, association: i32) -> bool {
        self.with_service(|service| service.is_opening(call.socket, association))
    }

    /// Returns the reply to a call that has opened an association.
    pub(crate) fn opened(&self, call: &Call, answer: Answer) -> Reply {
        self.lock().reply(call, reply_of(answer, None))
    }

    /// Returns the reply to a call that no longer waits.
    pub(crate) fn cancel_call(&self, call: &Call, errno: i32) -> Reply {
        let mut state = self.lock();
        state.service.call_cancelled(call);
        state.reply(call, Reply::errno(errno))
    }

    /// Waits until the last copy of a descriptor is closed.
    fn watch(self: &Arc<Self>, socket: u64, end: &End) {
        let (fd, supervisor) = (Arc::clone(&end.fd), self.user());
        tokio::spawn(async move {
            #[expect(unsafe_code, reason = "tokio asks for a promise about the descriptor")]
            // SAFETY: the descriptor remains open, and the same, as long as the `Arc` exists.
            let registered = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) };
            let Ok(fd) = registered else { return };
            while let Ok(mut ready) = fd.readable().await {
                // First, so that later events are not missed.
                ready.clear_ready();
                if supervisor.0.close_if_unused(socket) {
                    break;
                }
            }
        });
    }

    /// Removes late fillers, and closes the socket once no program has it; returns whether
    /// it is gone.
    fn close_if_unused(&self, socket: u64) -> bool {
        let mut state = self.lock();
        match state.ends.get_mut(socket) {
            Some(end) if !end.is_unused() => {
                end.remove_fillers();
                state.send_written(socket);
                return state
                    .ends
                    .get(socket)
                    .is_some_and(|end| end.waiting > 0 && end.is_closed());
            }
            Some(_) => state.close(socket),
            None => return true,
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
            Closing::Lingers(time) if state.lingering.contains_key(&socket) => Some((time, done)),
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

impl<S: Service> State<S> {
    /// Reports changes to the programs.
    fn pass_on_notices(&mut self) {
        while let Some(notice) = self.service.notice() {
            match notice {
                Notice::Ready(socket, bits) => {
                    if let Some(end) = self.ends.get_mut(socket) {
                        end.show(bits);
                    }
                }
                Notice::Arrived(socket) => {
                    if let Some(end) = self.ends.get_mut(socket) {
                        end.show_arrival();
                    }
                }
                Notice::Retry(socket) => {
                    if let Some(end) = self.ends.get(socket) {
                        end.retry.notify_waiters();
                    }
                }
                Notice::Closed(socket) => {
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

    /// Sends what a program has written without a call. If that fails, its next write does.
    fn send_written(&mut self, socket: u64) {
        while let Some(end) = self.ends.get_mut(socket)
            && let Some(data) = end.take_written()
        {
            let request = Request {
                a: libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
                data: u32::try_from(data.len()).unwrap_or_default(),
                ..Request::new(Op::Send)
            };
            let (name, control) = (bytes::Bytes::new(), bytes::Bytes::new());
            let (user, given_back) = (NOBODY, None);
            let call = Call { request, socket, given_back, user, name, control, data };
            let sent = self.service.call(&call);
            if matches!(sent, Outcome::Failed(_) | Outcome::Wait(_))
                && let Some(end) = self.ends.get(socket)
            {
                end.refuse_writes();
            }
            self.pass_on_notices();
        }
    }

    fn close(&mut self, socket: u64) -> Closing {
        let Some(end) = self.ends.remove(socket) else { return Closing::Done };
        let closing = self.service.close(socket);
        self.pass_on_notices();
        end.retry.notify_waiters();
        closing
    }

    /// Adds what the library must do to the descriptor of the call.
    fn reply(&mut self, call: &Call, mut reply: Reply) -> Reply {
        if let Some(end) = self.ends.get_mut(call.socket) {
            reply.response.marks = end.take_marks();
        }
        reply
    }
}

fn reply_of(answer: Answer, descriptor: Option<OwnedFd>) -> Reply {
    let mut response =
        Response::new(answer.result).with_peer(&answer.peer).with_control(&answer.control);
    response.flags = answer.flags;
    response.data = u32::try_from(answer.data.len()).unwrap_or_default();
    Reply { response, data: answer.data, descriptor }
}

/// A blocking call that waits for a socket.
pub(crate) struct Waiting<S: Service> {
    supervisor: Arc<Supervisor<S>>,
    socket: u64,
}

impl<S: Service> Drop for Waiting<S> {
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

async fn accept<S: Service>(
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
