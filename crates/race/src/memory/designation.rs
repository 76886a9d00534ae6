//! The rows about resolvers: which encrypted ones a name server designates (RFC 9462), and where a resolver says that it
//! can be asked besides (RFC 7838).

use alloc::{string::String, vec::Vec};
use core::{net::SocketAddr, time::Duration};

use serde::{Deserialize, Serialize};

use crate::candidate::AlpnName;
use crate::target::TargetHost;

/// What a name server designates, on one network.
///
/// It says whom to connect to, never whom to trust: whoever uses it has the certificate verified as if the server had
/// said it just now (RFC 9462 §4.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DesignationEntry {
    /// When it was said.
    pub at: Duration,
    /// Until when it holds: for the time to live of what was said.
    pub until: Duration,
    /// What was said.
    pub outcome: DesignationOutcome,
}

/// The answer to the question what a name server designates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DesignationOutcome {
    /// These, the preferred ones first; at most [`DesignationEntry::MAX_RESOLVERS`].
    Resolvers(Vec<DesignatedEndpoint>),
    /// None.
    Nothing,
    /// There was no answer.
    Silence,
}

/// One way to reach an encrypted resolver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DesignatedEndpoint {
    /// The name of the resolver.
    pub name: String,
    /// Its protocol: `dot`, `doq`, or `h2` and `h3` for queries over HTTPS.
    pub alpn: AlpnName,
    /// Its address and port.
    pub address: SocketAddr,
    /// The path of queries over HTTPS.
    pub path: String,
}

impl DesignationEntry {
    /// The maximum number of resolvers that count.
    pub const MAX_RESOLVERS: usize = 12;
    /// The longest time for which something holds, however long its time to live is: 1 day. "The client MAY issue new
    /// queries if the SVCB record's TTL is excessively long" (RFC 9462 §4.2).
    pub const LONGEST: Duration = Duration::from_hours(24);

    /// Returns until when the row holds.
    pub(super) fn expires_at(&self) -> Duration {
        self.until.min(self.at.saturating_add(Self::LONGEST))
    }

    /// Returns the resolvers that count.
    pub fn resolvers(&self) -> &[DesignatedEndpoint] {
        match &self.outcome {
            DesignationOutcome::Resolvers(all) => all.get(..Self::MAX_RESOLVERS).unwrap_or(all),
            DesignationOutcome::Nothing | DesignationOutcome::Silence => &[],
        }
    }

    /// Returns what remains after `host` has been forgotten; `None` if that is nothing.
    pub(super) fn without(mut self, host: &TargetHost) -> Option<Self> {
        if let DesignationOutcome::Resolvers(resolvers) = &mut self.outcome {
            resolvers.retain(|resolver| !resolver.is_of(host));
            if resolvers.is_empty() {
                return None;
            }
        }
        Some(self)
    }
}

impl DesignatedEndpoint {
    fn is_of(&self, host: &TargetHost) -> bool {
        match host {
            TargetHost::Name(name) => self.name == *name,
            TargetHost::Literal(ip, _) => self.address.ip() == *ip,
        }
    }
}
