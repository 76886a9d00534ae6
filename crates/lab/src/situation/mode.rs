//! What travels through a simulated world.

use serde::{Deserialize, Serialize};

/// What packets are on their way. Everything that is measured is the same in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Bytes: every packet is encoded, checksummed and parsed.
    #[default]
    Wire,
    /// Values as long as those bytes would be: nothing is encoded or parsed.
    Struct,
}

impl Mode {
    pub(super) fn is_wire(&self) -> bool {
        *self == Self::Wire
    }
}
