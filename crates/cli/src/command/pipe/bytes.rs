//! Copies bytes in both directions, over any transport.

use eyas::ByteStream;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::Transferred;
use crate::failure::{Failure, Kind};

/// The size of the copy buffer, in bytes.
const PIECE: usize = 64 * 1024;

/// Copies bytes until both sides are done.
pub(super) async fn exchange(stream: ByteStream) -> Result<Transferred, Failure> {
    let (sent, received) = both_ways(stream).await?;
    Ok(Transferred { sent, received, ..Transferred::default() })
}

/// Copies bytes over any byte stream; returns the number of bytes in each direction.
pub(in crate::command) async fn both_ways(
    stream: impl AsyncRead + AsyncWrite,
) -> Result<(u64, u64), Failure> {
    let (from_peer, to_peer) = tokio::io::split(stream);
    let sending = async {
        let sent = copy(tokio::io::stdin(), to_peer).await;
        sent.map_err(|error| match error {
            Broken::Read(cause) => Failure::read("standard input", &cause),
            Broken::Write(cause) => lost(&cause),
        })
    };
    let receiving = async {
        let received = copy(from_peer, tokio::io::stdout()).await;
        received.map_err(|error| match error {
            Broken::Read(cause) => lost(&cause),
            Broken::Write(cause) => Failure::write("standard output", &cause),
        })
    };
    tokio::try_join!(sending, receiving)
}

/// Which side of a copy broke.
enum Broken {
    Read(std::io::Error),
    Write(std::io::Error),
}

/// Copies to the end, and then signals the end.
async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
) -> Result<u64, Broken> {
    let mut piece = vec![0; PIECE];
    let mut transferred = 0;
    loop {
        let length = from.read(&mut piece).await.map_err(Broken::Read)?;
        if length == 0 {
            // A peer that is done may have closed everything by now.
            let _ = to.shutdown().await;
            return Ok(transferred);
        }
        to.write_all(&piece[..length]).await.map_err(Broken::Write)?;
        to.flush().await.map_err(Broken::Write)?;
        transferred += length as u64;
    }
}

fn lost(cause: &std::io::Error) -> Failure {
    Failure::new(Kind::Protocol, format!("the connection broke: {cause}"))
}
