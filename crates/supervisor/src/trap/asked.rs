//! A stopped call, read from its thread and converted to a request to the supervisor.

use std::os::fd::OwnedFd;
use std::time::Duration;

use libc::{c_int, c_long};

use super::Errno;
use super::filter::BASE;
use super::thread::{Limit, Part, Thread, is_nonblocking, limit};
use crate::local::subject::{
    KIND_FLAGS, MAX_OPTION, addresses, is_the_descriptors_own, opens_when_read, opens_when_set,
    peeloff_flags, peels_off,
};
use crate::local::{Descriptor, MAX_DATA, MAX_SIDE, Op, Request, blocks};

/// The size of the kernel's `user_msghdr`; one of several is followed by its length.
const HEADER: usize = 56;
/// The maximum number of pieces of memory in a message.
const MAX_PARTS: usize = 1024;

/// A system call with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) number: c_long,
    pub(super) arguments: [u64; 6],
}

impl Call {
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
    /// By the kernel.
    Pass,
    /// The program gets another descriptor of the socket.
    Copy { close_on_exec: bool },
    /// By the supervisor.
    Ask(Box<Asked>),
}

/// A request to the supervisor, and what to do with the reply.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) request: Request,
    pub(super) name: Vec<u8>,
    pub(super) control: Vec<u8>,
    pub(super) data: Vec<u8>,
    /// How long it waits at most, and the errno after that.
    pub(super) patience: Option<(Duration, Errno)>,
    pub(super) then: Then,
}

/// The addresses of a name and of its length.
#[derive(Clone, Copy, Debug)]
pub(super) struct NamePlace {
    pub(super) name: u64,
    pub(super) length: u64,
}

/// What to do with a reply.
#[derive(Debug)]
pub(super) enum Then {
    /// The call returns its result.
    Return,
    /// The program gets a descriptor, and possibly the peer's name.
    Descriptor { flags: c_int, name: NamePlace },
    /// The program gets a name.
    Name(NamePlace),
    /// The program gets a message.
    Message { room: Vec<Part>, name: NamePlace, header: Option<u64>, count: Option<u64> },
    /// One of several messages was sent; its length is written there.
    Sent { length: u64 },
    /// The program gets the value of an option, and for one that peels off, a descriptor with
    /// flags.
    Value { value: u64, length: u64, peels: Option<c_int>, opens: bool },
    /// The program gets a number.
    Number(u64),
}

impl Asked {
    pub(super) fn new(op: Op, then: Then) -> Self {
        let nothing = Vec::new;
        let (name, control, data) = (nothing(), nothing(), nothing());
        Self { request: Request::new(op), name, control, data, patience: None, then }
    }

    fn on(op: Op, socket: Descriptor, then: Then) -> Self {
        let mut asked = Self::new(op, then);
        asked.request.instance = socket.instance;
        asked.request.socket = socket.socket;
        asked
    }

    /// Makes the call wait, unless the descriptor is non-blocking.
    fn waits(mut self, copy: &OwnedFd, flags: c_int, which: Limit, late: c_int) -> Self {
        if flags & libc::MSG_DONTWAIT == 0 && !is_nonblocking(copy) {
            self.request.blocks = blocks::YES;
            self.patience = limit(copy, which).map(|time| (time, Errno(late)));
        }
        self
    }
}

/// A stopped call on an SCTP socket, with its thread.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    pub(super) thread: &'a Thread,
    pub(super) call: Call,
    pub(super) socket: Descriptor,
    pub(super) copy: &'a OwnedFd,
}

impl Reader<'_> {
    /// Returns how the call is handled.
    pub(super) fn plan(&self) -> Result<Plan, Errno> {
        let call = &self.call;
        let asked = match call.number {
            libc::SYS_bind => self.named(Op::Bind, 1, 2)?,
            libc::SYS_connect => self.opening(self.named(Op::Connect, 1, 2)?),
            libc::SYS_listen => self.number(Op::Listen),
            libc::SYS_shutdown => self.number(Op::Shutdown),
            libc::SYS_accept => self.accept(0)?,
            libc::SYS_accept4 => self.accept(call.int(3))?,
            libc::SYS_getsockname => self.name(Op::LocalName)?,
            libc::SYS_getpeername => self.name(Op::PeerName)?,
            libc::SYS_getsockopt | libc::SYS_setsockopt
                if is_the_descriptors_own(call.int(1), call.int(2)) =>
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
            number if is_put(number) => return put(call),
            number => self.transfer(number)?,
        };
        Ok(Plan::Ask(Box::new(asked)))
    }

    fn transfer(&self, number: c_long) -> Result<Asked, Errno> {
        let call = &self.call;
        let one = || vec![Part { at: call.arguments[1], length: call.arguments[2] as usize }];
        let nowhere = NamePlace { name: 0, length: 0 };
        match number {
            libc::SYS_write => self.send(&one(), 0),
            libc::SYS_writev => self.send(&self.parts(1, 2)?, 0),
            libc::SYS_sendto => {
                let mut asked = self.send(&one(), call.int(3))?;
                asked.name = self.name_at(call.arguments[4], call.arguments[5])?;
                Ok(asked)
            }
            libc::SYS_sendmsg => self.send_with(call.arguments[1], call.int(2)),
            libc::SYS_sendmmsg => {
                // Only one of them: the program continues with the rest.
                let mut asked = self.send_with(call.arguments[1], call.int(3))?;
                asked.then = Then::Sent { length: call.arguments[1] + HEADER as u64 };
                Ok(asked)
            }
            libc::SYS_read => self.receive(one(), 0, nowhere, None),
            libc::SYS_readv => self.receive(self.parts(1, 2)?, 0, nowhere, None),
            libc::SYS_recvfrom => {
                let name = NamePlace { name: call.arguments[4], length: call.arguments[5] };
                self.receive(one(), call.int(3), name, None)
            }
            libc::SYS_recvmsg => self.receive_with(call.arguments[1], call.int(2)),
            libc::SYS_recvmmsg => {
                let mut asked = self.receive_with(call.arguments[1], call.int(3))?;
                if let Then::Message { count, .. } = &mut asked.then {
                    *count = Some(call.arguments[1] + HEADER as u64);
                }
                Ok(asked)
            }
            _ => Err(Errno(libc::ENOSYS)),
        }
    }

    fn asked(&self, op: Op, then: Then) -> Asked {
        Asked::on(op, self.socket, then)
    }

    fn number(&self, op: Op) -> Asked {
        let mut asked = self.asked(op, Then::Return);
        asked.request.a = self.call.int(1);
        asked
    }

    fn name(&self, op: Op) -> Result<Asked, Errno> {
        let place = NamePlace { name: self.call.arguments[1], length: self.call.arguments[2] };
        match place {
            NamePlace { name: 0, .. } | NamePlace { length: 0, .. } => Err(Errno(libc::EFAULT)),
            place => Ok(self.asked(op, Then::Name(place))),
        }
    }

    fn named(&self, op: Op, at: usize, length: usize) -> Result<Asked, Errno> {
        let mut asked = self.asked(op, Then::Return);
        asked.name = self.name_at(self.call.arguments[at], self.call.arguments[length])?;
        Ok(asked)
    }

    /// Returns the bytes of an address.
    fn name_at(&self, at: u64, length: u64) -> Result<Vec<u8>, Errno> {
        match usize::try_from(length as c_int) {
            Err(_) => Err(Errno(libc::EINVAL)),
            Ok(length) if length > MAX_SIDE => Err(Errno(libc::EMSGSIZE)),
            Ok(length) if at == 0 || length == 0 => Ok(Vec::new()),
            Ok(length) => self.thread.read_at(at, length),
        }
    }

    fn opening(&self, asked: Asked) -> Asked {
        asked.waits(self.copy, 0, Limit::Send, libc::EINPROGRESS)
    }

    fn accept(&self, flags: c_int) -> Result<Asked, Errno> {
        if flags & !KIND_FLAGS != 0 {
            return Err(Errno(libc::EINVAL));
        }
        let name = NamePlace { name: self.call.arguments[1], length: self.call.arguments[2] };
        let asked = self.asked(Op::Accept, Then::Descriptor { flags, name });
        Ok(asked.waits(self.copy, 0, Limit::Receive, libc::EAGAIN))
    }

    fn get(&self) -> Result<Asked, Errno> {
        let [_, _, _, value, length, _] = self.call.arguments;
        let (level, option) = (self.call.int(1), self.call.int(2));
        let given = self.thread.read_at(length, 4)?;
        let given = given.first_chunk().map_or(0, |bytes| c_int::from_ne_bytes(*bytes));
        let room = usize::try_from(given).map_err(|_| Errno(libc::EINVAL))?.min(MAX_OPTION);
        let before = self.thread.read_at(value, room)?;
        let opens = opens_when_read(level, option);
        let flags = peeloff_flags(level, option, &before);
        let peels = peels_off(level, option).then_some(flags);
        let mut asked = self.asked(Op::GetOption, Then::Value { value, length, peels, opens });
        if opens {
            asked = self.opening(asked);
            let (at, length) = addresses(&before).ok_or(Errno(libc::EINVAL))?;
            asked.name = self.thread.read_at(at as u64, length)?;
        }
        (asked.request.a, asked.request.b, asked.request.c) = (level, option, room as c_int);
        asked.data = before;
        Ok(asked)
    }

    fn set(&self) -> Result<Asked, Errno> {
        let (level, option) = (self.call.int(1), self.call.int(2));
        let length = usize::try_from(self.call.int(4)).ok().filter(|length| *length <= MAX_OPTION);
        let length = length.ok_or(Errno(libc::EINVAL))?;
        let mut asked = self.asked(Op::SetOption, Then::Return);
        if opens_when_set(level, option) {
            asked = self.opening(asked);
        }
        (asked.request.a, asked.request.b) = (level, option);
        asked.data = self.thread.read_at(self.call.arguments[3], length)?;
        Ok(asked)
    }

    fn control(&self) -> Asked {
        let mut asked = self.asked(Op::Ioctl, Then::Number(self.call.arguments[2]));
        asked.request.a = self.call.int(1);
        asked
    }

    /// Returns the pieces of memory that one argument points to and another one counts.
    fn parts(&self, at: usize, count: usize) -> Result<Vec<Part>, Errno> {
        self.parts_at(self.call.arguments[at], self.call.arguments[count])
    }

    fn parts_at(&self, at: u64, count: u64) -> Result<Vec<Part>, Errno> {
        let count = usize::try_from(count).ok().filter(|count| *count <= MAX_PARTS);
        let count = count.ok_or(Errno(libc::EMSGSIZE))?;
        let bytes = self.thread.read_at(at, count * 16)?;
        let part = |one: &[u8]| Part { at: number_at(one, 0), length: number_at(one, 8) as usize };
        Ok(bytes.chunks_exact(16).map(part).collect())
    }

    fn send(&self, data: &[Part], flags: c_int) -> Result<Asked, Errno> {
        let mut asked = self.asked(Op::Send, Then::Return);
        asked.request.a = flags;
        asked = asked.waits(self.copy, flags, Limit::Send, libc::EAGAIN);
        if total(data)? > MAX_DATA {
            return Err(Errno(libc::EMSGSIZE));
        }
        asked.data = self.thread.read(data)?;
        Ok(asked)
    }

    fn send_with(&self, at: u64, flags: c_int) -> Result<Asked, Errno> {
        let header = self.thread.read_at(at, HEADER)?;
        let data = self.parts_at(number_at(&header, 16), number_at(&header, 24))?;
        let mut asked = self.send(&data, flags)?;
        asked.name = self.name_at(number_at(&header, 0), number_at(&header, 8))?;
        let (control, length) = (number_at(&header, 32), number_at(&header, 40) as usize);
        if control != 0 && length > MAX_SIDE {
            return Err(Errno(libc::EMSGSIZE));
        }
        if control != 0 {
            asked.control = self.thread.read_at(control, length)?;
        }
        Ok(asked)
    }

    fn receive(
        &self,
        room: Vec<Part>,
        flags: c_int,
        name: NamePlace,
        header: Option<u64>,
    ) -> Result<Asked, Errno> {
        let length = total(&room)?.min(MAX_DATA) as c_int;
        let asked = self.asked(Op::Receive, Then::Message { room, name, header, count: None });
        let mut asked = asked.waits(self.copy, flags, Limit::Receive, libc::EAGAIN);
        let does_not_wait = asked.request.blocks == blocks::NO;
        asked.request.a = if does_not_wait { flags | libc::MSG_DONTWAIT } else { flags };
        asked.request.b = length;
        Ok(asked)
    }

    fn receive_with(&self, at: u64, flags: c_int) -> Result<Asked, Errno> {
        let header = self.thread.read_at(at, HEADER)?;
        let room = self.parts_at(number_at(&header, 16), number_at(&header, 24))?;
        let name = NamePlace { name: number_at(&header, 0), length: at + 8 };
        self.receive(room, flags, name, Some(at))
    }
}

/// Returns whether a call duplicates the descriptor to a number chosen by the program.
fn is_put(number: c_long) -> bool {
    #[cfg(target_arch = "x86_64")]
    if number == libc::SYS_dup2 {
        return true;
    }
    number == libc::SYS_dup3
}

/// Handles such a call: calls on a copy at a low number would not stop.
fn put(call: &Call) -> Result<Plan, Errno> {
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
