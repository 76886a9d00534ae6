//! The link between two hosts: what it is like, and what has gone over it.

use serde::{Deserialize, Serialize};

use crate::plan::{Part, Time};

/// The link between client and server, as the paper has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSetup {
    /// The round trip: half of it on the way out of each host.
    #[serde(default)]
    pub delay: Time,
    /// Packets lost on the way out of the server, each on its own; none are on the way out of the
    /// client.
    #[serde(default)]
    pub loss: Part,
}

/// Packets that went over the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets that the client sent.
    pub packets_out: u64,
    /// Their bytes, IP headers included.
    pub bytes_out: u64,
    /// Packets that the server sent, the lost ones among them.
    pub packets_in: u64,
    /// Their bytes, IP headers included.
    pub bytes_in: u64,
}

impl Traffic {
    /// What has gone over it since an earlier count.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            packets_out: self.packets_out - earlier.packets_out,
            bytes_out: self.bytes_out - earlier.bytes_out,
            packets_in: self.packets_in - earlier.packets_in,
            bytes_in: self.bytes_in - earlier.bytes_in,
        }
    }
}

/// What a reader must know.
pub(super) fn emulated() -> Vec<String> {
    vec![
        "Client and server are network namespaces of one machine, with this kernel's TCP and UDP; \
         their packets pass through eyas-netem in real time. Half of the delay is on the way out of \
         each host, loss on the way out of the server alone, each packet on its own."
            .to_owned(),
        "The link has no rate and no queue. The machine itself adds about 0.1 ms to each way, and \
         more when it is busy: client and server have one core each, where there are two, and the \
         link takes its time from either, so differences below a millisecond say little."
            .to_owned(),
    ]
}
