//! Makes one call: request, wait, response.

use core::ffi::c_int;
use core::mem::{size_of, zeroed};

use libc::iovec;

use crate::connection::Connection;
use crate::local::{
    Capability, FILLER, MAX_DATA, MAX_SIDE, REQUEST, RESPONSE, Request, Response, blocks, filler,
    mark,
};
use crate::transfer::{Parts, Wait, part, receive_first, receive_rest, send, total};
use crate::{Errno, environment, local::Op};

/// The program passed invalid memory.
const FAULT: Errno = Errno(libc::EFAULT);

/// A call of a program.
pub(crate) struct Call<'a> {
    pub(crate) request: Request,
    pub(crate) name: &'a [u8],
    pub(crate) control: &'a [u8],
    pub(crate) data: &'a [iovec],
    /// The memory for data of the response.
    pub(crate) room: &'a [iovec],
    /// Whether a received descriptor is closed on exec.
    pub(crate) close_on_exec: bool,
    /// The descriptor's timeout option, and the errno if the timeout expires.
    pub(crate) timeout: Option<(c_int, Errno)>,
}

/// The result of a call.
pub(crate) struct Answer {
    pub(crate) response: Response,
    pub(crate) descriptor: Option<c_int>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(op: Op) -> Self {
        Self {
            request: Request::new(op),
            name: &[],
            control: &[],
            data: &[],
            room: &[],
            close_on_exec: false,
            timeout: None,
        }
    }

    /// Creates a call that waits, unless the descriptor is non-blocking.
    pub(crate) fn waiting(op: Op, fd: c_int, flags: c_int, timeout: (c_int, Errno)) -> Self {
        let mut call = Self::new(op);
        if flags & libc::MSG_DONTWAIT == 0 && !is_nonblocking(fd) {
            call.request.blocks = blocks::YES;
            call.timeout = Some(timeout);
        }
        call
    }

    /// Makes the call for a socket.
    pub(crate) fn send_for(mut self, fd: c_int, socket: Capability) -> Result<Answer, Errno> {
        self.request.capability = socket.number();
        let answer = self.send(Some(fd))?;
        apply_marks(fd, socket, answer.response.marks);
        if answer.response.result < 0 {
            return Err(Errno(-answer.response.result));
        }
        Ok(answer)
    }

    /// Makes the call; `fd` determines how long it may wait.
    pub(crate) fn send(mut self, fd: Option<c_int>) -> Result<Answer, Errno> {
        let data = total(self.data)?;
        let room = total(self.room)?.min(MAX_DATA);
        if data > MAX_DATA || self.name.len() > MAX_SIDE {
            return Err(Errno(libc::EMSGSIZE));
        }
        if self.control.len() > MAX_SIDE {
            return Err(Errno(libc::ENOBUFS));
        }
        self.request.key = environment::key();
        self.request.name = self.name.len() as u32;
        self.request.control = self.control.len() as u32;
        self.request.data = data as u32;
        let header = self.request.encode();
        let own = [part(&header), part(self.name), part(self.control)];
        let length = REQUEST + self.name.len() + self.control.len() + data;
        let mut connection = Connection::acquire().map_err(connection_error)?;
        let mut sent = send(connection.fd, Parts::new(&own, self.data, length));
        if sent.is_err_and(|error| error != FAULT) {
            // The connection may have been kept for a long time, and the supervisor, or just the
            // connection, may have ended meanwhile.
            connection.discard();
            connection = Connection::open().map_err(connection_error)?;
            sent = send(connection.fd, Parts::new(&own, self.data, length));
        }
        if let Err(error) = sent {
            connection.discard();
            return Err(if error == FAULT { FAULT } else { Errno(libc::ECONNRESET) });
        }
        match self.receive(&connection, fd, room) {
            Ok(answer) => {
                connection.put_back();
                Ok(answer)
            }
            Err(error) => {
                connection.discard();
                Err(error)
            }
        }
    }

    fn receive(
        &self,
        connection: &Connection,
        fd: Option<c_int>,
        room: usize,
    ) -> Result<Answer, Errno> {
        let mut head = [0_u8; RESPONSE];
        let own = [iovec { iov_base: head.as_mut_ptr().cast(), iov_len: RESPONSE }];
        let limit = self.timeout.and_then(|(option, _)| limit(fd?, option));
        let is_limited = limit.is_some_and(|limit| set_limit(connection.fd, limit));
        let waits = self.request.blocks == blocks::YES;
        let mut wait = if waits { Wait::Cancellable } else { Wait::Uninterruptible };
        let mut cancelled_with = None;
        let first = loop {
            let mut parts = Parts::new(&own, self.room, RESPONSE + room);
            let mut receive = || receive_first(connection.fd, &mut parts, self.close_on_exec, wait);
            let received = match wait {
                Wait::Cancellable => connection.unless_cancelled(receive),
                Wait::Uninterruptible => receive(),
            };
            match received {
                Ok(first) => break first,
                Err(error) if waits && wait == Wait::Cancellable => {
                    cancelled_with = match (error, self.timeout) {
                        (Errno(libc::EAGAIN), Some((_, on_timeout))) => Some(on_timeout),
                        (Errno(libc::EINTR), _) => Some(Errno(libc::EINTR)),
                        (FAULT, _) => return Err(FAULT),
                        _ => return Err(Errno(libc::ECONNRESET)),
                    };
                    let cancel = Request { key: environment::key(), ..Request::new(Op::Cancel) };
                    let cancel = cancel.encode();
                    send(connection.fd, Parts::new(&[part(&cancel)], &[], REQUEST))?;
                    wait = Wait::Uninterruptible;
                }
                Err(FAULT) => return Err(FAULT),
                Err(_) => return Err(Errno(libc::ECONNRESET)),
            }
        };
        if is_limited {
            // SAFETY: zeros are a valid time, which means no timeout.
            set_limit(connection.fd, unsafe { zeroed() });
        }
        if first.length < RESPONSE {
            receive_rest(connection.fd, Parts::new(&own, &[], RESPONSE), first.length)?;
        }
        let Some(mut response) = Response::parse(&head) else {
            report_version_mismatch();
            return Err(Errno(libc::EPROTONOSUPPORT));
        };
        let total_length = RESPONSE + response.data as usize;
        if first.length < total_length {
            let done = first.length.max(RESPONSE);
            receive_rest(connection.fd, Parts::new(&own, self.room, total_length), done)?;
        }
        if let (Some(Errno(cancelled_with)), true) =
            (cancelled_with, response.result == -libc::EINTR)
        {
            response.result = -cancelled_with;
        }
        Ok(Answer { response, descriptor: first.descriptor })
    }
}

/// Maps an error of the connection: a supervisor that does not accept connections has ended; errors
/// of this process's own limits are kept.
fn connection_error(error: Errno) -> Errno {
    match error {
        Errno(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EPROTONOSUPPORT) => error,
        _ => Errno(libc::ECONNRESET),
    }
}

/// Performs the actions on the descriptor that are possible only at the program's end.
fn apply_marks(fd: c_int, socket: Capability, marks: u32) {
    let buffer = mark::buffer(marks);
    if buffer > 0 {
        // First, because other threads write as soon as they see that they may.
        set_send_buffer(fd, buffer);
        set_capability(fd, socket.with_writable(true));
    } else if marks & mark::STOP_WRITING != 0 {
        set_capability(fd, socket.with_writable(false));
        set_send_buffer(fd, 0);
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    for _ in 0..mark::tokens(marks) {
        let mut token = [0_u8; 8];
        // SAFETY: the token is live and has this length.
        unsafe { libc::syscall(libc::SYS_recvfrom, fd, &raw mut token, 8, flags, 0, 0) };
    }
    if marks & mark::ADD_FILLER != 0 {
        static FILL: [u8; FILLER] = filler();
        // SAFETY: the filler is live and has this length.
        unsafe { libc::syscall(libc::SYS_sendto, fd, &raw const FILL, FILLER, flags, 0, 0) };
    }
}

/// Sets the size of the descriptor's buffer, which the kernel raises to the smallest possible.
fn set_send_buffer(fd: c_int, bytes: usize) {
    // The kernel doubles it.
    let size = (bytes / 2) as c_int;
    let length = size_of::<c_int>();
    let (level, option) = (libc::SOL_SOCKET, libc::SO_SNDBUF);
    // SAFETY: the size is live and has this length.
    unsafe {
        libc::syscall(libc::SYS_setsockopt, fd, level, option, &raw const size, length);
    }
}

fn set_capability(fd: c_int, capability: Capability) {
    let rate = capability.rate();
    let length = size_of::<u64>();
    let (level, option) = (libc::SOL_SOCKET, Capability::OPTION);
    // SAFETY: the rate is live and has this length.
    unsafe {
        libc::syscall(libc::SYS_setsockopt, fd, level, option, &raw const rate, length);
    }
}

/// Returns whether the descriptor is non-blocking.
pub(crate) fn is_nonblocking(fd: c_int) -> bool {
    // SAFETY: F_GETFL has no argument; a number that is not open gets EBADF.
    let flags = unsafe { libc::syscall(libc::SYS_fcntl, fd, libc::F_GETFL) };
    flags >= 0 && flags as c_int & libc::O_NONBLOCK != 0
}

/// Returns the timeout of the descriptor, if one was set.
fn limit(fd: c_int, option: c_int) -> Option<libc::timeval> {
    // SAFETY: zeros are a valid time.
    let mut limit: libc::timeval = unsafe { zeroed() };
    let mut length = size_of::<libc::timeval>() as libc::socklen_t;
    let level = libc::SOL_SOCKET;
    // SAFETY: both are live, and the length is that of the time.
    let result = unsafe {
        libc::syscall(libc::SYS_getsockopt, fd, level, option, &raw mut limit, &raw mut length)
    };
    (result == 0 && (limit.tv_sec != 0 || limit.tv_usec != 0)).then_some(limit)
}

/// Sets the timeout in the kernel, which also decides the effect of signals.
fn set_limit(fd: c_int, limit: libc::timeval) -> bool {
    let (level, option) = (libc::SOL_SOCKET, libc::SO_RCVTIMEO);
    let length = size_of::<libc::timeval>();
    // SAFETY: the time is live and has this length.
    let set =
        unsafe { libc::syscall(libc::SYS_setsockopt, fd, level, option, &raw const limit, length) };
    set == 0
}

/// Reports that the library and the supervisor have incompatible versions.
fn report_version_mismatch() {
    const TEXT: &[u8] = b"eyas: the preloaded library and `eyas sctp` are different versions: \
        use the same eyas for `serve` and for `run --join`\n";
    // SAFETY: the text is live and has this length.
    unsafe { libc::syscall(libc::SYS_write, 2, TEXT.as_ptr(), TEXT.len()) };
}

/// Returns the errno of a failed write, and raises SIGPIPE if there is no reader.
pub(crate) fn broken_pipe(error: Errno, flags: c_int) -> Errno {
    let error = if error == Errno(libc::ECONNRESET) && !is_supervisor_running() {
        Errno(libc::EPIPE)
    } else {
        error
    };
    if error == Errno(libc::EPIPE) && flags & libc::MSG_NOSIGNAL == 0 {
        // SAFETY: only a signal's number is passed; programs expect SIGPIPE from such a write.
        unsafe { libc::raise(libc::SIGPIPE) };
    }
    error
}

fn is_supervisor_running() -> bool {
    match Connection::acquire() {
        Ok(connection) => {
            connection.put_back();
            true
        }
        Err(_) => false,
    }
}
