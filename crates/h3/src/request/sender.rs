//! The sending half of a request's stream (RFC 9114 §4.1).

use alloc::vec::Vec;

use bytes::Bytes;

use crate::frame::{self, FrameHeader};
use crate::frame_type::FrameType;
use crate::message::{Content, MessageFault};
use crate::misuse::Misuse;

/// The sending half of a request's stream: a client's for the request, a server's for the responses.
/// It makes frames, and refuses what a peer would find malformed.
///
/// ```
/// use eyas_h3::message::Content;
/// use eyas_h3::misuse::Misuse;
/// use eyas_h3::request::RequestSender;
///
/// let mut sender = RequestSender::default();
/// let head = sender.head(b"\0\0\xd1", Content::Length(5))?;
/// assert_eq!(head, &b"\x01\x03\0\0\xd1"[..]);
/// assert_eq!(sender.data(5)?.as_ref(), b"\x00\x05");
/// assert_eq!(sender.data(1), Err(Misuse::ContentLength { announced: 5, sent: 6 }));
/// sender.finish()?;
/// # Ok::<(), Misuse>(())
/// ```
#[derive(Debug, Default)]
pub struct RequestSender {
    stage: Stage,
    /// The sizes of the DATA frames, in bytes.
    sent: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Head,
    Content(Content),
    Trailers,
    Over,
}

impl RequestSender {
    /// Returns the HEADERS frame of a head, whose field section is encoded; `content` is what follows
    /// it.
    ///
    /// # Errors
    /// [`Misuse::OutOfOrder`] unless this is the first head, or all before were interim responses.
    pub fn head(&mut self, section: &[u8], content: Content) -> Result<Bytes, Misuse> {
        if self.stage != Stage::Head {
            return Err(Misuse::OutOfOrder);
        }
        if content != Content::Interim {
            self.stage = Stage::Content(content);
        }
        Ok(headers(section))
    }

    /// Returns the header of a DATA frame for `length` bytes of content, which the caller sends after it.
    ///
    /// # Errors
    /// [`Misuse::OutOfOrder`] before the head or after trailers, [`Misuse::ContentLength`] if it is more
    /// than was announced, [`Misuse::Malformed`] if there must be none.
    pub fn data(&mut self, length: u64) -> Result<FrameHeader, Misuse> {
        let Stage::Content(content) = self.stage else { return Err(Misuse::OutOfOrder) };
        let sent = self.sent.saturating_add(length);
        match content {
            Content::Length(announced) if sent > announced => {
                return Err(Misuse::ContentLength { announced, sent });
            }
            Content::Empty if sent > 0 => {
                return Err(Misuse::Malformed(MessageFault::ContentForbidden));
            }
            _ => {}
        }
        self.sent = sent;
        Ok(FrameHeader::new(FrameType::Data, length))
    }

    /// Returns the HEADERS frame of the trailers, whose field section is encoded.
    ///
    /// # Errors
    /// [`Misuse::OutOfOrder`] before the head, after trailers, or in a tunnel;
    /// [`Misuse::ContentLength`] if content is missing.
    pub fn trailers(&mut self, section: &[u8]) -> Result<Bytes, Misuse> {
        match self.stage {
            Stage::Content(Content::Tunnel) | Stage::Head | Stage::Trailers | Stage::Over => {
                return Err(Misuse::OutOfOrder);
            }
            Stage::Content(content) => self.check_length(content)?,
        }
        self.stage = Stage::Trailers;
        Ok(headers(section))
    }

    /// Ends the message: the caller ends the stream.
    ///
    /// # Errors
    /// [`Misuse::OutOfOrder`] before the final head, [`Misuse::ContentLength`] if content is missing.
    /// Then the stream has to be reset, so that the peer does not take the message for complete.
    pub fn finish(&mut self) -> Result<(), Misuse> {
        match self.stage {
            Stage::Head | Stage::Over => return Err(Misuse::OutOfOrder),
            Stage::Content(content) => self.check_length(content)?,
            Stage::Trailers => {}
        }
        self.stage = Stage::Over;
        Ok(())
    }

    fn check_length(&self, content: Content) -> Result<(), Misuse> {
        match content {
            Content::Length(announced) if announced != self.sent => {
                Err(Misuse::ContentLength { announced, sent: self.sent })
            }
            _ => Ok(()),
        }
    }
}

fn headers(section: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(FrameHeader::MAX_BYTES + section.len());
    frame::write(FrameType::Headers, section, &mut out);
    out.into()
}
