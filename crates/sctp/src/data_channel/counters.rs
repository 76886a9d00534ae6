//! What was counted because it was no error for anybody here: what a peer should not have sent.

/// One counter for each way in which a peer can go wrong. They only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChannelCounters {
    /// Messages on streams without a channel.
    pub stray_messages: u64,
    /// Channels that the peer opened in vain: on a stream of ours or one in use, beyond a limit.
    pub refused_channels: u64,
    /// Messages of DCEP with the wrong form, or out of order.
    pub malformed_messages: u64,
    /// Messages of no kind that channels have.
    pub unknown_payloads: u64,
    /// Messages larger than `max_message_size`.
    pub oversized_messages: u64,
}
