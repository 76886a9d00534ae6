//! Answers clients that speak HTTP without TLS to a port with TLS, as when a URL has the wrong scheme.

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::preface::Rewind;

/// How much of what a client sends is read before TLS.
const LENGTH: usize = 8;

const BODY: &str = "400 Bad Request\n\
                    This port speaks TLS: use https:// instead of http:// in the URL.\n";

/// Returns whether a client that begins with this byte sends an HTTP request. A method begins with a
/// letter, in practice a capital (RFC 9110 §9.1); a record of TLS with its type, below 32 (RFC 8446
/// §5.1).
pub(super) const fn begins_request(first: u8) -> bool {
    first.is_ascii_uppercase()
}

/// Returns whether a stream begins with an HTTP request, and the stream with the bytes read.
pub(super) async fn detect<T: AsyncRead + Unpin>(mut io: T) -> io::Result<(bool, Rewind<T>)> {
    let mut read = [0; LENGTH];
    let length = io.read(&mut read).await?;
    let is_http = length > 0 && begins_request(read[0]);
    Ok((is_http, Rewind::new(Bytes::copy_from_slice(&read[..length]), io)))
}

/// Answers the request, whatever it is.
pub(super) async fn refuse<T: AsyncWrite + Unpin>(mut io: T) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        BODY.len()
    );
    io.write_all(head.as_bytes()).await?;
    io.write_all(BODY.as_bytes()).await?;
    io.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_is_told_from_a_handshake() {
        for (sent, expected) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], true),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", true),
            (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", false),
            (b"", false),
        ] {
            let (is_http, mut io) = detect(sent).await.expect("reads");
            let mut rest = Vec::new();
            io.read_to_end(&mut rest).await.expect("reads");
            assert_eq!((is_http, &rest[..]), (expected, sent));
        }
    }
}
