//! The payload of packets in a simulated world: SCTP packets as bytes or as values.

use std::sync::Arc;

use bytes::Bytes;
use eyas_sctp::config::PacketForm;
use eyas_sctp::io::StructPacket;

use crate::situation::PacketMode;

/// An SCTP packet.
#[derive(Clone, Debug)]
pub(super) enum SctpPayload {
    /// Encoded, to be parsed by the receiver.
    Wire(Bytes),
    /// Not encoded. Converted to bytes only for a capture, a middlebox, or bit errors.
    Struct(Arc<StructPacket>),
}

impl From<Bytes> for SctpPayload {
    fn from(bytes: Bytes) -> Self {
        Self::Wire(bytes)
    }
}

impl eyas_netem::packet::PacketPayload for SctpPayload {
    #[inline]
    fn len(&self) -> usize {
        match self {
            Self::Wire(bytes) => bytes.len(),
            Self::Struct(packet) => packet.len(),
        }
    }

    fn to_bytes(&self) -> Bytes {
        match self {
            Self::Wire(bytes) => bytes.clone(),
            Self::Struct(packet) => packet.encode(),
        }
    }
}

/// Returns the form in which an endpoint's packets leave.
pub(super) const fn form(mode: PacketMode) -> PacketForm {
    match mode {
        PacketMode::Wire => PacketForm::Wire,
        PacketMode::Struct => PacketForm::Struct,
    }
}
