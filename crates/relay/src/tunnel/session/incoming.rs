//! What the other end says, and what becomes of it.

use std::time::Duration;

use bytes::Bytes;

use super::{Answer, End, Event, Lane, Session};
use crate::tunnel::frame::{self, Broken, Frame, Purpose, VERSION, Why};

impl Session {
    /// Takes in bytes of the other end that came on this stream, however they are cut.
    pub fn handle_bytes(&mut self, now: Duration, lane: Lane, bytes: &[u8]) {
        if self.end.is_some() || bytes.is_empty() {
            return;
        }
        let Some(state) = self.lanes.get_mut(&lane) else { return };
        self.pulse.heard_at = now;
        self.pulse.is_asked = false;
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
                self.over(broken.into());
            }
        }
    }

    fn handle_frame(&mut self, lane: Lane, id: u32, frame: Frame) -> Result<(), Broken> {
        let is_of_session = matches!(
            frame,
            Frame::Hello { .. } | Frame::Ping(_) | Frame::Pong(_) | Frame::Goodbye(_)
        );
        if is_of_session != (id == 0) {
            return Err(Broken("a frame of the session on a channel, or the other way round"));
        }
        let is_hello = matches!(frame, Frame::Hello { .. });
        let is_goodbye = matches!(frame, Frame::Goodbye(_));
        if is_of_session && !is_hello && lane != Lane::FIRST {
            return Err(Broken("a frame of the session on a further stream"));
        }
        let was_greeted = self.lanes.get(&lane).is_some_and(|lane| lane.was_greeted);
        if !was_greeted && !is_hello && !is_goodbye {
            return Err(Broken("it did not introduce itself"));
        }
        match frame {
            Frame::Hello { version, window } => return self.handle_hello(lane, version, window),
            Frame::Ping(token) => self.due.pong = Some(token),
            Frame::Pong(token) if token <= self.pulse.asked => {
                self.pulse.answered = self.pulse.answered.max(token);
            }
            Frame::Pong(_) => return Err(Broken("an answer without a request")),
            Frame::Goodbye(words) => self.over(End::Told(words)),
            Frame::Open(purpose) => return self.handle_open(lane, id, purpose),
            frame => return self.handle_channel_frame(lane, id, frame),
        }
        Ok(())
    }

    fn handle_hello(&mut self, lane: Lane, version: u16, window: u32) -> Result<(), Broken> {
        let Some(state) = self.lanes.get_mut(&lane) else { return Ok(()) };
        if std::mem::replace(&mut state.was_greeted, true) {
            return Err(Broken("it introduced itself twice"));
        }
        if version != VERSION {
            self.over(End::Version(version));
            return Ok(());
        }
        if lane != Lane::FIRST {
            return match self.window {
                Some(known) if known == window => Ok(()),
                _ => Err(Broken("it introduces itself differently on a further stream")),
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

    fn handle_open(&mut self, lane: Lane, id: u32, purpose: Purpose) -> Result<(), Broken> {
        let is_own = self.is_own(id);
        let is_there = self.channels.contains_key(&id);
        let turned_away: usize = self.lanes.values().map(|lane| lane.turned_away.len()).sum();
        let Some(state) = self.lanes.get_mut(&lane) else { return Ok(()) };
        if is_own || is_there || id < state.next {
            return Err(Broken("a channel with a number that it cannot have"));
        }
        state.next = id.checked_add(2).ok_or(Broken("there are no more numbers"))?;
        let theirs = self.channels.keys().filter(|id| !self.is_own(**id)).count();
        if theirs >= self.limits.channels {
            if turned_away >= self.limits.channels {
                return Err(Broken(
                    "it requests more and more channels without reading the answers",
                ));
            }
            if let Some(state) = self.lanes.get_mut(&lane) {
                state.turned_away.push_back(id);
            }
            return Ok(());
        }
        self.insert(id, lane, purpose.clone());
        self.events.push_back(Event::Asked(id, purpose));
        Ok(())
    }

    fn handle_channel_frame(&mut self, lane: Lane, id: u32, frame: Frame) -> Result<(), Broken> {
        let theirs = self.lanes.get(&lane).map_or(0, |lane| lane.next);
        let next = if self.is_own(id) { self.next } else { theirs };
        if id >= next {
            return Err(Broken("a frame of a channel that was never opened"));
        }
        if frame == Frame::Reset && self.forget_turned_away(lane, id) {
            return Ok(());
        }
        // What was under way when this end let go of its channel is of no use any more.
        let Some(channel) = self.channels.get_mut(&id) else { return Ok(()) };
        if channel.lane != lane {
            return Err(Broken("a frame of a channel on another stream than its own"));
        }
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
            Frame::Delivered => channel.sending.deliver()?,
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

    /// Has nothing more to say of a channel that was to be refused, and says whether it was to be.
    fn forget_turned_away(&mut self, lane: Lane, id: u32) -> bool {
        let Some(state) = self.lanes.get_mut(&lane) else { return false };
        // In the order of their numbers, as they were asked for.
        let found = state.turned_away.binary_search(&id);
        found.is_ok_and(|at| state.turned_away.remove(at).is_some())
    }

    fn handle_answer(&mut self, id: u32, frame: Frame) -> Result<(), Broken> {
        let is_own = self.is_own(id);
        let Some(channel) = self.channels.get_mut(&id) else { return Ok(()) };
        if !is_own || channel.answer != Answer::Waiting || channel.due.open.is_some() {
            return Err(Broken("an answer without a request"));
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
        Why::TooMany => "the other end has reached its maximum number of connections",
        Why::Unsupported => "the other end does not support this",
    }
    .to_owned()
}
