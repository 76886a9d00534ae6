//! Memories to begin trials with.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use eyas::MemoryStore;
use eyas::race::memory::Config;
use eyas::race::target::Host;
use tokio::task::JoinSet;

use super::trial::Trial;
use super::{LiveError, Memory};

/// Connections from which a network is known: as many as are kept of two paths.
const CONNECTIONS: usize = 32;

impl Memory {
    /// What each of so many trials remembers. What has to be learnt for it is learnt now, over the
    /// link as it is, at the pace of the trials.
    pub(super) async fn of_trials(
        self,
        trials: u32,
        trial: &Trial,
        pace: Duration,
        stop: &AtomicBool,
    ) -> Result<Vec<MemoryStore>, LiveError> {
        let empty = || MemoryStore::in_memory(Config::default());
        let memories: Vec<MemoryStore> = (0..trials).map(|_| empty()).collect();
        match self {
            Self::Empty => Ok(memories),
            Self::Warm => {
                let warm = warm(trial, &memories, pace, stop).await?;
                warm.into_iter().collect::<Result<(), _>>()?;
                Ok(memories)
            }
            Self::Network => {
                let known = empty();
                // What has no connection in time has shown something, too.
                warm(trial, &vec![known.clone(); CONNECTIONS], pace, stop).await?;
                known.forget(&trial.host()?);
                let rows = known.entries();
                let like = |_| MemoryStore::in_memory_with(Config::default(), rows.iter().cloned());
                Ok((0..trials).map(like).collect())
            }
        }
    }
}

/// One connection for each of these memories.
async fn warm(
    trial: &Trial,
    memories: &[MemoryStore],
    pace: Duration,
    stop: &AtomicBool,
) -> Result<Vec<Result<(), LiveError>>, LiveError> {
    // At the pace of the trials, so that the round trips remembered are theirs.
    let mut ticks = tokio::time::interval(pace.max(Duration::from_millis(1)));
    let mut warming = JoinSet::new();
    for memory in memories {
        ticks.tick().await;
        if stop.load(Ordering::Relaxed) {
            return Err(LiveError::Stopped);
        }
        let (trial, memory) = (trial.clone(), memory.clone());
        warming.spawn(async move { trial.warm(&memory).await });
    }
    let mut warm = Vec::new();
    while let Some(one) = warming.join_next().await {
        warm.push(one.map_err(|cause| LiveError::Inside(cause.to_string()))?);
    }
    Ok(warm)
}

impl Trial {
    /// The server, by the name that the memory has for it.
    fn host(&self) -> Result<Host, LiveError> {
        let inside = |cause: &dyn std::fmt::Display| LiveError::Inside(cause.to_string());
        let url: http::Uri = self.url.parse().map_err(|cause| inside(&cause))?;
        let host = url.host().unwrap_or_default();
        Host::parse(host).map_err(|cause| inside(&cause))
    }
}
