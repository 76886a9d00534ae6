//! A byte stream as the body of a message, for tunnels through HTTP (RFC 9110 §9.3.6).

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame};
use thiserror::Error;
use tokio::io::{AsyncWrite, DuplexStream, duplex};
use tokio_util::io::poll_read_buf;

/// The number of bytes buffered for the peer's window; further writes wait.
const BUFFER_BYTES: usize = 64 * 1024;

/// The maximum number of bytes in one frame.
const MAX_FRAME_BYTES: usize = 16 * 1024;

/// Returns a writer and a body that contains what is written to it. The body ends normally only if
/// the writer is shut down; if the writer is dropped before, the body ends with an error.
pub fn pipe() -> (PipeWriter, PipeBody) {
    let (writing_end, reading_end) = duplex(BUFFER_BYTES);
    let ended = Arc::<AtomicBool>::default();
    (PipeWriter { inner: writing_end, ended: Arc::clone(&ended) }, PipeBody { reading_end, ended })
}

/// The writing end of a [`pipe`].
#[derive(Debug)]
pub struct PipeWriter {
    inner: DuplexStream,
    ended: Arc<AtomicBool>,
}

impl AsyncWrite for PipeWriter {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.ended.store(true, Relaxed);
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// The body of a [`pipe`].
#[derive(Debug)]
pub struct PipeBody {
    reading_end: DuplexStream,
    ended: Arc<AtomicBool>,
}

/// The writer was dropped before it was shut down.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the writer was dropped before it was shut down")]
pub struct PipeBroken;

impl Body for PipeBody {
    type Data = Bytes;
    type Error = PipeBroken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, PipeBroken>>> {
        let mut chunk = BytesMut::with_capacity(MAX_FRAME_BYTES);
        match ready!(poll_read_buf(Pin::new(&mut self.reading_end), cx, &mut chunk)) {
            Ok(1..) => Poll::Ready(Some(Ok(Frame::data(chunk.freeze())))),
            Ok(0) if self.ended.load(Relaxed) => Poll::Ready(None),
            _ => Poll::Ready(Some(Err(PipeBroken))),
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test]
    async fn only_a_shut_down_writer_completes_the_body() {
        for ends in [true, false] {
            let (mut writer, body) = pipe();
            writer.write_all(b"some bytes").await.unwrap();
            if ends {
                writer.shutdown().await.unwrap();
            }
            drop(writer);
            let read = body.collect().await.map(http_body_util::Collected::to_bytes);
            assert_eq!(read.is_ok(), ends);
            if let Ok(read) = read {
                assert_eq!(&read[..], b"some bytes");
            }
        }
    }
}
