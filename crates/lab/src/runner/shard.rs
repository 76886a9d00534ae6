//! Shards: equal shares of a plan's runs, each run by a separate program on any machine.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::plan::{Plan, PlanError, PlanOptions};
use crate::printable::printable;
use crate::results::{ResultsError, create_directory, read_file, write_atomically};

/// The file name in the output directory of a shard.
const FILE: &str = "shard.json";
/// The maximum number of shards, more than any cluster has tasks.
const MAX_SHARDS: u32 = 1_000_000;

/// One of several equal shares of a plan's runs, written `1/4`: the first of four.
///
/// Runs are dealt like cards, in the order in which they would be run, so that all shards get about
/// the same number of runs of each point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PlanShard {
    /// The number, starting at 1.
    number: u32,
    /// The number of shards.
    of: u32,
}

/// The text is not a [`PlanShard`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a shard: write 1/4 for the first of four")]
pub struct ParseShardError(String);

impl PlanShard {
    /// Returns the shard with this number, starting at 1.
    #[must_use]
    pub const fn new(number: u32, of: u32) -> Option<Self> {
        if number >= 1 && number <= of && of <= MAX_SHARDS {
            Some(Self { number, of })
        } else {
            None
        }
    }

    /// Returns the number of shards.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.of
    }

    /// Returns the shard that a run belongs to, by its place in the order of all runs.
    #[must_use]
    pub const fn from_place(place: usize, of: u32) -> Self {
        Self { number: (place % of as usize) as u32 + 1, of }
    }
}

impl fmt::Display for PlanShard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for PlanShard {
    type Err = ParseShardError;

    fn from_str(text: &str) -> Result<Self, ParseShardError> {
        let refused = || ParseShardError(text.to_owned());
        let (number, of) = text.split_once('/').ok_or_else(refused)?;
        let number_of = |part: &str| part.parse::<u32>().map_err(|_| refused());
        Self::new(number_of(number)?, number_of(of)?).ok_or_else(refused)
    }
}

impl TryFrom<String> for PlanShard {
    type Error = ParseShardError;

    fn try_from(text: String) -> Result<Self, ParseShardError> {
        text.parse()
    }
}

impl From<PlanShard> for String {
    fn from(shard: PlanShard) -> Self {
        shard.to_string()
    }
}

/// `shard.json`: which shard of which runs an output directory contains. It has everything that is
/// needed to merge the shards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShardFile {
    /// The shard.
    pub shard: PlanShard,
    /// The name of the plan.
    pub name: String,
    /// The version of the code that runs it.
    pub version: String,
    /// The seed of the first run of each point.
    pub seed: u64,
    /// How the plan is run.
    pub options: PlanOptions,
    /// The text of the plan.
    pub plan: String,
}

impl ShardFile {
    /// Reads the file in an output directory.
    ///
    /// # Errors
    /// If there is none, or it is invalid.
    pub fn read(out: &Path) -> Result<Self, ResultsError> {
        let path = out.join(FILE);
        let text = read_file(&path)?;
        serde_json::from_slice(&text)
            .map_err(|cause| ResultsError::Content { path, cause: printable(&cause.to_string()) })
    }

    /// Claims an output directory, or confirms that it already belongs to this shard.
    ///
    /// # Errors
    /// If it belongs to another shard, whose runs would be lost, or cannot be written.
    pub(super) fn claim(&self, out: &Path) -> Result<(), ResultsError> {
        let path = out.join(FILE);
        if let Ok(other) = Self::read(out)
            && other.shard != self.shard
        {
            let cause = format!(
                "the directory belongs to shard {}; use another one for shard {}",
                other.shard, self.shard
            );
            return Err(ResultsError::Content { path, cause });
        }
        create_directory(out)?;
        let text = serde_json::to_string_pretty(self).map_err(|cause| ResultsError::Content {
            path: path.clone(),
            cause: cause.to_string(),
        })?;
        write_atomically(&path, &(text + "\n"))
    }

    /// Parses the plan, as it was run.
    ///
    /// # Errors
    /// If this code cannot parse it.
    pub fn parse(&self) -> Result<Plan, PlanError> {
        Plan::parse(&self.plan, &self.options)
    }

    /// Describes in what respect these are not shards of the same runs; `None` if they are.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        let pairs = [
            ("the plan", self.name.clone(), other.name.clone()),
            ("the number of shards", self.shard.of.to_string(), other.shard.of.to_string()),
            ("--seed", self.seed.to_string(), other.seed.to_string()),
            ("the extent", extent(&self.options), extent(&other.options)),
            ("--runs", runs(&self.options), runs(&other.options)),
            ("--set", self.options.set.join(" "), other.options.set.join(" ")),
        ];
        let reported = pairs.into_iter().find(|(_, first, second)| first != second);
        match reported {
            Some((what, first, second)) => {
                Some(format!("{what} is {first:?} in the first and {second:?} in the second"))
            }
            None if self.plan != other.plan => {
                Some(format!("the text of the plan {} was changed", self.name))
            }
            None => None,
        }
    }
}

fn extent(options: &PlanOptions) -> String {
    options.extent.name().unwrap_or("full").to_owned()
}

fn runs(options: &PlanOptions) -> String {
    options.runs.map_or_else(|| "not given".to_owned(), |runs| runs.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_written_as_people_write_them() {
        let shard: PlanShard = "2/4".parse().unwrap();
        assert_eq!(Some(shard), PlanShard::new(2, 4));
        assert_eq!(shard.to_string(), "2/4");
        for text in ["", "0/4", "5/4", "1/0", "1", "1/2/3", "-1/4", "1/9999999", "a/b"] {
            let error = text.parse::<PlanShard>().unwrap_err().to_string();
            assert!(error.contains("1/4"), "{error}");
        }
    }

    #[test]
    fn runs_are_dealt_like_cards() {
        let dealt: Vec<String> =
            (0..5).map(|place| PlanShard::from_place(place, 3).to_string()).collect();
        assert_eq!(dealt, ["1/3", "2/3", "3/3", "1/3", "2/3"]);
    }
}
