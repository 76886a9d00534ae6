//! The stream to a destination, directly or through another proxy.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use eyas::race::evidence::AttemptFailure;
use eyas::{ByteStream, ConnectionInfo};
use eyas_http::HttpDatagrams;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;

use crate::copy::CopyStream;

/// A byte stream to a destination.
pub enum DestinationStream {
    /// A connection to the destination.
    Direct(ByteStream),
    /// A tunnel through another proxy.
    Via {
        /// The stream of the tunnel, once that proxy has granted it.
        stream: Box<dyn CopyStream + Send>,
        /// The connection to that proxy.
        info: Arc<ConnectionInfo>,
        /// The datagrams beside the stream, if the connection supports them.
        datagrams: Option<HttpDatagrams>,
        /// The permit for a tunnel on that connection, if it is shared.
        _permit: Option<OwnedSemaphorePermit>,
    },
}

impl DestinationStream {
    /// Returns information about the connection of this machine.
    pub fn info(&self) -> Arc<ConnectionInfo> {
        match self {
            Self::Direct(stream) => stream.shared_info(),
            Self::Via { info, .. } => Arc::clone(info),
        }
    }

    /// Takes the datagrams beside the stream, if the connection supports them.
    pub fn take_datagrams(&mut self) -> Option<HttpDatagrams> {
        match self {
            Self::Direct(_) => None,
            Self::Via { datagrams, .. } => datagrams.take(),
        }
    }

    /// Reports to the memory that the peer broke the connection without a reply. A proxy has already replied.
    pub fn report_broken(&self, failure: AttemptFailure) {
        if let Self::Direct(stream) = self {
            stream.feedback().broke(failure);
        }
    }
}

impl AsyncRead for DestinationStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Direct(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Via { stream, .. } => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for DestinationStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Direct(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Via { stream, .. } => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Direct(stream) => Pin::new(stream).poll_flush(cx),
            Self::Via { stream, .. } => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Direct(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Via { stream, .. } => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
