//! One stream in each direction, read and written as bytes (RFC 3436 §4 calls them a pair).

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use eyas_sctp::error::Error as Misuse;
use eyas_sctp::identifier::StreamId;
use eyas_sctp::message::SendInfo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::SctpAssociation;

/// The maximum size of a message that one write sends.
const MAX_MESSAGE: usize = 64 * 1024;
/// The fraction of the usable send buffer that one message may take, so that little of it stays
/// empty while the next one waits.
const BUFFER_FRACTION: usize = 4;
/// The size of a message for which a write waits in any case.
const MIN_MESSAGE: usize = 1024;

/// A pair of streams with the same number as one bidirectional byte stream. Every write sends one
/// or more messages in order; the peer's data is read in order, however it was divided into
/// messages.
#[derive(Debug)]
pub struct SctpStream {
    association: SctpAssociation,
    info: SendInfo,
    /// The unread parts of a message.
    rest: VecDeque<Bytes>,
    is_shut_down: bool,
}

impl SctpStream {
    pub(super) fn new(association: SctpAssociation, stream: StreamId) -> Self {
        let info = SendInfo { stream, ..SendInfo::default() };
        Self { association, info, rest: VecDeque::new(), is_shut_down: false }
    }

    /// Returns the underlying association.
    pub fn association(&self) -> &SctpAssociation {
        &self.association
    }

    /// Returns the underlying association, and makes this stream carry messages again. The part of
    /// a message that has already been read is not returned again.
    pub fn into_association(self) -> SctpAssociation {
        let association = self.association.clone();
        association.return_stream(self.info.stream);
        association
    }

    /// Returns the number of the streams.
    pub fn id(&self) -> StreamId {
        self.info.stream
    }
}

/// Copies the first `length` bytes.
fn gather(bufs: &[IoSlice<'_>], length: usize) -> Bytes {
    let mut data = Vec::with_capacity(length);
    for buf in bufs {
        let rest = length - data.len();
        data.extend_from_slice(&buf[..buf.len().min(rest)]);
    }
    data.into()
}

impl AsyncRead for SctpStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.rest.is_empty() {
            let stream = Some(self.info.stream);
            match self.association.stack().poll_receive(cx, stream) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(None)) => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(Some(message))) => {
                    let parts = message.data.iter().filter(|part| !part.is_empty());
                    self.rest.extend(parts.cloned());
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
            }
        }
        while let Some(part) = self.rest.front_mut() {
            let length = part.len().min(buf.remaining());
            if length == 0 {
                return Poll::Ready(Ok(()));
            }
            buf.put_slice(&part[..length]);
            part.advance(length);
            if part.is_empty() {
                self.rest.pop_front();
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for SctpStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.is_shut_down {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let available: usize = bufs.iter().map(|buf| buf.len()).sum();
        if available == 0 {
            return Poll::Ready(Ok(0));
        }
        let mut length = 0;
        // Copies only if there may be space for the message.
        let mut data = |usable: usize| {
            length = available.min((usable / BUFFER_FRACTION).clamp(MIN_MESSAGE, MAX_MESSAGE));
            gather(bufs, length)
        };
        let sent = self.association.stack().poll_send(cx, &self.info, &mut data);
        sent.map(|sent| sent.map(|()| length).map_err(Into::into))
    }

    /// Otherwise hyper copies what it sends into a buffer of its own first.
    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Resets the outgoing stream, which the peer reads as its end (RFC 6525). If the peer does not
    /// support that, ends the association once all data has arrived.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_shut_down {
            return Poll::Ready(Ok(()));
        }
        let ended = ready!(self.association.stack().poll_end_stream(cx, self.info.stream));
        self.is_shut_down = true;
        match ended {
            // It has already ended.
            Ok(()) | Err(Misuse::NoAssociation | Misuse::WrongState) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(Err(io::Error::other(error))),
        }
    }
}

impl Drop for SctpStream {
    fn drop(&mut self) {
        self.association.release_stream(self.info.stream);
    }
}
