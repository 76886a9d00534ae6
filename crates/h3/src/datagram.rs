//! HTTP Datagrams in QUIC DATAGRAM frames (RFC 9297 §2.1): each belongs to the stream of a request.

use alloc::vec::Vec;

use bytes::Bytes;

use crate::fault::ConnectionFault;
use crate::stream::StreamId;
use crate::varint;

/// Returns the stream of a datagram and its payload, a slice of the frame.
///
/// # Errors
/// [`ConnectionFault::DatagramMalformed`] if the frame is too short for the Quarter Stream ID, or that is
/// larger than 2^60-1: both MUST be treated as a connection error of type H3_DATAGRAM_ERROR (RFC 9297
/// §2.1).
pub fn parse(frame: &Bytes) -> Result<(StreamId, Bytes), ConnectionFault> {
    let (quarter, payload) = varint::parse(frame).ok_or(ConnectionFault::DatagramMalformed)?;
    if quarter > StreamId::MAX_REQUEST.0 >> 2 {
        return Err(ConnectionFault::DatagramMalformed);
    }
    Ok((StreamId::from_request_index(quarter), frame.slice_ref(payload)))
}

/// Appends what the datagram of a request's stream begins with; the payload follows it.
pub fn write_header(stream: StreamId, out: &mut Vec<u8>) {
    varint::write(stream.0 >> 2, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    //= rfc9297 §2.1
    //# a datagram frame is a quarter of the stream ID and the datagram; more than 2^60-1:
    //# H3_DATAGRAM_ERROR
    #[test]
    fn a_datagram_begins_with_a_quarter_of_its_streams_number() {
        let last = StreamId::MAX_REQUEST;
        for (frame, expected) in [
            (&b"\x07hello"[..], Some((StreamId(28), &b"hello"[..]))),
            (b"\x40\x07", Some((StreamId(28), b""))),
            (b"\xcf\xff\xff\xff\xff\xff\xff\xffx", Some((last, b"x"))),
            (b"\xd0\0\0\0\0\0\0\0x", None),
            (b"\xff\xff\xff\xff\xff\xff\xff\xffx", None),
            (b"\x40", None),
            (b"", None),
        ] {
            let parsed = parse(&Bytes::from_static(frame));
            let expected = expected.map(|(id, payload)| (id, Bytes::from_static(payload)));
            assert_eq!(parsed, expected.ok_or(ConnectionFault::DatagramMalformed), "{frame:?}");
        }
        let mut written = Vec::new();
        write_header(StreamId(28), &mut written);
        assert_eq!(written, [7]);
    }
}
