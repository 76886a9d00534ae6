//! COOKIE ECHO and COOKIE ACK: the association's state, returned by the peer that stored it.
//!
//! <https://www.rfc-editor.org/rfc/rfc9260#section-3.3.11>,
//! <https://www.rfc-editor.org/rfc/rfc9260#section-3.3.12>
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |   Type = 10   |       0       |            Length             |
//! +---------------+---------------+-------------------------------+
//! \                            Cookie                             \
//! +---------------------------------------------------------------+
//!
//! +---------------+---------------+-------------------------------+
//! |   Type = 11   |       0       |          Length = 4           |
//! +---------------+---------------+-------------------------------+
//! ```

use bytes::BytesMut;

use super::{ChunkType, ELEMENT_HEADER, put_header};

pub(super) fn encode_echo(cookie: &[u8], buffer: &mut BytesMut) {
    put_header(ChunkType::COOKIE_ECHO, 0, ELEMENT_HEADER + cookie.len(), buffer);
    buffer.extend_from_slice(cookie);
}

#[cfg(test)]
mod tests {
    use crate::wire::Chunk;
    use crate::wire::chunk::tests::{parse_one, round_trip};
    use bytes::Bytes;

    #[test]
    fn the_cookie_is_opaque() {
        let echo = [10, 0, 0, 7, 0xde, 0xad, 0xbe, 0];
        let cookie = Bytes::from_static(&[0xde, 0xad, 0xbe]);
        assert_eq!(parse_one(&echo), Chunk::CookieEcho(cookie));
        round_trip(&echo);
        assert_eq!(parse_one(&[11, 0, 0, 4]), Chunk::CookieAck);
        round_trip(&[11, 0, 0, 4]);
    }
}
