//! What the other end says, and what becomes of it.

use std::time::Duration;

use bytes::Bytes;

use super::channel::Channel;
use super::{Answer, End, Event, Session};
use crate::tunnel::frame::{self, Broken, Frame, Purpose, VERSION, Why};

impl Session {
    /// Takes in bytes of the other end, however they are cut.
    pub fn handle_bytes(&mut self, now: Duration, bytes: &[u8]) {
        if self.end.is_some() || bytes.is_empty() {
            return;
        }
        self.pulse.heard_at = now;
        self.pulse.is_asked = false;
        self.unread.extend_from_slice(bytes);
        while self.end.is_none() {
            let handled = match frame::decode(&mut self.unread) {
                Ok(None) => return,
                Ok(Some((id, frame))) => self.handle_frame(id, frame),
                Err(broken) => Err(broken),
            };
            if let Err(broken) = handled {
                self.due.goodbye = Some(broken.0.to_owned());
                self.over(broken.into());
            }
        }
    }

    fn handle_frame(&mut self, id: u32, frame: Frame) -> Result<(), Broken> {
        let is_of_session = matches!(
            frame,
            Frame::Hello { .. } | Frame::Ping(_) | Frame::Pong(_) | Frame::Goodbye(_)
        );
        if is_of_session != (id == 0) {
            return Err(Broken("a frame of the session on a channel, or the other way round"));
        }
        let is_hello = matches!(frame, Frame::Hello { .. } | Frame::Goodbye(_));
        if self.window.is_none() && !is_hello {
            return Err(Broken("it did not introduce itself"));
        }
        match frame {
            Frame::Hello { version, window } => return self.handle_hello(version, window),
            Frame::Ping(token) => self.due.pong = Some(token),
            Frame::Pong(token) if token <= self.pulse.asked => {
                self.pulse.answered = self.pulse.answered.max(token);
            }
            Frame::Pong(_) => return Err(Broken("an answer to what was not asked")),
            Frame::Goodbye(words) => self.over(End::Told(words)),
            Frame::Open(purpose) => return self.handle_open(id, purpose),
            frame => return self.handle_channel_frame(id, frame),
        }
        Ok(())
    }

    fn handle_hello(&mut self, version: u16, window: u32) -> Result<(), Broken> {
        if self.window.is_some() {
            return Err(Broken("it introduced itself twice"));
        }
        if version != VERSION {
            self.over(End::Version(version));
            return Ok(());
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

    fn handle_open(&mut self, id: u32, purpose: Purpose) -> Result<(), Broken> {
        if self.is_own(id) || id < self.next.1 {
            return Err(Broken("a channel with a number that it cannot have"));
        }
        self.next.1 = id.checked_add(2).ok_or(Broken("there are no more numbers"))?;
        let theirs = self.channels.keys().filter(|id| !self.is_own(**id)).count();
        if theirs >= self.limits.channels {
            if self.due.turned_away.len() >= self.limits.channels {
                return Err(Broken("it asks for more and more channels, and reads no answer"));
            }
            self.due.turned_away.push_back(id);
            return Ok(());
        }
        let credit = self.window.unwrap_or(0);
        let channel = Channel::new(Answer::Waiting, credit, self.limits.first_window);
        self.channels.insert(id, channel);
        self.events.push_back(Event::Asked(id, purpose));
        Ok(())
    }

    fn handle_channel_frame(&mut self, id: u32, frame: Frame) -> Result<(), Broken> {
        let is_own = self.is_own(id);
        let next = if is_own { self.next.0 } else { self.next.1 };
        if id >= next {
            return Err(Broken("a frame of a channel that was never opened"));
        }
        // What was under way when this end let go of its channel is of no use any more.
        let Some(channel) = self.channels.get_mut(&id) else { return Ok(()) };
        if channel.is_over() {
            return Ok(());
        }
        match frame {
            Frame::Accept(_) | Frame::Refuse(..) => return self.handle_answer(id, frame),
            Frame::Data(bytes) => return self.handle_data(id, &bytes),
            Frame::Credit(bytes) => {
                channel.sending.add_credit(bytes);
                self.queue_data(id);
            }
            Frame::Finish => channel.receiving.end()?,
            Frame::Reset => {
                channel.end(Answer::Reset);
                channel.due = super::channel::Due::default();
            }
            _ => {}
        }
        self.changed(id);
        self.forget_if_done(id);
        Ok(())
    }

    fn handle_answer(&mut self, id: u32, frame: Frame) -> Result<(), Broken> {
        let is_own = self.is_own(id);
        let Some(channel) = self.channels.get_mut(&id) else { return Ok(()) };
        if !is_own || channel.answer != Answer::Waiting || channel.due.open.is_some() {
            return Err(Broken("an answer to what was not asked"));
        }
        match frame {
            Frame::Accept(port) => channel.answer = Answer::Accepted(port),
            Frame::Refuse(why, words) => channel.end(Answer::Refused(why, words_of(why, words))),
            _ => {}
        }
        self.changed(id);
        self.forget_if_done(id);
        Ok(())
    }

    fn handle_data(&mut self, id: u32, bytes: &Bytes) -> Result<(), Broken> {
        let Some(channel) = self.channels.get_mut(&id) else { return Ok(()) };
        let keep = !channel.is_released;
        channel.receiving.put(bytes, keep)?;
        self.changed(id);
        Ok(())
    }
}

/// What people are told where the other end said nothing.
fn words_of(why: Why, words: String) -> String {
    if !words.is_empty() {
        return words;
    }
    match why {
        Why::NotAllowed => "the key may not",
        Why::Failed => "it cannot be reached",
        Why::TooMany => "the other end has as many connections as it may",
        Why::Unsupported => "the other end does not do this",
    }
    .to_owned()
}
