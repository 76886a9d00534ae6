//! The long headers of QUIC version 1 (RFC 9000 §17.2), as far as anybody on the path can read them.

/// QUIC version 1.
const VERSION_1: [u8; 4] = [0, 0, 0, 1];
const LONG_HEADER: u8 = 0x80;
const TYPE: u8 = 0x30;
const INITIAL: u8 = 0x00;
const HANDSHAKE: u8 = 0x20;
const RETRY: u8 = 0x30;
/// The maximum length of a connection ID in bytes.
const MAX_ID: usize = 20;

/// A long header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LongHeader<'a> {
    kind: u8,
    pub(super) destination: &'a [u8],
    pub(super) source: &'a [u8],
    /// What follows the packet in its datagram.
    rest: &'a [u8],
}

impl<'a> LongHeader<'a> {
    /// Reads the header of the first packet in a datagram.
    pub(super) fn from_bytes(bytes: &'a [u8]) -> Option<Self> {
        let (first, bytes) = bytes.split_first()?;
        let (version, bytes) = bytes.split_first_chunk()?;
        if first & LONG_HEADER == 0 || *version != VERSION_1 {
            return None;
        }
        let (destination, bytes) = connection_id(bytes)?;
        let (source, bytes) = connection_id(bytes)?;
        let kind = first & TYPE;
        let bytes = match kind {
            INITIAL => {
                let (length, bytes) = integer(bytes)?;
                bytes.get(length..)?
            }
            RETRY => return Some(Self { kind, destination, source, rest: &[] }),
            _ => bytes,
        };
        let (length, bytes) = integer(bytes)?;
        let rest = bytes.get(length..).unwrap_or(&[]);
        Some(Self { kind, destination, source, rest })
    }

    /// Reads the headers of a datagram's packets (RFC 9000 §12.2), up to the first one with a short header.
    pub(super) fn coalesced(datagram: &'a [u8]) -> impl Iterator<Item = Self> {
        let first = Self::from_bytes(datagram);
        core::iter::successors(first, |header| Self::from_bytes(header.rest))
    }

    pub(super) const fn is_initial(&self) -> bool {
        self.kind == INITIAL
    }

    pub(super) const fn is_handshake(&self) -> bool {
        self.kind == HANDSHAKE
    }
}

fn connection_id(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, bytes) = bytes.split_first()?;
    let length = usize::from(*length);
    if length > MAX_ID { None } else { bytes.split_at_checked(length) }
}

/// Reads an integer of variable length (RFC 9000 §16).
fn integer(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let (more, rest) = rest.split_at_checked((1 << (first >> 6)) - 1)?;
    let first = u64::from(first & 0x3f);
    let value = more.iter().fold(first, |value, byte| value << 8 | u64::from(*byte));
    Some((usize::try_from(value).ok()?, rest))
}
