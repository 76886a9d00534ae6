//! Handles the frames of the other end.

use std::time::Duration;

use bytes::Bytes;

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
                Err(broken) => Err(broken),
            };
            if let Err(broken) = handled {
                self.due.goodbye = Some(broken.0.to_owned());
                self.close(broken.into());
            }
        }
    }

    fn handle_frame(
        &mut self,
        lane: TunnelLane,
        id: u32,
        frame: TunnelFrame,
    ) -> Result<(), ProtocolViolation> {
        let is_of_session = matches!(
            frame,
            TunnelFrame::Hello { .. }
                | TunnelFrame::Ping(_)
                | TunnelFrame::Pong(_)
                | TunnelFrame::Goodbye(_)
        );
        if is_of_session != (id == 0) {
            return Err(ProtocolViolation("a frame of the session on a channel, or vice versa"));
        }
        let is_hello = matches!(frame, TunnelFrame::Hello { .. });
        let is_goodbye = matches!(frame, TunnelFrame::Goodbye(_));
        if is_of_session && !is_hello && lane != TunnelLane::FIRST {
            return Err(ProtocolViolation("a frame of the session on a further stream"));
        }
        let received_hello = self.lanes.get(&lane).is_some_and(|lane| lane.received_hello);
        if !received_hello && !is_hello && !is_goodbye {
            return Err(ProtocolViolation("a frame before HELLO"));
        }
        match frame {
            TunnelFrame::Hello { version, window } => {
                return self.handle_hello(lane, version, window);
            }
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
            return match self.window {
                Some(known) if known == window => Ok(()),
                _ => Err(ProtocolViolation("a different HELLO on a further stream")),
            };
        }
        self.window = Some(window);
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
        let is_there = self.channels.contains_key(&id);
        let theirs = self.channels.keys().filter(|id| !self.is_own(**id)).count();
        let Some(state) = self.lanes.get_mut(&lane) else { return Ok(()) };
        if is_own || is_there || id < state.next {
            return Err(ProtocolViolation("a channel with an invalid number"));
        }
        state.next = id.checked_add(2).ok_or(ProtocolViolation("there are no more numbers"))?;
        if theirs >= self.limits.channels {
            // On each stream, because one may be far ahead of another that has the RESETs of channels
            // that the peer opened before.
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
        let theirs = self.lanes.get(&lane).map_or(0, |lane| lane.next);
        let next = if self.is_own(id) { self.next } else { theirs };
        if id >= next {
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
            TunnelFrame::Accept(_) | TunnelFrame::Refuse(..) => {
                return self.handle_answer(id, frame);
            }
            TunnelFrame::Data(bytes) => return self.handle_data(id, &bytes),
            TunnelFrame::Credit(bytes) => {
                channel.sending.add_credit(bytes);
                self.queue_data(id);
            }
            TunnelFrame::Finish => channel.receiving.end()?,
            TunnelFrame::Delivered => channel.sending.deliver()?,
            TunnelFrame::Reset => {
                channel.end(ChannelAnswer::Reset);
                channel.due = super::channel::DueChannelFrames::default();
            }
            _ => {}
        }
        self.changed(id);
        self.forget_if_done(id);
        Ok(())
    }

    /// Forgets an excess channel that is not refused yet. Returns whether there was one.
    fn forget_excess(&mut self, lane: TunnelLane, id: u32) -> bool {
        let Some(state) = self.lanes.get_mut(&lane) else { return false };
        // They are in the order of their numbers.
        let found = state.excess.binary_search(&id);
        found.is_ok_and(|at| state.excess.remove(at).is_some())
    }

    fn handle_answer(&mut self, id: u32, frame: TunnelFrame) -> Result<(), ProtocolViolation> {
        let is_own = self.is_own(id);
        let Some(channel) = self.channels.get_mut(&id) else { return Ok(()) };
        if !is_own || channel.answer != ChannelAnswer::Waiting || channel.due.open.is_some() {
            return Err(ProtocolViolation("an answer without a request"));
        }
        match frame {
            TunnelFrame::Accept(port) => channel.answer = ChannelAnswer::Accepted(port),
            TunnelFrame::Refuse(why, text) => {
                channel.end(ChannelAnswer::Refused(why, reason(why, text)))
            }
            _ => {}
        }
        self.changed(id);
        self.forget_if_done(id);
        Ok(())
    }

    fn handle_data(&mut self, id: u32, bytes: &Bytes) -> Result<(), ProtocolViolation> {
        let Some(channel) = self.channels.get_mut(&id) else { return Ok(()) };
        let keep = !channel.is_released;
        channel.receiving.add(bytes, keep)?;
        self.changed(id);
        Ok(())
    }
}

/// Returns the other end's text, or a default.
fn reason(why: RefuseReason, text: String) -> String {
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
