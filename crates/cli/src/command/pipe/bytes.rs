//! Copies bytes in both directions, over any transport.

use std::io::ErrorKind;
#[cfg(unix)]
use std::os::fd::AsFd;
use std::pin::pin;

use eyas::ByteStream;
#[cfg(unix)]
use tokio::io::Interest;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

#[cfg(unix)]
use tokio::net::unix::pipe::Sender;

use super::TransferredBytes;
use crate::failure::{Failure, FailureKind};

/// The size of the copy buffer, in bytes: what has arrived is written together, because a write to standard output goes
/// to another thread and back.
const PIECE: usize = 256 * 1024;

/// Copies bytes until both sides are done.
pub(super) async fn exchange(stream: ByteStream) -> Result<TransferredBytes, Failure> {
    let (sent, received) = both_ways(stream).await?;
    Ok(TransferredBytes { sent, received, ..TransferredBytes::default() })
}

/// Copies bytes over any byte stream; returns the number of bytes in each direction.
pub(in crate::command) async fn both_ways(
    stream: impl AsyncRead + AsyncWrite,
) -> Result<(u64, u64), Failure> {
    let (from_peer, to_peer) = tokio::io::split(stream);
    let sending = async {
        let sent = copy(tokio::io::stdin(), to_peer).await;
        sent.map_err(|error| match error {
            BrokenSide::Read(cause) => Failure::read("standard input", &cause),
            BrokenSide::Write(cause) => lost(&cause),
        })
    };
    let receiving = async {
        let received = copy(from_peer, tokio::io::stdout()).await;
        received.map_err(|error| match error {
            BrokenSide::Read(cause) => lost(&cause),
            BrokenSide::Write(cause) => Failure::write("standard output", &cause),
        })
    };
    let mut sending = pin!(sending);
    let mut receiving = pin!(receiving);
    let sent = tokio::select! {
        sent = &mut sending => sent?,
        received = &mut receiving => {
            let received = received?;
            return Ok((sending.await?, received));
        }
    };
    tokio::select! {
        received = receiving => Ok((sent, received?)),
        // There is nothing to send any more, and nobody who would read what comes.
        () = output_closed() => Err(Failure::write("standard output", &ErrorKind::BrokenPipe.into())),
    }
}

/// Waits until standard output is a pipe that nobody reads.
#[cfg(unix)]
async fn output_closed() {
    // Unchecked, because the check would make standard output non-blocking for everyone. Files cannot be watched, and
    // have no reader.
    let watched = std::io::stdout().as_fd().try_clone_to_owned();
    let Ok(output) = watched.and_then(Sender::from_owned_fd_unchecked) else {
        return std::future::pending().await;
    };
    if output.ready(Interest::ERROR).await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(not(unix))]
async fn output_closed() {
    std::future::pending().await
}

/// Which side of a copy broke.
enum BrokenSide {
    Read(std::io::Error),
    Write(std::io::Error),
}

/// Copies to the end, and then signals the end.
async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
) -> Result<u64, BrokenSide> {
    let mut piece = vec![0; PIECE];
    let mut transferred = 0;
    loop {
        let length = from.read(&mut piece).await.map_err(BrokenSide::Read)?;
        if length == 0 {
            // A peer that is done may have closed everything by now.
            let _ = to.shutdown().await;
            return Ok(transferred);
        }
        to.write_all(&piece[..length]).await.map_err(BrokenSide::Write)?;
        to.flush().await.map_err(BrokenSide::Write)?;
        transferred += length as u64;
    }
}

fn lost(cause: &std::io::Error) -> Failure {
    Failure::new(FailureKind::Protocol, format!("the connection broke: {cause}"))
}
