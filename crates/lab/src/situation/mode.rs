//! The form of packets in a simulated world.

use serde::{Deserialize, Serialize};

/// The form of packets. All measurements are the same in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PacketMode {
    /// Bytes: every packet is encoded, checksummed and parsed.
    #[default]
    Wire,
    /// Values of the same length as those bytes: nothing is encoded or parsed.
    Struct,
}

impl PacketMode {
    pub(super) fn is_wire(&self) -> bool {
        *self == Self::Wire
    }
}
