//! What has been learnt lately: what is still to be written, and the rows of the hosts that races asked for.
//!
//! A program that connects often would otherwise read and write the file for each connection.

use std::mem;
use std::time::{Duration, Instant};

#[cfg(feature = "sqlite")]
use eyas_race::evidence::NetworkId;
use eyas_race::memory::MemoryConfig;
#[cfg(feature = "sqlite")]
use eyas_race::memory::{MemoryEntry, MemoryKey};
#[cfg(feature = "sqlite")]
use eyas_race::target::TargetHost;

use super::Learning;
#[cfg(feature = "sqlite")]
use super::ObservedOutcome;
#[cfg(feature = "sqlite")]
use super::recent_rows::{RecentRows, Rows};

/// The maximum number of outcomes waiting to be written; beyond it, learning waits for the disk.
const MAX_QUEUED: usize = 512;
/// From this number on they are written at once.
const MANY_QUEUED: usize = 256;
/// The time from one writing to the next.
pub(super) const WRITE_EVERY: Duration = Duration::from_millis(100);

/// What a store holds besides its file.
#[derive(Debug, Default)]
pub(super) struct RecentLearning {
    /// What is not written yet.
    queued: Vec<Learning>,
    written_at: Option<Instant>,
    is_scheduled: bool,
    #[cfg(feature = "sqlite")]
    rows: RecentRows,
}

/// When what was learnt is to be written.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WriteTime {
    /// By the caller.
    AtOnce,
    /// In the background, after this time.
    After(Duration),
    /// It is already scheduled.
    Scheduled,
}

impl RecentLearning {
    /// Adds something.
    pub(super) fn add(&mut self, learning: Learning, _config: &MemoryConfig) {
        #[cfg(feature = "sqlite")]
        #[cfg_attr(
            not(feature = "encrypted-dns"),
            expect(irrefutable_let_patterns, reason = "there are other rows with encrypted DNS")
        )]
        if let Learning::Outcome(observation) = &learning {
            self.rows.learn(observation, _config);
        }
        self.queued.push(learning);
    }

    /// Returns when to write, and assumes that this is done.
    pub(super) fn schedule_write(&mut self) -> WriteTime {
        if self.queued.len() >= MAX_QUEUED {
            return WriteTime::AtOnce;
        }
        let is_full = self.queued.len() == MANY_QUEUED;
        if self.is_scheduled && !is_full {
            return WriteTime::Scheduled;
        }
        self.is_scheduled = true;
        let since = self.written_at.map_or(WRITE_EVERY, |at| at.elapsed());
        WriteTime::After(if is_full { Duration::ZERO } else { WRITE_EVERY.saturating_sub(since) })
    }

    /// Notes that the writing that was scheduled begins, or will not happen.
    pub(super) fn end_schedule(&mut self) {
        self.is_scheduled = false;
    }

    /// Returns what is to be written, which the caller does.
    pub(super) fn drain_queue(&mut self) -> Vec<Learning> {
        if !self.queued.is_empty() {
            self.written_at = Some(Instant::now());
        }
        mem::take(&mut self.queued)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queued.is_empty()
    }

    /// Forgets the rows, which were changed otherwise than by learning.
    pub(super) fn forget_rows(&mut self) {
        #[cfg(feature = "sqlite")]
        {
            self.rows = RecentRows::default();
        }
    }

    /// Returns the rows for a race with this host, if they were read recently.
    #[cfg(feature = "sqlite")]
    pub(super) fn rows(
        &self,
        network: &NetworkId,
        host: &TargetHost,
    ) -> Option<Vec<(MemoryKey, MemoryEntry)>> {
        let rows = self.rows.read_lately(network, host)?;
        Some(rows.map(|(key, entry)| (key.clone(), entry.clone())).collect())
    }

    /// Returns whether the rows of this host can be read from the file before what is queued has been written.
    #[cfg(feature = "sqlite")]
    pub(super) fn concerns_others(&self, network: &NetworkId, host: &TargetHost) -> bool {
        let concerns_it = |one: &Learning| match one {
            Learning::Outcome(ObservedOutcome { evidence, .. }) => {
                evidence.host == *host && evidence.network == *network
            }
            // No race reads it.
            #[cfg(feature = "encrypted-dns")]
            Learning::Row(_) => false,
        };
        let rows = &self.rows;
        self.is_empty() || (rows.paths(network).is_some() && !self.queued.iter().any(concerns_it))
    }

    /// Keeps the rows of this host and of the network, which were read now.
    #[cfg(feature = "sqlite")]
    pub(super) fn keep_rows(&mut self, network: &NetworkId, host: &TargetHost, rows: &Rows) {
        let has_paths = !self.is_empty() && self.rows.paths(network).is_some();
        self.rows.insert(network, host, rows, has_paths);
    }
}

#[cfg(test)]
mod tests {
    use eyas_race::candidate::{AddressOrigin, Candidate, Security, Transport};
    use eyas_race::evidence::{Evidence, EvidenceLevel, NetworkId, TrustContext};
    use eyas_race::target::TargetHost;

    use super::super::ObservedOutcome;
    use super::*;

    fn observation() -> Learning {
        let candidate = Candidate {
            address: ([192, 0, 2, 1], 443).into(),
            transport: Transport::Tcp,
            security: Security::None,
            alpn: vec![],
            ech: None,
            priority: None,
            origin: AddressOrigin::Address,
        };
        let evidence = Evidence {
            at: Duration::from_secs(1),
            network: NetworkId("net/1".into()),
            host: TargetHost::Name("a.example".into()),
            candidate,
            level: EvidenceLevel::FirstByte,
            failure: None,
            doubt: None,
            rtt: None,
            sent_again: None,
        };
        let trust = TrustContext::default();
        Learning::Outcome(ObservedOutcome { evidence, trust, network_name: None })
    }

    #[test]
    fn many_outcomes_are_written_at_once() {
        let (mut recent, config) = (RecentLearning::default(), MemoryConfig::default());
        let add = |recent: &mut RecentLearning| {
            recent.add(observation(), &config);
            recent.schedule_write()
        };
        assert_eq!(
            add(&mut recent),
            WriteTime::After(Duration::ZERO),
            "nothing was written lately"
        );
        recent.end_schedule();
        assert_eq!(recent.drain_queue().len(), 1);
        assert!(matches!(add(&mut recent), WriteTime::After(time) if !time.is_zero()));
        for _ in 2..MANY_QUEUED {
            assert_eq!(add(&mut recent), WriteTime::Scheduled);
        }
        assert_eq!(add(&mut recent), WriteTime::After(Duration::ZERO));
        for _ in MANY_QUEUED + 1..MAX_QUEUED {
            assert_eq!(add(&mut recent), WriteTime::Scheduled);
        }
        assert_eq!(add(&mut recent), WriteTime::AtOnce, "a full queue waits for the disk");
    }
}
