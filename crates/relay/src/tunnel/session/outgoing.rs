//! What is said to the other end, and in which order.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use super::{Session, TRANSMIT};
use crate::tunnel::frame::{self, Frame, VERSION, Why};

/// Brief frames in a row while a long one waits: what is brief goes first, and nothing waits for ever.
const BRIEF_TURNS: u32 = 16;

/// What a channel waits in to send: what is brief before what is long.
#[derive(Debug, Default)]
pub(super) struct Queues {
    pub(super) due: VecDeque<u32>,
    pub(super) brief: VecDeque<u32>,
    pub(super) long: VecDeque<u32>,
    brief_in_a_row: u32,
}

impl Queues {
    fn next_data(&mut self) -> Option<u32> {
        let is_brief = self.long.is_empty() || self.brief_in_a_row < BRIEF_TURNS;
        if is_brief && let Some(id) = self.brief.pop_front() {
            self.brief_in_a_row += 1;
            return Some(id);
        }
        self.brief_in_a_row = 0;
        self.long.pop_front().or_else(|| self.brief.pop_front())
    }
}

impl Session {
    /// Puts what is to be sent next behind what is in the buffer, until that has about [`TRANSMIT`]
    /// bytes. Nothing is put there if there is nothing.
    pub fn poll_transmit(&mut self, into: &mut BytesMut) {
        if std::mem::take(&mut self.due.hello) {
            let window = self.limits.first_window;
            frame::encode(0, &Frame::Hello { version: VERSION, window }, into);
        }
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
        while into.len() < TRANSMIT
            && let Some(id) = self.due.turned_away.pop_front()
        {
            frame::encode(id, &Frame::Refuse(Why::TooMany, String::new()), into);
        }
        while into.len() < TRANSMIT
            && let Some(id) = self.queues.due.pop_front()
        {
            self.say_due(id, into);
        }
        while into.len() < TRANSMIT
            && let Some(id) = self.queues.next_data()
        {
            self.send_data(id, into);
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
            let credit = channel.receiving.credit(&self.limits, &mut self.budget);
            frame::encode(id, &Frame::Credit(credit), into);
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
