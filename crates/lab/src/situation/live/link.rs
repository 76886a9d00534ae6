//! What the link between two hosts is like.

use serde::{Deserialize, Serialize};

use crate::units::{Part, Time};

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
