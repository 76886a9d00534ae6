//! Parses the first message of a client, as far as a server must before it keeps any state.

use std::ops::Range;

/// Content type, version, epoch, sequence number, length (RFC 6347 §4.1).
const RECORD_HEADER: usize = 13;
/// Type, length, number, offset and length of the fragment (RFC 6347 §4.2.2).
const MESSAGE_HEADER: usize = 12;
/// The content type of handshake records.
const HANDSHAKE: u8 = 22;
/// The type of a ClientHello.
const CLIENT_HELLO: u8 = 1;

/// DTLS 1.2 on the wire.
pub(super) const DTLS_1_2: u16 = 0xfefd;
/// DTLS 1.3 on the wire.
pub(super) const DTLS_1_3: u16 = 0xfefc;

/// Padding (RFC 7685).
pub(super) const PADDING: u16 = 21;
/// The versions that are offered (RFC 8446 §4.2.1).
pub(super) const SUPPORTED_VERSIONS: u16 = 43;
/// The cookie of DTLS 1.3 (RFC 8446 §4.2.2).
pub(super) const COOKIE: u16 = 44;
/// Public keys (RFC 8446 §4.2.8).
pub(super) const KEY_SHARE: u16 = 51;

/// A ClientHello (RFC 6347 §4.2.1, RFC 9147 §5.3) that arrived complete in one record, which a
/// stateless server has to require (RFC 9147 §5.5).
#[derive(Debug)]
pub(super) struct ClientHello<'a> {
    body: &'a [u8],
    /// How many messages the client has sent before this one.
    pub(super) message_seq: u16,
    cookie: Range<usize>,
    suites: Range<usize>,
    /// The offset of the end of the compression methods.
    fixed_end: usize,
}

/// One extension: its type, and its content.
pub(super) type Extension<'a> = (u16, &'a [u8]);

impl<'a> ClientHello<'a> {
    /// Parses a datagram; `None` if it is anything but one ClientHello.
    pub(super) fn read(datagram: &'a [u8]) -> Option<Self> {
        let mut record = Reader { bytes: datagram, at: 0 };
        let (content_type, version) = (record.u8()?, record.u16()?);
        let (epoch, _) = (record.u16()?, record.next_range(6)?);
        let is_handshake = content_type == HANDSHAKE && version >> 8 == 0xfe && epoch == 0;
        if !is_handshake || usize::from(record.u16()?) != datagram.len() - RECORD_HEADER {
            return None;
        }
        let (kind, length, message_seq) = (record.u8()?, record.u24()?, record.u16()?);
        let (offset, fragment) = (record.u24()?, record.u24()?);
        let body = datagram.get(RECORD_HEADER + MESSAGE_HEADER..)?;
        if kind != CLIENT_HELLO || offset != 0 || fragment != length || length != body.len() {
            return None;
        }
        let mut fields = Reader { bytes: body, at: 0 };
        let (version, _random) = (fields.u16()?, fields.next_range(32)?);
        let session = fields.u8()?;
        fields.next_range(session.into())?;
        let cookie = fields.u8()?;
        let cookie = fields.next_range(cookie.into())?;
        let suites = fields.u16()?;
        let suites = fields.next_range(suites.into())?;
        let compression = fields.u8()?;
        fields.next_range(compression.into())?;
        let hello = Self { body, message_seq, cookie, suites, fixed_end: fields.at };
        (version == DTLS_1_2 && hello.extensions_are_complete()).then_some(hello)
    }

    /// Returns the cookie of DTLS 1.2; empty if there is none.
    pub(super) fn legacy_cookie(&self) -> &'a [u8] {
        &self.body[self.cookie.clone()]
    }

    /// Returns the cookie of DTLS 1.3.
    pub(super) fn retry_cookie(&self) -> Option<&'a [u8]> {
        let content = self.extension(COOKIE)?;
        content.get(2..).filter(|cookie| content[..2] == length16(cookie.len()))
    }

    /// Returns the offered cipher suites, best first.
    pub(super) fn suites(&self) -> impl Iterator<Item = u16> + use<'a> {
        numbers(&self.body[self.suites.clone()])
    }

    /// Returns whether DTLS 1.3 is offered.
    pub(super) fn offers_dtls_1_3(&self) -> bool {
        let versions = self.extension(SUPPORTED_VERSIONS).and_then(|content| content.get(1..));
        numbers(versions.unwrap_or_default()).any(|version| version == DTLS_1_3)
    }

    /// Returns the groups for which the message contains a public key.
    pub(super) fn key_shares(&self) -> impl Iterator<Item = u16> + use<'a> {
        let entries = self.extension(KEY_SHARE).and_then(|content| content.get(2..));
        let mut reader = Reader { bytes: entries.unwrap_or_default(), at: 0 };
        std::iter::from_fn(move || {
            let group = reader.u16()?;
            let key = reader.u16()?;
            reader.next_range(key.into())?;
            Some(group)
        })
    }

    /// Returns the extensions, in order.
    pub(super) fn extensions(&self) -> impl Iterator<Item = Extension<'a>> + use<'a> {
        let body = self.body;
        let mut reader = Reader { bytes: body, at: (self.fixed_end + 2).min(body.len()) };
        std::iter::from_fn(move || {
            let kind = reader.u16()?;
            let length = reader.u16()?;
            Some((kind, &body[reader.next_range(length.into())?]))
        })
    }

    /// Returns the message without its header.
    pub(super) fn body(&self) -> &'a [u8] {
        self.body
    }

    /// Returns everything before the extensions, without the cookie of DTLS 1.2: what a client
    /// repeats when a cookie is requested (RFC 6347 §4.2.1).
    pub(super) fn without_cookie(&self) -> Vec<u8> {
        let (before, after) =
            (&self.body[..self.cookie.start - 1], self.cookie.end..self.fixed_end);
        [before, &[0], &self.body[after]].concat()
    }

    /// Returns the extensions with their length, as on the wire.
    pub(super) fn extension_block(&self) -> &'a [u8] {
        &self.body[self.fixed_end..]
    }

    fn extension(&self, extension_type: u16) -> Option<&'a [u8]> {
        self.extensions().find(|(kind, _)| *kind == extension_type).map(|(_, content)| content)
    }

    /// Returns whether the extensions fill the rest of the message exactly; there may be none at
    /// all.
    fn extensions_are_complete(&self) -> bool {
        let Some(block) = self.extension_block().split_at_checked(2) else {
            return self.extension_block().is_empty();
        };
        let length: usize = self.extensions().map(|(_, content)| 4 + content.len()).sum();
        length == block.1.len() && *block.0 == length16(length)
    }
}

/// Returns a single handshake message in a record of epoch 0.
pub(super) fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = &length32(body.len())[1..];
    let rest = length16(MESSAGE_HEADER + body.len());
    let version = DTLS_1_2.to_be_bytes();
    let header = [&[HANDSHAKE][..], &version, &[0; 8], &rest];
    let message = [&[kind][..], length, &[0; 5], length, body];
    [header.concat(), message.concat()].concat()
}

/// Returns a single ClientHello in a record of epoch 0.
pub(super) fn client_hello(body: &[u8]) -> Vec<u8> {
    record(CLIENT_HELLO, body)
}

/// Encodes a length in two bytes. Everything encoded here is shorter than a datagram.
pub(super) fn length16(length: usize) -> [u8; 2] {
    u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes()
}

fn length32(length: usize) -> [u8; 4] {
    u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes()
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u16> + use<'_> {
    bytes.chunks_exact(2).map(|two| u16::from_be_bytes([two[0], two[1]]))
}

/// Reads bytes from the front.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn next_range(&mut self, length: usize) -> Option<Range<usize>> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len())?;
        Some(std::mem::replace(&mut self.at, end)..end)
    }

    fn number(&mut self, length: usize) -> Option<usize> {
        let range = self.next_range(length)?;
        Some(self.bytes[range].iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
    }

    fn u8(&mut self) -> Option<u8> {
        self.number(1).and_then(|number| number.try_into().ok())
    }

    fn u16(&mut self) -> Option<u16> {
        self.number(2).and_then(|number| number.try_into().ok())
    }

    fn u24(&mut self) -> Option<usize> {
        self.number(3)
    }
}
