//! One stream of the transport: bytes in order in each direction, whatever happens to other streams.

use std::collections::VecDeque;

use bytes::BytesMut;

use super::{Session, Side};
use crate::tunnel::frame::Purpose;

/// A stream of the transport, as this end numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane(pub u16);

impl Lane {
    /// The one that is always there. What is about the session itself goes over it.
    pub const FIRST: Self = Self(0);
}

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
    pub(super) fn next_data(&mut self) -> Option<u32> {
        let is_brief = self.long.is_empty() || self.brief_in_a_row < BRIEF_TURNS;
        if is_brief && let Some(id) = self.brief.pop_front() {
            self.brief_in_a_row += 1;
            return Some(id);
        }
        self.brief_in_a_row = 0;
        self.long.pop_front().or_else(|| self.brief.pop_front())
    }
}

/// A stream of the transport, and what waits on both sides of it.
#[derive(Debug)]
pub(super) struct LaneState {
    pub(super) unread: BytesMut,
    pub(super) queues: Queues,
    /// This end has not introduced itself here yet.
    pub(super) owes_hello: bool,
    /// The other end has.
    pub(super) was_greeted: bool,
    /// The least number that a channel may have which the other end opens here.
    pub(super) next: u32,
    /// Channels here that are not forgotten.
    pub(super) channels: usize,
    /// How many channels had ended, on all streams, when the last one here did.
    pub(super) left_at: u64,
    /// Channels of the other end for which there was no room.
    pub(super) turned_away: VecDeque<u32>,
}

impl LaneState {
    pub(super) fn new(side: Side) -> Self {
        Self {
            unread: BytesMut::new(),
            queues: Queues::default(),
            owes_hello: true,
            was_greeted: false,
            next: match side {
                Side::Client => 2,
                Side::Server => 1,
            },
            channels: 0,
            left_at: 0,
            turned_away: VecDeque::new(),
        }
    }

    fn has_something(&self) -> bool {
        let queues = &self.queues;
        let is_empty = queues.due.is_empty() && queues.brief.is_empty() && queues.long.is_empty();
        self.owes_hello || !self.turned_away.is_empty() || !is_empty
    }
}

impl Session {
    /// A further stream is there. Nothing of it may be handed in, nor asked for it, before. False if there
    /// are as many as there may be.
    pub fn add_lane(&mut self, lane: Lane) -> bool {
        let has_room = self.lanes.len() <= self.limits.lanes && !self.lanes.contains_key(&lane);
        if has_room {
            self.lanes.insert(lane, LaneState::new(self.side));
        }
        has_room
    }

    /// Whether a further stream would be of use: there is none on which nothing is.
    pub fn wants_lane(&self) -> bool {
        let mut further = self.lanes.iter().filter(|(lane, _)| **lane != Lane::FIRST);
        self.is_up()
            && self.lanes.len() <= self.limits.lanes
            && further.all(|(_, one)| one.channels > 0)
    }

    /// Streams that the other end uses, too.
    pub fn lanes(&self) -> usize {
        self.lanes.values().filter(|lane| lane.was_greeted).count()
    }

    /// The streams that there is something to send on.
    pub fn ready_lanes(&self) -> impl Iterator<Item = Lane> + '_ {
        let is_over = self.end.is_some();
        let ready = move |(lane, one): (&Lane, &LaneState)| {
            let has_words = *lane == Lane::FIRST && self.due.is_something();
            (has_words || (!is_over && one.has_something())).then_some(*lane)
        };
        self.lanes.iter().filter_map(ready)
    }

    /// The stream that a channel is on.
    pub fn lane_of(&self, id: u32) -> Option<Lane> {
        self.channels.get(&id).map(|channel| channel.lane)
    }

    /// Whether what waits on a stream is brief, such as a keystroke.
    pub fn is_brief(&self, lane: Lane) -> bool {
        self.lanes.get(&lane).is_some_and(|one| one.queues.long.is_empty())
    }

    /// Whether the other end uses a stream, too. One that it has closed before it did so is not missed.
    pub fn was_greeted(&self, lane: Lane) -> bool {
        self.lanes.get(&lane).is_some_and(|one| one.was_greeted)
    }

    /// Returns the stream for a new channel: a further stream without channels, or else the one with the fewest. Of
    /// equal ones it is the one whose last channel ended first, because the transport may still have to deliver what
    /// that channel had sent, in order, before anything new. A request to listen carries nothing and stays on the first.
    pub(super) fn choose_lane(&self, purpose: &Purpose) -> Lane {
        if matches!(purpose, Purpose::Listen { .. }) {
            return Lane::FIRST;
        }
        let usable = |(lane, one): &(&Lane, &LaneState)| **lane == Lane::FIRST || one.was_greeted;
        let lanes = self.lanes.iter().filter(usable);
        let emptiest = lanes.min_by_key(|(lane, one)| {
            // The first one has the session's own words as well.
            (one.channels + usize::from(**lane == Lane::FIRST), one.left_at, **lane)
        });
        emptiest.map_or(Lane::FIRST, |(lane, _)| *lane)
    }
}
