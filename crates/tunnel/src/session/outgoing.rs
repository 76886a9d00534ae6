//! Writes the frames for the other end, in order of priority.

use bytes::{Bytes, BytesMut};

use super::lane::LaneState;
use super::{TRANSMIT, TunnelLane, TunnelSession};
use crate::frame::{self, RefuseReason, TunnelFrame, VERSION};

impl TunnelSession {
    /// Appends the next frames for this stream to the buffer, until it has about [`TRANSMIT`] bytes.
    pub fn poll_transmit(&mut self, lane: TunnelLane, into: &mut BytesMut) {
        let Some(state) = self.lanes.get_mut(&lane) else { return };
        if (self.end.is_none() || lane == TunnelLane::FIRST)
            && std::mem::take(&mut state.must_send_hello)
        {
            let window = self.limits.first_window;
            frame::encode(0, &TunnelFrame::Hello { version: VERSION, window }, into);
        }
        if lane == TunnelLane::FIRST {
            self.write_session_frames(into);
        }
        if self.end.is_some() {
            return;
        }
        while into.len() < TRANSMIT
            && let Some(id) = self.next_channel(lane, |lane| lane.excess.pop_front())
        {
            frame::encode(id, &TunnelFrame::Refuse(RefuseReason::TooMany, String::new()), into);
        }
        while into.len() < TRANSMIT
            && let Some(id) = self.next_channel(lane, |lane| lane.queues.due.pop_front())
        {
            self.write_due(id, into);
        }
        while into.len() < TRANSMIT
            && let Some(id) = self.next_channel(lane, |lane| lane.queues.next_data())
        {
            self.write_data(id, into);
        }
    }

    fn next_channel(
        &mut self,
        lane: TunnelLane,
        next: impl Fn(&mut LaneState) -> Option<u32>,
    ) -> Option<u32> {
        self.lanes.get_mut(&lane).and_then(next)
    }

    /// Writes the frames of the session itself.
    fn write_session_frames(&mut self, into: &mut BytesMut) {
        if let Some(text) = self.due.goodbye.take() {
            frame::encode(0, &TunnelFrame::Goodbye(text), into);
        }
        if self.end.is_some() {
            return;
        }
        if let Some(token) = self.due.pong.take() {
            frame::encode(0, &TunnelFrame::Pong(token), into);
        }
        if let Some(token) = self.due.ping.take() {
            frame::encode(0, &TunnelFrame::Ping(token), into);
        }
    }

    fn write_due(&mut self, id: u32, into: &mut BytesMut) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        channel.queued.due = false;
        if let Some(purpose) = channel.due.open.take() {
            frame::encode(id, &TunnelFrame::Open(purpose), into);
        }
        if let Some(answer) = channel.due.answer.take() {
            let frame = match answer {
                Ok(port) => TunnelFrame::Accept(port),
                Err((why, text)) => TunnelFrame::Refuse(why, text),
            };
            frame::encode(id, &frame, into);
        }
        if std::mem::take(&mut channel.due.credit) && !channel.is_over() {
            let limit = channel.max_window(&self.limits);
            let credit = channel.receiving.credit(limit, &mut self.budget);
            frame::encode(id, &TunnelFrame::Credit(credit), into);
        }
        if std::mem::take(&mut channel.due.delivered) && !channel.is_over() {
            frame::encode(id, &TunnelFrame::Delivered, into);
        }
        if std::mem::take(&mut channel.due.reset) {
            frame::encode(id, &TunnelFrame::Reset, into);
        }
        self.queue_data(id);
        self.forget_if_done(id);
    }

    fn write_data(&mut self, id: u32, into: &mut BytesMut) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        channel.queued.data = false;
        if channel.is_over() || !channel.sending.is_ready() {
            return;
        }
        match channel.sending.next_bytes() {
            Some(piece) => frame::encode(id, &TunnelFrame::Data(Bytes::from(piece)), into),
            None => frame::encode(id, &TunnelFrame::Finish, into),
        }
        self.queue_data(id);
        self.queue_changed(id);
        self.forget_if_done(id);
    }
}
