//! A session: all connections between two hosts, over one or several byte streams. Pure.
//!
//! Data of the other end goes in ([`TunnelSession::handle_bytes`]), data for it comes out
//! ([`TunnelSession::poll_transmit`]), separately for each stream of the transport, so that no stream waits for
//! another. All frames of a channel go on the stream on which it was opened. Events name the channels that have
//! changed ([`TunnelSession::poll_event`]). Whatever the other end sends, nothing grows beyond [`SessionLimits`]:
//! each channel has a window, and apart from its data, a channel has each kind of frame to send at most once.

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

pub use lane::TunnelLane;
pub use limits::{ServerLimits, SessionLimits};
pub use reading::{ChannelReading, ChannelTraffic};

use self::channel::SessionChannel;
use self::lane::LaneState;
use crate::frame::{self, ChannelPurpose, RefuseReason, VERSION};

/// About how many bytes [`TunnelSession::poll_transmit`] writes to a buffer.
pub const TRANSMIT: usize = 64 * 1024;

/// The side of an end. The channels that the client opens have odd numbers, those of the server even ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionSide {
    /// The end that connects.
    Client,
    /// The end that accepts the connection.
    Server,
}

/// The answer to the request for a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelAnswer {
    /// There is none yet.
    Waiting,
    /// The channel is open. The port is the one at which the other end listens, if it does.
    Accepted(u16),
    /// The channel was refused.
    Refused(RefuseReason, String),
    /// The channel was reset, or the session is over.
    Reset,
}

/// The result of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadResult {
    /// This many bytes were read.
    Bytes(usize),
    /// There is no data yet.
    Wait,
    /// Everything has been read.
    End,
    /// The channel was reset, or does not exist.
    Gone,
}

/// An event of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// The other end requests a channel, which must be [released](TunnelSession::release) in the end.
    Requested(u32, ChannelPurpose),
    /// A channel has become readable or writable, or has another [answer](TunnelSession::answer).
    Changed(u32),
}

/// Why a session is over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionEnd {
    /// The other end ended it.
    #[error("the other end ended the session: {0}")]
    Goodbye(String),
    /// This end ended it.
    #[error("{0}")]
    Own(String),
    /// The other end violated the protocol.
    #[error(transparent)]
    Violation(#[from] frame::ProtocolViolation),
    /// The other end uses another version.
    #[error("the other end uses version {0} of the tunnel's protocol, this one version {VERSION}")]
    Version(u16),
    /// The connection broke.
    #[error("the connection to the other end broke: {0}")]
    Lost(String),
    /// Nothing was received from the other end for too long.
    #[error("nothing was received from the other end for {0:?}")]
    Silent(Duration),
}

/// The frames of the session itself that are to be sent.
#[derive(Debug, Default)]
struct DueSessionFrames {
    ping: Option<u64>,
    pong: Option<u64>,
    goodbye: Option<String>,
}

impl DueSessionFrames {
    fn is_any(&self) -> bool {
        self.ping.is_some() || self.pong.is_some() || self.goodbye.is_some()
    }
}

/// The signs of life of the other end.
#[derive(Debug)]
struct PeerLiveness {
    /// When data was last received.
    received_at: Duration,
    /// Bytes received so far.
    received: u64,
    /// The token of the last PING. Tokens are consecutive.
    last_ping: u64,
    /// The token of the last PONG.
    last_pong: u64,
    /// When a PING was sent because of silence, if it was.
    asked_at: Option<Duration>,
}

/// All connections between two hosts.
#[derive(Debug)]
pub struct TunnelSession {
    side: SessionSide,
    limits: SessionLimits,
    /// The window for each new channel, from the other end's HELLO.
    window: Option<u32>,
    lanes: BTreeMap<TunnelLane, LaneState>,
    /// The number of channels that have ended.
    ended: u64,
    channels: BTreeMap<u32, SessionChannel>,
    /// The number of the next channel that this end opens.
    next_id: u32,
    /// The bytes by which windows may still grow.
    budget: usize,
    due: DueSessionFrames,
    events: VecDeque<SessionEvent>,
    liveness: PeerLiveness,
    /// The traffic of channels that are removed.
    past: ChannelTraffic,
    end: Option<SessionEnd>,
}

impl TunnelSession {
    /// Creates a session over a new connection.
    pub fn new(side: SessionSide, limits: SessionLimits, now: Duration) -> Self {
        let next_id = match side {
            SessionSide::Client => 1,
            SessionSide::Server => 2,
        };
        Self {
            side,
            window: None,
            lanes: BTreeMap::from([(TunnelLane::FIRST, LaneState::new(side))]),
            ended: 0,
            channels: BTreeMap::new(),
            next_id,
            budget: limits.growth,
            limits,
            due: DueSessionFrames::default(),
            events: VecDeque::new(),
            liveness: PeerLiveness {
                received_at: now,
                received: 0,
                last_ping: 0,
                last_pong: 0,
                asked_at: None,
            },
            past: ChannelTraffic::default(),
            end: None,
        }
    }

    /// Returns the limits.
    pub fn limits(&self) -> &SessionLimits {
        &self.limits
    }

    /// Returns why it is over, if it is.
    pub fn end(&self) -> Option<&SessionEnd> {
        self.end.as_ref()
    }

    /// Returns whether the other end has sent its HELLO.
    pub fn is_up(&self) -> bool {
        self.window.is_some() && self.end.is_none()
    }

    /// Returns the number of channels that are not removed yet.
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    /// Returns the number of buffered bytes, for tests and fuzzers.
    #[cfg(any(test, feature = "internals"))]
    pub fn buffered(&self) -> usize {
        let of_channels = self.channels.values().map(|channel| channel.receiving.unread());
        let of_lanes = self.lanes.values().map(|lane| lane.unread.len());
        of_lanes.sum::<usize>() + of_channels.sum::<usize>()
    }

    /// Requests a channel. Returns its number, or `None` if the session is over, or has too many channels.
    pub fn open(&mut self, purpose: ChannelPurpose) -> Option<u32> {
        let own = self.channels.keys().filter(|id| self.is_own(**id)).count();
        if self.end.is_some() || own >= self.limits.channels {
            return None;
        }
        let id = self.next_id;
        self.next_id = id.checked_add(2)?;
        let lane = self.choose_lane(&purpose);
        self.insert(id, lane, purpose.clone());
        if let Some(channel) = self.channels.get_mut(&id) {
            channel.due.open = Some(purpose);
        }
        self.queue_due(id);
        Some(id)
    }

    fn insert(&mut self, id: u32, lane: TunnelLane, purpose: ChannelPurpose) {
        let credit = self.window.unwrap_or(0);
        let channel = SessionChannel::new(lane, purpose, credit, self.limits.first_window);
        self.channels.insert(id, channel);
        if let Some(lane) = self.lanes.get_mut(&lane) {
            lane.channels += 1;
        }
    }

    /// Accepts a channel that the other end requested.
    pub fn accept(&mut self, id: u32, port: u16) {
        self.set_answer(id, Ok(port));
    }

    /// Refuses a channel that the other end requested.
    pub fn refuse(&mut self, id: u32, why: RefuseReason, text: String) {
        self.set_answer(id, Err((why, text)));
    }

    fn set_answer(&mut self, id: u32, answer: Result<u16, (RefuseReason, String)>) {
        let is_own = self.is_own(id);
        let Some(channel) = self.channels.get_mut(&id) else { return };
        if is_own || channel.answer != ChannelAnswer::Waiting {
            return;
        }
        match &answer {
            Ok(port) => channel.answer = ChannelAnswer::Accepted(*port),
            Err((why, text)) => channel.end(ChannelAnswer::Refused(*why, text.clone())),
        }
        channel.due.answer = Some(answer);
        self.queue_due(id);
    }

    /// Returns the answer to the request for a channel.
    pub fn answer(&self, id: u32) -> ChannelAnswer {
        match &self.end {
            Some(_) => ChannelAnswer::Reset,
            None => self
                .channels
                .get(&id)
                .map_or(ChannelAnswer::Reset, |channel| channel.answer.clone()),
        }
    }

    /// Queues as many bytes as there is room for. Returns their number, or `None` if the channel is over or was
    /// [finished](Self::finish).
    pub fn write(&mut self, id: u32, bytes: &[u8]) -> Option<usize> {
        if self.end.is_some() {
            return None;
        }
        let channel = self.channels.get_mut(&id)?;
        if channel.is_over() || channel.sending.is_finishing() {
            return None;
        }
        let accepted = channel.sending.queue(bytes, self.limits.send_buffer);
        self.queue_data(id);
        Some(accepted)
    }

    /// Returns the number of bytes of a channel that wait to be sent, which is 0 if there is no such channel.
    pub fn unsent(&self, id: u32) -> usize {
        self.channels.get(&id).map_or(0, |channel| channel.sending.waiting())
    }

    /// Ends this end's direction of a channel, after the data that was written.
    pub fn finish(&mut self, id: u32) {
        if let Some(channel) = self.channels.get_mut(&id)
            && !channel.is_over()
        {
            channel.sending.finish();
            self.queue_data(id);
        }
    }

    /// Reads received data.
    pub fn read(&mut self, id: u32, into: &mut [u8]) -> ReadResult {
        if self.end.is_some() {
            return ReadResult::Gone;
        }
        let Some(channel) = self.channels.get_mut(&id) else { return ReadResult::Gone };
        if channel.is_over() {
            return ReadResult::Gone;
        }
        let length = channel.receiving.read(into);
        if channel.receiving.should_send_credit() {
            channel.due.credit = true;
            self.queue_due(id);
        }
        let Some(channel) = self.channels.get(&id) else { return ReadResult::Gone };
        match length {
            0 if into.is_empty() => ReadResult::Bytes(0),
            0 if channel.receiving.was_read() => {
                self.confirm(id);
                ReadResult::End
            }
            0 => ReadResult::Wait,
            length => ReadResult::Bytes(length),
        }
    }

    /// Confirms to the other end, once, that everything of a channel was read.
    fn confirm(&mut self, id: u32) {
        if let Some(channel) = self.channels.get_mut(&id)
            && channel.receiving.confirm()
        {
            channel.due.delivered = true;
            self.queue_due(id);
        }
    }

    /// Releases a channel. It is reset, unless it has ended in both directions and was read to its end.
    pub fn release(&mut self, id: u32) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        channel.is_released = true;
        let is_complete = channel.sending.is_finishing() && channel.receiving.was_read();
        if is_complete && !channel.is_over() {
            self.confirm(id);
        } else if !channel.is_over() {
            channel.end(ChannelAnswer::Reset);
            channel.due.reset = true;
            self.queue_due(id);
        }
        self.forget_if_done(id);
    }

    /// Returns whether the other end has read all data of the channels that were released. If the session
    /// [ends](Self::goodbye) before that, the rest may be lost.
    pub fn is_drained(&self) -> bool {
        let is_done = |one: &SessionChannel| !one.is_released || one.is_over();
        self.channels.values().all(|one| is_done(one) || one.sending.is_delivered())
    }

    /// Ends the session with a GOODBYE.
    pub fn goodbye(&mut self, text: &str) {
        if self.end.is_none() {
            self.due.goodbye = Some(text.to_owned());
            self.close(SessionEnd::Own(text.to_owned()));
        }
    }

    /// Ends the session because its connection broke.
    pub fn lost(&mut self, text: &str) {
        self.close(SessionEnd::Lost(text.to_owned()));
    }

    /// Handles the passing of time. Returns whether a PING is due because of silence.
    pub fn handle_timeout(&mut self, now: Duration) -> bool {
        if self.next_timeout().is_none_or(|due| now < due) {
            return false;
        }
        if self.liveness.asked_at.is_some() {
            self.close(SessionEnd::Silent(self.limits.silence));
            return false;
        }
        self.liveness.asked_at = Some(now);
        self.ping();
        true
    }

    /// Sends a PING, and returns its token, which its [PONG](Self::last_pong) will have.
    pub fn ping(&mut self) -> u64 {
        self.liveness.last_ping += 1;
        self.due.ping = Some(self.liveness.last_ping);
        self.liveness.last_ping
    }

    /// Returns the token of the last PONG, which is 0 before the first.
    pub fn last_pong(&self) -> u64 {
        self.liveness.last_pong
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) must be called, unless data arrives before.
    pub fn next_timeout(&self) -> Option<Duration> {
        let PeerLiveness { received_at, asked_at, .. } = self.liveness;
        let SessionLimits { keepalive, silence, .. } = self.limits;
        // An end that was suspended may have been silent for long without having asked.
        let due = match asked_at {
            Some(asked_at) => {
                (received_at + silence).max(asked_at + silence.saturating_sub(keepalive))
            }
            None => received_at + keepalive,
        };
        self.end.is_none().then_some(due)
    }

    /// Returns the number of bytes received from the other end so far.
    pub fn received(&self) -> u64 {
        self.liveness.received
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<SessionEvent> {
        let event = self.events.pop_front()?;
        if let SessionEvent::Changed(id) = event
            && let Some(channel) = self.channels.get_mut(&id)
        {
            channel.queued.event = false;
        }
        Some(event)
    }

    fn is_own(&self, id: u32) -> bool {
        (id % 2 == 1) == (self.side == SessionSide::Client)
    }

    fn queue_due(&mut self, id: u32) {
        if let Some(channel) = self.channels.get_mut(&id)
            && !std::mem::replace(&mut channel.queued.due, true)
            && let Some(lane) = self.lanes.get_mut(&channel.lane)
        {
            lane.queues.due.push_back(id);
        }
    }

    /// Queues a channel for sending, if it has data that it may send. Its OPEN or the answer goes first.
    fn queue_data(&mut self, id: u32) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        let is_opened = channel.due.open.is_none() && channel.due.answer.is_none();
        let waits = self.is_unanswered(id);
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

    /// Returns whether a channel was requested by the other end and is not answered: nothing is sent on it before.
    fn is_unanswered(&self, id: u32) -> bool {
        let is_waiting = |channel: &SessionChannel| channel.answer == ChannelAnswer::Waiting;
        !self.is_own(id) && self.channels.get(&id).is_some_and(is_waiting)
    }

    /// Queues the event that a channel has changed, unless it is queued or nobody waits for it.
    fn queue_changed(&mut self, id: u32) {
        if let Some(channel) = self.channels.get_mut(&id)
            && !channel.is_released
            && !std::mem::replace(&mut channel.queued.event, true)
        {
            self.events.push_back(SessionEvent::Changed(id));
        }
    }

    fn forget_if_done(&mut self, id: u32) {
        if self.channels.get(&id).is_some_and(SessionChannel::is_removable)
            && let Some(channel) = self.channels.remove(&id)
        {
            self.ended += 1;
            if let Some(lane) = self.lanes.get_mut(&channel.lane) {
                lane.channels -= 1;
                lane.freed_at = self.ended;
            }
            self.budget += channel.receiving.growth(&self.limits);
            self.past.add(&channel);
            debug_assert!(self.budget <= self.limits.growth, "growth is returned once");
        }
    }

    fn close(&mut self, end: SessionEnd) {
        if self.end.is_some() {
            return;
        }
        self.end = Some(end);
        self.lanes.values_mut().for_each(|lane| lane.unread = BytesMut::new());
        let ids: Vec<u32> = self.channels.keys().copied().collect();
        for id in ids {
            if let Some(channel) = self.channels.get_mut(&id) {
                channel.end(ChannelAnswer::Reset);
                channel.due = channel::DueChannelFrames::default();
            }
            self.queue_changed(id);
            self.forget_if_done(id);
        }
    }
}
