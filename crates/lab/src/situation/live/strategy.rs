//! How a client connects.

use serde::{Deserialize, Serialize};

/// How a client connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientStrategy {
    /// The paper's Happy Eyeballs: HTTP/3 starts 10 ms before HTTP over TCP, the first complete
    /// handshake wins, and HTTP/3 is used from then on if it completes later.
    PublishedRace,
    /// The paper's Alt-Svc: TCP first, then HTTP/3 once a response has announced it.
    PublishedAltSvc,
    /// The race of eyas, with its defaults.
    Race,
    /// The race and Alt-Svc together.
    RaceAltSvc,
    /// The race, with HTTPS records (RFC 9460) in DNS that state which protocols a server supports.
    HttpsRecords,
}
