//! Requests as calls of the stack.

use bytes::Bytes;
use eyas_sockets::abi::number::level::SOL_SCTP;
use eyas_sockets::abi::number::option::{
    SCTP_SOCKOPT_CONNECTX, SCTP_SOCKOPT_CONNECTX_OLD, SCTP_SOCKOPT_CONNECTX3, SCTP_SOCKOPT_PEELOFF,
    SCTP_SOCKOPT_PEELOFF_FLAGS,
};
use eyas_sockets::{AssocId, Errno, Outgoing, SocketId};
use nix::libc;

use super::Sockets;
use crate::local::{Op, blocks};
use crate::service::{Answer, Call, Outcome};

type Made = Result<Answer, Errno>;

impl Sockets {
    /// Makes a call for the first time.
    pub(super) fn make(&mut self, call: &Call) -> Outcome {
        let (request, now) = (call.request, self.now());
        let socket = SocketId(request.socket);
        let made = match request.op {
            Op::Socket => self.stack.socket(request.a, request.b, request.c).map(of_socket),
            Op::Bind => self.stack.bind(now, socket, &call.name).map(|()| number(0)),
            Op::Listen => self.stack.listen(now, socket, request.a).map(|()| number(0)),
            Op::Accept => self
                .stack
                .accept(now, socket)
                .map(|(guest, peer)| Answer { peer: peer.as_bytes().to_vec(), ..of_socket(guest) }),
            Op::Connect => {
                let opened = self.stack.connect(now, socket, &call.name);
                return self.opened(call, opened, 0);
            }
            Op::Send => return self.message(call),
            Op::Receive => self.receive(call),
            Op::Shutdown => self.stack.shutdown(now, socket, request.a).map(|()| number(0)),
            Op::GetOption => return self.get(call),
            Op::SetOption => return self.set(call),
            Op::LocalName => self.stack.getsockname(socket).map(|name| named(name.as_bytes())),
            Op::PeerName => self.stack.getpeername(socket).map(|name| named(name.as_bytes())),
            Op::Ioctl => self.ioctl(call),
            Op::Status => {
                Ok(data(Bytes::from(serde_json::to_vec(&self.status()).unwrap_or_default())))
            }
            Op::Closed | Op::Cancel => Ok(number(0)),
        };
        outcome(made)
    }

    /// Asks again what became of a call that waits.
    pub(super) fn make_again(&mut self, call: &Call) -> Outcome {
        let key = (SocketId(call.request.socket), call.name.clone());
        let Some((association, result)) = self.opening.get(&key).copied() else {
            return self.make(call);
        };
        let opened = self.stack.connect_result(self.now(), key.0, association);
        if opened == Err(Errno(libc::EINPROGRESS)) {
            return Outcome::Wait(libc::EINPROGRESS);
        }
        self.opening.remove(&key);
        match (call.request.op, opened) {
            (_, Err(Errno(errno))) => Outcome::Failed(errno),
            (Op::GetOption, Ok(())) => Outcome::Done(identifier(call, association, 0)),
            (_, Ok(())) => Outcome::Done(number(result)),
        }
    }

    /// An association is under way: who blocks waits until it is there.
    fn opened(&mut self, call: &Call, opened: Result<AssocId, Errno>, result: i32) -> Outcome {
        match opened {
            Ok(association) => {
                let key = (SocketId(call.request.socket), call.name.clone());
                if call.request.blocks == blocks::YES {
                    self.opening.insert(key, (association, result));
                }
                Outcome::Wait(libc::EINPROGRESS)
            }
            Err(Errno(errno)) => Outcome::Failed(errno),
        }
    }

    fn message(&mut self, call: &Call) -> Outcome {
        let socket = SocketId(call.request.socket);
        let outgoing = Outgoing {
            data: call.data.clone(),
            name: &call.name,
            control: &call.control,
            flags: call.request.a,
        };
        match self.stack.send(self.now(), socket, outgoing) {
            // One that opens an association does not wait for it: how that went is told otherwise.
            Ok(sent) => Outcome::Done(number(i32::try_from(sent.length).unwrap_or(i32::MAX))),
            Err(error) => outcome(Err(error)),
        }
    }

    fn receive(&mut self, call: &Call) -> Made {
        let room = usize::try_from(call.request.b).unwrap_or_default();
        let socket = SocketId(call.request.socket);
        let got = self.stack.receive(self.now(), socket, room, call.request.a)?;
        Ok(Answer {
            result: i32::try_from(got.data.len()).unwrap_or(i32::MAX),
            flags: got.flags,
            peer: got.name.map(|name| name.as_bytes().to_vec()).unwrap_or_default(),
            control: got.control,
            data: got.data,
            socket: None,
        })
    }

    fn get(&mut self, call: &Call) -> Outcome {
        let (request, now) = (call.request, self.now());
        let socket = SocketId(request.socket);
        match (request.a, request.b) {
            (SOL_SCTP, SCTP_SOCKOPT_CONNECTX3) => {
                match self.stack.connectx(now, socket, &call.name) {
                    Ok(association) if request.blocks == blocks::NO => {
                        Outcome::Done(identifier(call, association, libc::EINPROGRESS))
                    }
                    opened => self.opened(call, opened, 0),
                }
            }
            (SOL_SCTP, SCTP_SOCKOPT_PEELOFF | SCTP_SOCKOPT_PEELOFF_FLAGS) => {
                let Some(id) = call.data.first_chunk() else {
                    return Outcome::Failed(libc::EINVAL);
                };
                let peeled = self.stack.peeloff(now, socket, AssocId(i32::from_ne_bytes(*id)));
                let whole = if request.b == SCTP_SOCKOPT_PEELOFF { 8 } else { 12 };
                let value = call.data.slice(..call.data.len().min(whole));
                outcome(peeled.map(|peeled| Answer { data: value, ..of_socket(peeled) }))
            }
            (level, option) => {
                let value = self.stack.getsockopt(now, socket, level, option, &call.data);
                outcome(value.map(|value| data(value.into())))
            }
        }
    }

    fn set(&mut self, call: &Call) -> Outcome {
        let (request, now) = (call.request, self.now());
        let socket = SocketId(request.socket);
        match (request.a, request.b) {
            (SOL_SCTP, SCTP_SOCKOPT_CONNECTX | SCTP_SOCKOPT_CONNECTX_OLD) => {
                let opened = self.stack.connectx(now, socket, &call.data);
                let result = match opened {
                    Ok(AssocId(id)) if request.b == SCTP_SOCKOPT_CONNECTX => id,
                    _ => 0,
                };
                self.opened(call, opened, result)
            }
            (level, option) => {
                let set = self.stack.setsockopt(now, socket, level, option, &call.data);
                outcome(set.map(|()| number(0)))
            }
        }
    }

    fn ioctl(&mut self, call: &Call) -> Made {
        if call.request.a != libc::FIONREAD as i32 {
            return Err(Errno(libc::ENOTTY));
        }
        let bytes = self.stack.bytes_readable(self.now(), SocketId(call.request.socket))?;
        Ok(number(i32::try_from(bytes).unwrap_or(i32::MAX)))
    }
}

fn outcome(made: Made) -> Outcome {
    match made {
        Ok(answer) => Outcome::Done(answer),
        Err(Errno(errno @ libc::EAGAIN)) => Outcome::Wait(errno),
        Err(Errno(errno)) => Outcome::Failed(errno),
    }
}

fn number(result: i32) -> Answer {
    Answer { result, ..Answer::default() }
}

fn named(name: &[u8]) -> Answer {
    Answer { peer: name.to_vec(), ..Answer::default() }
}

fn data(data: Bytes) -> Answer {
    Answer { data, ..Answer::default() }
}

fn of_socket(socket: SocketId) -> Answer {
    Answer { socket: Some(socket.0), ..Answer::default() }
}

/// `SCTP_SOCKOPT_CONNECTX3` gives the identifier in the place where it was.
fn identifier(call: &Call, AssocId(id): AssocId, errno: i32) -> Answer {
    let mut value = call.data.to_vec();
    if let Some(place) = value.first_chunk_mut() {
        *place = id.to_ne_bytes();
    }
    Answer { flags: errno, ..data(value.into()) }
}
