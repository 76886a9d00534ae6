//! Lines as messages with TLS, which turns a stream into a byte stream (RFC 3436 §4): each message
//! is preceded by its length, four bytes in network byte order.

use eyas::ByteStream;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, ReadHalf, WriteHalf};

use super::TransferredBytes;
use crate::failure::{Failure, FailureKind};

/// The size of a length prefix.
const LENGTH: usize = 4;
/// The size of the read buffer, in bytes.
const PIECE: usize = 64 * 1024;

/// Moves messages until both sides are done.
pub(super) async fn exchange(stream: ByteStream) -> Result<TransferredBytes, Failure> {
    let (from_peer, to_peer) = tokio::io::split(stream);
    let (sent, received) = tokio::try_join!(send(to_peer), receive(from_peer))?;
    Ok(TransferredBytes { sent, received, ..TransferredBytes::default() })
}

async fn send(mut to: WriteHalf<ByteStream>) -> Result<u64, Failure> {
    let mut lines = BufReader::new(tokio::io::stdin());
    let mut sent = 0;
    loop {
        let mut message = vec![0; LENGTH];
        let read = lines.read_until(b'\n', &mut message).await;
        if read.map_err(|cause| Failure::read("standard input", &cause))? == 0 {
            // A peer that is done may have closed everything by now.
            let _ = to.shutdown().await;
            return Ok(sent);
        }
        if message.last() == Some(&b'\n') {
            message.pop();
        }
        let length = message.len() - LENGTH;
        // SCTP has no empty messages (RFC 9260 §3.3.1), so there are none with TLS either.
        if length == 0 {
            continue;
        }
        let header = u32::try_from(length).map_err(|_| {
            Failure::new(FailureKind::Usage, "a line of more than 4 GiB cannot be a message")
        })?;
        message[..LENGTH].copy_from_slice(&header.to_be_bytes());
        to.write_all(&message).await.map_err(|cause| lost(&cause))?;
        // Without a flush, more lines that are already available share records and packets.
        if lines.buffer().is_empty() {
            to.flush().await.map_err(|cause| lost(&cause))?;
        }
        sent += length as u64;
    }
}

async fn receive(from: ReadHalf<ByteStream>) -> Result<u64, Failure> {
    let mut from = BufReader::with_capacity(PIECE, from);
    let mut out = tokio::io::stdout();
    let mut received = 0;
    loop {
        if from.fill_buf().await.map_err(|cause| lost(&cause))?.is_empty() {
            return Ok(received);
        }
        let length = from.read_u32().await.map_err(|cause| lost(&cause))?;
        let mut message = (&mut from).take(length.into());
        let copied = tokio::io::copy_buf(&mut message, &mut out).await;
        let copied = copied.map_err(|cause| lost(&cause))?;
        if copied < length.into() {
            return Err(Failure::new(
                FailureKind::Protocol,
                "the peer ended in the middle of a message",
            ));
        }
        received += copied;
        let write = async {
            out.write_all(b"\n").await?;
            out.flush().await
        };
        write.await.map_err(|cause| Failure::write("standard output", &cause))?;
    }
}

fn lost(cause: &std::io::Error) -> Failure {
    Failure::new(FailureKind::Protocol, format!("the connection broke: {cause}"))
}
