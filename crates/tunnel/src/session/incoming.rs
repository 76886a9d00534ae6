//! Handles the frames of the other end: those of the session, then those of its channels.
//!
//! Each check is a rule of the protocol in the documentation of [`tunnel`](crate). A frame that breaks one ends the
//! session, with a GOODBYE that tells the other end which.

use std::time::Duration;

use bytes::Bytes;

use super::channel::DueChannelFrames;
use super::{ChannelAnswer, SessionEnd, SessionEvent, TunnelLane, TunnelSession};
use crate::frame::{self, ChannelPurpose, ProtocolViolation, RefuseReason, TunnelFrame, VERSION};

impl TunnelSession {
    /// Handles data that arrived on this stream, however it is split.
    pub fn handle_bytes(&mut self, now: Duration, lane: TunnelLane, bytes: &[u8]) {
        if self.end.is_some() || bytes.is_empty() {
            return;
        }
        let Some(state) = self.lanes.get_mut(&lane) else { return };
        self.liveness.received_at = now;
        self.liveness.received += bytes.len() as u64;
        self.liveness.asked_at = None;
        state.unread.extend_from_slice(bytes);
        while self.end.is_none() {
            let Some(state) = self.lanes.get_mut(&lane) else { return };
            let handled = match frame::decode(&mut state.unread) {
                Ok(None) => return,
                Ok(Some((id, frame))) => self.handle_frame(lane, id, frame),
                Err(violation) => Err(violation),
            };
            if let Err(violation) = handled {
                self.due.goodbye = Some(violation.0.to_owned());
                self.close(violation.into());
            }
        }
    }

    fn handle_frame(
        &mut self,
        lane: TunnelLane,
        id: u32,
        frame: TunnelFrame,
    ) -> Result<(), ProtocolViolation> {
        let is_of_session = concerns_session(&frame);
        if is_of_session != (id == 0) {
            return Err(ProtocolViolation("a frame of the session on a channel, or vice versa"));
        }
        let is_hello = matches!(frame, TunnelFrame::Hello { .. });
        let is_goodbye = matches!(frame, TunnelFrame::Goodbye(_));
        if is_of_session && !is_hello && lane != TunnelLane::FIRST {
            return Err(ProtocolViolation("a frame of the session on a further stream"));
        }
        // A GOODBYE ends the session with or without a HELLO before it.
        if !self.received_hello(lane) && !is_hello && !is_goodbye {
            return Err(ProtocolViolation("a frame before HELLO"));
        }
        match frame {
            TunnelFrame::Hello { version, window } => {
                return self.handle_hello(lane, version, window);
            }
            // Only the last one is answered, so that a peer that does not read makes nothing grow.
            TunnelFrame::Ping(token) => self.due.pong = Some(token),
            TunnelFrame::Pong(token) if token <= self.liveness.last_ping => {
                self.liveness.last_pong = self.liveness.last_pong.max(token);
            }
            TunnelFrame::Pong(_) => return Err(ProtocolViolation("an answer without a request")),
            TunnelFrame::Goodbye(text) => self.close(SessionEnd::Goodbye(text)),
            TunnelFrame::Open(purpose) => return self.handle_open(lane, id, purpose),
            frame => return self.handle_channel_frame(lane, id, frame),
        }
        Ok(())
    }

    fn handle_hello(
        &mut self,
        lane: TunnelLane,
        version: u16,
        window: u32,
    ) -> Result<(), ProtocolViolation> {
        let Some(state) = self.lanes.get_mut(&lane) else { return Ok(()) };
        if std::mem::replace(&mut state.received_hello, true) {
            return Err(ProtocolViolation("a second HELLO"));
        }
        if version != VERSION {
            self.close(SessionEnd::Version(version));
            return Ok(());
        }
        if lane != TunnelLane::FIRST {
            // Further streams are added once the session is up, so the window is known.
            return match self.window {
                Some(known) if known == window => Ok(()),
                _ => Err(ProtocolViolation("a different HELLO on a further stream")),
            };
        }
        self.window = Some(window);
        // The channels that were opened before have no credit yet.
        let ids: Vec<u32> = self.channels.keys().copied().collect();
        for id in ids {
            if let Some(channel) = self.channels.get_mut(&id) {
                channel.sending.add_credit(window);
            }
            self.queue_data(id);
        }
        Ok(())
    }

    fn handle_open(
        &mut self,
        lane: TunnelLane,
        id: u32,
        purpose: ChannelPurpose,
    ) -> Result<(), ProtocolViolation> {
        let is_own = self.is_own(id);
        let is_in_use = self.channels.contains_key(&id);
        let opened_by_peer = self.channels.keys().filter(|id| !self.is_own(**id)).count();
        let Some(state) = self.lanes.get_mut(&lane) else { return Ok(()) };
        if is_own || is_in_use || id < state.min_next_id {
            return Err(ProtocolViolation("a channel with an invalid number"));
        }
        let next_id = id.checked_add(2);
        state.min_next_id = next_id.ok_or(ProtocolViolation("there are no more numbers"))?;
        if opened_by_peer >= self.limits.channels {
            // Counted on each stream, because one may be far ahead of another that has the RESETs of
            // channels that the peer opened before.
            if state.excess.len() >= self.limits.channels {
                return Err(ProtocolViolation(
                    "too many requests for channels without reading the answers",
                ));
            }
            state.excess.push_back(id);
            return Ok(());
        }
        self.insert(id, lane, purpose.clone());
        self.events.push_back(SessionEvent::Requested(id, purpose));
        Ok(())
    }

    fn handle_channel_frame(
        &mut self,
        lane: TunnelLane,
        id: u32,
        frame: TunnelFrame,
    ) -> Result<(), ProtocolViolation> {
        let next_id = match self.is_own(id) {
            true => self.next_id,
            false => self.lanes.get(&lane).map_or(0, |lane| lane.min_next_id),
        };
        if id >= next_id {
            return Err(ProtocolViolation("a frame of a channel that was never opened"));
        }
        if frame == TunnelFrame::Reset && self.forget_excess(lane, id) {
            return Ok(());
        }
        // Frames that were in transit when this end released the channel are ignored.
        let Some(channel) = self.channels.get_mut(&id) else { return Ok(()) };
        if channel.lane != lane {
            return Err(ProtocolViolation("a frame on another stream than that of its channel"));
        }
        if channel.is_over() {
            return Ok(());
        }
        match frame {
            TunnelFrame::Accept(port) => return self.handle_answer(id, Ok(port)),
            TunnelFrame::Refuse(why, text) => return self.handle_answer(id, Err((why, text))),
            TunnelFrame::Data(bytes) => return self.handle_data(id, &bytes),
            TunnelFrame::Credit(bytes) => {
                channel.sending.add_credit(bytes);
                self.queue_data(id);
            }
            TunnelFrame::Finish => channel.receiving.end()?,
            TunnelFrame::Delivered => channel.sending.deliver()?,
            TunnelFrame::Reset => {
                channel.end(ChannelAnswer::Reset);
                // The other end would ignore them.
                channel.due = DueChannelFrames::default();
            }
            // `handle_frame` has handled these.
            TunnelFrame::Hello { .. }
            | TunnelFrame::Open(_)
            | TunnelFrame::Ping(_)
            | TunnelFrame::Pong(_)
            | TunnelFrame::Goodbye(_) => {}
        }
        self.queue_changed(id);
        self.forget_if_done(id);
        Ok(())
    }

    /// Forgets an excess channel that is not refused yet. Returns whether there was one.
    fn forget_excess(&mut self, lane: TunnelLane, id: u32) -> bool {
        let Some(state) = self.lanes.get_mut(&lane) else { return false };
        // They are in the order of their numbers.
        let found = state.excess.binary_search(&id);
        found.is_ok_and(|position| state.excess.remove(position).is_some())
    }

    /// Handles an ACCEPT, with its port, or a REFUSE.
    fn handle_answer(
        &mut self,
        id: u32,
        answer: Result<u16, (RefuseReason, String)>,
    ) -> Result<(), ProtocolViolation> {
        let is_own = self.is_own(id);
        let Some(channel) = self.channels.get_mut(&id) else { return Ok(()) };
        if !is_own || channel.answer != ChannelAnswer::Waiting || channel.due.open.is_some() {
            return Err(ProtocolViolation("an answer without a request"));
        }
        match answer {
            Ok(port) => channel.answer = ChannelAnswer::Accepted(port),
            Err((why, text)) => {
                channel.end(ChannelAnswer::Refused(why, refusal_text(why, text)));
            }
        }
        self.queue_changed(id);
        self.forget_if_done(id);
        Ok(())
    }

    fn handle_data(&mut self, id: u32, bytes: &Bytes) -> Result<(), ProtocolViolation> {
        let Some(channel) = self.channels.get_mut(&id) else { return Ok(()) };
        // The program no longer reads a channel that it has released.
        let keep = !channel.is_released;
        channel.receiving.add(bytes, keep)?;
        self.queue_changed(id);
        Ok(())
    }
}

/// Returns whether a frame concerns the session itself, and so has channel 0.
fn concerns_session(frame: &TunnelFrame) -> bool {
    matches!(
        frame,
        TunnelFrame::Hello { .. }
            | TunnelFrame::Ping(_)
            | TunnelFrame::Pong(_)
            | TunnelFrame::Goodbye(_)
    )
}

/// Returns the other end's text about a refusal, or a default.
fn refusal_text(why: RefuseReason, text: String) -> String {
    if !text.is_empty() {
        return text;
    }
    match why {
        RefuseReason::NotAllowed => "the key does not permit it",
        RefuseReason::Failed => "it cannot be reached",
        RefuseReason::TooMany => "the other end has reached its maximum number of connections",
        RefuseReason::Unsupported => "the other end does not support this",
    }
    .to_owned()
}
