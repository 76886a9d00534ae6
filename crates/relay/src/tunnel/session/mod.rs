//! A session: all connections between two hosts, over one stream of bytes or several. Pure.
//!
//! Bytes of the other end go in ([`Session::handle_bytes`]), bytes for it come out
//! ([`Session::poll_transmit`]), for each stream of the transport by itself, so that none waits for
//! another. All that is said of a channel is said on the one stream that it was opened on. Events say which channels have changed ([`Session::poll_event`]), and
//! between them stand the calls of this side. Neither a socket nor a clock is here. Whatever the other end
//! sends, nothing here grows beyond [`SessionLimits`]: each channel has a window, and beside its bytes a
//! channel has each thing to say at most once.

mod channel;
mod incoming;
mod lane;
mod limits;
mod outgoing;
mod reading;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::BytesMut;

pub use lane::Lane;
pub use limits::SessionLimits;
pub use reading::{ChannelReading, Traffic};

use self::channel::Channel;
use self::lane::LaneState;
use super::frame::{self, Purpose, VERSION, Why};

/// Bytes that [`Session::poll_transmit`] fills a buffer with, about.
pub const TRANSMIT: usize = 64 * 1024;

/// Which end this is: channels that the client opens have odd numbers, those of the server even ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It has connected.
    Client,
    /// It was connected to.
    Server,
}

/// Where a channel stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was asked for.
    Waiting,
    /// It is there; the port is the one that the other end listens at, where it was asked to.
    Accepted(u16),
    /// It was refused.
    Refused(Why, String),
    /// It was cut, or the session was.
    Reset,
}

/// What came of an attempt to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// So many bytes.
    Bytes(usize),
    /// Nothing yet.
    Wait,
    /// Everything has been read.
    End,
    /// The channel was cut, or there is none.
    Gone,
}

/// What has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The other end asks for a channel. Who takes this has to [release](Session::release) it.
    Asked(u32, Purpose),
    /// A channel can be read, written, or has another [answer](Session::answer).
    Changed(u32),
}

/// Why a session is over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum End {
    /// The other end has said so.
    #[error("the other end ended the session: {0}")]
    Told(String),
    /// This end did.
    #[error("{0}")]
    Own(String),
    /// The other end broke the protocol.
    #[error(transparent)]
    Broken(#[from] frame::Broken),
    /// The other end speaks another version.
    #[error(
        "the other end speaks version {0} of the tunnel's protocol, this one version {VERSION}"
    )]
    Version(u16),
    /// What carried it broke.
    #[error("the connection to the other end broke: {0}")]
    Lost(String),
    /// Nothing was heard of the other end.
    #[error("nothing was received from the other end for {0:?}")]
    Silent(Duration),
}

/// What is to be said of the session itself.
#[derive(Debug, Default)]
struct Due {
    ping: Option<u64>,
    pong: Option<u64>,
    goodbye: Option<String>,
}

impl Due {
    fn is_something(&self) -> bool {
        self.ping.is_some() || self.pong.is_some() || self.goodbye.is_some()
    }
}

/// When the other end was heard, and asked.
#[derive(Debug)]
struct Pulse {
    heard_at: Duration,
    /// Questions so far, each with the next number as its token, and the last that was answered.
    asked: u64,
    answered: u64,
    is_asked: bool,
}

/// All connections between two hosts.
#[derive(Debug)]
pub struct Session {
    side: Side,
    limits: SessionLimits,
    /// What the other end allows a new channel, once it has said so.
    window: Option<u32>,
    lanes: BTreeMap<Lane, LaneState>,
    /// Channels that have ended.
    ended: u64,
    channels: BTreeMap<u32, Channel>,
    /// The number of the next channel of our own.
    next: u32,
    /// Bytes that windows may still grow by.
    budget: usize,
    due: Due,
    events: VecDeque<Event>,
    pulse: Pulse,
    /// What the channels have carried that are forgotten.
    past: Traffic,
    end: Option<End>,
}

impl Session {
    /// A session that has just been connected.
    pub fn new(side: Side, limits: SessionLimits, now: Duration) -> Self {
        let next = match side {
            Side::Client => 1,
            Side::Server => 2,
        };
        Self {
            side,
            window: None,
            lanes: BTreeMap::from([(Lane::FIRST, LaneState::new(side))]),
            ended: 0,
            channels: BTreeMap::new(),
            next,
            budget: limits.growth,
            limits,
            due: Due::default(),
            events: VecDeque::new(),
            pulse: Pulse { heard_at: now, asked: 0, answered: 0, is_asked: false },
            past: Traffic::default(),
            end: None,
        }
    }

    /// What it may take.
    pub fn limits(&self) -> &SessionLimits {
        &self.limits
    }

    /// Why it is over, if it is.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// Whether the other end has introduced itself.
    pub fn is_up(&self) -> bool {
        self.window.is_some() && self.end.is_none()
    }

    /// Channels that are not forgotten yet.
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    /// Bytes that are kept, for tests and fuzzers.
    pub fn held(&self) -> usize {
        let of_channels = self.channels.values().map(|channel| channel.receiving.unread());
        let of_lanes = self.lanes.values().map(|lane| lane.unread.len());
        of_lanes.sum::<usize>() + of_channels.sum::<usize>()
    }

    /// Asks for a channel. `None` if the session is over, or has as many as it may.
    pub fn open(&mut self, purpose: Purpose) -> Option<u32> {
        let own = self.channels.keys().filter(|id| self.is_own(**id)).count();
        if self.end.is_some() || own >= self.limits.channels {
            return None;
        }
        let id = self.next;
        self.next = id.checked_add(2)?;
        let lane = self.choose_lane(&purpose);
        self.insert(id, lane, purpose.clone());
        if let Some(channel) = self.channels.get_mut(&id) {
            channel.due.open = Some(purpose);
        }
        self.queue_due(id);
        Some(id)
    }

    fn insert(&mut self, id: u32, lane: Lane, purpose: Purpose) {
        let credit = self.window.unwrap_or(0);
        let channel = Channel::new(lane, purpose, credit, self.limits.first_window);
        self.channels.insert(id, channel);
        if let Some(lane) = self.lanes.get_mut(&lane) {
            lane.channels += 1;
        }
    }

    /// Gives the other end the channel that it asked for.
    pub fn accept(&mut self, id: u32, port: u16) {
        self.settle(id, Ok(port));
    }

    /// Does not give it.
    pub fn refuse(&mut self, id: u32, why: Why, words: String) {
        self.settle(id, Err((why, words)));
    }

    fn settle(&mut self, id: u32, answer: Result<u16, (Why, String)>) {
        let is_own = self.is_own(id);
        let Some(channel) = self.channels.get_mut(&id) else { return };
        if is_own || channel.answer != Answer::Waiting {
            return;
        }
        match &answer {
            Ok(port) => channel.answer = Answer::Accepted(*port),
            Err((why, words)) => channel.end(Answer::Refused(*why, words.clone())),
        }
        channel.due.answer = Some(answer);
        self.queue_due(id);
    }

    /// Where a channel stands.
    pub fn answer(&self, id: u32) -> Answer {
        match &self.end {
            Some(_) => Answer::Reset,
            None => self.channels.get(&id).map_or(Answer::Reset, |channel| channel.answer.clone()),
        }
    }

    /// Takes bytes to be sent, as many as there is room for. `None` if the channel is over, or its end
    /// was said.
    pub fn write(&mut self, id: u32, bytes: &[u8]) -> Option<usize> {
        if self.end.is_some() {
            return None;
        }
        let channel = self.channels.get_mut(&id)?;
        if channel.is_over() || channel.sending.is_finishing() {
            return None;
        }
        let taken = channel.sending.put(bytes, self.limits.send_buffer);
        self.queue_data(id);
        Some(taken)
    }

    /// Bytes of a channel that wait to be sent; 0 if there is none.
    pub fn unsent(&self, id: u32) -> usize {
        self.channels.get(&id).map_or(0, |channel| channel.sending.waiting())
    }

    /// Nothing more is written.
    pub fn finish(&mut self, id: u32) {
        if let Some(channel) = self.channels.get_mut(&id)
            && !channel.is_over()
        {
            channel.sending.finish();
            self.queue_data(id);
        }
    }

    /// Reads what has come.
    pub fn read(&mut self, id: u32, into: &mut [u8]) -> Read {
        if self.end.is_some() {
            return Read::Gone;
        }
        let Some(channel) = self.channels.get_mut(&id) else { return Read::Gone };
        if channel.is_over() {
            return Read::Gone;
        }
        let length = channel.receiving.take(into);
        if channel.receiving.owes_much() {
            channel.due.credit = true;
            self.queue_due(id);
        }
        let Some(channel) = self.channels.get(&id) else { return Read::Gone };
        match length {
            0 if into.is_empty() => Read::Bytes(0),
            0 if channel.receiving.was_read() => {
                self.confirm(id);
                Read::End
            }
            0 => Read::Wait,
            length => Read::Bytes(length),
        }
    }

    /// Tells the other end, once, that everything of a channel was read.
    fn confirm(&mut self, id: u32) {
        if let Some(channel) = self.channels.get_mut(&id)
            && channel.receiving.confirm()
        {
            channel.due.delivered = true;
            self.queue_due(id);
        }
    }

    /// Lets go of a channel. One that has not ended in both directions, or was not read to its end, is cut.
    pub fn release(&mut self, id: u32) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        channel.is_released = true;
        let ends_well = channel.sending.is_finishing() && channel.receiving.was_read();
        if ends_well && !channel.is_over() {
            self.confirm(id);
        } else if !channel.is_over() {
            channel.end(Answer::Reset);
            channel.due.reset = true;
            self.queue_due(id);
        }
        self.forget_if_done(id);
    }

    /// Whether the other end has read everything of the channels that were let go of. A session that says
    /// [goodbye](Self::goodbye) before that may lose what was said on them.
    pub fn is_drained(&self) -> bool {
        let is_done = |one: &Channel| !one.is_released || one.is_over();
        self.channels.values().all(|one| is_done(one) || one.sending.is_delivered())
    }

    /// Ends the session, and says why.
    pub fn goodbye(&mut self, words: &str) {
        if self.end.is_none() {
            self.due.goodbye = Some(words.to_owned());
            self.over(End::Own(words.to_owned()));
        }
    }

    /// What carries the session has broken.
    pub fn lost(&mut self, words: &str) {
        self.over(End::Lost(words.to_owned()));
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Duration) {
        let quiet = now.saturating_sub(self.pulse.heard_at);
        if self.end.is_some() {
        } else if quiet >= self.limits.silence {
            self.over(End::Silent(self.limits.silence));
        } else if quiet >= self.limits.keepalive && !self.pulse.is_asked {
            self.pulse.is_asked = true;
            self.ask();
        }
    }

    /// Asks the other end whether it is there, and gives the token that its
    /// [answer](Self::answered) will have.
    pub fn ask(&mut self) -> u64 {
        self.pulse.asked += 1;
        self.due.ping = Some(self.pulse.asked);
        self.pulse.asked
    }

    /// The token of the last question that the other end has answered; 0 before the first.
    pub fn answered(&self) -> u64 {
        self.pulse.answered
    }

    /// When [`handle_timeout`](Self::handle_timeout) has to be called, unless bytes come before.
    pub fn next_timeout(&self) -> Option<Duration> {
        let after = match self.pulse.is_asked {
            true => self.limits.silence,
            false => self.limits.keepalive,
        };
        self.end.is_none().then(|| self.pulse.heard_at + after)
    }

    /// What has happened since it was asked last.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        if let Event::Changed(id) = event
            && let Some(channel) = self.channels.get_mut(&id)
        {
            channel.queued.event = false;
        }
        Some(event)
    }

    fn is_own(&self, id: u32) -> bool {
        (id % 2 == 1) == (self.side == Side::Client)
    }

    fn queue_due(&mut self, id: u32) {
        if let Some(channel) = self.channels.get_mut(&id)
            && !std::mem::replace(&mut channel.queued.due, true)
            && let Some(lane) = self.lanes.get_mut(&channel.lane)
        {
            lane.queues.due.push_back(id);
        }
    }

    /// Has a channel send when its turn comes, if it has something that it may send. What it was opened
    /// or answered by goes first.
    fn queue_data(&mut self, id: u32) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        let is_opened = channel.due.open.is_none() && channel.due.answer.is_none();
        let waits = self.is_own_waiting(id);
        let Some(channel) = self.channels.get_mut(&id) else { return };
        if channel.is_over() || waits || !is_opened || !channel.sending.is_ready() {
            return;
        }
        if std::mem::replace(&mut channel.queued.data, true) {
            return;
        }
        let Some(lane) = self.lanes.get_mut(&channel.lane) else { return };
        match channel.sending.is_brief() {
            true => lane.queues.brief.push_back(id),
            false => lane.queues.long.push_back(id),
        }
    }

    /// Whether a channel is the other end's and has not been answered: nothing is sent on it before.
    fn is_own_waiting(&self, id: u32) -> bool {
        let is_waiting = |channel: &Channel| channel.answer == Answer::Waiting;
        !self.is_own(id) && self.channels.get(&id).is_some_and(is_waiting)
    }

    fn changed(&mut self, id: u32) {
        if let Some(channel) = self.channels.get_mut(&id)
            && !channel.is_released
            && !std::mem::replace(&mut channel.queued.event, true)
        {
            self.events.push_back(Event::Changed(id));
        }
    }

    fn forget_if_done(&mut self, id: u32) {
        if self.channels.get(&id).is_some_and(Channel::can_go)
            && let Some(channel) = self.channels.remove(&id)
        {
            self.ended += 1;
            if let Some(lane) = self.lanes.get_mut(&channel.lane) {
                lane.channels -= 1;
                lane.left_at = self.ended;
            }
            self.budget += channel.receiving.growth(&self.limits);
            self.past.add(&channel);
            debug_assert!(self.budget <= self.limits.growth, "what has grown is given back once");
        }
    }

    fn over(&mut self, end: End) {
        if self.end.is_some() {
            return;
        }
        self.end = Some(end);
        self.lanes.values_mut().for_each(|lane| lane.unread = BytesMut::new());
        let ids: Vec<u32> = self.channels.keys().copied().collect();
        for id in ids {
            if let Some(channel) = self.channels.get_mut(&id) {
                channel.end(Answer::Reset);
                channel.due = channel::Due::default();
            }
            self.changed(id);
            self.forget_if_done(id);
        }
    }
}
