//! What a client's strategy means for the HTTP client and its races.

use std::time::Duration;

use eyas::race::candidate::Transport;
use eyas::race::policy::Policy;
use eyas_http::HttpPolicy;

use crate::situation::live::ClientStrategy;

/// How long before the old HTTP the paper starts HTTP/3.
const PUBLISHED_HEAD_START: Duration = Duration::from_millis(10);

impl ClientStrategy {
    /// The policy of the HTTP client.
    pub(super) const fn http(self) -> HttpPolicy {
        match self {
            Self::PublishedRace | Self::Race | Self::HttpsRecords => HttpPolicy::Race,
            Self::PublishedAltSvc => HttpPolicy::AltSvc,
            Self::RaceAltSvc => HttpPolicy::RaceAltSvc,
        }
    }

    /// The policy of its races, given up after this time.
    pub(super) fn race(self, give_up: Duration) -> Policy {
        let policy = Policy { deadline: give_up, ..Policy::default() };
        match self {
            Self::PublishedRace => Policy {
                transports: vec![Transport::Quic, Transport::Tcp],
                head_start: PUBLISHED_HEAD_START,
                grace: Duration::ZERO,
                ignore_memory: true,
                second_tries: 0,
                ..policy
            },
            Self::PublishedAltSvc => Policy { ignore_memory: true, second_tries: 0, ..policy },
            Self::Race | Self::RaceAltSvc | Self::HttpsRecords => policy,
        }
    }
}
