//! How a client comes to its connection.

use serde::{Deserialize, Serialize};

/// How a client comes to its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientStrategy {
    /// The paper's Happy Eyeballs: HTTP/3 starts 10 ms before the old HTTP, the first complete
    /// handshake wins, and HTTP/3 is used from then on if it completes later.
    PublishedRace,
    /// The paper's Alt-Svc: TCP first; HTTP/3 once a response has announced it.
    PublishedAltSvc,
    /// The race of eyas, with its defaults.
    Race,
    /// Alt-Svc beside the race.
    RaceAltSvc,
    /// The race, where DNS has HTTPS records (RFC 9460) that say what a server speaks.
    HttpsRecords,
}
