//! What a session shows of itself.

use super::channel::Channel;
use super::{Answer, Lane, Session};
use crate::tunnel::frame::Purpose;

/// Bytes of connections that were carried, in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// To the other end.
    pub sent: u64,
    /// From it.
    pub received: u64,
}

impl Traffic {
    pub(super) fn add(&mut self, channel: &Channel) {
        self.sent += channel.sending.sent();
        self.received += channel.receiving.received();
    }
}

/// A channel at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelReading {
    /// Its number.
    pub id: u32,
    /// The stream that it is on.
    pub lane: Lane,
    /// What it was opened for.
    pub purpose: Purpose,
    /// Whether this end has opened it.
    pub is_own: bool,
    /// Whether it was not answered yet.
    pub is_waiting: bool,
    /// Bytes that it has carried.
    pub traffic: Traffic,
    /// Bytes that wait here to be sent.
    pub unsent: usize,
    /// Bytes that have come and that nobody has read yet.
    pub unread: usize,
}

impl Session {
    /// Bytes of all channels so far, those that are over included.
    pub fn traffic(&self) -> Traffic {
        let mut all = self.past;
        self.channels.values().for_each(|channel| all.add(channel));
        all
    }

    /// The channels that have carried most, `most` of them at most.
    pub fn read_channels(&self, most: usize) -> Vec<ChannelReading> {
        let moved = |channel: &Channel| channel.sending.sent() + channel.receiving.received();
        let mut all: Vec<_> = self.channels.iter().collect();
        all.sort_by_key(|(id, channel)| (std::cmp::Reverse(moved(channel)), **id));
        all.truncate(most);
        let read = |(id, channel): (&u32, &Channel)| {
            let mut traffic = Traffic::default();
            traffic.add(channel);
            ChannelReading {
                id: *id,
                lane: channel.lane,
                purpose: channel.purpose.clone(),
                is_own: self.is_own(*id),
                is_waiting: channel.answer == Answer::Waiting,
                traffic,
                unsent: channel.sending.waiting(),
                unread: channel.receiving.unread(),
            }
        };
        all.into_iter().map(read).collect()
    }
}
