//! The receiving half of a request's stream (RFC 9114 §4.1).

use alloc::collections::VecDeque;

use bytes::Bytes;

use crate::fault::{ConnectionFault, Fault, Place, StreamFault};
use crate::frame::{FrameRead, FrameReader, MAX_IGNORED_FRAME, Treatment};
use crate::frame_type::FrameType;
use crate::message::{Content, MessageFault};
use crate::stream::Role;

/// The largest number of interim responses before the final one.
pub const MAX_INTERIM_RESPONSES: u32 = 64;

/// How much longer a field section may be when it is encoded, in bytes: its prefix (RFC 9204 §4.5.1).
/// Each field line adds less than the 32 bytes that RFC 9114 §4.2.2 counts for it.
const SECTION_PREFIX: u64 = 32;

/// What a [`RequestReceiver`] has read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// The encoded field section of a head: of the request, or of an interim or the final response.
    /// The receiver waits for [`RequestReceiver::accept_head`].
    Head(Bytes),
    /// A part of the content, never empty; a slice of the input.
    Data(Bytes),
    /// The encoded field section of the trailers. The receiver waits for
    /// [`RequestReceiver::accept_trailers`].
    Trailers(Bytes),
    /// The message is complete.
    End,
    /// The peer broke a rule. Nothing else follows.
    Failed(Fault),
}

/// The receiving half of a request's stream: a server's for the request, a client's for the responses.
///
/// Pass the stream's bytes to [`handle_input`](Self::handle_input), then call
/// [`poll_output`](Self::poll_output) until it returns `None`. What the receiver cannot use yet, because
/// it waits for a head to be accepted, it keeps: pass nothing more while
/// [`is_waiting`](Self::is_waiting), and the transport's flow control bounds it.
///
/// ```
/// use bytes::Bytes;
/// use eyas_h3::message::Content;
/// use eyas_h3::request::{Received, RequestReceiver};
/// use eyas_h3::stream::Role;
///
/// let mut receiver = RequestReceiver::new(Role::Server, 16_384);
/// // HEADERS with three bytes, DATA with five.
/// receiver.handle_input(Bytes::from_static(b"\x01\x03\0\0\xd1\x00\x05hello"), true);
/// assert_eq!(receiver.poll_output(), Some(Received::Head(Bytes::from_static(b"\0\0\xd1"))));
/// assert_eq!(receiver.poll_output(), None);
/// receiver.accept_head(Content::Length(5));
/// assert_eq!(receiver.poll_output(), Some(Received::Data(Bytes::from_static(b"hello"))));
/// assert_eq!(receiver.poll_output(), Some(Received::End));
/// ```
#[derive(Debug)]
pub struct RequestReceiver {
    role: Role,
    max_section: u64,
    frames: FrameReader,
    order: Order,
    input: VecDeque<Bytes>,
    has_ended: bool,
}

/// What the frames so far allow next.
#[derive(Clone, Copy, Debug)]
struct Order {
    stage: Stage,
    /// What follows the head.
    content: Content,
    /// The sizes of the DATA frames, in bytes.
    received: u64,
    interim_responses: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// A head is next.
    Head,
    /// A head has been passed on and not been accepted.
    HeadWaits,
    /// Content is next, or the trailers.
    Content,
    /// The trailers have been passed on and not been accepted.
    TrailersWait,
    /// Only the end is next.
    Trailers,
    /// Nothing is.
    Over,
}

impl RequestReceiver {
    /// Creates the half of an endpoint with this role. `max_field_section_size` is the largest field
    /// section that it accepts, in bytes as RFC 9114 §4.2.2 counts them; an encoded one that must be
    /// larger fails before it is read.
    #[must_use]
    pub fn new(role: Role, max_field_section_size: u64) -> Self {
        let order =
            Order { stage: Stage::Head, content: Content::Any, received: 0, interim_responses: 0 };
        Self {
            role,
            max_section: max_field_section_size,
            frames: FrameReader::default(),
            order,
            input: VecDeque::new(),
            has_ended: false,
        }
    }

    /// Takes the next bytes of the stream; `fin` says that they are the last.
    pub fn handle_input(&mut self, data: Bytes, fin: bool) {
        if self.order.stage == Stage::Over {
            return;
        }
        if !data.is_empty() {
            self.input.push_back(data);
        }
        self.has_ended |= fin;
    }

    /// Returns what has been read, `None` if it needs more input or waits for a head to be accepted.
    pub fn poll_output(&mut self) -> Option<Received> {
        if matches!(self.order.stage, Stage::HeadWaits | Stage::TrailersWait | Stage::Over) {
            return None;
        }
        let received = self.read().unwrap_or_else(|fault| Some(Received::Failed(fault)));
        if matches!(received, Some(Received::End | Received::Failed(_))) {
            self.order.stage = Stage::Over;
            self.input = VecDeque::new();
        }
        received
    }

    fn read(&mut self) -> Result<Option<Received>, Fault> {
        while let Some(input) = self.input.front_mut() {
            let (role, max_section) = (self.role, self.max_section);
            let order = &mut self.order;
            let read = self
                .frames
                .read(input, |frame, length| order.admit(role, max_section, frame, length))?;
            match read {
                None => {
                    self.input.pop_front();
                }
                Some(FrameRead::Part(data)) => return Ok(Some(Received::Data(data))),
                Some(FrameRead::Whole(_, section)) => {
                    return Ok(Some(self.order.pass_section(section)));
                }
            }
        }
        if !self.has_ended {
            return Ok(None);
        }
        // "When a stream terminates cleanly, if the last frame on the stream was truncated, this MUST be
        // treated as a connection error of type H3_FRAME_ERROR" (RFC 9114 §7.1).
        if !self.frames.is_at_boundary() {
            return Err(ConnectionFault::FrameTruncated.into());
        }
        self.order.end(self.role)
    }

    /// Says what follows the head that was passed on last, as [`message`](crate::message)'s checks
    /// return it. Without a head that waits, nothing happens.
    pub fn accept_head(&mut self, content: Content) {
        if self.order.stage == Stage::HeadWaits {
            self.order.content = content;
            self.order.stage = match content {
                Content::Interim => Stage::Head,
                _ => Stage::Content,
            };
        }
    }

    /// Says that the trailers that were passed on are well-formed. Without trailers that wait, nothing
    /// happens.
    pub fn accept_trailers(&mut self) {
        if self.order.stage == Stage::TrailersWait {
            self.order.stage = Stage::Trailers;
        }
    }

    /// Returns whether a head or trailers wait to be accepted.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        matches!(self.order.stage, Stage::HeadWaits | Stage::TrailersWait)
    }

    /// Returns how much is left of the DATA frame that is being read, in bytes; 0 between frames.
    #[must_use]
    pub const fn data_left(&self) -> u64 {
        self.frames.part_left()
    }

    /// Returns whether the message has ended or failed, so that nothing else follows.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.order.stage == Stage::Over
    }
}

impl Order {
    /// Decides about a frame by what came before it.
    fn admit(
        &mut self,
        role: Role,
        max_section: u64,
        frame: FrameType,
        length: u64,
    ) -> Result<Treatment, Fault> {
        match frame {
            FrameType::Data => self.admit_data(length),
            FrameType::Headers => self.admit_headers(max_section, length),
            FrameType::Reserved(_) | FrameType::Unknown(_) if length > MAX_IGNORED_FRAME => {
                let limit = MAX_IGNORED_FRAME;
                Err(StreamFault::FrameTooLong { frame, length, limit }.into())
            }
            FrameType::Reserved(_) | FrameType::Unknown(_) => Ok(Treatment::Skip),
            FrameType::Http2(_) => Err(ConnectionFault::Http2Frame(frame).into()),
            FrameType::PushPromise if role == Role::Client && !self.is_tunnel() => {
                Err(ConnectionFault::PushPromiseNotAllowed.into())
            }
            FrameType::CancelPush
            | FrameType::Settings
            | FrameType::PushPromise
            | FrameType::GoAway
            | FrameType::Origin
            | FrameType::MaxPushId
            | FrameType::PriorityUpdateOfRequest
            | FrameType::PriorityUpdateOfPush => {
                let place = match role {
                    _ if self.is_tunnel() => Place::Tunnel,
                    Role::Server => Place::Request,
                    Role::Client => Place::Response,
                };
                Err(ConnectionFault::FrameNotAllowed { frame, place }.into())
            }
        }
    }

    fn admit_data(&mut self, length: u64) -> Result<Treatment, Fault> {
        // "In particular, a DATA frame before any HEADERS frame, or a HEADERS or DATA frame after the
        // trailing HEADERS frame, is considered invalid" (RFC 9114 §4.1).
        if self.stage != Stage::Content {
            return Err(ConnectionFault::FrameOutOfOrder(FrameType::Data).into());
        }
        let received = self.received.saturating_add(length);
        match self.content {
            Content::Empty if received > 0 => return Err(MessageFault::ContentForbidden.into()),
            Content::Length(announced) if received > announced => {
                return Err(MessageFault::ContentLengthDiffers { announced, received }.into());
            }
            _ => {}
        }
        self.received = received;
        Ok(Treatment::Parts)
    }

    fn admit_headers(&mut self, max_section: u64, length: u64) -> Result<Treatment, Fault> {
        let frame = FrameType::Headers;
        match self.stage {
            Stage::Head if self.interim_responses > MAX_INTERIM_RESPONSES => {
                let limit = MAX_INTERIM_RESPONSES;
                return Err(StreamFault::TooManyInterimResponses { limit }.into());
            }
            // "Once the CONNECT method has completed, only DATA frames are permitted to be sent on the
            // stream" (RFC 9114 §4.4).
            Stage::Content if self.is_tunnel() => {
                let place = Place::Tunnel;
                return Err(ConnectionFault::FrameNotAllowed { frame, place }.into());
            }
            Stage::Head => {}
            Stage::Content => self.check_length()?,
            _ => return Err(ConnectionFault::FrameOutOfOrder(frame).into()),
        }
        if length > max_section.saturating_add(SECTION_PREFIX) {
            return Err(StreamFault::FieldSectionTooLarge { limit: max_section }.into());
        }
        Ok(Treatment::Whole)
    }

    fn pass_section(&mut self, section: Bytes) -> Received {
        if self.stage == Stage::Content {
            self.stage = Stage::TrailersWait;
            return Received::Trailers(section);
        }
        self.stage = Stage::HeadWaits;
        self.interim_responses += 1;
        Received::Head(section)
    }

    fn end(&self, role: Role) -> Result<Option<Received>, Fault> {
        match (self.stage, role) {
            // "If a client-initiated stream terminates without enough of the HTTP message to provide a
            // complete response, the server SHOULD abort its response stream with the error code
            // H3_REQUEST_INCOMPLETE" (RFC 9114 §4.1).
            (Stage::Head, Role::Server) => Err(StreamFault::RequestIncomplete.into()),
            (Stage::Head, Role::Client) => Err(MessageFault::ResponseMissing.into()),
            (Stage::Content, _) => self.check_length().map(|()| Some(Received::End)),
            _ => Ok(Some(Received::End)),
        }
    }

    fn check_length(&self) -> Result<(), Fault> {
        match self.content {
            Content::Length(announced) if announced != self.received => {
                let received = self.received;
                Err(MessageFault::ContentLengthDiffers { announced, received }.into())
            }
            _ => Ok(()),
        }
    }

    fn is_tunnel(&self) -> bool {
        self.stage == Stage::Content && self.content == Content::Tunnel
    }
}
