//! Networks drawn at random that miss what is wanted of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::run::RunResult;
use crate::situation::RandomSetup;
use crate::situation::random::NetworkRequirement;

/// A network that misses something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkOutlier {
    /// The seed, which draws it again.
    pub seed: u64,
    /// Its lines and what happens to them.
    pub network: String,
    /// Everything that was measured.
    pub measured: BTreeMap<String, f64>,
    /// The measures that miss a limit.
    pub missed: Vec<String>,
}

/// Returns all of these runs' networks that miss something, the worst first.
pub(super) fn all(setup: &RandomSetup, seeds: &[u64], runs: &[RunResult]) -> Vec<NetworkOutlier> {
    let mut outliers: Vec<(f64, NetworkOutlier)> =
        seeds.iter().zip(runs).filter_map(|(seed, run)| outlier(setup, *seed, run)).collect();
    outliers.sort_by(|(left, _), (right, _)| right.total_cmp(left));
    outliers.into_iter().map(|(_, outlier)| outlier).collect()
}

fn outlier(setup: &RandomSetup, seed: u64, run: &RunResult) -> Option<(f64, NetworkOutlier)> {
    let value = |column: &str| run.columns.get(column)?.first().copied();
    let missed = NetworkRequirement::ALL.iter().filter_map(|wanted| {
        let value = value(wanted.column).filter(|value| !wanted.is_met(*value))?;
        Some((wanted.miss(value), wanted.share.to_owned()))
    });
    let missed: Vec<(f64, String)> = missed.collect();
    let worst = missed.iter().map(|(miss, _)| *miss).reduce(f64::max)?;
    let columns = run.columns.iter().filter_map(|(name, values)| Some((name, values.first()?)));
    let outlier = NetworkOutlier {
        seed,
        network: setup.draw(seed).describe(),
        measured: columns.map(|(name, value)| (name.clone(), *value)).collect(),
        missed: missed.into_iter().map(|(_, share)| share).collect(),
    };
    Some((worst, outlier))
}
