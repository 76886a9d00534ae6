//! Request and response bodies: empty, in memory, or streaming.

mod announced;

use std::{
    io,
    path::Path,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio_util::io::ReaderStream;

use crate::{Error, Kind};
use announced::Announced;

/// How much is read from a caller's reader at once, in bytes.
const READ_CHUNK: usize = 64 * 1024;

/// A request or response body. A body in memory, from a file or from
/// [`from_repeatable_stream`](Self::from_repeatable_stream) can be sent again (after a redirect, on a
/// new connection); another stream cannot.
pub struct Body(Content);

/// Makes the same stream again, from its beginning.
pub(crate) type Source = Arc<dyn Fn() -> UnsyncBoxBody<Bytes, Error> + Send + Sync>;

enum Content {
    Empty,
    Full(Bytes),
    Stream(UnsyncBoxBody<Bytes, Error>),
    /// A stream of which nothing has been read yet.
    Repeatable(UnsyncBoxBody<Bytes, Error>, Source),
}

impl Body {
    /// Returns an empty body.
    pub const fn empty() -> Self {
        Self(Content::Empty)
    }

    /// Wraps any other implementation of [`http_body::Body`].
    pub fn wrap<B>(body: B) -> Self
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let body = body.map_err(|error| Error::from_source(Kind::RequestBody, error));
        Self(Content::Stream(UnsyncBoxBody::new(body)))
    }

    /// Boxes a body whose error type is already ours.
    pub(crate) fn boxed(body: impl HttpBody<Data = Bytes, Error = Error> + Send + 'static) -> Self {
        Self(Content::Stream(UnsyncBoxBody::new(body)))
    }

    /// Creates a body from a stream of chunks.
    pub fn from_stream<S, E>(stream: S) -> Self
    where
        S: Stream<Item = Result<Bytes, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        Self::wrap(StreamBody::new(stream.map_ok(Frame::data)))
    }

    /// Creates a body from a function that makes its stream of chunks: once now, and from the beginning
    /// wherever it has to be sent again.
    pub fn from_repeatable_stream<S, E>(make: impl Fn() -> S + Send + Sync + 'static) -> Self
    where
        S: Stream<Item = Result<Bytes, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        Self::repeatable(Arc::new(move || UnsyncBoxBody::new(Self::from_stream(make()))))
    }

    /// Creates a body from a reader, which is read to its end.
    pub fn from_reader(reader: impl AsyncRead + Send + 'static) -> Self {
        Self::from_stream(ReaderStream::with_capacity(reader, READ_CHUNK))
    }

    /// Creates a body from a file, which is read while it is sent, and again where it has to be sent
    /// again. The length is that at the time of the call: anything appended later is not sent, and
    /// sending fails if the file becomes shorter. A device or a pipe has no length, is read to its
    /// end, and cannot be sent again.
    ///
    /// # Errors
    /// The system's error if the file cannot be opened.
    pub async fn from_file(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref().to_owned();
        let file = tokio::fs::File::open(&path).await?;
        let metadata = file.metadata().await?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if !metadata.is_file() {
            return Ok(Self::from_reader(file));
        }
        let length = metadata.len();
        let announced = move |content: Self| UnsyncBoxBody::new(Announced::new(content, length));
        let first = announced(Self::from_reader(file.take(length)));
        let source = move || {
            let path = path.clone();
            let opened = async move {
                let file = tokio::fs::File::open(path).await?.take(length);
                io::Result::Ok(ReaderStream::with_capacity(file, READ_CHUNK))
            };
            announced(Self::from_stream(futures_util::stream::once(opened).try_flatten()))
        };
        Ok(Self(Content::Repeatable(first, Arc::new(source))))
    }

    /// Announces the length of a stream, in bytes. Sending fails if the stream turns out to be
    /// shorter or longer. A body in memory or from a file has a length already.
    pub fn with_length(self, length: u64) -> Self {
        match self.0 {
            Content::Stream(_) => Self::boxed(Announced::new(self, length)),
            Content::Repeatable(body, source) if body.size_hint().exact().is_none() => {
                Self::repeatable(Arc::new(move || {
                    let again = Self(Content::Stream(source()));
                    UnsyncBoxBody::new(Announced::new(again, length))
                }))
            }
            Content::Empty | Content::Full(_) | Content::Repeatable(..) => self,
        }
    }

    /// Returns whether there is no body, not even an empty one.
    pub(crate) const fn is_none(&self) -> bool {
        matches!(self.0, Content::Empty)
    }

    /// Returns a copy of this body if it is in memory, or comes from a file and has not been read.
    pub fn try_clone(&self) -> Option<Self> {
        match &self.0 {
            Content::Repeatable(_, source) => Some(Self::repeatable(Arc::clone(source))),
            _ => self.in_memory().map(Self::from),
        }
    }

    /// Creates a body that can be sent again.
    pub(crate) fn repeatable(source: Source) -> Self {
        Self(Content::Repeatable(source(), source))
    }

    /// Returns what makes this body again, if it can be sent again.
    #[cfg(feature = "multipart")]
    pub(crate) fn source(&self) -> Option<Source> {
        match &self.0 {
            Content::Repeatable(_, source) => Some(Arc::clone(source)),
            _ => {
                let bytes = self.in_memory()?;
                let source = move || {
                    let full = http_body_util::Full::new(bytes.clone());
                    UnsyncBoxBody::new(full.map_err(|never| match never {}))
                };
                Some(Arc::new(source))
            }
        }
    }

    /// Returns all octets, if they are in memory.
    pub(crate) fn in_memory(&self) -> Option<Bytes> {
        match &self.0 {
            Content::Empty => Some(Bytes::new()),
            Content::Full(bytes) => Some(bytes.clone()),
            Content::Stream(_) | Content::Repeatable(..) => None,
        }
    }

    /// Returns the next chunk, or `None` at the end. Trailers are skipped.
    ///
    /// # Errors
    /// An error of the connection or of the source of the stream; for a response, one for which
    /// [`Kind::is_body`] or [`Kind::is_timeout`] is true.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        while let Some(frame) = self.frame().await {
            if let Ok(data) = frame?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// Returns the whole body. Its size is limited by the client's `max_body`, if set.
    ///
    /// # Errors
    /// The same as for [`chunk`](Self::chunk).
    pub async fn bytes(self) -> Result<Bytes, Error> {
        match self.0 {
            Content::Empty => Ok(Bytes::new()),
            Content::Full(bytes) => Ok(bytes),
            Content::Stream(body) | Content::Repeatable(body, _) => {
                Ok(body.collect().await?.to_bytes())
            }
        }
    }

    /// Returns the chunks as a stream.
    pub fn into_stream(self) -> impl Stream<Item = Result<Bytes, Error>> + Send {
        http_body_util::BodyStream::new(self).filter_map(|frame| {
            std::future::ready(frame.map(|frame| frame.into_data().ok()).transpose())
        })
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::empty()
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Content::Empty => f.write_str("Body(empty)"),
            Content::Full(bytes) => write!(f, "Body({} bytes)", bytes.len()),
            Content::Stream(_) | Content::Repeatable(..) => f.write_str("Body(stream)"),
        }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        if bytes.is_empty() { Self::empty() } else { Self(Content::Full(bytes)) }
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Bytes::from(text).into()
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Self {
        Bytes::from_static(text.as_bytes()).into()
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        match std::mem::replace(&mut self.0, Content::Empty) {
            Content::Empty => Poll::Ready(None),
            Content::Full(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            Content::Stream(mut body) | Content::Repeatable(mut body, _) => {
                let polled = Pin::new(&mut body).poll_frame(cx);
                self.0 = Content::Stream(body);
                polled
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Content::Empty => true,
            Content::Full(_) => false,
            Content::Stream(body) | Content::Repeatable(body, _) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Empty => SizeHint::with_exact(0),
            Content::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Stream(body) | Content::Repeatable(body, _) => body.size_hint(),
        }
    }
}
