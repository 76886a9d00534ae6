//! The peer's control stream (RFC 9114 §6.2.1): the frames that may stand on it, their contents, and
//! what has to hold from one to the next.

use alloc::vec::Vec;

use bytes::Bytes;

use crate::fault::{ConnectionFault, Place};
use crate::frame::{FrameRead, FrameReader, MAX_IGNORED_FRAME, Treatment};
use crate::frame_type::FrameType;
use crate::priority::Priority;
use crate::settings::Settings;
use crate::stream::{Role, StreamId};
use crate::varint;

/// The longest frame of a control stream that is kept whole, in bytes of its payload.
pub const MAX_CONTROL_FRAME: u64 = 16 * 1024;

/// What the peer has said on its control stream, as far as later frames are held to it.
#[derive(Debug, Default)]
pub(super) struct ControlReceiver {
    frames: FrameReader,
    has_settings: bool,
    goaway: Option<u64>,
    max_push_id: Option<u64>,
}

/// What a frame says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Control {
    Settings(Settings),
    GoAway(u64),
    Priority(StreamId, Priority),
    Origins(Vec<Bytes>),
    /// A frame that changes nothing for this endpoint.
    Nothing,
}

impl ControlReceiver {
    /// Takes bytes off `input` until a frame is complete; returns `None` when they are used up.
    pub(super) fn read(
        &mut self,
        role: Role,
        input: &mut Bytes,
    ) -> Result<Option<Control>, ConnectionFault> {
        loop {
            let has_settings = &mut self.has_settings;
            let read = self
                .frames
                .read(input, |frame, length| admit(role, has_settings, frame, length))?;
            return match read {
                None => Ok(None),
                Some(FrameRead::Whole(frame, payload)) => {
                    self.handle_frame(role, frame, &payload).map(Some)
                }
                // No frame of a control stream is passed on in parts.
                Some(FrameRead::Part(_)) => continue,
            };
        }
    }

    /// Returns whether the stream may end here as far as its frames are concerned.
    pub(super) const fn is_at_boundary(&self) -> bool {
        self.frames.is_at_boundary()
    }

    /// Returns the identifier of the last GOAWAY.
    pub(super) const fn goaway(&self) -> Option<u64> {
        self.goaway
    }

    fn handle_frame(
        &mut self,
        role: Role,
        frame: FrameType,
        payload: &Bytes,
    ) -> Result<Control, ConnectionFault> {
        match frame {
            FrameType::Settings => Settings::parse(payload).map(Control::Settings),
            FrameType::GoAway => self.handle_goaway(role, only_integer(frame, payload)?),
            FrameType::MaxPushId => self.handle_max_push_id(only_integer(frame, payload)?),
            // A client has allowed no push, and a server has promised none: the push ID is beyond what is
            // allowed or has "not yet been mentioned by a PUSH_PROMISE frame" (RFC 9114 §7.2.3).
            FrameType::CancelPush => {
                let push_id = only_integer(frame, payload)?;
                Err(ConnectionFault::PushIdNotAllowed { frame, push_id })
            }
            FrameType::PriorityUpdateOfRequest => priority_update(payload),
            FrameType::PriorityUpdateOfPush => {
                // Nothing has been promised: an identifier of a push is an H3_ID_ERROR (RFC 9218 §7.2).
                let (push_id, _) =
                    varint::parse(payload).ok_or(ConnectionFault::FrameMalformed(frame))?;
                Err(ConnectionFault::PushIdNotAllowed { frame, push_id })
            }
            FrameType::Origin => origins(payload).map(Control::Origins),
            _ => Ok(Control::Nothing),
        }
    }

    fn handle_goaway(&mut self, role: Role, id: u64) -> Result<Control, ConnectionFault> {
        // "A client that receives a GOAWAY frame containing a stream ID of any other type MUST treat this
        // as a connection error of type H3_ID_ERROR" (RFC 9114 §7.2.6).
        if role == Role::Client && !StreamId(id).is_request() {
            return Err(ConnectionFault::GoAwayOfOtherStream(id));
        }
        // "Receiving a GOAWAY containing a larger identifier than previously received MUST be treated as
        // a connection error of type H3_ID_ERROR" (RFC 9114 §5.2).
        if let Some(from) = self.goaway.filter(|&earlier| id > earlier) {
            return Err(ConnectionFault::GoAwayGrew { from, to: id });
        }
        self.goaway = Some(id);
        Ok(Control::GoAway(id))
    }

    fn handle_max_push_id(&mut self, id: u64) -> Result<Control, ConnectionFault> {
        // "A MAX_PUSH_ID frame cannot reduce the maximum push ID; receipt of a MAX_PUSH_ID frame that
        // contains a smaller value than previously received MUST be treated as a connection error of
        // type H3_ID_ERROR" (RFC 9114 §7.2.7).
        if let Some(from) = self.max_push_id.filter(|&earlier| id < earlier) {
            return Err(ConnectionFault::MaxPushIdFell { from, to: id });
        }
        self.max_push_id = Some(id);
        Ok(Control::Nothing)
    }
}

/// Decides about a frame of the peer's control stream by its type (RFC 9114 §7.2, the table). `role` is
/// that of this endpoint.
fn admit(
    role: Role,
    has_settings: &mut bool,
    frame: FrameType,
    length: u64,
) -> Result<Treatment, ConnectionFault> {
    // "If the first frame of the control stream is any other frame type, this MUST be treated as a
    // connection error of type H3_MISSING_SETTINGS" (RFC 9114 §6.2.1).
    if !core::mem::replace(has_settings, true) {
        if frame != FrameType::Settings {
            return Err(ConnectionFault::SettingsMissing(frame));
        }
    } else if frame == FrameType::Settings {
        return Err(ConnectionFault::SettingsRepeated);
    }
    let place = match role {
        Role::Server => Place::ClientControl,
        Role::Client => Place::ServerControl,
    };
    match (frame, role) {
        (FrameType::Reserved(_) | FrameType::Unknown(_), _) if length <= MAX_IGNORED_FRAME => {
            Ok(Treatment::Skip)
        }
        (FrameType::Http2(_), _) => Err(ConnectionFault::Http2Frame(frame)),
        (FrameType::Data | FrameType::Headers | FrameType::PushPromise, _)
        | (
            FrameType::MaxPushId
            | FrameType::PriorityUpdateOfRequest
            | FrameType::PriorityUpdateOfPush,
            Role::Client,
        )
        | (FrameType::Origin, Role::Server) => {
            Err(ConnectionFault::FrameNotAllowed { frame, place })
        }
        _ if length > MAX_CONTROL_FRAME => {
            let limit = if frame.is_ignored() { MAX_IGNORED_FRAME } else { MAX_CONTROL_FRAME };
            Err(ConnectionFault::FrameTooLong { frame, length, limit })
        }
        _ => Ok(Treatment::Whole),
    }
}

/// Returns the integer that is all of a payload: "Each frame's payload MUST contain exactly the fields
/// identified in its description" (RFC 9114 §7.1).
fn only_integer(frame: FrameType, payload: &[u8]) -> Result<u64, ConnectionFault> {
    match varint::parse(payload) {
        Some((value, [])) => Ok(value),
        _ => Err(ConnectionFault::FrameMalformed(frame)),
    }
}

fn priority_update(payload: &[u8]) -> Result<Control, ConnectionFault> {
    let malformed = ConnectionFault::FrameMalformed(FrameType::PriorityUpdateOfRequest);
    let (id, value) = varint::parse(payload).ok_or(malformed)?;
    let stream = StreamId(id);
    // An identifier of any other stream is an H3_ID_ERROR (RFC 9218 §7.2).
    if !stream.is_request() {
        return Err(ConnectionFault::PriorityOfOtherStream(id));
    }
    let priority = Priority::parse(value).ok_or(ConnectionFault::PriorityMalformed)?;
    Ok(Control::Priority(stream, priority))
}

/// Parses the entries of an ORIGIN frame (RFC 8336 §2.1), each with a length of two bytes.
fn origins(payload: &Bytes) -> Result<Vec<Bytes>, ConnectionFault> {
    let mut origins = Vec::new();
    let mut rest = payload.clone();
    while !rest.is_empty() {
        let malformed = ConnectionFault::FrameMalformed(FrameType::Origin);
        let &[high, low, ref entry @ ..] = &rest[..] else { return Err(malformed) };
        let length = usize::from(u16::from_be_bytes([high, low]));
        let origin = entry.get(..length).ok_or(malformed)?;
        origins.push(rest.slice_ref(origin));
        rest = rest.slice(2 + length..);
    }
    Ok(origins)
}
