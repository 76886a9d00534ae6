//! Data sent before the handshake is complete: 0-RTT over QUIC (RFC 9001 §4.6).

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use eyas_race::candidate::Candidate;
use eyas_race::dns::{DnsFailure, DnsQuery, DnsRecords, QueryId, RecordType, https_owner};
use eyas_race::evidence::AttemptFailure;
use eyas_race::target::Target;

use super::Endpoint;
use crate::attempt::quic::{self, EarlyQuic};
use crate::attempt::{CandidateAttempt, server_name};
use crate::ech::EchAttempt;
use crate::memory_store;
use crate::{Connection, ConnectionFeedback, ConnectionInfo};

/// How long HTTPS records are waited for, as in a race (HEv3 §4.2). Those that decide are in the cache, if any are.
const RESOLUTION_DELAY: Duration = Duration::from_millis(50);

/// A QUIC connection on which data can be sent during the handshake.
///
/// An attacker can replay what is sent before [`confirmed`](Self::confirmed) returns: send only
/// what is safe to receive twice. The peer may also reject early data; the streams opened until
/// then have then failed, but the connection can open new ones.
pub struct EarlyConnection {
    quic: EarlyQuic,
}

impl EarlyConnection {
    /// Returns the QUIC connection.
    pub fn quic(&self) -> &quinn::Connection {
        &self.quic.connection
    }

    /// Returns what is known about the connection before the handshake is complete.
    pub fn info(&self) -> &ConnectionInfo {
        &self.quic.info
    }

    /// Waits until the handshake is complete, and returns whether the peer accepted the early data.
    ///
    /// # Errors
    /// Returns what ended the attempt.
    pub async fn confirmed(self) -> Result<(Connection, bool), AttemptFailure> {
        let (done, accepted) = self.quic.confirmed().await?;
        let connection =
            Connection::new(done.transport, done.info, ConnectionFeedback::none(), done.read_ahead);
        Ok((connection, accepted))
    }
}

impl std::fmt::Debug for EarlyConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EarlyConnection").field("info", self.info()).finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Resumes a session with exactly this QUIC candidate, if the [security
    /// parameters](crate::SecurityParameters::with_early_data) and an earlier connection allow
    /// early data; returns `None` otherwise, and where the name would be in the clear though the target's HTTPS records
    /// may have configurations for Encrypted ClientHello. There is no race, and of the memory only the
    /// length of a ClientHello that gets through: callers need another way to connect if this fails.
    pub async fn early(&self, target: &Target, candidate: Candidate) -> Option<EarlyConnection> {
        if candidate.ech.is_none() && self.may_have_ech(target).await {
            return None;
        }
        let host = &target.host;
        let (network, trust) = (self.network().view().await, self.trust(host, None));
        let known = self.memory_view(&network.id, host, &trust);
        let short_hello = known.short_hello_until(&candidate, memory_store::now()).is_some();
        let mut attempt = CandidateAttempt {
            candidate,
            ech: EchAttempt::default(),
            without_ech: false,
            short_hello: AtomicBool::new(short_hello),
            server_name: server_name(host),
            initial_rtt: None,
            origin: Instant::now(),
            is_unraced: true,
            until_first_byte: false,
            opening: None,
            #[cfg(feature = "sctp")]
            proceed: None,
            #[cfg(feature = "sctp")]
            encapsulation_port: None,
            quic_config: None,
            without_keep_alive: false,
        };
        attempt.ech = attempt.first_ech(self.connector()).ok()?;
        Some(EarlyConnection { quic: quic::early(&attempt, self.connector()).await? })
    }

    /// Returns whether a race to this target could offer ECH with the configurations of records.
    async fn may_have_ech(&self, target: &Target) -> bool {
        if !self.connector().ech().wants_records() || !target.asks_https_records() {
            return false;
        }
        let Some(name) = target.host.name() else { return false };
        let forwarded = self.shared.forwards.get(&(target.host.clone(), target.port));
        let port = forwarded.copied().unwrap_or(target.port);
        let owner = https_owner(name, port);
        let query = DnsQuery { id: QueryId(0), name: owner, record_type: RecordType::Https };
        let answer = self.resolver().query_as(&query, port, target.absolute);
        let Ok(answer) = tokio::time::timeout(RESOLUTION_DELAY, answer).await else { return true };
        match answer.records {
            // What follows an alias is up to a race.
            Ok(DnsRecords::Https(records)) => {
                records.iter().any(|record| record.ech.is_some() || record.priority == 0)
            }
            Err(DnsFailure::NoData | DnsFailure::NoSuchName) => false,
            Ok(_) | Err(_) => true,
        }
    }
}
