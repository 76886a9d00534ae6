//! Sockets that never send anything.

use std::{
    collections::VecDeque,
    io,
    net::{SocketAddr, UdpSocket},
    time::Duration,
};

use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::{
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};

/// The maximum number of connections that a silent server holds; a new one replaces the oldest.
const MAX_HELD: usize = 256;

/// How long a connection to a full listener must remain unanswered before the listener counts as
/// full; an answer on this machine takes microseconds.
const FULL_AFTER: Duration = Duration::from_millis(100);

/// The maximum number of connections to fill a listener's queue: one fits a queue of length 0 on
/// Linux; other kernels allow more.
const MAX_FILLERS: usize = 16;

/// The pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Accepts every connection and never sends anything.
pub(crate) async fn accept(listener: TcpListener) {
    let mut held = VecDeque::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                held.truncate(MAX_HELD - 1);
                held.push_front(stream);
            }
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Fills a listener's queue, so that the kernel drops further SYNs. The returned values keep it
/// full.
pub(crate) async fn fill(listener: TcpListener) -> io::Result<(TcpListener, Vec<TcpStream>)> {
    SockRef::from(&listener).listen(0)?;
    let address = listener.local_addr()?;
    let mut fillers = Vec::new();
    while fillers.len() < MAX_FILLERS {
        match timeout(FULL_AFTER, TcpStream::connect(address)).await {
            Ok(filler) => fillers.push(filler?),
            Err(_) => return Ok((listener, fillers)),
        }
    }
    Err(io::Error::other("this system does not drop SYNs to a full queue"))
}

/// Makes a socket keep the UDP port but receive only from itself: a client is refused as if nothing
/// listened, and no other program gets the port.
pub(crate) fn ignore_datagrams(socket: UdpSocket) -> io::Result<UdpSocket> {
    socket.connect(socket.local_addr()?)?;
    Ok(socket)
}

/// Creates a socket that keeps the TCP port and does not listen.
pub(crate) fn hold(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// Keeps something alive as long as the server runs.
pub(crate) async fn keep_alive<T>(held: T) {
    std::future::pending::<()>().await;
    drop(held);
}
