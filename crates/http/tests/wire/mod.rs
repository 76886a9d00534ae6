//! The wire of HTTP/3, for peers that break its rules on purpose: frames (RFC 9114 §7.1), field sections (RFC 9204
//! §4.5) and streams whose every byte a test decides.

use std::time::Duration;

use tokio::time::timeout;

/// A generous bound for anything that must happen at all.
const SOON: Duration = Duration::from_secs(20);

/// The types of unidirectional streams (RFC 9114 §6.2, RFC 9204 §4.2).
pub(crate) const CONTROL: u64 = 0x00;
pub(crate) const PUSH: u64 = 0x01;
pub(crate) const ENCODER: u64 = 0x02;
pub(crate) const DECODER: u64 = 0x03;

/// The types of frames (RFC 9114 §7.2).
pub(crate) const DATA: u64 = 0x00;
pub(crate) const HEADERS: u64 = 0x01;
pub(crate) const CANCEL_PUSH: u64 = 0x03;
pub(crate) const SETTINGS: u64 = 0x04;
pub(crate) const PUSH_PROMISE: u64 = 0x05;
pub(crate) const GOAWAY: u64 = 0x07;
pub(crate) const MAX_PUSH_ID: u64 = 0x0d;
/// A reserved type (RFC 9114 §7.2.8), also of streams and settings.
pub(crate) const RESERVED: u64 = 0x21 + 0x1f * 7;

/// Error codes (RFC 9114 §8.1, RFC 9204 §6, RFC 9297 §5.2).
pub(crate) const STREAM_CREATION_ERROR: u64 = 0x103;
pub(crate) const CLOSED_CRITICAL_STREAM: u64 = 0x104;
pub(crate) const FRAME_UNEXPECTED: u64 = 0x105;
pub(crate) const FRAME_ERROR: u64 = 0x106;
pub(crate) const ID_ERROR: u64 = 0x108;
pub(crate) const SETTINGS_ERROR: u64 = 0x109;
pub(crate) const MISSING_SETTINGS: u64 = 0x10a;
pub(crate) const MESSAGE_ERROR: u64 = 0x10e;
pub(crate) const DECOMPRESSION_FAILED: u64 = 0x200;
pub(crate) const ENCODER_STREAM_ERROR: u64 = 0x201;
pub(crate) const DECODER_STREAM_ERROR: u64 = 0x202;

/// Encodes a variable-length integer in as few bytes as possible (RFC 9000 §16).
pub(crate) fn varint(value: u64) -> Vec<u8> {
    match value {
        ..0x40 => vec![value as u8],
        0x40..0x4000 => (value as u16 | 0x4000).to_be_bytes().to_vec(),
        0x4000..0x4000_0000 => (value as u32 | 0x8000_0000).to_be_bytes().to_vec(),
        _ => (value | 0b11 << 62).to_be_bytes().to_vec(),
    }
}

pub(crate) fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    [varint(kind), varint(payload.len() as u64), payload.to_vec()].concat()
}

/// Returns SETTINGS with these pairs.
pub(crate) fn settings(pairs: &[(u64, u64)]) -> Vec<u8> {
    let payload = pairs.iter().flat_map(|(id, value)| [varint(*id), varint(*value)]);
    frame(SETTINGS, &payload.collect::<Vec<_>>().concat())
}

/// Returns a control stream: its type, SETTINGS, and these bytes.
pub(crate) fn control(rest: &[u8]) -> Vec<u8> {
    [varint(CONTROL), settings(&[]), rest.to_vec()].concat()
}

/// Returns HEADERS with these fields, as literals without the dynamic table (RFC 9204 §4.5.6).
pub(crate) fn head(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut section = vec![0, 0];
    for (name, value) in fields {
        prefixed(&mut section, 0x20, 3, name.len());
        section.extend_from_slice(name.as_bytes());
        prefixed(&mut section, 0x00, 7, value.len());
        section.extend_from_slice(value.as_bytes());
    }
    frame(HEADERS, &section)
}

/// Encodes an integer after these first bits, with a prefix of so many (RFC 7541 §5.1).
fn prefixed(to: &mut Vec<u8>, first: u8, bits: u32, value: usize) {
    let most = (1 << bits) - 1;
    if value < most {
        return to.push(first | value as u8);
    }
    to.push(first | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        to.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    to.push(rest as u8);
}

/// The end of a stream after its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ending {
    Open,
    Finish,
    Reset,
}

impl Ending {
    pub(crate) fn apply(self, stream: &mut quinn::SendStream) {
        match self {
            Self::Open => {}
            Self::Finish => stream.finish().expect("open"),
            Self::Reset => stream.reset(0x102_u32.into()).expect("open"),
        }
    }
}

/// Writes a unidirectional stream.
pub(crate) async fn send_uni(
    quic: &quinn::Connection,
    bytes: &[u8],
    ending: Ending,
) -> quinn::SendStream {
    let mut stream = quic.open_uni().await.expect("a stream");
    // The peer may already have closed the connection because of an earlier stream.
    let _ = stream.write_all(bytes).await;
    if matches!(ending, Ending::Reset) {
        // What has not arrived would be lost.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    ending.apply(&mut stream);
    stream
}

/// Waits until the peer closes the connection, and returns its code; `None` if it does not.
pub(crate) async fn close_code(quic: &quinn::Connection) -> Option<u64> {
    match timeout(SOON, quic.closed()).await {
        Ok(quinn::ConnectionError::ApplicationClosed(close)) => Some(close.error_code.into_inner()),
        _ => None,
    }
}
