//! Sends a query to a server, and waits for the response to it.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use eyas_host::addresses::source_address_for;
use eyas_host::errno;
use eyas_host::fault::SocketCall;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};

use super::ServerTrouble;
use super::message::{DnsQuestion, DnsResponse};

/// The largest datagram. Servers send more than what was announced to them.
const DATAGRAM: usize = 65_535;
/// The maximum number of messages that are no response to the query. A server sends a handful at most, so more of them
/// are guesses of somebody else, and the query is sent over TCP instead (RFC 5452 §9.2 wants the guesses limited).
pub(super) const STRAY_MESSAGES: usize = 32;

/// Sends a query in a datagram from a port of its own, which the kernel chooses at random. The socket is connected, so
/// that only the server's own datagrams arrive, and an ICMP error ends the waiting. The query is sent again after
/// `again`, and after twice that, and so on.
pub(super) async fn over_udp(
    server: SocketAddr,
    question: &DnsQuestion,
    edns: bool,
    mut again: Duration,
) -> Result<DnsResponse, ServerTrouble> {
    let (id, query) = question.query(edns).ok_or(ServerTrouble::Malformed)?;
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let trouble = |call| move |error: io::Error| ServerTrouble::from_error(&error, call, server);
    let socket = UdpSocket::bind(any).await.map_err(trouble(SocketCall::Open))?;
    socket.connect(server).await.map_err(trouble(SocketCall::Connect))?;
    let mut datagram = vec![0; DATAGRAM];
    let mut strays = 0;
    loop {
        socket.send(&query).await.map_err(trouble(SocketCall::Pending))?;
        let resend = tokio::time::sleep(again);
        tokio::pin!(resend);
        again *= 2;
        loop {
            let len = tokio::select! {
                received = socket.recv(&mut datagram) => received.map_err(trouble(SocketCall::Pending))?,
                () = &mut resend => break,
            };
            let octets = datagram.get(..len).unwrap_or_default().to_vec();
            if let Some(response) = DnsResponse::read(octets, id, question) {
                return Ok(response);
            }
            strays += 1;
            if strays > STRAY_MESSAGES {
                return over_tcp(server, question, edns).await;
            }
        }
    }
}

/// Sends a query over a new TCP connection (RFC 7766).
pub(super) async fn over_tcp(
    server: SocketAddr,
    question: &DnsQuestion,
    edns: bool,
) -> Result<DnsResponse, ServerTrouble> {
    over_stream(connected(server).await?, question, edns).await
}

/// Connects to a server over TCP.
pub(super) async fn connected(server: SocketAddr) -> Result<TcpStream, ServerTrouble> {
    let tcp = TcpStream::connect(server).await.map_err(|error| {
        // A router's report is EACCES, too (RFC 4443 §3.1, code 1).
        let is_reported =
            error.raw_os_error() == Some(errno::EACCES) && source_address_for(server).is_ok();
        ServerTrouble::from_error(
            &error,
            if is_reported { SocketCall::Pending } else { SocketCall::Connect },
            server,
        )
    })?;
    tcp.set_nodelay(true)?;
    Ok(tcp)
}

/// Sends a query over a byte stream, with two octets of length before each message (RFC 1035 §4.2.2).
async fn over_stream(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    question: &DnsQuestion,
    edns: bool,
) -> Result<DnsResponse, ServerTrouble> {
    let (id, query) = question.query(edns).ok_or(ServerTrouble::Malformed)?;
    stream.write_all(&framed(&query).ok_or(ServerTrouble::Malformed)?).await?;
    for _ in 0..=STRAY_MESSAGES {
        let octets = read_message(&mut stream).await?;
        if let Some(response) = DnsResponse::read(octets, id, question) {
            return Ok(response);
        }
    }
    Err(ServerTrouble::Malformed)
}

/// Returns a message behind its length, since some servers expect both in one segment (RFC 7766 §8).
pub(super) fn framed(message: &[u8]) -> Option<Vec<u8>> {
    let length = u16::try_from(message.len()).ok()?;
    Some([&length.to_be_bytes()[..], message].concat())
}

/// Reads a message behind its length.
pub(super) async fn read_message(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let length = stream.read_u16().await?;
    let mut octets = vec![0; usize::from(length)];
    stream.read_exact(&mut octets).await?;
    Ok(octets)
}

impl From<io::Error> for ServerTrouble {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::TimedOut => Self::Silent,
            _ => Self::Unreachable,
        }
    }
}
