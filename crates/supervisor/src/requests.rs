//! Requests of programs, from the bytes of a connection.

use bytes::buf::{BufMut, Limit};
use bytes::{Bytes, BytesMut};

use crate::local::{Op, REQUEST, Request};
use crate::service::Call;

/// The most room that is made for what has only been announced.
const AHEAD: usize = 256 * 1024;

/// Reads the requests of one connection: bytes in, calls out. What is kept is what has come of one
/// request, whatever it announces.
#[derive(Debug)]
pub struct Requests {
    key: u64,
    shows_status: bool,
    /// A header whose name, control and data are on their way.
    request: Option<Request>,
    bytes: BytesMut,
}

/// Why nothing more is read from a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A header is of another version, or none: how long the request is is not known.
    Version,
    /// A request shows another key.
    Key,
}

impl Requests {
    /// Nothing read yet. Requests have to show this key; [`Op::Status`] need not if `shows_status`.
    #[must_use]
    pub fn new(key: u64, shows_status: bool) -> Self {
        Self { key, shows_status, request: None, bytes: BytesMut::new() }
    }

    /// Room for what comes next: never for more than belongs to one request.
    pub fn room(&mut self) -> Limit<&mut BytesMut> {
        let missing = self.length() - self.bytes.len();
        if self.bytes.len() == self.bytes.capacity() {
            self.bytes.reserve(missing.min(AHEAD));
        }
        (&mut self.bytes).limit(missing)
    }

    /// The next call, if all of it has come.
    ///
    /// # Errors
    /// If the connection is of no use any more.
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
        self.request = None;
        let mut bytes = std::mem::take(&mut self.bytes).freeze();
        let mut part = |length: u32| -> Bytes { bytes.split_to(length as usize) };
        let [name, control, data] = [request.name, request.control, request.data].map(&mut part);
        Ok(Some(Call { request, name, control, data }))
    }

    /// Reads a header that has come.
    fn header(&mut self) -> Result<Request, Refusal> {
        let request = Request::parse(&self.bytes).ok_or(Refusal::Version)?;
        if request.key != self.key && !(request.op == Op::Status && self.shows_status) {
            return Err(Refusal::Key);
        }
        self.bytes.clear();
        self.request = Some(request);
        Ok(request)
    }

    /// Bytes of the piece that is on its way: a header, or what follows it.
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

    #[test]
    fn requests_are_read_one_by_one() {
        let both = [spoken(KEY, Op::Send, b"hello"), spoken(KEY, Op::Accept, &[])].concat();
        let (mut requests, mut rest) = (Requests::new(KEY, false), &both[..]);
        let mut found = Vec::new();
        while !rest.is_empty() {
            hear(&mut requests, &mut rest);
            found.extend(requests.call().unwrap().map(|call| (call.request.op, call.data)));
        }
        let wanted = [(Op::Send, Bytes::from_static(b"hello")), (Op::Accept, Bytes::new())];
        assert_eq!(found, wanted);
    }

    #[test]
    fn what_is_announced_takes_no_memory_before_it_comes() {
        let request = Request { key: KEY, data: 8 << 20, ..Request::new(Op::Send) };
        let header = request.encode();
        let (mut requests, mut rest) = (Requests::new(KEY, false), &header[..]);
        hear(&mut requests, &mut rest);
        assert!(requests.call().unwrap().is_none());
        assert_eq!(requests.room().remaining_mut(), 8 << 20);
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
