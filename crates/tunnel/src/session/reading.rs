//! Snapshots of a session's channels and traffic.

use super::channel::SessionChannel;
use super::{ChannelAnswer, TunnelLane, TunnelSession};
use crate::frame::ChannelPurpose;

/// The data of connections in both directions, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelTraffic {
    /// To the other end.
    pub sent: u64,
    /// From it.
    pub received: u64,
}

impl ChannelTraffic {
    pub(super) fn add(&mut self, channel: &SessionChannel) {
        self.sent += channel.sending.sent();
        self.received += channel.receiving.received();
    }
}

/// A snapshot of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelReading {
    /// Its number.
    pub id: u32,
    /// Its stream.
    pub lane: TunnelLane,
    /// Its purpose.
    pub purpose: ChannelPurpose,
    /// Whether this end opened it.
    pub is_own: bool,
    /// Whether there is no answer yet.
    pub is_waiting: bool,
    /// Its data so far.
    pub traffic: ChannelTraffic,
    /// The number of bytes that wait to be sent.
    pub unsent: usize,
    /// The number of received bytes that are not read yet.
    pub unread: usize,
}

impl TunnelSession {
    /// Returns the data of all channels so far, including those that are over.
    pub fn traffic(&self) -> ChannelTraffic {
        let mut all = self.past;
        self.channels.values().for_each(|channel| all.add(channel));
        all
    }

    /// Returns snapshots of the busiest channels, at most `limit` of them.
    pub fn read_channels(&self, limit: usize) -> Vec<ChannelReading> {
        let moved =
            |channel: &SessionChannel| channel.sending.sent() + channel.receiving.received();
        let mut all: Vec<_> = self.channels.iter().collect();
        all.sort_by_key(|(id, channel)| (std::cmp::Reverse(moved(channel)), **id));
        all.truncate(limit);
        let read = |(id, channel): (&u32, &SessionChannel)| {
            let mut traffic = ChannelTraffic::default();
            traffic.add(channel);
            ChannelReading {
                id: *id,
                lane: channel.lane,
                purpose: channel.purpose.clone(),
                is_own: self.is_own(*id),
                is_waiting: channel.answer == ChannelAnswer::Waiting,
                traffic,
                unsent: channel.sending.waiting(),
                unread: channel.receiving.unread(),
            }
        };
        all.into_iter().map(read).collect()
    }
}
