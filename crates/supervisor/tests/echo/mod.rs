//! A service that stands in for SCTP: its sockets receive what they send, and hold at most four
//! messages.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use eyas_supervisor::local::Op;
use eyas_supervisor::{
    CallAnswer, CallOutcome, SocketCall, SocketClosing, SocketNotice, SocketService, poll,
};

/// The number of messages that a socket can hold.
pub(crate) const LIMIT: usize = 4;
/// A connection to this address is refused, after a wait.
pub(crate) const REFUSED: &[u8] = b"refused";
/// The status of the service.
pub(crate) const STATUS: &[u8] = b"echo";
/// A message that ends the socket's receiving direction.
pub(crate) const END: &[u8] = b"end";

/// A message that opens an association, which is established when it is queried for the second
/// time.
pub(crate) const OPENS: &[u8] = b"opens";
/// A message that opens an association that is never established.
pub(crate) const OPENS_FOR_EVER: &[u8] = b"opens for ever";

/// A message that an option adds.
pub(crate) const OPTION: &[u8] = b"option";
/// The bytes that programs may write to their descriptors: 21 short messages, as the kernel counts.
const WRITING_ROOM: usize = 16 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Echo {
    sockets: BTreeMap<u64, VecDeque<Bytes>>,
    last_socket: u64,
    ended: Vec<u64>,
    notices: VecDeque<SocketNotice>,
    /// The number of queries before an association is established.
    opening: usize,
    pub(crate) closed: Vec<u64>,
    /// Whether programs may write messages to their descriptors.
    pub(crate) lets_write: bool,
    /// The number of messages that programs have written, and that of all messages.
    pub(crate) written: usize,
    pub(crate) sent: usize,
}

impl Echo {
    fn create(&mut self) -> u64 {
        self.last_socket += 1;
        self.sockets.insert(self.last_socket, VecDeque::new());
        self.ready(self.last_socket);
        self.last_socket
    }

    fn ready(&mut self, socket: u64) {
        let Some(queue) = self.sockets.get(&socket) else { return };
        let readable = if queue.is_empty() { 0 } else { poll::IN };
        let writable = if queue.len() < LIMIT { poll::OUT } else { 0 };
        let ended = if self.ended.contains(&socket) { poll::RDHUP | poll::IN } else { 0 };
        self.notices.push_back(SocketNotice::Ready(socket, readable | writable | ended));
        self.notices.push_back(SocketNotice::Retry(socket));
    }

    fn send(&mut self, socket: u64, call: &SocketCall, uses_reserve: bool) -> CallOutcome {
        if self.lets_write && self.ended.contains(&socket) {
            return CallOutcome::Failed(libc::EPIPE);
        }
        let Some(queue) = self.sockets.get_mut(&socket) else { return CallOutcome::Failed(9) };
        if call.data == END {
            self.ended.push(socket);
        } else if queue.len() >= LIMIT && !uses_reserve {
            return CallOutcome::Wait(libc::EAGAIN);
        } else {
            self.sent += 1;
            queue.push_back(call.data.clone());
            if queue.len() > 1 {
                self.notices.push_back(SocketNotice::Arrived(socket));
            }
        }
        self.ready(socket);
        self.opening = match &call.data[..] {
            OPENS => 1,
            OPENS_FOR_EVER => usize::MAX,
            _ => return done(call.data.len() as i32),
        };
        CallOutcome::Opens(
            CallAnswer { result: call.data.len() as i32, ..CallAnswer::default() },
            7,
        )
    }

    fn receive(&mut self, socket: u64, room: usize) -> CallOutcome {
        let Some(queue) = self.sockets.get_mut(&socket) else { return CallOutcome::Failed(9) };
        let Some(mut message) = queue.pop_front() else {
            return match self.ended.contains(&socket) {
                true => done(0),
                false => CallOutcome::Wait(libc::EAGAIN),
            };
        };
        let data = message.split_to(room.min(message.len()));
        let flags = if message.is_empty() { libc::MSG_EOR } else { 0 };
        if !message.is_empty() {
            queue.push_front(message);
        }
        self.ready(socket);
        // A control message of SCTP: 28 bytes of SCTP_RCVINFO and four of padding.
        let head = [44_usize.to_ne_bytes().to_vec(), 132_i32.to_ne_bytes().to_vec()].concat();
        let control = [head, 3_i32.to_ne_bytes().to_vec(), vec![7; 32]].concat();
        let (result, peer) = (data.len() as i32, b"peer".to_vec());
        CallOutcome::Done(CallAnswer { result, flags, peer, control, data, socket: None })
    }
}

fn done(result: i32) -> CallOutcome {
    CallOutcome::Done(CallAnswer { result, ..CallAnswer::default() })
}

impl SocketService for Echo {
    fn call(&mut self, call: &SocketCall) -> CallOutcome {
        let (request, socket) = (call.request, call.socket);
        match request.op {
            Op::Socket => {
                let socket = Some(self.create());
                CallOutcome::Done(CallAnswer { socket, ..CallAnswer::default() })
            }
            Op::Accept => {
                let (socket, peer) = (Some(self.create()), b"client".to_vec());
                CallOutcome::Done(CallAnswer { socket, peer, ..CallAnswer::default() })
            }
            Op::Send => self.send(socket, call, false),
            Op::SetOption if self.lets_write => {
                let queue = self.sockets.entry(socket).or_default();
                queue.push_back(Bytes::from_static(OPTION));
                done(0)
            }
            Op::Receive => self.receive(socket, request.b as usize),
            Op::Connect if call.name == REFUSED => {
                self.notices.push_back(SocketNotice::Retry(socket));
                CallOutcome::Wait(libc::EINPROGRESS)
            }
            Op::Connect => done(0),
            Op::GetOption => {
                let data = call.data.slice(..call.data.len().min(8));
                CallOutcome::Done(CallAnswer { data, ..CallAnswer::default() })
            }
            Op::LocalName => {
                let peer = socket.to_string().into_bytes();
                CallOutcome::Done(CallAnswer { peer, ..CallAnswer::default() })
            }
            Op::Status => {
                let data = Bytes::from_static(STATUS);
                CallOutcome::Done(CallAnswer { data, ..CallAnswer::default() })
            }
            _ => CallOutcome::Failed(libc::EOPNOTSUPP),
        }
    }

    fn begin_writing(&mut self, _: u64) -> Option<usize> {
        self.lets_write.then_some(WRITING_ROOM)
    }

    fn accepts_written(&mut self, socket: u64) -> bool {
        !self.ended.contains(&socket)
    }

    fn send_written(&mut self, call: &SocketCall, uses_reserve: bool) -> CallOutcome {
        let sent = self.send(call.socket, call, uses_reserve);
        self.written += usize::from(matches!(sent, CallOutcome::Done(_)));
        sent
    }

    fn retry(&mut self, call: &SocketCall) -> CallOutcome {
        match call.request.op {
            Op::Connect => CallOutcome::Failed(libc::ECONNREFUSED),
            _ => self.call(call),
        }
    }

    fn is_opening(&mut self, socket: u64, association: i32) -> bool {
        assert_eq!(association, 7);
        let is_opening = self.opening > 0;
        self.opening = self.opening.saturating_sub(1);
        self.notices
            .extend((is_opening && self.opening == 0).then_some(SocketNotice::Retry(socket)));
        is_opening
    }

    fn close(&mut self, socket: u64) -> SocketClosing {
        self.sockets.remove(&socket);
        self.closed.push(socket);
        SocketClosing::Done
    }

    fn notice(&mut self) -> Option<SocketNotice> {
        self.notices.pop_front()
    }
}
