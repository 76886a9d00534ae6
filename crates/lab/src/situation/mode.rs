//! The form of packets in a simulated world.

use serde::{Deserialize, Serialize};

/// The form of packets. All measurements are the same in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PacketMode {
    /// Bytes: every packet is encoded, checksummed and parsed.
    Wire,
    /// Values of the same length as those bytes: nothing is encoded or parsed, except before a
    /// middlebox and where bits are wrong.
    #[default]
    Struct,
}

impl PacketMode {
    pub(super) fn is_struct(&self) -> bool {
        *self == Self::Struct
    }
}
