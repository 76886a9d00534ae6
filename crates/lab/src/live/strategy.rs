//! The HTTP client and race policies of each client strategy.

use std::time::Duration;

use eyas::race::candidate::Transport;
use eyas::race::policy::Policy;
use eyas_http::HttpPolicy;

use crate::situation::live::ClientStrategy;

/// The head start of HTTP/3 over HTTP over TCP in the paper.
const PUBLISHED_HEAD_START: Duration = Duration::from_millis(10);

impl ClientStrategy {
    /// Returns the policy of the HTTP client.
    pub(super) const fn http(self) -> HttpPolicy {
        match self {
            Self::PublishedRace | Self::Race | Self::HttpsRecords => HttpPolicy::Race,
            Self::PublishedAltSvc => HttpPolicy::AltSvc,
            Self::RaceAltSvc => HttpPolicy::RaceAltSvc,
        }
    }

    /// Returns the policy of its races, with this time limit.
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
