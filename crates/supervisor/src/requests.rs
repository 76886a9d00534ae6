//! Parses the requests of programs from the bytes of a connection.

use bytes::buf::{BufMut, Limit};
use bytes::{Buf, Bytes, BytesMut};

use crate::local::{Op, REQUEST, Request};
use crate::service::SocketCall;

/// The maximum memory that is allocated for data that has been announced but has not arrived.
const MAX_PREALLOCATION: usize = 256 * 1024;
/// The number of bytes to read when a header is expected: most requests are no longer than this and
/// arrive in one read.
const READ_BYTES: usize = 4096;

/// Parses the requests of one connection: bytes in, calls out. It stores at most the received part
/// of one request, whatever its announced length, and 4 KiB more.
#[derive(Debug)]
pub struct ProgramRequests {
    key: u64,
    allows_status: bool,
    user: u32,
    /// A header whose name, control and data have not arrived yet.
    request: Option<Request>,
    bytes: BytesMut,
}

/// The reason why a connection can no longer be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallRefusal {
    /// A header has another version or is invalid, so the length of the request is unknown.
    Version,
    /// A request contains a wrong key.
    Key,
}

impl ProgramRequests {
    /// Creates a parser. Requests must contain this key, except [`Op::Status`] if `allows_status`.
    #[must_use]
    pub fn new(key: u64, allows_status: bool) -> Self {
        Self { key, allows_status, user: 0, request: None, bytes: BytesMut::new() }
    }

    /// Sets the user who makes the requests; by default it is root.
    #[must_use]
    pub fn with_user(mut self, user: u32) -> Self {
        self.user = user;
        self
    }

    /// Returns a buffer for the next bytes, after [`ProgramRequests::call`] has found no further complete
    /// request.
    pub fn buffer(&mut self) -> Limit<&mut BytesMut> {
        let buffer = match self.request {
            None => READ_BYTES,
            // One more than is missing: a read that does not fill it shows that there is nothing
            // else to read.
            Some(_) => self.length() + 1,
        };
        let buffer = buffer.saturating_sub(self.bytes.len());
        if self.bytes.capacity() - self.bytes.len() < buffer.min(READ_BYTES) {
            self.bytes.reserve(buffer.min(MAX_PREALLOCATION));
        }
        (&mut self.bytes).limit(buffer)
    }

    /// Returns the next call, if it is complete, without the number of its socket.
    ///
    /// # Errors
    /// If the connection can no longer be used.
    pub fn call(&mut self) -> Result<Option<SocketCall>, CallRefusal> {
        if self.bytes.len() < self.length() {
            return Ok(None);
        }
        let request = match self.request {
            Some(request) => request,
            None => self.header()?,
        };
        if self.bytes.len() < self.length() {
            return Ok(None);
        }
        let mut bytes = self.body();
        self.request = None;
        let mut part = |length: u32| -> Bytes { bytes.split_to(length as usize) };
        let [name, control, data] = [request.name, request.control, request.data].map(&mut part);
        let (socket, given_back) = (0, None);
        Ok(Some(SocketCall { request, socket, given_back, user: self.user, name, control, data }))
    }

    /// Parses a header that has arrived.
    fn header(&mut self) -> Result<Request, CallRefusal> {
        let header =
            self.bytes.get(..REQUEST).and_then(Request::parse).ok_or(CallRefusal::Version)?;
        if header.key != self.key && !(header.op == Op::Status && self.allows_status) {
            return Err(CallRefusal::Key);
        }
        self.bytes.advance(REQUEST);
        self.request = Some(header);
        Ok(header)
    }

    /// Returns the body of a request that has arrived completely.
    fn body(&mut self) -> Bytes {
        let length = self.length();
        if length <= READ_BYTES {
            // A message may be kept for a long time, and must not keep the buffer of other requests
            // alive.
            let body = Bytes::copy_from_slice(&self.bytes[..length]);
            self.bytes.advance(length);
            return body;
        }
        let rest = BytesMut::from(&self.bytes[length..]);
        self.bytes.truncate(length);
        std::mem::replace(&mut self.bytes, rest).freeze()
    }

    /// Returns the number of bytes expected next: those of a header or of a body.
    fn length(&self) -> usize {
        self.request.map_or(REQUEST, |request| {
            request.name as usize + request.control as usize + request.data as usize
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: u64 = 7;

    fn encoded(key: u64, op: Op, data: &[u8]) -> Vec<u8> {
        let request = Request { key, data: data.len() as u32, ..Request::new(op) };
        [&request.encode()[..], data].concat()
    }

    /// Feeds in as many bytes as there is room for.
    fn feed(requests: &mut ProgramRequests, bytes: &mut &[u8]) {
        let mut buffer = requests.buffer();
        let taken = buffer.remaining_mut().min(bytes.len());
        buffer.put_slice(&bytes[..taken]);
        *bytes = &bytes[taken..];
    }

    /// Returns the calls that these bytes contain.
    fn read(requests: &mut ProgramRequests, mut bytes: &[u8]) -> Vec<(Op, Bytes)> {
        let mut found = Vec::new();
        while !bytes.is_empty() {
            feed(requests, &mut bytes);
            while let Some(call) = requests.call().unwrap() {
                found.push((call.request.op, call.data));
            }
        }
        found
    }

    #[test]
    fn requests_are_parsed_one_by_one() {
        let long = vec![9; READ_BYTES + 1];
        for message in [&b"hello"[..], &long] {
            let wanted = [(Op::Send, Bytes::copy_from_slice(message)), (Op::Accept, Bytes::new())];
            let both = [encoded(KEY, Op::Send, message), encoded(KEY, Op::Accept, &[])].concat();
            assert_eq!(read(&mut ProgramRequests::new(KEY, false), &both), wanted);
            let mut requests = ProgramRequests::new(KEY, false);
            let found: Vec<_> =
                both.chunks(7).flat_map(|piece| read(&mut requests, piece)).collect();
            assert_eq!(found, wanted);
        }
    }

    #[test]
    fn a_short_request_takes_one_read_and_a_long_one_two() {
        let mut requests = ProgramRequests::new(KEY, false);
        for (length, reads) in [(0, 1), (1452, 1), (65_536, 2), (64, 1)] {
            let bytes = encoded(KEY, Op::Send, &vec![1; length]);
            let (mut rest, mut count) = (&bytes[..], 0);
            while !rest.is_empty() {
                assert!(requests.call().unwrap().is_none());
                // A read that fills the buffer may not be the last one.
                assert!(requests.buffer().remaining_mut() > rest.len() || rest.len() >= READ_BYTES);
                feed(&mut requests, &mut rest);
                count += 1;
            }
            assert_eq!(requests.call().unwrap().unwrap().data.len(), length);
            assert_eq!(count, reads, "{length}");
        }
    }

    #[test]
    fn a_kept_message_keeps_only_its_own_bytes_alive() {
        let mut requests = ProgramRequests::new(KEY, false);
        let mut kept = Vec::new();
        for _ in 0..100 {
            kept.extend(read(&mut requests, &encoded(KEY, Op::Send, &[1; 100])));
        }
        assert!(requests.bytes.capacity() <= READ_BYTES, "{}", requests.bytes.capacity());
        // A message that does not share its memory can be converted without a copy.
        let (_, data) = kept.pop().unwrap();
        assert!(data.try_into_mut().is_ok_and(|data| data.capacity() == 100));
    }

    //= hostile sctp-run
    //# a request that announces more than it sends
    //= bound: `MAX_PREALLOCATION`, `MAX_SIDE`, `MAX_DATA`
    #[test]
    fn announced_data_takes_no_memory_before_it_arrives() {
        let request = Request { key: KEY, data: 8 << 20, ..Request::new(Op::Send) };
        let header = request.encode();
        let (mut requests, mut rest) = (ProgramRequests::new(KEY, false), &header[..]);
        feed(&mut requests, &mut rest);
        assert!(requests.call().unwrap().is_none());
        assert_eq!(requests.buffer().remaining_mut(), (8 << 20) + 1);
        assert!(
            requests.bytes.capacity() <= 2 * MAX_PREALLOCATION,
            "{}",
            requests.bytes.capacity()
        );
    }

    #[test]
    fn requests_without_the_key_are_refused() {
        for (key, op, allows_status, wanted) in [
            (KEY + 1, Op::Send, true, Err(CallRefusal::Key)),
            (KEY + 1, Op::Status, false, Err(CallRefusal::Key)),
            (KEY + 1, Op::Status, true, Ok(true)),
            (KEY, Op::Send, false, Ok(true)),
        ] {
            let (mut requests, encoded) =
                (ProgramRequests::new(KEY, allows_status), encoded(key, op, &[]));
            feed(&mut requests, &mut &encoded[..]);
            assert_eq!(requests.call().map(|call| call.is_some()), wanted, "{key} {op:?}");
        }
        let mut requests = ProgramRequests::new(KEY, true);
        feed(&mut requests, &mut &[0; REQUEST][..]);
        assert_eq!(requests.call().map(drop), Err(CallRefusal::Version));
    }
}
