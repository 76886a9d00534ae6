//! Reads a stopped call from its thread and converts it to a request to the supervisor.

use std::os::fd::OwnedFd;
use std::time::Duration;

use eyas_sockets::needs_privileges;
use libc::{c_int, c_long};

use super::Errno;
use super::filter::BASE;
use super::thread::{Limit, Part, Thread, is_nonblocking, limit};
use crate::local::subject::{
    KIND_FLAGS, MAX_OPTION, addresses, is_kept_by_descriptor, opens_when_read, opens_when_set,
    peeloff_flags, peels_off,
};
use crate::local::{Capability, MAX_DATA, MAX_SIDE, Op, Request, blocks};

/// The size of the kernel's `user_msghdr`. In a `mmsghdr`, the length of the message follows it.
const MSGHDR_BYTES: usize = 56;
/// The maximum number of pieces of memory in a message.
const MAX_PARTS: usize = 1024;
const TOO_MANY_PARTS: Errno = Errno(libc::EMSGSIZE);
/// The size of the kernel's `sockaddr_storage`.
const MAX_NAME: usize = 128;

/// A system call: its number and arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TrappedCall {
    pub(super) number: c_long,
    pub(super) arguments: [u64; 6],
}

impl TrappedCall {
    fn int(&self, index: usize) -> c_int {
        self.arguments[index] as c_int
    }

    /// Returns the descriptor that it concerns.
    pub(super) fn fd(&self) -> c_int {
        self.int(0)
    }
}

/// How a call on an SCTP socket is handled.
#[derive(Debug)]
pub(super) enum Plan {
    /// The kernel executes it.
    Pass,
    /// The program gets another descriptor of the socket.
    Copy { close_on_exec: bool },
    /// The supervisor answers it.
    Ask(Box<SupervisorRequest>),
}

/// A request to the supervisor, and what to do with the reply.
#[derive(Debug)]
pub(super) struct SupervisorRequest {
    pub(super) header: Request,
    pub(super) name: Vec<u8>,
    pub(super) control: Vec<u8>,
    pub(super) data: Vec<u8>,
    /// The longest time to wait, and the errno after it.
    pub(super) timeout: Option<(Duration, Errno)>,
    pub(super) delivery: Delivery,
}

/// The addresses of a buffer for a name and of its length.
#[derive(Clone, Copy, Debug)]
pub(super) struct NameBuffer {
    pub(super) name: u64,
    pub(super) length: u64,
}

/// What to do with a reply.
#[derive(Debug)]
pub(super) enum Delivery {
    /// The call returns its result.
    Return,
    /// The program gets a descriptor, and possibly the peer's name.
    Descriptor { flags: c_int, name: NameBuffer },
    /// The program gets a name.
    Name(NameBuffer),
    /// The program gets a message.
    Message { room: Vec<Part>, name: NameBuffer, header: Option<u64>, count: Option<u64> },
    /// The first of several messages was sent; its length is written to this address.
    Sent { length: u64 },
    /// The program gets the value of an option; for an option that peels off, also a descriptor
    /// with these flags.
    Value { value: u64, length: u64, peels: Option<c_int>, opens: bool },
    /// The program gets a number.
    Number(u64),
}

impl SupervisorRequest {
    pub(super) fn new(op: Op, delivery: Delivery) -> Self {
        let nothing = Vec::new;
        let (name, control, data) = (nothing(), nothing(), nothing());
        Self { header: Request::new(op), name, control, data, timeout: None, delivery }
    }

    fn for_socket(op: Op, socket: Capability, delivery: Delivery) -> Self {
        let mut request = Self::new(op, delivery);
        request.header.capability = socket.number();
        request
    }

    /// Makes the call wait, unless the descriptor is non-blocking.
    fn waits(mut self, copy: &OwnedFd, flags: c_int, which: Limit, timeout_errno: c_int) -> Self {
        if flags & libc::MSG_DONTWAIT == 0 && !is_nonblocking(copy) {
            self.header.blocks = blocks::YES;
            self.timeout = limit(copy, which).map(|time| (time, Errno(timeout_errno)));
        }
        self
    }
}

/// A stopped call on an SCTP socket, with its thread.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    pub(super) thread: &'a Thread,
    pub(super) call: TrappedCall,
    pub(super) socket: Capability,
    pub(super) copy: &'a OwnedFd,
}

impl Reader<'_> {
    /// Returns how the call is handled.
    pub(super) fn plan(&self) -> Result<Plan, Errno> {
        let call = &self.call;
        let request = match call.number {
            libc::SYS_bind => self.named(Op::Bind, 1, 2)?,
            libc::SYS_connect => self.opening(self.named(Op::Connect, 1, 2)?),
            libc::SYS_listen => self.number(Op::Listen),
            libc::SYS_shutdown => self.number(Op::Shutdown),
            libc::SYS_accept => self.accept(0)?,
            libc::SYS_accept4 => self.accept(call.int(3))?,
            libc::SYS_getsockname => self.name(Op::LocalName)?,
            libc::SYS_getpeername => self.name(Op::PeerName)?,
            libc::SYS_getsockopt | libc::SYS_setsockopt
                if is_kept_by_descriptor(call.int(1), call.int(2)) =>
            {
                return Ok(Plan::Pass);
            }
            libc::SYS_getsockopt => self.get()?,
            libc::SYS_setsockopt => self.set()?,
            libc::SYS_ioctl => self.control(),
            libc::SYS_sendfile | libc::SYS_splice => return Err(Errno(libc::EINVAL)),
            libc::SYS_dup => return Ok(Plan::Copy { close_on_exec: false }),
            libc::SYS_fcntl if call.int(2) >= BASE => return Ok(Plan::Pass),
            libc::SYS_fcntl => {
                let close_on_exec = call.int(1) == libc::F_DUPFD_CLOEXEC;
                return Ok(Plan::Copy { close_on_exec });
            }
            number if is_dup2(number) => return dup2(call),
            number => self.transfer(number)?,
        };
        Ok(Plan::Ask(Box::new(request)))
    }

    fn transfer(&self, number: c_long) -> Result<SupervisorRequest, Errno> {
        let call = &self.call;
        let single = || vec![Part { at: call.arguments[1], length: call.arguments[2] as usize }];
        let no_name = NameBuffer { name: 0, length: 0 };
        match number {
            libc::SYS_write => self.send(&single(), 0),
            libc::SYS_writev => self.send(&self.plain_parts()?, 0),
            libc::SYS_sendto => {
                let mut request = self.send(&single(), call.int(3))?;
                request.name = self.name_at(call.arguments[4], call.arguments[5])?;
                Ok(request)
            }
            libc::SYS_sendmsg => self.send_with(call.arguments[1], call.int(2)),
            libc::SYS_sendmmsg => {
                // Sends only the first: the program continues with the rest.
                let mut request = self.send_with(call.arguments[1], call.int(3))?;
                request.delivery =
                    Delivery::Sent { length: call.arguments[1] + MSGHDR_BYTES as u64 };
                Ok(request)
            }
            libc::SYS_read => self.receive(single(), 0, no_name, None),
            libc::SYS_readv => self.receive(self.plain_parts()?, 0, no_name, None),
            libc::SYS_recvfrom => {
                let name = NameBuffer { name: call.arguments[4], length: call.arguments[5] };
                self.receive(single(), call.int(3), name, None)
            }
            libc::SYS_recvmsg => self.receive_with(call.arguments[1], call.int(2)),
            libc::SYS_recvmmsg => {
                let mut request = self.receive_with(call.arguments[1], call.int(3))?;
                if let Delivery::Message { count, .. } = &mut request.delivery {
                    *count = Some(call.arguments[1] + MSGHDR_BYTES as u64);
                }
                Ok(request)
            }
            _ => Err(Errno(libc::ENOSYS)),
        }
    }

    fn request(&self, op: Op, delivery: Delivery) -> SupervisorRequest {
        SupervisorRequest::for_socket(op, self.socket, delivery)
    }

    fn number(&self, op: Op) -> SupervisorRequest {
        let mut request = self.request(op, Delivery::Return);
        request.header.a = self.call.int(1);
        request
    }

    fn name(&self, op: Op) -> Result<SupervisorRequest, Errno> {
        let place = NameBuffer { name: self.call.arguments[1], length: self.call.arguments[2] };
        match place {
            NameBuffer { name: 0, .. } | NameBuffer { length: 0, .. } => Err(Errno(libc::EFAULT)),
            place => Ok(self.request(op, Delivery::Name(place))),
        }
    }

    fn named(&self, op: Op, at: usize, length: usize) -> Result<SupervisorRequest, Errno> {
        let mut request = self.request(op, Delivery::Return);
        request.name = self.name_at(self.call.arguments[at], self.call.arguments[length])?;
        Ok(request)
    }

    /// Returns the bytes of an address.
    fn name_at(&self, at: u64, length: u64) -> Result<Vec<u8>, Errno> {
        match usize::try_from(length as c_int) {
            Err(_) => Err(Errno(libc::EINVAL)),
            Ok(length) if length > MAX_NAME => Err(Errno(libc::EINVAL)),
            Ok(length) if at == 0 || length == 0 => Ok(Vec::new()),
            Ok(length) => self.thread.read_at(at, length),
        }
    }

    fn opening(&self, request: SupervisorRequest) -> SupervisorRequest {
        request.waits(self.copy, 0, Limit::Send, libc::EINPROGRESS)
    }

    fn accept(&self, flags: c_int) -> Result<SupervisorRequest, Errno> {
        if flags & !KIND_FLAGS != 0 {
            return Err(Errno(libc::EINVAL));
        }
        let name = NameBuffer { name: self.call.arguments[1], length: self.call.arguments[2] };
        let request = self.request(Op::Accept, Delivery::Descriptor { flags, name });
        Ok(request.waits(self.copy, 0, Limit::Receive, libc::EAGAIN))
    }

    fn get(&self) -> Result<SupervisorRequest, Errno> {
        let [_, _, _, value, length, _] = self.call.arguments;
        let (level, option) = (self.call.int(1), self.call.int(2));
        let value_length = self.thread.read_at(length, 4)?;
        let value_length =
            value_length.first_chunk().map_or(0, |bytes| c_int::from_ne_bytes(*bytes));
        let room = usize::try_from(value_length).map_err(|_| Errno(libc::EINVAL))?.min(MAX_OPTION);
        let value_bytes = self.thread.read_at(value, room)?;
        let opens = opens_when_read(level, option);
        let flags = peeloff_flags(level, option, &value_bytes);
        let peels = peels_off(level, option).then_some(flags);
        let mut request =
            self.request(Op::GetOption, Delivery::Value { value, length, peels, opens });
        if opens {
            request = self.opening(request);
            let (at, length) = addresses(&value_bytes).ok_or(Errno(libc::EINVAL))?;
            request.name = self.thread.read_at(at as u64, length)?;
        }
        (request.header.a, request.header.b, request.header.c) = (level, option, room as c_int);
        request.data = value_bytes;
        Ok(request)
    }

    fn set(&self) -> Result<SupervisorRequest, Errno> {
        let (level, option) = (self.call.int(1), self.call.int(2));
        let length = usize::try_from(self.call.int(4)).ok().filter(|length| *length <= MAX_OPTION);
        let length = length.ok_or(Errno(libc::EINVAL))?;
        // The supervisor only knows who sends the request.
        if needs_privileges(level, option) && !self.thread.is_of_root() {
            return Err(Errno(libc::EPERM));
        }
        let mut request = self.request(Op::SetOption, Delivery::Return);
        if opens_when_set(level, option) {
            request = self.opening(request);
        }
        (request.header.a, request.header.b) = (level, option);
        request.data = self.thread.read_at(self.call.arguments[3], length)?;
        Ok(request)
    }

    fn control(&self) -> SupervisorRequest {
        let mut request = self.request(Op::Ioctl, Delivery::Number(self.call.arguments[2]));
        request.header.a = self.call.int(1);
        request
    }

    /// Returns the pieces of memory of `readv` and `writev`.
    fn plain_parts(&self) -> Result<Vec<Part>, Errno> {
        let found = self.parts_at(self.call.arguments[1], self.call.arguments[2]);
        // Only the calls with headers have another error for too many pieces.
        found.map_err(|error| if error == TOO_MANY_PARTS { Errno(libc::EINVAL) } else { error })
    }

    fn parts_at(&self, at: u64, count: u64) -> Result<Vec<Part>, Errno> {
        let count = usize::try_from(count).ok().filter(|count| *count <= MAX_PARTS);
        let count = count.ok_or(TOO_MANY_PARTS)?;
        let bytes = self.thread.read_at(at, count * 16)?;
        let part = |single: &[u8]| Part {
            at: number_at(single, 0),
            length: number_at(single, 8) as usize,
        };
        Ok(bytes.chunks_exact(16).map(part).collect())
    }

    fn send(&self, data: &[Part], flags: c_int) -> Result<SupervisorRequest, Errno> {
        let mut request = self.request(Op::Send, Delivery::Return);
        request.header.a = flags;
        request = request.waits(self.copy, flags, Limit::Send, libc::EAGAIN);
        if total(data)? > MAX_DATA {
            return Err(Errno(libc::EMSGSIZE));
        }
        request.data = self.thread.read(data)?;
        Ok(request)
    }

    fn send_with(&self, at: u64, flags: c_int) -> Result<SupervisorRequest, Errno> {
        let header = self.thread.read_at(at, MSGHDR_BYTES)?;
        let data = self.parts_at(number_at(&header, 16), number_at(&header, 24))?;
        let mut request = self.send(&data, flags)?;
        // In a header, what is too long is cut off.
        let name_length = i64::from(number_at(&header, 8) as c_int).min(MAX_NAME as i64);
        request.name = self.name_at(number_at(&header, 0), name_length as u64)?;
        let (control, length) = (number_at(&header, 32), number_at(&header, 40) as usize);
        if control != 0 && length > MAX_SIDE {
            return Err(Errno(libc::ENOBUFS));
        }
        if control != 0 {
            request.control = self.thread.read_at(control, length)?;
        }
        Ok(request)
    }

    fn receive(
        &self,
        room: Vec<Part>,
        flags: c_int,
        name: NameBuffer,
        header: Option<u64>,
    ) -> Result<SupervisorRequest, Errno> {
        let length = total(&room)?.min(MAX_DATA) as c_int;
        let request =
            self.request(Op::Receive, Delivery::Message { room, name, header, count: None });
        let mut request = request.waits(self.copy, flags, Limit::Receive, libc::EAGAIN);
        let does_not_wait = request.header.blocks == blocks::NO;
        request.header.a = if does_not_wait { flags | libc::MSG_DONTWAIT } else { flags };
        request.header.b = length;
        Ok(request)
    }

    fn receive_with(&self, at: u64, flags: c_int) -> Result<SupervisorRequest, Errno> {
        let header = self.thread.read_at(at, MSGHDR_BYTES)?;
        let room = self.parts_at(number_at(&header, 16), number_at(&header, 24))?;
        let name = NameBuffer { name: number_at(&header, 0), length: at + 8 };
        self.receive(room, flags, name, Some(at))
    }
}

/// Returns whether a call duplicates the descriptor to a number chosen by the program.
fn is_dup2(number: c_long) -> bool {
    #[cfg(target_arch = "x86_64")]
    if number == libc::SYS_dup2 {
        return true;
    }
    number == libc::SYS_dup3
}

/// Handles `dup2` and `dup3`: calls on a copy at a low number would not be intercepted.
fn dup2(call: &TrappedCall) -> Result<Plan, Errno> {
    if call.int(1) >= BASE { Ok(Plan::Pass) } else { Err(Errno(libc::EINVAL)) }
}

/// Returns the sum of lengths; `EINVAL` if there are too many, as in the kernel.
fn total(parts: &[Part]) -> Result<usize, Errno> {
    let add = |sum: usize, part: &Part| sum.checked_add(part.length);
    let sum = parts.iter().try_fold(0, add).filter(|sum| *sum <= isize::MAX as usize);
    sum.ok_or(Errno(libc::EINVAL))
}

fn number_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}
