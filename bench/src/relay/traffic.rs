//! The traffic of the measurements: a server that sends as many bytes as requested, and its clients.
//!
//! A request is the number of bytes, as eight bytes in network order; a connection can carry several
//! requests. No proxy mistakes this for TLS or HTTP.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::arena::HEALTHY;

/// The number of connections that are served concurrently.
const AT_ONCE: usize = 16;
/// The size of a write or read.
const PIECE: usize = 128 << 10;
/// How long a client waits for data before it fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// How a client reaches the server.
#[derive(Clone, Copy, Debug)]
pub(super) enum Route {
    /// Directly, at the addresses of its name.
    Direct,
    /// At an address that forwards to it.
    At(SocketAddr),
    /// Through a SOCKS5 proxy, by its name.
    Socks(SocketAddr),
}

/// Serves on a port of all addresses as long as this program runs.
pub(super) fn serve(port: u16) -> Result<(), String> {
    let listener = listen(port)?;
    for _ in 0..AT_ONCE {
        let listener = listener.try_clone().map_err(|error| error.to_string())?;
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client closes when it is done.
                let _ = answer_all(stream);
            }
        });
    }
    Ok(())
}

/// A server that keeps connections open after one request each. It serves them one after the other.
pub(super) struct HoldingServer(Arc<Mutex<Vec<TcpStream>>>);

impl HoldingServer {
    /// Serves like [`serve`].
    pub(super) fn serve(port: u16) -> Result<Self, String> {
        let listener = listen(port)?;
        let held = Arc::new(Mutex::new(Vec::new()));
        let server = Self(Arc::clone(&held));
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                if answer(&mut stream).is_ok() {
                    held.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
                }
            }
        });
        Ok(server)
    }

    /// Closes all connections.
    pub(super) fn close_all(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Serves the same short response to any request over HTTP/1.1.
pub(super) fn serve_http(port: u16) -> Result<(), String> {
    let listener = listen(port)?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A gateway closes when it is done.
            thread::spawn(move || respond(stream));
        }
    });
    Ok(())
}

/// Responds to each request. Requests have no body, so each ends with an empty line.
fn respond(mut stream: TcpStream) -> io::Result<()> {
    const END: &[u8] = b"\r\n\r\n";
    const RESPONSE: &[u8] =
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nwell\n";
    stream.set_nodelay(true)?;
    let (mut heads, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut piece)?;
        if count == 0 {
            return Ok(());
        }
        heads.extend_from_slice(&piece[..count]);
        while let Some(at) = heads.windows(END.len()).position(|window| window == END) {
            heads.drain(..at + END.len());
            stream.write_all(RESPONSE)?;
        }
    }
}

fn listen(port: u16) -> Result<TcpListener, String> {
    TcpListener::bind(("::", port)).map_err(|error| format!("port {port}: {error}"))
}

fn answer_all(mut stream: TcpStream) -> io::Result<()> {
    loop {
        answer(&mut stream)?;
    }
}

fn answer(stream: &mut TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut request_bytes = [0; 8];
    stream.read_exact(&mut request_bytes)?;
    let mut left = u64::from_be_bytes(request_bytes);
    let piece = [0x5a; PIECE];
    while left > 0 {
        let length = left.min(PIECE as u64);
        stream.write_all(&piece[..length as usize])?;
        left -= length;
    }
    Ok(())
}

/// Connects to the server at this port.
pub(super) fn connect(route: Route, port: u16) -> io::Result<TcpStream> {
    let stream = match route {
        Route::Direct => TcpStream::connect((HEALTHY.host, port))?,
        Route::At(address) | Route::Socks(address) => TcpStream::connect(address)?,
    };
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    if matches!(route, Route::Socks(_)) {
        through_socks(stream, HEALTHY.host, port)
    } else {
        Ok(stream)
    }
}

/// Sends a CONNECT of SOCKS5 (RFC 1928) without a password.
pub(super) fn through_socks(mut stream: TcpStream, host: &str, port: u16) -> io::Result<TcpStream> {
    stream.write_all(&[5, 1, 0])?;
    let mut method = [0; 2];
    stream.read_exact(&mut method)?;
    let mut request = vec![5, 1, 0, 3, host.len() as u8];
    request.extend_from_slice(host.as_bytes());
    request.extend_from_slice(&port.to_be_bytes());
    stream.write_all(&request)?;
    let mut reply = [0; 4];
    stream.read_exact(&mut reply)?;
    let bound = match (reply[1], reply[3]) {
        (0, 1) => 4 + 2,
        (0, 4) => 16 + 2,
        (code, _) => return Err(io::Error::other(format!("SOCKS5 error {code}"))),
    };
    stream.read_exact(&mut vec![0; bound])?;
    Ok(stream)
}

/// The times of a transfer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    /// From the request to the last byte.
    pub(super) whole: Duration,
    /// The longest time without data, up to the last byte.
    pub(super) longest: Duration,
}

/// Requests this number of bytes and reads them.
pub(super) fn request(stream: &mut TcpStream, bytes: u64) -> io::Result<Transfer> {
    request_until(stream, bytes, || false)
}

/// The same, but ends early once `is_enough` returns true. A server that sends nothing for a long time is
/// an error.
pub(super) fn request_until(
    stream: &mut TcpStream,
    bytes: u64,
    is_enough: impl Fn() -> bool,
) -> io::Result<Transfer> {
    let start = Instant::now();
    stream.write_all(&bytes.to_be_bytes())?;
    let mut piece = vec![0; PIECE];
    let (mut left, mut last, mut longest) = (bytes, start, Duration::ZERO);
    while left > 0 && !is_enough() {
        let length = left.min(PIECE as u64) as usize;
        let count = stream.read(&mut piece[..length])?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let now = Instant::now();
        longest = longest.max(now - last);
        (left, last) = (left - count as u64, now);
    }
    Ok(Transfer { whole: last - start, longest })
}

/// Converts a time to milliseconds.
pub(super) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requested_number_of_bytes_arrives() {
        let port = free_port();
        serve(port).unwrap();
        let at = Route::At(SocketAddr::from(([127, 0, 0, 1], port)));
        let mut stream = connect(at, port).unwrap();
        for bytes in [1, 3 * PIECE as u64 + 7, 1] {
            let transfer = request(&mut stream, bytes).unwrap();
            assert!(transfer.longest <= transfer.whole);
        }
        let transfer = request_until(&mut stream, u64::MAX, || true).unwrap();
        assert_eq!(transfer.whole, Duration::ZERO);
    }

    #[test]
    fn requests_are_answered_one_by_one() {
        let port = free_port();
        serve_http(port).unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n\r\nGET").unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut received = String::new();
        stream.read_to_string(&mut received).unwrap();
        assert_eq!(received.matches("\r\n\r\nwell\n").count(), 2);
    }

    #[test]
    fn held_connections_are_closed() {
        let port = free_port();
        let server = HoldingServer::serve(port).unwrap();
        let at = Route::At(SocketAddr::from(([127, 0, 0, 1], port)));
        let mut streams = [connect(at, port).unwrap(), connect(at, port).unwrap()];
        for stream in &mut streams {
            request(stream, 1).unwrap();
        }
        while server.0.lock().unwrap().len() < streams.len() {
            thread::yield_now();
        }
        server.close_all();
        for stream in &mut streams {
            assert_eq!(stream.read(&mut [0]).unwrap(), 0);
        }
    }

    #[test]
    fn a_stopped_server_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut served, _) = listener.accept().unwrap();
        served.write_all(&[0x5a; 3]).unwrap();
        served.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(request(&mut stream, 4).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_refusal_by_the_proxy_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut proxy, _) = listener.accept().unwrap();
        proxy.write_all(&[5, 0, 5, 4, 0, 1, 0, 0, 0, 0, 0, 0]).unwrap();
        let error = through_socks(stream, "a.test", 80).unwrap_err();
        assert_eq!(error.to_string(), "SOCKS5 error 4");
        let mut received = [0; 16];
        proxy.read_exact(&mut received).unwrap();
        assert_eq!(&received[..9], b"\x05\x01\x00\x05\x01\x00\x03\x06a");
    }

    fn free_port() -> u16 {
        TcpListener::bind("[::]:0").unwrap().local_addr().unwrap().port()
    }
}
