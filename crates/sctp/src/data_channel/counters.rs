//! Counters of invalid input from a peer, none of which is reported as an error.

/// One counter for each way in which a peer can violate the protocol. They only increase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChannelCounters {
    /// Messages on streams without a channel.
    pub stray_messages: u64,
    /// Channels opened by the peer that were refused: on a stream of ours or one in use, or above a
    /// limit.
    pub refused_channels: u64,
    /// DCEP messages that are malformed or unexpected.
    pub malformed_messages: u64,
    /// Messages with a payload protocol identifier that channels do not use.
    pub unknown_payloads: u64,
    /// Messages larger than `max_message_size`.
    pub oversized_messages: u64,
}
