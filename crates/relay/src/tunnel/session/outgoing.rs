//! What is said to the other end, and in which order.

use bytes::{Bytes, BytesMut};

use super::lane::LaneState;
use super::{Lane, Session, TRANSMIT};
use crate::tunnel::frame::{self, Frame, VERSION, Why};

impl Session {
    /// Puts what is to be sent next on this stream behind what is in the buffer, until that has about
    /// [`TRANSMIT`] bytes. Nothing is put there if there is nothing.
    pub fn poll_transmit(&mut self, lane: Lane, into: &mut BytesMut) {
        let Some(state) = self.lanes.get_mut(&lane) else { return };
        if (self.end.is_none() || lane == Lane::FIRST) && std::mem::take(&mut state.owes_hello) {
            let window = self.limits.first_window;
            frame::encode(0, &Frame::Hello { version: VERSION, window }, into);
        }
        if lane == Lane::FIRST {
            self.say_words(into);
        }
        if self.end.is_some() {
            return;
        }
        while into.len() < TRANSMIT
            && let Some(id) = self.take(lane, |lane| lane.turned_away.pop_front())
        {
            frame::encode(id, &Frame::Refuse(Why::TooMany, String::new()), into);
        }
        while into.len() < TRANSMIT
            && let Some(id) = self.take(lane, |lane| lane.queues.due.pop_front())
        {
            self.say_due(id, into);
        }
        while into.len() < TRANSMIT
            && let Some(id) = self.take(lane, |lane| lane.queues.next_data())
        {
            self.send_data(id, into);
        }
    }

    fn take(&mut self, lane: Lane, next: impl Fn(&mut LaneState) -> Option<u32>) -> Option<u32> {
        self.lanes.get_mut(&lane).and_then(next)
    }

    /// What is about the session itself.
    fn say_words(&mut self, into: &mut BytesMut) {
        if let Some(words) = self.due.goodbye.take() {
            frame::encode(0, &Frame::Goodbye(words), into);
        }
        if self.end.is_some() {
            return;
        }
        if let Some(token) = self.due.pong.take() {
            frame::encode(0, &Frame::Pong(token), into);
        }
        if let Some(token) = self.due.ping.take() {
            frame::encode(0, &Frame::Ping(token), into);
        }
    }

    fn say_due(&mut self, id: u32, into: &mut BytesMut) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        channel.queued.due = false;
        if let Some(purpose) = channel.due.open.take() {
            frame::encode(id, &Frame::Open(purpose), into);
        }
        if let Some(answer) = channel.due.answer.take() {
            let frame = match answer {
                Ok(port) => Frame::Accept(port),
                Err((why, words)) => Frame::Refuse(why, words),
            };
            frame::encode(id, &frame, into);
        }
        if std::mem::take(&mut channel.due.credit) && !channel.is_over() {
            let most = channel.most(&self.limits);
            let credit = channel.receiving.credit(most, &mut self.budget);
            frame::encode(id, &Frame::Credit(credit), into);
        }
        if std::mem::take(&mut channel.due.delivered) && !channel.is_over() {
            frame::encode(id, &Frame::Delivered, into);
        }
        if std::mem::take(&mut channel.due.reset) {
            frame::encode(id, &Frame::Reset, into);
        }
        self.queue_data(id);
        self.forget_if_done(id);
    }

    fn send_data(&mut self, id: u32, into: &mut BytesMut) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        channel.queued.data = false;
        if channel.is_over() || !channel.sending.is_ready() {
            return;
        }
        match channel.sending.take() {
            Some(piece) => frame::encode(id, &Frame::Data(Bytes::from(piece)), into),
            None => frame::encode(id, &Frame::Finish, into),
        }
        self.queue_data(id);
        self.changed(id);
        self.forget_if_done(id);
    }
}
