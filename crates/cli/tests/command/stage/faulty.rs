//! Servers that misbehave in one way each.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// How a server without TLS misbehaves.
#[derive(Clone, Copy)]
pub(crate) enum Faulty {
    /// Announces 100 bytes and sends 10.
    Truncated,
    /// Announces chunks, sends one and resets the connection.
    Reset,
    /// Accepts and sends nothing.
    Silent,
    /// Sends something that is not HTTP.
    Gibberish,
    /// Redirects endlessly.
    Circular,
    /// Sends ten bytes of a body and stalls.
    Stalls,
    /// Sends an unrequested partial response.
    PartialContent,
    /// Answers 304 without a condition.
    NotModified,
    /// Switches to another protocol.
    Switches,
    /// Sends a transfer coding that was not offered.
    TransferCoded,
    /// Sends endless informational responses.
    Announces,
    /// Sends a header field with characters that a terminal obeys, or that change the order of those around them.
    Deceives,
}

impl Faulty {
    /// Starts it; it serves until the test ends.
    pub(crate) fn start(self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                thread::spawn(move || self.serve(stream));
            }
        });
        address
    }

    fn serve(self, mut stream: TcpStream) {
        let mut request = [0; 4096];
        // A socket that is closed before everything was read resets the connection.
        let most = if matches!(self, Self::Reset) { 1 } else { request.len() };
        if !matches!(stream.read(&mut request[..most]), Ok(1..)) {
            return;
        }
        let answer = match self {
            Self::Truncated => "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n0123456789",
            Self::Reset => "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
            Self::Silent => {
                thread::sleep(Duration::from_secs(60));
                return;
            }
            Self::Gibberish => "220 mail.example ESMTP\r\n",
            Self::Circular => "HTTP/1.1 302 Found\r\nlocation: /again\r\ncontent-length: 0\r\n\r\n",
            Self::Stalls => "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n0123456789",
            Self::PartialContent => {
                "HTTP/1.1 206 Partial Content\r\ncontent-range: bytes 0-3/100\r\n\
                 content-length: 4\r\n\r\npart"
            }
            Self::NotModified => "HTTP/1.1 304 Not Modified\r\netag: \"x\"\r\n\r\n",
            Self::Switches => {
                "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nx"
            }
            Self::TransferCoded => {
                "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
            }
            Self::Announces => "HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n",
            Self::Deceives => {
                "HTTP/1.1 200 OK\r\nx-name: \u{9b}31m \u{202e}gpj.exe\u{2066}\u{200b}\r\n\
                 content-length: 4\r\n\r\nbody"
            }
        };
        // The client may have closed the connection.
        let _ = stream.write_all(answer.as_bytes());
        match self {
            Self::Circular => self.serve(stream),
            Self::Stalls => thread::sleep(Duration::from_secs(60)),
            Self::Announces => while stream.write_all(answer.as_bytes()).is_ok() {},
            _ => {}
        }
    }
}
