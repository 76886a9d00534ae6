//! Parses the requests of programs from the bytes of a connection.

use bytes::buf::{BufMut, Limit};
use bytes::{Buf, Bytes, BytesMut};

use crate::local::{Op, REQUEST, Request};
use crate::service::Call;

/// The maximum memory that is allocated for data that has only been announced.
const AHEAD: usize = 256 * 1024;
/// The number of bytes that are read at once if a header is expected: most requests are not longer,
/// and arrive in one read.
const AT_ONCE: usize = 4096;

/// Parses the requests of one connection: bytes in, calls out. It stores only the received part of
/// one request, whatever length is announced, and up to 4 KiB more.
#[derive(Debug)]
pub struct Requests {
    key: u64,
    shows_status: bool,
    /// A header whose name, control and data have not arrived yet.
    request: Option<Request>,
    bytes: BytesMut,
}

/// Why nothing more is read from a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A header is of another version or invalid: the length of the request is unknown.
    Version,
    /// A request contains a wrong key.
    Key,
}

impl Requests {
    /// Creates a parser. Requests must contain this key, except [`Op::Status`] if `shows_status`.
    #[must_use]
    pub fn new(key: u64, shows_status: bool) -> Self {
        Self { key, shows_status, request: None, bytes: BytesMut::new() }
    }

    /// Returns a buffer for the next bytes, after [`Requests::call`] has found no further complete
    /// request.
    pub fn room(&mut self) -> Limit<&mut BytesMut> {
        let room = match self.request {
            None => AT_ONCE,
            // More than is missing: if a read leaves some of it empty, there is nothing else to
            // read.
            Some(_) => self.length() + 1,
        };
        let room = room.saturating_sub(self.bytes.len());
        if self.bytes.capacity() - self.bytes.len() < room.min(AT_ONCE) {
            self.bytes.reserve(room.min(AHEAD));
        }
        (&mut self.bytes).limit(room)
    }

    /// Returns the next call, if it is complete.
    ///
    /// # Errors
    /// If the connection can no longer be used.
    pub fn call(&mut self) -> Result<Option<Call>, Refusal> {
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
        Ok(Some(Call { request, name, control, data }))
    }

    /// Parses a header that has arrived.
    fn header(&mut self) -> Result<Request, Refusal> {
        let header = self.bytes.get(..REQUEST).and_then(Request::parse).ok_or(Refusal::Version)?;
        if header.key != self.key && !(header.op == Op::Status && self.shows_status) {
            return Err(Refusal::Key);
        }
        self.bytes.advance(REQUEST);
        self.request = Some(header);
        Ok(header)
    }

    /// Returns what follows a header, which has arrived completely.
    fn body(&mut self) -> Bytes {
        let length = self.length();
        if length <= AT_ONCE {
            // A message may be kept for long, and must not keep the buffer of other requests alive.
            let body = Bytes::copy_from_slice(&self.bytes[..length]);
            self.bytes.advance(length);
            return body;
        }
        let rest = BytesMut::from(&self.bytes[length..]);
        self.bytes.truncate(length);
        std::mem::replace(&mut self.bytes, rest).freeze()
    }

    /// Returns the number of bytes expected next: a header, or what follows it.
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

    fn spoken(key: u64, op: Op, data: &[u8]) -> Vec<u8> {
        let request = Request { key, data: data.len() as u32, ..Request::new(op) };
        [&request.encode()[..], data].concat()
    }

    /// Hands in as much as there is room for.
    fn hear(requests: &mut Requests, bytes: &mut &[u8]) {
        let mut room = requests.room();
        let taken = room.remaining_mut().min(bytes.len());
        room.put_slice(&bytes[..taken]);
        *bytes = &bytes[taken..];
    }

    /// The calls that these bytes are.
    fn read(requests: &mut Requests, mut bytes: &[u8]) -> Vec<(Op, Bytes)> {
        let mut found = Vec::new();
        while !bytes.is_empty() {
            hear(requests, &mut bytes);
            while let Some(call) = requests.call().unwrap() {
                found.push((call.request.op, call.data));
            }
        }
        found
    }

    #[test]
    fn requests_are_read_one_by_one() {
        let long = vec![9; AT_ONCE + 1];
        for message in [&b"hello"[..], &long] {
            let wanted = [(Op::Send, Bytes::copy_from_slice(message)), (Op::Accept, Bytes::new())];
            let both = [spoken(KEY, Op::Send, message), spoken(KEY, Op::Accept, &[])].concat();
            assert_eq!(read(&mut Requests::new(KEY, false), &both), wanted);
            let mut requests = Requests::new(KEY, false);
            let found: Vec<_> =
                both.chunks(7).flat_map(|piece| read(&mut requests, piece)).collect();
            assert_eq!(found, wanted);
        }
    }

    #[test]
    fn a_short_request_takes_one_read_and_a_long_one_two() {
        let mut requests = Requests::new(KEY, false);
        for (length, reads) in [(0, 1), (1452, 1), (65_536, 2), (64, 1)] {
            let bytes = spoken(KEY, Op::Send, &vec![1; length]);
            let (mut rest, mut count) = (&bytes[..], 0);
            while !rest.is_empty() {
                assert!(requests.call().unwrap().is_none());
                // One that is filled may not be the last.
                assert!(requests.room().remaining_mut() > rest.len() || rest.len() >= AT_ONCE);
                hear(&mut requests, &mut rest);
                count += 1;
            }
            assert_eq!(requests.call().unwrap().unwrap().data.len(), length);
            assert_eq!(count, reads, "{length}");
        }
    }

    #[test]
    fn a_kept_message_keeps_only_its_own_bytes_alive() {
        let mut requests = Requests::new(KEY, false);
        let mut kept = Vec::new();
        for _ in 0..100 {
            kept.extend(read(&mut requests, &spoken(KEY, Op::Send, &[1; 100])));
        }
        assert!(requests.bytes.capacity() <= AT_ONCE, "{}", requests.bytes.capacity());
        // One that is alone in its memory can be had as that, without a copy.
        let (_, data) = kept.pop().unwrap();
        assert!(data.try_into_mut().is_ok_and(|data| data.capacity() == 100));
    }

    #[test]
    fn announced_data_takes_no_memory_before_it_arrives() {
        let request = Request { key: KEY, data: 8 << 20, ..Request::new(Op::Send) };
        let header = request.encode();
        let (mut requests, mut rest) = (Requests::new(KEY, false), &header[..]);
        hear(&mut requests, &mut rest);
        assert!(requests.call().unwrap().is_none());
        assert_eq!(requests.room().remaining_mut(), (8 << 20) + 1);
        assert!(requests.bytes.capacity() <= 2 * AHEAD, "{}", requests.bytes.capacity());
    }

    #[test]
    fn without_the_key_nothing_is_read() {
        for (key, op, shows_status, wanted) in [
            (KEY + 1, Op::Send, true, Err(Refusal::Key)),
            (KEY + 1, Op::Status, false, Err(Refusal::Key)),
            (KEY + 1, Op::Status, true, Ok(true)),
            (KEY, Op::Send, false, Ok(true)),
        ] {
            let (mut requests, spoken) = (Requests::new(KEY, shows_status), spoken(key, op, &[]));
            hear(&mut requests, &mut &spoken[..]);
            assert_eq!(requests.call().map(|call| call.is_some()), wanted, "{key} {op:?}");
        }
        let mut requests = Requests::new(KEY, true);
        hear(&mut requests, &mut &[0; REQUEST][..]);
        assert_eq!(requests.call().map(drop), Err(Refusal::Version));
    }
}
