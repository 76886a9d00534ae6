//! What can be set: for all channels of an association, and for one.

use alloc::string::String;

use super::dcep::NORMAL_PRIORITY;
use crate::config::{AssociationConfig, CongestionControlKind};
use crate::identifier::StreamId;
use crate::message::Reliability;

/// Streams that are asked for each way: all there are (RFC 8831 §6.2).
const STREAMS: u16 = 65_535;

/// The receive window, in bytes: a path of 100 Mbit/s and 400 ms is filled.
const WINDOW: usize = 5 << 20;

/// The packet to begin with inside DTLS inside UDP, in bytes of IP packet: less is not known to be
/// needed anywhere (RFC 8831 §5).
const MTU: u16 = 1280;

/// What a DTLS 1.2 record with an AEAD adds to a packet, in bytes.
const RECORD: u8 = 37;

/// Which side of DTLS this one is. It decides whose streams have even numbers (RFC 8832 §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// It opens channels on streams with even numbers.
    Client,
    /// It opens channels on streams with odd numbers.
    Server,
}

impl Role {
    /// Whether this side opens channels on `stream`.
    #[must_use]
    pub const fn opens(self, stream: StreamId) -> bool {
        stream.0 % 2 == self.first()
    }

    /// The first stream on which this side opens a channel.
    pub(super) const fn first(self) -> u16 {
        match self {
            Self::Client => 0,
            Self::Server => 1,
        }
    }
}

/// What is so for all channels of an association.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// Which side of DTLS this one is.
    pub role: Role,
    /// The most channels at a time, whoever opened them.
    pub max_channels: usize,
    /// The largest message that is taken, in bytes: what this side says as `a=max-message-size`. A
    /// channel on which a larger one comes is closed.
    pub max_message_size: usize,
    /// The largest message that the peer takes: its `a=max-message-size`, 0 if it takes any, and 65,536
    /// if it did not say (RFC 8841 §6.1).
    pub peer_max_message_size: usize,
    /// Bytes of labels and protocols of all the channels that the peer opens together.
    pub max_names: usize,
}

impl Settings {
    /// The usual ones: 1,024 channels, messages of up to 256 KiB, those to the peer of up to 64 KiB.
    #[must_use]
    pub const fn new(role: Role) -> Self {
        Self {
            role,
            max_channels: 1024,
            max_message_size: 256 << 10,
            peer_max_message_size: 64 << 10,
            max_names: 256 << 10,
        }
    }

    /// How an association for channels is to behave, inside DTLS: all streams, no checksum
    /// (RFC 9653), one path whose MTU ICE knows best, and messages handed over whole. What is under way
    /// goes by bandwidth and round trip (BBR), so that a stray loss costs little, and audio and video
    /// beside it do not wait behind a full queue.
    #[must_use]
    pub fn association(&self) -> AssociationConfig {
        let receive_buffer = WINDOW.max(2 * self.max_message_size);
        let mut association = AssociationConfig {
            outbound_streams: STREAMS,
            max_inbound_streams: STREAMS,
            send_buffer: WINDOW.max(self.peer_max_message_size),
            receive_buffer,
            partial_delivery_point: Some(receive_buffer / 2),
            mtu: MTU,
            path_mtu_discovery: false,
            packet_overhead: RECORD,
            congestion_control: CongestionControlKind::Bbr.into(),
            ..AssociationConfig::default()
        };
        association.extensions.zero_checksum = true;
        association
    }

    /// The largest message that may be sent.
    pub(super) const fn most_to_send(&self) -> usize {
        match self.peer_max_message_size {
            0 => usize::MAX,
            most => most,
        }
    }
}

/// What a channel is to be: `RTCDataChannelInit`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChannelOptions {
    /// Its name, which need not be unique; at most 65,535 bytes.
    pub label: String,
    /// The subprotocol; at most 65,535 bytes.
    pub protocol: String,
    /// Whether messages keep their order.
    pub ordered: bool,
    /// When a message is given up: after a time (`maxPacketLifeTime`), or after so many
    /// retransmissions (`maxRetransmits`).
    pub reliability: Reliability,
    /// What the peer is told of the channel's share beside others (RFC 8831 §6.4).
    pub priority: u16,
    /// The stream, where both sides agreed on it beforehand and each opens its half without a word
    /// (`negotiated`, `id`). Otherwise a stream is chosen and the peer is asked.
    pub negotiated: Option<StreamId>,
}

impl ChannelOptions {
    /// Ordered, reliable, opened in-band.
    #[must_use]
    pub fn new(label: &str) -> Self {
        Self {
            label: label.into(),
            protocol: String::new(),
            ordered: true,
            reliability: Reliability::Reliable,
            priority: NORMAL_PRIORITY,
            negotiated: None,
        }
    }
}
