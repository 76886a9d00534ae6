//! Memories that trials start with.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use eyas::race::memory::{MemoryConfig, MemoryRecord, PathHandshakes};
use eyas::{MemoryStore, Resolver, SecurityParameters};
use tokio::task::JoinSet;

use super::LiveError;
use super::trial::{OBJECT, TrialParameters};
use crate::situation::live::ClientMemory;

/// The number of hosts from which a network is known: as many as are remembered for a path.
const HOSTS: usize = PathHandshakes::MAX as usize;
/// How long a connection stays open to be learnt from.
const LEARNING_TIME: Duration = Duration::from_millis(5);
/// The same if losses are to be observed too: longer than QUIC needs to retransmit an Initial.
const OBSERVATION_TIME: Duration = Duration::from_millis(1_500);

impl ClientMemory {
    /// Returns the memory for each trial. What it should contain is learnt now, over the actual
    /// link, at the pace of the trials.
    pub(super) async fn for_trials(
        self,
        trials: u32,
        trial: &TrialParameters,
        pace: Duration,
        stop: &AtomicBool,
    ) -> Result<Vec<MemoryStore>, LiveError> {
        let store_with = |rows: &[MemoryRecord]| {
            MemoryStore::in_memory_with(MemoryConfig::default(), rows.iter().cloned())
        };
        let stores_with =
            |rows: &[MemoryRecord]| (0..trials).map(|_| store_with(rows)).collect::<Vec<_>>();
        match self {
            Self::Empty => Ok(stores_with(&[])),
            Self::Warm => {
                let memories = stores_with(&[]);
                let trials =
                    memories.iter().map(|memory| (trial.clone(), memory.clone(), LEARNING_TIME));
                let warm_up = warm_up(trials, pace, stop).await?;
                warm_up.into_iter().collect::<Result<(), _>>()?;
                Ok(memories)
            }
            Self::Network => {
                let known = store_with(&[]);
                let hosts = (0..HOSTS).map(|number| trial.at_another_host(number));
                let hosts = hosts.collect::<Result<Vec<_>, _>>()?;
                let hosts = hosts.into_iter().map(|host| (host, known.clone(), OBSERVATION_TIME));
                // A host without a connection in time is evidence, too.
                warm_up(hosts, pace, stop).await?;
                Ok(stores_with(&known.entries()))
            }
        }
    }
}

/// Opens one connection to each of these, and keeps it open for this time.
async fn warm_up(
    trials: impl Iterator<Item = (TrialParameters, MemoryStore, Duration)>,
    pace: Duration,
    stop: &AtomicBool,
) -> Result<Vec<Result<(), LiveError>>, LiveError> {
    // At the pace of the trials, so that the remembered round-trip times match theirs.
    let mut ticks = tokio::time::interval(pace.max(Duration::from_millis(1)));
    let mut connections = JoinSet::new();
    for (trial, memory, open_for) in trials {
        ticks.tick().await;
        if stop.load(Ordering::Relaxed) {
            return Err(LiveError::Stopped);
        }
        connections.spawn(async move { trial.warm_up(&memory, open_for).await });
    }
    let mut warm_up = Vec::new();
    while let Some(result) = connections.join_next().await {
        warm_up.push(result.map_err(|cause| LiveError::Inside(cause.to_string()))?);
    }
    Ok(warm_up)
}

impl TrialParameters {
    /// Returns the same server under the name of another host.
    fn at_another_host(&self, number: usize) -> Result<Self, LiveError> {
        let inside_error = |cause: &dyn std::fmt::Display| LiveError::Inside(cause.to_string());
        let url: http::Uri = self.url.parse().map_err(|cause| inside_error(&cause))?;
        let (host, port) = (url.host().unwrap_or_default(), url.port_u16().unwrap_or_default());
        let name = format!("host-{number}.test");
        let resolver = match host.parse() {
            Ok(address) => Resolver::system().overriding(&name, port, vec![address]),
            // The name server resolves every name.
            Err(_) => self.resolver.clone(),
        };
        Ok(Self {
            url: format!("https://{name}:{port}{OBJECT}"),
            security: SecurityParameters::platform().accept_any_certificate().without_resumption(),
            resolver,
            ..self.clone()
        })
    }
}
