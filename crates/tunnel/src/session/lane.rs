//! One stream of the transport, which is independent of the others.

use std::collections::VecDeque;

use bytes::BytesMut;

use super::{SessionSide, TunnelSession};
use crate::frame::ChannelPurpose;

/// A stream of the transport, as this end numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TunnelLane(pub u16);

impl TunnelLane {
    /// The stream that always exists. The frames of the session itself go on it.
    pub const FIRST: Self = Self(0);
}

/// The limit on brief frames in a row while a long one waits. Brief data goes first, but not forever.
const BRIEF_TURNS: u32 = 16;

/// The queues of channels with something to send.
#[derive(Debug, Default)]
pub(super) struct ChannelQueues {
    pub(super) due: VecDeque<u32>,
    pub(super) brief: VecDeque<u32>,
    pub(super) long: VecDeque<u32>,
    consecutive_brief_turns: u32,
}

impl ChannelQueues {
    pub(super) fn next_data(&mut self) -> Option<u32> {
        let is_brief = self.long.is_empty() || self.consecutive_brief_turns < BRIEF_TURNS;
        if is_brief && let Some(id) = self.brief.pop_front() {
            self.consecutive_brief_turns += 1;
            return Some(id);
        }
        self.consecutive_brief_turns = 0;
        self.long.pop_front().or_else(|| self.brief.pop_front())
    }
}

/// The state of a stream.
#[derive(Debug)]
pub(super) struct LaneState {
    pub(super) unread: BytesMut,
    pub(super) queues: ChannelQueues,
    /// Whether this end has not sent its HELLO yet.
    pub(super) must_send_hello: bool,
    /// Whether the other end has sent its HELLO.
    pub(super) received_hello: bool,
    /// The smallest number for the next channel that the other end opens on this stream.
    pub(super) min_next_id: u32,
    /// The number of channels on this stream that are not removed.
    pub(super) channels: usize,
    /// How many channels had ended, on all streams, when the last one on this stream did.
    pub(super) freed_at: u64,
    /// Channels of the other end that are refused because there are too many: at most
    /// [`SessionLimits::channels`](super::SessionLimits::channels).
    pub(super) excess: VecDeque<u32>,
}

impl LaneState {
    pub(super) fn new(side: SessionSide) -> Self {
        Self {
            unread: BytesMut::new(),
            queues: ChannelQueues::default(),
            must_send_hello: true,
            received_hello: false,
            min_next_id: match side {
                SessionSide::Client => 2,
                SessionSide::Server => 1,
            },
            channels: 0,
            freed_at: 0,
            excess: VecDeque::new(),
        }
    }

    fn is_ready(&self) -> bool {
        let queues = &self.queues;
        let is_empty = queues.due.is_empty() && queues.brief.is_empty() && queues.long.is_empty();
        self.must_send_hello || !self.excess.is_empty() || !is_empty
    }
}

impl TunnelSession {
    /// Adds a stream, once the session [is up](Self::is_up) and before any other call with it. Returns false if there
    /// are too many.
    pub fn add_lane(&mut self, lane: TunnelLane) -> bool {
        let has_room = self.lanes.len() <= self.limits.lanes && !self.lanes.contains_key(&lane);
        if has_room {
            self.lanes.insert(lane, LaneState::new(self.side));
        }
        has_room
    }

    /// Returns whether a further stream would be useful, because all have channels.
    pub fn wants_lane(&self) -> bool {
        let mut further = self.lanes.iter().filter(|(lane, _)| **lane != TunnelLane::FIRST);
        self.is_up()
            && self.lanes.len() <= self.limits.lanes
            && further.all(|(_, one)| one.channels > 0)
    }

    /// Returns the number of streams that the other end uses, too.
    pub fn lanes(&self) -> usize {
        self.lanes.values().filter(|lane| lane.received_hello).count()
    }

    /// Returns the streams with something to send.
    pub fn ready_lanes(&self) -> impl Iterator<Item = TunnelLane> + '_ {
        let is_over = self.end.is_some();
        let ready = move |(lane, one): (&TunnelLane, &LaneState)| {
            let is_due = *lane == TunnelLane::FIRST && self.due.is_any();
            (is_due || (!is_over && one.is_ready())).then_some(*lane)
        };
        self.lanes.iter().filter_map(ready)
    }

    /// Returns the stream of a channel.
    pub fn lane_of(&self, id: u32) -> Option<TunnelLane> {
        self.channels.get(&id).map(|channel| channel.lane)
    }

    /// Returns whether the data waiting on a stream is brief, such as a keystroke.
    pub fn is_brief(&self, lane: TunnelLane) -> bool {
        self.lanes.get(&lane).is_some_and(|one| one.queues.long.is_empty())
    }

    /// Returns whether the other end has sent its HELLO on a stream. A stream that closes before that is not
    /// missed.
    pub fn received_hello(&self, lane: TunnelLane) -> bool {
        self.lanes.get(&lane).is_some_and(|one| one.received_hello)
    }

    /// Returns the stream for a new channel: a further stream without channels, or else the one with the
    /// fewest. Of equal ones it is the one whose last channel ended first, because the transport may still have
    /// to deliver what that channel had sent, in order, before anything new. A request to listen carries
    /// nothing and stays on the first.
    pub(super) fn choose_lane(&self, purpose: &ChannelPurpose) -> TunnelLane {
        if matches!(purpose, ChannelPurpose::Listen { .. } | ChannelPurpose::ListenUnix(_)) {
            return TunnelLane::FIRST;
        }
        let usable = |(lane, one): &(&TunnelLane, &LaneState)| {
            **lane == TunnelLane::FIRST || one.received_hello
        };
        let lanes = self.lanes.iter().filter(usable);
        let least_loaded = lanes.min_by_key(|(lane, one)| {
            // The first one has the session's own frames as well.
            (one.channels + usize::from(**lane == TunnelLane::FIRST), one.freed_at, **lane)
        });
        least_loaded.map_or(TunnelLane::FIRST, |(lane, _)| *lane)
    }
}
