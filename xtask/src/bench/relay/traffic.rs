//! What goes through what is measured: a server that sends as many bytes as it is asked for, and clients
//! that ask it.
//!
//! A question is the number of bytes, in eight bytes of network order; a connection may ask many. No
//! proxy takes that for TLS or HTTP.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::super::arena::WELL;

/// Connections that are served at once.
const AT_ONCE: usize = 16;
/// What is written or read at once.
const PIECE: usize = 128 << 10;
/// A client that hears nothing for so long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// How a client gets to the server.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    /// By itself, to the addresses of its name.
    Direct,
    /// To an address that leads to it.
    At(SocketAddr),
    /// Through a proxy that speaks SOCKS5, by its name.
    Socks(SocketAddr),
}

/// Serves at a port of every address, for as long as this program runs.
pub(super) fn serve(port: u16) -> Result<(), String> {
    let listener = listen(port)?;
    for _ in 0..AT_ONCE {
        let listener = listener.try_clone().map_err(|error| error.to_string())?;
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that has enough closes.
                let _ = answer_all(stream);
            }
        });
    }
    Ok(())
}

/// A server for clients that ask once each and then stay, one after the other.
pub(super) struct Staying(Arc<Mutex<Vec<TcpStream>>>);

impl Staying {
    /// Serves as [`serve`] does.
    pub(super) fn serve(port: u16) -> Result<Self, String> {
        let listener = listen(port)?;
        let kept = Arc::new(Mutex::new(Vec::new()));
        let staying = Self(Arc::clone(&kept));
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                if answer(&mut stream).is_ok() {
                    kept.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
                }
            }
        });
        Ok(staying)
    }

    /// Closes what is open.
    pub(super) fn let_go(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Serves one short answer over HTTP/1.1 to whoever asks, whatever is asked.
pub(super) fn serve_http(port: u16) -> Result<(), String> {
    let listener = listen(port)?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A gateway that has enough closes.
            thread::spawn(move || respond(stream));
        }
    });
    Ok(())
}

/// The heads of requests without a body end with an empty line.
fn respond(mut stream: TcpStream) -> io::Result<()> {
    const END: &[u8] = b"\r\n\r\n";
    const RESPONSE: &[u8] =
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nwell\n";
    stream.set_nodelay(true)?;
    let (mut heads, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let got = stream.read(&mut piece)?;
        if got == 0 {
            return Ok(());
        }
        heads.extend_from_slice(&piece[..got]);
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
    let mut question = [0; 8];
    stream.read_exact(&mut question)?;
    let mut left = u64::from_be_bytes(question);
    let piece = [0x5a; PIECE];
    while left > 0 {
        let length = left.min(PIECE as u64);
        stream.write_all(&piece[..length as usize])?;
        left -= length;
    }
    Ok(())
}

/// Connects to the server at this port.
pub(super) fn connect(way: Way, port: u16) -> io::Result<TcpStream> {
    let stream = match way {
        Way::Direct => TcpStream::connect((WELL.host, port))?,
        Way::At(address) | Way::Socks(address) => TcpStream::connect(address)?,
    };
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    if matches!(way, Way::Socks(_)) { through_socks(stream, WELL.host, port) } else { Ok(stream) }
}

/// CONNECT of SOCKS5 (RFC 1928) without a password.
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
        (code, _) => return Err(io::Error::other(format!("SOCKS5 says {code}"))),
    };
    stream.read_exact(&mut vec![0; bound])?;
    Ok(stream)
}

/// What a client has seen of an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// From the question to the last byte.
    pub(super) whole: Duration,
    /// The longest time without a byte, the last one included.
    pub(super) longest: Duration,
}

/// Asks for so many bytes and reads them.
pub(super) fn ask(stream: &mut TcpStream, bytes: u64) -> io::Result<Seen> {
    ask_until(stream, bytes, || false)
}

/// The same, given up once that is enough. Of a server that says nothing for long it is an error.
pub(super) fn ask_until(
    stream: &mut TcpStream,
    bytes: u64,
    is_enough: impl Fn() -> bool,
) -> io::Result<Seen> {
    let start = Instant::now();
    stream.write_all(&bytes.to_be_bytes())?;
    let mut piece = vec![0; PIECE];
    let (mut left, mut last, mut longest) = (bytes, start, Duration::ZERO);
    while left > 0 && !is_enough() {
        let length = left.min(PIECE as u64) as usize;
        let got = stream.read(&mut piece[..length])?;
        if got == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let now = Instant::now();
        longest = longest.max(now - last);
        (left, last) = (left - got as u64, now);
    }
    Ok(Seen { whole: last - start, longest })
}

/// Milliseconds.
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
        let at = Way::At(SocketAddr::from(([127, 0, 0, 1], port)));
        let mut stream = connect(at, port).unwrap();
        for bytes in [1, 3 * PIECE as u64 + 7, 1] {
            let seen = ask(&mut stream, bytes).unwrap();
            assert!(seen.longest <= seen.whole);
        }
        let seen = ask_until(&mut stream, u64::MAX, || true).unwrap();
        assert_eq!(seen.whole, Duration::ZERO);
    }

    #[test]
    fn requests_are_answered_one_by_one() {
        let port = free_port();
        serve_http(port).unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n\r\nGET").unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        assert_eq!(said.matches("\r\n\r\nwell\n").count(), 2);
    }

    #[test]
    fn kept_connections_are_released() {
        let port = free_port();
        let staying = Staying::serve(port).unwrap();
        let at = Way::At(SocketAddr::from(([127, 0, 0, 1], port)));
        let mut streams = [connect(at, port).unwrap(), connect(at, port).unwrap()];
        for stream in &mut streams {
            ask(stream, 1).unwrap();
        }
        while staying.0.lock().unwrap().len() < streams.len() {
            thread::yield_now();
        }
        staying.let_go();
        for stream in &mut streams {
            assert_eq!(stream.read(&mut [0]).unwrap(), 0);
        }
    }

    #[test]
    fn a_stopped_server_is_noticed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut served, _) = listener.accept().unwrap();
        served.write_all(&[0x5a; 3]).unwrap();
        served.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(ask(&mut stream, 4).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }

    #[test]
    fn what_a_proxy_refuses_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut proxy, _) = listener.accept().unwrap();
        proxy.write_all(&[5, 0, 5, 4, 0, 1, 0, 0, 0, 0, 0, 0]).unwrap();
        let error = through_socks(stream, "a.test", 80).unwrap_err();
        assert_eq!(error.to_string(), "SOCKS5 says 4");
        let mut said = [0; 16];
        proxy.read_exact(&mut said).unwrap();
        assert_eq!(&said[..9], b"\x05\x01\x00\x05\x01\x00\x03\x06a");
    }

    fn free_port() -> u16 {
        TcpListener::bind("[::]:0").unwrap().local_addr().unwrap().port()
    }
}
