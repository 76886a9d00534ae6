//! A TCP shim that delays what a client sends.

use std::{io, net::SocketAddr, time::Duration};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

/// The maximum number of concurrent connections; further ones are closed.
const MAX_CONNECTIONS: usize = 256;

/// The maximum number of pieces in flight on one connection; beyond it the client's kernel has to
/// keep them.
const MAX_PIECES: usize = 64;

/// The maximum size of a piece, in bytes.
const PIECE: usize = 16 * 1024;

/// The pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Forwards connections to `inner`, delaying what clients send by `by`.
pub(crate) async fn run(listener: TcpListener, inner: SocketAddr, by: Duration) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((client, _)) if connections.len() < MAX_CONNECTIONS => {
                connections.spawn(forward(client, inner, by));
            }
            Ok(_) => {}
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn forward(client: TcpStream, inner: SocketAddr, by: Duration) {
    // If the shim fails, the connection fails, so there is nothing to report.
    let _ = try_forward(client, inner, by).await;
}

async fn try_forward(client: TcpStream, inner: SocketAddr, by: Duration) -> io::Result<()> {
    let server = TcpStream::connect(inner).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, mut to_client) = client.into_split();
    let (mut from_server, to_server) = server.into_split();
    let (queue, pieces) = mpsc::channel(MAX_PIECES);
    let responses = async {
        tokio::io::copy(&mut from_server, &mut to_client).await?;
        to_client.shutdown().await
    };
    tokio::try_join!(
        delay_requests(from_client, queue, by),
        deliver_requests(pieces, to_server),
        responses
    )?;
    Ok(())
}

async fn delay_requests(
    mut from: OwnedReadHalf,
    queue: mpsc::Sender<(Instant, Bytes)>,
    by: Duration,
) -> io::Result<()> {
    loop {
        let mut piece = BytesMut::with_capacity(PIECE);
        let is_end = from.read_buf(&mut piece).await? == 0;
        // An empty piece is the end of the stream, which is delayed too.
        let sent = queue.send((Instant::now() + by, piece.freeze())).await;
        if is_end || sent.is_err() {
            return Ok(());
        }
    }
}

async fn deliver_requests(
    mut pieces: mpsc::Receiver<(Instant, Bytes)>,
    mut to: OwnedWriteHalf,
) -> io::Result<()> {
    while let Some((due, piece)) = pieces.recv().await {
        sleep_until(due).await;
        if piece.is_empty() {
            return to.shutdown().await;
        }
        to.write_all(&piece).await?;
    }
    Ok(())
}
