//! Finished runs, kept in the output directory, so that an interrupted experiment can be resumed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::ResultsError;
use crate::printable::make_printable;
use crate::run::RunResult;
use crate::situation::{GridPoint, Situation};

/// The name of the directory of finished runs in the output directory.
const RUNS: &str = "runs";

/// Finished runs of one plan.
#[derive(Debug)]
pub struct RunStore {
    directory: PathBuf,
    version: String,
    points: BTreeMap<String, PointFile>,
}

/// A file with the runs of one point, and the situation that they are runs of.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct PointFile {
    /// The version of the code that executed them.
    version: String,
    setup: Situation,
    /// The runs by seed.
    runs: BTreeMap<u64, RunResult>,
}

impl RunStore {
    /// Opens an output directory, creating it if necessary. `version` identifies the code: runs of
    /// other versions are ignored.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn open(out: &Path, version: &str) -> Result<Self, ResultsError> {
        let directory = out.join(RUNS);
        create_directory(&directory)?;
        Ok(Self { directory, version: version.to_owned(), points: BTreeMap::new() })
    }

    /// Opens the runs in an output directory for reading only.
    pub(crate) fn open_existing(out: &Path, version: &str) -> Self {
        let directory = out.join(RUNS);
        Self { directory, version: version.to_owned(), points: BTreeMap::new() }
    }

    /// Loads earlier runs of this point. A file that cannot be read, or is of another version or
    /// situation, is ignored and overwritten.
    pub fn load(&mut self, point: &GridPoint) {
        let fresh = PointFile {
            version: self.version.clone(),
            setup: point.situation.clone(),
            runs: BTreeMap::new(),
        };
        let kept = fs::read(self.file(&point.id))
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok())
            .and_then(|mut value: serde_json::Value| {
                make_printable(&mut value);
                serde_json::from_value::<PointFile>(value).ok()
            })
            .filter(|file| file.version == self.version && file.setup == point.situation);
        self.points.insert(point.id.clone(), kept.unwrap_or(fresh));
    }

    /// Returns a finished run.
    #[must_use]
    pub fn get(&self, point: &str, seed: u64) -> Option<&RunResult> {
        self.points.get(point)?.runs.get(&seed)
    }

    /// Stores a finished run of a point that was loaded. The file is complete at any time.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(&mut self, point: &str, seed: u64, run: RunResult) -> Result<(), ResultsError> {
        self.keep_all(point, [(seed, run)])
    }

    /// Stores finished runs of a point that was loaded, by their seeds. The file is complete at any
    /// time.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep_all(
        &mut self,
        point: &str,
        runs: impl IntoIterator<Item = (u64, RunResult)>,
    ) -> Result<(), ResultsError> {
        let path = self.file(point);
        let Some(file) = self.points.get_mut(point) else { return Ok(()) };
        file.runs.extend(runs);
        let text = serde_json::to_string(file).map_err(|cause| ResultsError::Content {
            path: path.clone(),
            cause: cause.to_string(),
        })?;
        write_atomically(&path, &text)
    }

    fn file(&self, point: &str) -> PathBuf {
        self.directory.join(format!("{point}.json"))
    }
}

/// Writes a file atomically.
pub(crate) fn write_atomically(path: &Path, content: impl AsRef<[u8]>) -> Result<(), ResultsError> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    let temporary = PathBuf::from(temporary);
    fs::write(&temporary, content).map_err(|cause| io(&temporary, cause))?;
    fs::rename(&temporary, path).map_err(|cause| io(path, cause))
}

/// Creates a directory, unless it exists.
pub(crate) fn create_directory(path: &Path) -> Result<(), ResultsError> {
    fs::create_dir_all(path).map_err(|cause| io(path, cause))
}

/// Reads a whole file.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, ResultsError> {
    fs::read(path).map_err(|cause| io(path, cause))
}

fn io(path: &Path, cause: std::io::Error) -> ResultsError {
    ResultsError::Io { path: path.to_owned(), cause }
}
