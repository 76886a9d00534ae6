//! The link between two hosts.

use serde::{Deserialize, Serialize};

use crate::units::{Part, Time};

/// The link between client and server, as in the paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSetup {
    /// The round-trip time: half of it is added in each direction.
    #[serde(default)]
    pub delay: Time,
    /// The loss rate of packets from the server, independent for each packet; packets from the
    /// client are not lost.
    #[serde(default)]
    pub loss: Part,
}

/// Returns the notes for readers.
pub(super) fn emulated() -> Vec<String> {
    vec![
        "Client and server are network namespaces of one machine, with this kernel's TCP and UDP; \
         their packets pass through eyas-netem in real time. Half of the delay is added in each \
         direction; only packets from the server are lost, independently of one another."
            .to_owned(),
        "The link has no rate limit and no queue. The machine itself adds about 0.1 ms in each \
         direction, and more when it is busy: client and server have one core each, if there are \
         two, and the link takes its time from both, so differences below a millisecond mean little."
            .to_owned(),
    ]
}
