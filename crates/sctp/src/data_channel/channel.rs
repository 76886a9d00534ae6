//! One channel.

use alloc::string::String;

use super::dcep::DcepOpen;
use super::settings::ChannelOptions;
use crate::message::MessageReliability;

/// The state of a channel: `RTCDataChannelState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChannelState {
    /// The peer has been asked but has not answered, or the association is not established.
    /// Messages can be sent, and keep their order until the peer has answered (RFC 8832 §6).
    Connecting,
    /// Open on both sides.
    Open,
    /// Waiting messages are sent; then the stream is reset.
    Closing,
}

/// A channel as negotiated by both sides.
#[derive(Clone, Debug)]
pub struct DataChannel {
    pub(super) label: String,
    pub(super) protocol: String,
    pub(super) ordered: bool,
    pub(super) reliability: MessageReliability,
    pub(super) priority: u16,
    pub(super) negotiated: bool,
    /// Whether the peer opened it.
    pub(super) by_peer: bool,
    pub(super) state: ChannelState,
    /// `bufferedAmountLowThreshold`, if its user has set one.
    pub(super) low_threshold: Option<usize>,
}

impl DataChannel {
    pub(super) fn new(options: &ChannelOptions) -> Self {
        Self {
            label: options.label.clone(),
            protocol: options.protocol.clone(),
            ordered: options.ordered,
            reliability: options.reliability,
            priority: options.priority,
            negotiated: options.negotiated.is_some(),
            by_peer: false,
            state: ChannelState::Connecting,
            low_threshold: None,
        }
    }

    pub(super) fn from_peer(open: DcepOpen) -> Self {
        Self {
            label: open.label,
            protocol: open.protocol,
            ordered: open.ordered,
            reliability: open.reliability,
            priority: open.priority,
            negotiated: false,
            by_peer: true,
            state: ChannelState::Open,
            low_threshold: None,
        }
    }

    pub(super) fn to_open(&self) -> DcepOpen {
        DcepOpen {
            ordered: self.ordered,
            reliability: self.reliability,
            priority: self.priority,
            label: self.label.clone(),
            protocol: self.protocol.clone(),
        }
    }

    /// Returns the total length of its names.
    pub(super) fn name_bytes(&self) -> usize {
        self.label.len() + self.protocol.len()
    }

    /// Returns its label.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Returns its subprotocol, empty if it has none.
    #[must_use]
    pub fn protocol(&self) -> &str {
        &self.protocol
    }

    /// Returns whether messages are delivered in order.
    #[must_use]
    pub const fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// Returns when messages are abandoned.
    #[must_use]
    pub const fn reliability(&self) -> MessageReliability {
        self.reliability
    }

    /// Returns its priority relative to other channels.
    #[must_use]
    pub const fn priority(&self) -> u16 {
        self.priority
    }

    /// Returns whether it was agreed on beforehand.
    #[must_use]
    pub const fn is_negotiated(&self) -> bool {
        self.negotiated
    }

    /// Returns its state.
    #[must_use]
    pub const fn state(&self) -> ChannelState {
        self.state
    }
}
