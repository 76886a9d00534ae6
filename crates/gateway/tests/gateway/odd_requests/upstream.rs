//! An upstream over HTTP/1.1 that records what it receives, byte by byte.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A request that has arrived as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    method: String,
    target: String,
    /// In lower case.
    host: String,
    /// The lines of the fields that are not the gateway's.
    fields: Vec<String>,
    body: Vec<u8>,
    trailers: Vec<String>,
}

pub(crate) struct RecordingUpstream {
    pub(crate) address: SocketAddr,
    requests: UnboundedReceiver<Received>,
}

impl RecordingUpstream {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let (record, requests) = unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, record.clone()));
            }
        });
        Self { address, requests }
    }

    /// Returns the request that has been answered last.
    pub(crate) fn received(&mut self) -> Option<Received> {
        let received = self.requests.try_recv().ok();
        assert!(self.requests.try_recv().is_err(), "two requests of one: {received:?}");
        received
    }
}

/// Records one request, and answers it. Nothing is recorded of one that is not whole.
async fn serve(mut stream: TcpStream, record: UnboundedSender<Received>) {
    let mut read = Vec::new();
    let Some(received) = receive(&mut stream, &mut read).await else { return };
    assert!(read.is_empty(), "after {received:?}: {:?}", String::from_utf8_lossy(&read));
    let _ = record.send(received);
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let _ = stream.write_all(answer).await;
    let _ = stream.shutdown().await;
    let _ = stream.read_to_end(&mut read).await;
}

async fn receive(stream: &mut TcpStream, read: &mut Vec<u8>) -> Option<Received> {
    let head = lines(stream, read).await?;
    let [first, fields @ ..] = &head[..] else { panic!("an empty head") };
    let parts: Vec<&str> = first.split(' ').collect();
    let [method, target, "HTTP/1.1"] = parts[..] else { panic!("{first:?}") };
    let value = |name: &str| {
        let mut values = fields.iter().filter_map(|line| {
            let (other, value) = line.split_once(':').expect("a colon");
            other.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        });
        let value = values.next();
        assert!(values.next().is_none(), "{name} twice: {fields:?}");
        value
    };
    let (length, coding) = (value("content-length"), value("transfer-encoding"));
    assert!(length.is_none() || coding.is_none(), "two lengths: {fields:?}");
    let (body, trailers) = match coding {
        Some(coding) => {
            assert_eq!(coding, "chunked");
            chunked(stream, read).await?
        }
        None => {
            let length = length.map_or(0, |length| length.parse().expect("a length"));
            (take(stream, read, length).await?, Vec::new())
        }
    };
    let is_own = |line: &&String| ["x-odd:", "x.odd:"].iter().any(|own| line.starts_with(own));
    Some(Received {
        method: method.to_owned(),
        target: target.to_owned(),
        host: value("host").expect("a host").to_ascii_lowercase(),
        fields: fields.iter().filter(is_own).cloned().collect(),
        body,
        trailers,
    })
}

async fn chunked(stream: &mut TcpStream, read: &mut Vec<u8>) -> Option<(Vec<u8>, Vec<String>)> {
    let mut body = Vec::new();
    loop {
        let size = line(stream, read).await?;
        let size = usize::from_str_radix(&size, 16).expect("a size");
        if size == 0 {
            return Some((body, lines(stream, read).await?));
        }
        body.extend(take(stream, read, size).await?);
        assert_eq!(line(stream, read).await?, "");
    }
}

/// Reads lines up to an empty one.
async fn lines(stream: &mut TcpStream, read: &mut Vec<u8>) -> Option<Vec<String>> {
    let mut lines = Vec::new();
    loop {
        match line(stream, read).await? {
            line if line.is_empty() => return Some(lines),
            line => lines.push(line),
        }
    }
}

/// Reads a line that ends in CRLF. Octets above ASCII are shown as characters.
async fn line(stream: &mut TcpStream, read: &mut Vec<u8>) -> Option<String> {
    loop {
        if let Some(at) = read.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = read.drain(..=at).collect();
            let line = line.strip_suffix(b"\r\n").expect("CRLF");
            assert!(!line.contains(&b'\r') && !line.contains(&0), "{line:?}");
            return Some(line.iter().map(|byte| char::from(*byte)).collect());
        }
        more(stream, read).await?;
    }
}

async fn take(stream: &mut TcpStream, read: &mut Vec<u8>, length: usize) -> Option<Vec<u8>> {
    while read.len() < length {
        more(stream, read).await?;
    }
    Some(read.drain(..length).collect())
}

async fn more(stream: &mut TcpStream, read: &mut Vec<u8>) -> Option<()> {
    (stream.read_buf(read).await.ok()? > 0).then_some(())
}
