//! The configuration of all channels of an association, and of one channel.

use alloc::string::String;

use super::dcep::NORMAL_PRIORITY;
use crate::config::{AssociationConfig, CongestionControlKind};
use crate::identifier::StreamId;
use crate::message::MessageReliability;

/// The number of streams requested each way: all there are (RFC 8831 §6.2).
const STREAMS: u16 = 65_535;

/// The receive window in bytes, which fills a path of 100 Mbit/s and 400 ms.
const WINDOW: usize = 5 << 20;

/// The initial MTU inside DTLS inside UDP, in bytes of IP packet: nothing smaller is known to be
/// needed (RFC 8831 §5).
const MTU: u16 = 1280;

/// The overhead of a DTLS 1.2 record with an AEAD, in bytes.
const RECORD_OVERHEAD: u8 = 37;

/// The DTLS role of this side. It determines which side uses even stream numbers (RFC 8832 §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DtlsRole {
    /// Opens channels on streams with even numbers.
    Client,
    /// Opens channels on streams with odd numbers.
    Server,
}

impl DtlsRole {
    /// Returns whether this side opens channels on `stream`.
    #[must_use]
    pub const fn opens(self, stream: StreamId) -> bool {
        stream.0 % 2 == self.first()
    }

    /// Returns the first stream on which this side opens a channel.
    pub(super) const fn first(self) -> u16 {
        match self {
            Self::Client => 0,
            Self::Server => 1,
        }
    }
}

/// The configuration of all channels of an association.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChannelSettings {
    /// The DTLS role of this side.
    pub role: DtlsRole,
    /// The maximum number of channels, opened by either side.
    pub max_channels: usize,
    /// The largest message that is accepted, in bytes, for this side's `a=max-message-size`. A
    /// channel on which a larger one arrives is closed.
    pub max_message_size: usize,
    /// The largest message that the peer accepts: its `a=max-message-size`, 0 for no limit, and
    /// 65,536 if the attribute is missing (RFC 8841 §6.1).
    pub peer_max_message_size: usize,
    /// The maximum total length in bytes of the labels and protocols of all channels opened by the
    /// peer.
    pub max_names: usize,
}

impl ChannelSettings {
    /// Returns the defaults: 1,024 channels, messages of up to 256 KiB, and up to 64 KiB to the
    /// peer.
    #[must_use]
    pub const fn new(role: DtlsRole) -> Self {
        Self {
            role,
            max_channels: 1024,
            max_message_size: 256 << 10,
            peer_max_message_size: 64 << 10,
            max_names: 256 << 10,
        }
    }

    /// Returns the configuration of an association for channels inside DTLS: all streams, no
    /// checksum (RFC 9653), one path whose MTU is known to ICE, and messages delivered whole.
    /// Congestion control is based on bandwidth and round-trip time (BBR), so that single losses
    /// cost little, and audio and video beside it do not wait behind a full queue.
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
            packet_overhead: RECORD_OVERHEAD,
            congestion_control: CongestionControlKind::Bbr.into(),
            ..AssociationConfig::default()
        };
        association.extensions.zero_checksum = true;
        association
    }

    /// Returns the length of the largest message that may be sent.
    pub(super) const fn max_sent_message(&self) -> usize {
        match self.peer_max_message_size {
            0 => usize::MAX,
            most => most,
        }
    }
}

/// The parameters of a new channel: `RTCDataChannelInit`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChannelOptions {
    /// The label, which need not be unique; at most 65,535 bytes.
    pub label: String,
    /// The subprotocol; at most 65,535 bytes.
    pub protocol: String,
    /// Whether messages are delivered in order.
    pub ordered: bool,
    /// When messages are abandoned: after a time (`maxPacketLifeTime`), or after a number of
    /// retransmissions (`maxRetransmits`).
    pub reliability: MessageReliability,
    /// The priority announced to the peer (RFC 8831 §6.4).
    pub priority: u16,
    /// The stream, if both sides have agreed on it beforehand and each opens its half without
    /// messages (`negotiated`, `id`). Otherwise a stream is chosen and the peer is asked.
    pub negotiated: Option<StreamId>,
}

impl ChannelOptions {
    /// Returns the parameters of an ordered, reliable channel that is opened in-band.
    #[must_use]
    pub fn new(label: &str) -> Self {
        Self {
            label: label.into(),
            protocol: String::new(),
            ordered: true,
            reliability: MessageReliability::Reliable,
            priority: NORMAL_PRIORITY,
            negotiated: None,
        }
    }
}
