//! Bodies whose length is announced before their content is read.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};

use crate::{Body, Error, Kind};

/// A stream whose length was announced to the peer, and is therefore enforced.
#[derive(Debug)]
pub(super) struct Announced {
    content: Body,
    /// The number of bytes that remain.
    left: u64,
}

impl Announced {
    pub(super) fn new(content: Body, length: u64) -> Self {
        Self { content, left: length }
    }
}

impl HttpBody for Announced {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let Some(frame) = ready!(Pin::new(&mut self.content).poll_frame(cx)).transpose()? else {
            return Poll::Ready(match self.left {
                0 => None,
                left => Some(Err(Error::new(
                    Kind::RequestBody,
                    format!("the content ended {left} bytes early: was its file truncated?"),
                ))),
            });
        };
        let length = frame.data_ref().map_or(0, |data| data.len() as u64);
        self.left = self.left.checked_sub(length).ok_or_else(|| {
            Error::new(Kind::RequestBody, "there is more content than was announced")
        })?;
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announced(text: &'static str, length: u64) -> Body {
        Body::boxed(Announced::new(Body::from_reader(text.as_bytes()), length))
    }

    #[tokio::test]
    async fn a_wrong_length_is_an_error() {
        assert_eq!(announced("four", 4).bytes().await.unwrap(), "four");
        for (length, word) in [(3, "more content"), (10, "6 bytes early")] {
            let error = announced("four", length).bytes().await.expect_err("the wrong length");
            assert_eq!(error.kind(), Kind::RequestBody);
            assert!(error.to_string().contains(word), "{error}");
        }
    }

    #[tokio::test]
    async fn a_file_is_streamed_with_its_length() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "one\n").unwrap();
        let body = Body::from_file(file.path()).await.unwrap();
        // What is appended later is not sent.
        std::fs::write(file.path(), "one\ntwo\n").unwrap();
        assert_eq!(body.size_hint().exact(), Some(4));
        assert_eq!(body.bytes().await.unwrap(), "one\n");
        let body = Body::from_file(file.path()).await.unwrap();
        std::fs::write(file.path(), "one").unwrap();
        assert!(body.bytes().await.expect_err("truncated").to_string().contains("early"));
        let directory = tempfile::tempdir().unwrap();
        assert!(Body::from_file(directory.path()).await.is_err(), "a directory is not a file");
    }
}
