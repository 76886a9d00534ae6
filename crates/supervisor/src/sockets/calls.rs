//! Executes requests as calls on a stack. Pure: time is an argument.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use eyas_sockets::abi::number::level::SOL_SCTP;
use eyas_sockets::abi::number::option::{
    SCTP_SOCKOPT_CONNECTX, SCTP_SOCKOPT_CONNECTX_OLD, SCTP_SOCKOPT_CONNECTX3, SCTP_SOCKOPT_PEELOFF,
    SCTP_SOCKOPT_PEELOFF_FLAGS,
};
use eyas_sockets::{AssocId, Errno, SendRequest, SocketId, Stack, needs_privileges};
use nix::libc;

use crate::local::subject::{opens_when_read, opens_when_set};
use crate::local::{Op, Request, blocks};
use crate::service::{CallAnswer, CallOutcome, SocketCall, SocketClosing};

/// The user who has all privileges.
const ROOT: u32 = 0;

type CallResult = Result<CallAnswer, Errno>;

/// A stack, and the requests on its sockets that wait for an association.
#[derive(Debug)]
pub struct StackCalls {
    /// The sockets. The driver passes in arriving packets, and polls for those to be sent.
    pub stack: Stack,
    /// Calls that wait for an association, with its identifier and their return value.
    opening: BTreeMap<(SocketId, Bytes), (AssocId, i32)>,
}

impl StackCalls {
    /// Creates an executor of calls on this stack.
    #[must_use]
    pub const fn new(stack: Stack) -> Self {
        Self { stack, opening: BTreeMap::new() }
    }

    /// Makes a call for the first time. [`Op::Status`] is handled by the driver of the stack.
    pub fn call(&mut self, now: Duration, call: &SocketCall) -> CallOutcome {
        let request = call.request;
        let socket = SocketId(call.socket);
        let result = match request.op {
            Op::Socket => self.socket(call),
            Op::Bind => self.stack.bind(now, socket, &call.name).map(|()| number(0)),
            Op::Listen => self.stack.listen(now, socket, request.a).map(|()| number(0)),
            Op::Accept => self.stack.accept(now, socket).map(|(accepted, peer)| CallAnswer {
                peer: peer.as_bytes().to_vec(),
                ..of_socket(accepted)
            }),
            Op::Connect => {
                let opened = self.stack.connect(now, socket, &call.name);
                return self.opened(call, opened, 0);
            }
            Op::Send => return self.send(now, call, false),
            Op::Receive => self.receive(now, call),
            Op::Shutdown => self.stack.shutdown(now, socket, request.a).map(|()| number(0)),
            Op::GetOption => return self.get(now, call),
            Op::SetOption => return self.set(now, call),
            Op::LocalName => self.stack.getsockname(socket).map(|name| named(name.as_bytes())),
            Op::PeerName => self.stack.getpeername(socket).map(|name| named(name.as_bytes())),
            Op::Ioctl => self.ioctl(now, call),
            Op::GiveBack => match call.given_back {
                Some(accepted) => {
                    self.stack.unaccept(now, socket, SocketId(accepted)).map(|()| number(0))
                }
                None => Err(Errno::EINVAL),
            },
            Op::Closed | Op::Cancel | Op::Status => Ok(number(0)),
        };
        outcome(result)
    }

    /// Repeats a waiting call.
    pub fn retry(&mut self, now: Duration, call: &SocketCall) -> CallOutcome {
        let key = key(call);
        let Some((association, result)) = self.opening.get(&key).copied().filter(|_| opens(call))
        else {
            return self.call(now, call);
        };
        let opened = self.stack.connect_result(now, key.0, association);
        if opened == Err(Errno(libc::EINPROGRESS)) {
            return CallOutcome::Wait(libc::EINPROGRESS);
        }
        self.opening.remove(&key);
        match (call.request.op, opened) {
            (_, Err(Errno(errno))) => CallOutcome::Failed(errno),
            (Op::GetOption, Ok(())) => CallOutcome::Done(identifier(call, association, 0)),
            (_, Ok(())) => CallOutcome::Done(number(result)),
        }
    }

    /// Returns whether an association that a message opened is being established.
    pub fn is_opening(&mut self, now: Duration, socket: u64, association: i32) -> bool {
        self.stack.is_opening(now, SocketId(socket), AssocId(association))
    }

    /// Cancels a waiting call.
    pub fn call_cancelled(&mut self, call: &SocketCall) {
        if opens(call) {
            self.opening.remove(&key(call));
        }
    }

    /// Handles the closing of a socket's last descriptor.
    pub fn close(&mut self, now: Duration, socket: u64) -> SocketClosing {
        let id = SocketId(socket);
        self.opening.retain(|(one, _), _| *one != id);
        match self.stack.close(now, id) {
            eyas_sockets::CloseResult::Done => SocketClosing::Done,
            eyas_sockets::CloseResult::Lingers(time) => SocketClosing::Lingers(time),
        }
    }

    fn socket(&mut self, call: &SocketCall) -> CallResult {
        let Request { a: domain, b: kind, c: protocol, .. } = call.request;
        let socket = self.stack.socket(domain, kind, protocol)?;
        self.stack.set_user(socket, call.user);
        Ok(of_socket(socket))
    }

    /// Records an association that is being established, so that a blocking call can wait for it.
    fn opened(
        &mut self,
        call: &SocketCall,
        opened: Result<AssocId, Errno>,
        result: i32,
    ) -> CallOutcome {
        match opened {
            Ok(association) => {
                if call.request.blocks == blocks::YES {
                    self.opening.insert(key(call), (association, result));
                }
                CallOutcome::Wait(libc::EINPROGRESS)
            }
            Err(Errno(errno)) => CallOutcome::Failed(errno),
        }
    }

    /// Sends a message; if the program has written it already, and `uses_reserve`, even if its
    /// socket's own part of the send buffer is full.
    pub(super) fn send(
        &mut self,
        now: Duration,
        call: &SocketCall,
        uses_reserve: bool,
    ) -> CallOutcome {
        let socket = SocketId(call.socket);
        let outgoing = SendRequest {
            data: call.data.clone(),
            name: &call.name,
            control: &call.control,
            flags: call.request.a,
            uses_reserve,
        };
        match self.stack.send(now, socket, outgoing) {
            Ok(sent) => {
                let answer = number(i32::try_from(sent.length).unwrap_or(i32::MAX));
                match sent.connecting {
                    true => CallOutcome::Opens(answer, sent.association.0),
                    false => CallOutcome::Done(answer),
                }
            }
            Err(error) => outcome(Err(error)),
        }
    }

    fn receive(&mut self, now: Duration, call: &SocketCall) -> CallResult {
        let max_length = usize::try_from(call.request.b).unwrap_or_default();
        let socket = SocketId(call.socket);
        let received = self.stack.receive(now, socket, max_length, call.request.a)?;
        Ok(CallAnswer {
            result: i32::try_from(received.data.len()).unwrap_or(i32::MAX),
            flags: received.flags,
            peer: received.name.map(|name| name.as_bytes().to_vec()).unwrap_or_default(),
            control: received.control,
            data: received.data,
            socket: None,
        })
    }

    fn get(&mut self, now: Duration, call: &SocketCall) -> CallOutcome {
        let request = call.request;
        let socket = SocketId(call.socket);
        match (request.a, request.b) {
            (SOL_SCTP, SCTP_SOCKOPT_CONNECTX3) => {
                match self.stack.connectx(now, socket, &call.name) {
                    Ok(association) if request.blocks == blocks::NO => {
                        CallOutcome::Done(identifier(call, association, libc::EINPROGRESS))
                    }
                    opened => self.opened(call, opened, 0),
                }
            }
            (SOL_SCTP, SCTP_SOCKOPT_PEELOFF | SCTP_SOCKOPT_PEELOFF_FLAGS) => {
                let Some(id) = call.data.first_chunk() else {
                    return CallOutcome::Failed(libc::EINVAL);
                };
                let peeled = self.stack.peeloff(now, socket, AssocId(i32::from_ne_bytes(*id)));
                let length = if request.b == SCTP_SOCKOPT_PEELOFF { 8 } else { 12 };
                let value = call.data.slice(..call.data.len().min(length));
                outcome(peeled.map(|peeled| CallAnswer { data: value, ..of_socket(peeled) }))
            }
            (level, option) => {
                let value = self.stack.getsockopt(now, socket, level, option, &call.data);
                outcome(value.map(|value| data(value.into())))
            }
        }
    }

    fn set(&mut self, now: Duration, call: &SocketCall) -> CallOutcome {
        let request = call.request;
        let socket = SocketId(call.socket);
        match (request.a, request.b) {
            (SOL_SCTP, SCTP_SOCKOPT_CONNECTX | SCTP_SOCKOPT_CONNECTX_OLD) => {
                let opened = self.stack.connectx(now, socket, &call.data);
                let result = match opened {
                    Ok(AssocId(id)) if request.b == SCTP_SOCKOPT_CONNECTX => id,
                    _ => 0,
                };
                self.opened(call, opened, result)
            }
            (level, option) if needs_privileges(level, option) && call.user != ROOT => {
                CallOutcome::Failed(libc::EPERM)
            }
            (level, option) => {
                let set = self.stack.setsockopt(now, socket, level, option, &call.data);
                outcome(set.map(|()| number(0)))
            }
        }
    }

    fn ioctl(&mut self, now: Duration, call: &SocketCall) -> CallResult {
        if call.request.a != libc::FIONREAD as i32 {
            return Err(Errno(libc::ENOTTY));
        }
        let bytes = self.stack.bytes_readable(now, SocketId(call.socket))?;
        Ok(number(i32::try_from(bytes).unwrap_or(i32::MAX)))
    }
}

/// Returns whether a call may have opened an association, so that it must not be repeated.
fn opens(call: &SocketCall) -> bool {
    let (level, option) = (call.request.a, call.request.b);
    match call.request.op {
        Op::Connect => true,
        Op::GetOption => opens_when_read(level, option),
        Op::SetOption => opens_when_set(level, option),
        _ => false,
    }
}

/// Returns the key of the association that a call opens.
fn key(call: &SocketCall) -> (SocketId, Bytes) {
    let addresses = match call.request.op {
        Op::SetOption => &call.data,
        _ => &call.name,
    };
    (SocketId(call.socket), addresses.clone())
}

fn outcome(result: CallResult) -> CallOutcome {
    match result {
        Ok(answer) => CallOutcome::Done(answer),
        Err(Errno(errno @ libc::EAGAIN)) => CallOutcome::Wait(errno),
        Err(Errno(errno)) => CallOutcome::Failed(errno),
    }
}

fn number(result: i32) -> CallAnswer {
    CallAnswer { result, ..CallAnswer::default() }
}

fn named(name: &[u8]) -> CallAnswer {
    CallAnswer { peer: name.to_vec(), ..CallAnswer::default() }
}

fn data(data: Bytes) -> CallAnswer {
    CallAnswer { data, ..CallAnswer::default() }
}

fn of_socket(socket: SocketId) -> CallAnswer {
    CallAnswer { socket: Some(socket.0), ..CallAnswer::default() }
}

/// Returns the identifier of an association; for `SCTP_SOCKOPT_CONNECTX3` in the place of the
/// addresses.
fn identifier(call: &SocketCall, AssocId(id): AssocId, errno: i32) -> CallAnswer {
    let mut value = call.data.to_vec();
    if let Some(bytes) = value.first_chunk_mut() {
        *bytes = id.to_ne_bytes();
    }
    CallAnswer { flags: errno, ..data(value.into()) }
}

#[cfg(test)]
mod tests {
    use eyas_sockets::StackConfig;
    use eyas_sockets::abi::SocketName;

    use super::*;

    /// Returns a blocking call with a name and data.
    fn call(
        op: Op,
        socket: u64,
        [a, b, c]: [i32; 3],
        name: &SocketName,
        value: &[u8],
    ) -> SocketCall {
        let request = Request { a, b, c, blocks: blocks::YES, ..Request::new(op) };
        let bytes = Bytes::copy_from_slice;
        SocketCall {
            socket,
            given_back: None,
            request,
            user: 0,
            name: bytes(name.as_bytes()),
            control: Bytes::new(),
            data: bytes(value),
        }
    }

    #[test]
    fn waiting_for_data_does_not_wake_for_an_association() {
        let now = Duration::ZERO;
        let config =
            StackConfig { addresses: vec!["192.0.2.1".parse().unwrap()], ..StackConfig::default() };
        let mut calls = StackCalls::new(Stack::new(config, [7; 32], now));
        let none = SocketName::new("0.0.0.0:0".parse().unwrap());
        let peer = SocketName::new("192.0.2.2:5000".parse().unwrap());
        let CallOutcome::Done(result) =
            calls.call(now, &call(Op::Socket, 0, [2, 5, 132], &none, &[]))
        else {
            panic!("no socket")
        };
        let socket = result.socket.unwrap();
        let open = call(
            Op::SetOption,
            socket,
            [SOL_SCTP, SCTP_SOCKOPT_CONNECTX, 0],
            &none,
            peer.as_bytes(),
        );
        assert_eq!(calls.call(now, &open), CallOutcome::Wait(libc::EINPROGRESS));
        let receive = call(Op::Receive, socket, [0, 100, 0], &none, &[]);
        assert_eq!(calls.call(now, &receive), CallOutcome::Wait(libc::EAGAIN));
        assert_eq!(calls.retry(now, &receive), CallOutcome::Wait(libc::EAGAIN));
        let second = call(Op::Connect, socket, [0; 3], &peer, &[]);
        assert_eq!(calls.call(now, &second), CallOutcome::Failed(libc::EALREADY));
        assert_eq!(calls.retry(now, &open), CallOutcome::Wait(libc::EINPROGRESS));
        calls.call_cancelled(&open);
        assert!(calls.opening.is_empty());
    }
}
