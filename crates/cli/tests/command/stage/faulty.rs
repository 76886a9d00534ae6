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
    /// Accepts and says nothing.
    Silent,
    /// Says something that is no HTTP.
    Gibberish,
    /// Sends whoever comes round and round.
    Circular,
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
        if !matches!(stream.read(&mut request), Ok(1..)) {
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
        };
        // The client may have gone; that is its business.
        let _ = stream.write_all(answer.as_bytes());
        if matches!(self, Self::Circular) {
            self.serve(stream);
        }
    }
}
