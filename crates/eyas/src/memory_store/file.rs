//! A memory file, and the handling of its failures.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use eyas_race::evidence::NetworkId;
use eyas_race::memory::{
    MemoryConfig, MemoryEntry, MemoryKey, MemoryRecord, forget_row, learn_rows,
};
use eyas_race::target::TargetHost;

use super::inspection::{self, FileError, FileInspection};
use super::platform::FileId;
use super::set_aside::set_aside;
use super::sqlite::SqliteFile;
use super::{InstallationSecret, Learning, ObservedOutcome};

/// The maximum number of rows kept in this process because they could not be written.
const MAX_UNWRITTEN: usize = 1_000;

/// A result that always exists, with warnings for the caller.
#[must_use]
pub(super) struct WithWarnings<T> {
    pub(super) value: T,
    pub(super) warnings: Vec<String>,
}

/// Returns whether a file in which damage was detected can now be opened without errors.
fn is_sound(path: &Path, config: &MemoryConfig, now: Duration) -> bool {
    let opened = SqliteFile::open(path, InstallationSecret::random(), config, now);
    opened.and_then(|file| file.check()).is_ok()
}

/// A memory file. What cannot be written to it stays in this process.
#[derive(Debug)]
pub(super) struct MemoryFile {
    path: PathBuf,
    sqlite: Option<SqliteFile>,
    /// The identity of the file that was last opened at that path.
    id: Option<FileId>,
    secret: InstallationSecret,
    /// Rows that are newer than those in the file.
    unwritten: BTreeMap<MemoryKey, MemoryEntry>,
    /// Whether the last write failed; a problem is reported only once.
    is_failing: bool,
}

impl MemoryFile {
    pub(super) fn open(
        path: &Path,
        config: &MemoryConfig,
        now: Duration,
        warnings: &mut Vec<String>,
    ) -> Self {
        let mut file = Self {
            path: path.to_owned(),
            sqlite: None,
            id: None,
            secret: InstallationSecret::for_process(),
            unwritten: BTreeMap::new(),
            is_failing: false,
        };
        let mut opened = file.reopen(InstallationSecret::random(), config, now);
        if let Err(FileError::Damaged(why)) = &opened {
            let is_sound = || is_sound(path, config, now);
            warnings.push(file.set_aside_damaged(why, is_sound, now));
            opened = file.reopen(InstallationSecret::random(), config, now);
        }
        match opened {
            Ok(warning) => warnings.extend(warning),
            Err(error @ FileError::NotOurs(_)) => warnings.push(format!(
                "{} {error}; nothing was changed, and what is learnt is lost when the program ends",
                path.display()
            )),
            Err(error) => warnings.push(format!(
                "memory file {} cannot be used: {error}; what is learnt is lost when the \
                 program ends",
                path.display()
            )),
        }
        file
    }

    /// Opens the file, or creates it with this secret. Returns warnings for the user.
    fn reopen(
        &mut self,
        secret: InstallationSecret,
        config: &MemoryConfig,
        now: Duration,
    ) -> Result<Option<String>, FileError> {
        let file = match inspection::inspect(&self.path)? {
            FileInspection::Missing => inspection::create(&self.path)?,
            FileInspection::Usable(file) => file,
        };
        self.id = Some(file.id);
        let sqlite = SqliteFile::open(&file.path, secret, config, now)?;
        self.secret = sqlite.secret()?;
        self.sqlite = Some(sqlite);
        Ok(file.is_open_to_others.then(|| {
            format!(
                "memory file {} can be read by other users; chmod 600 keeps it to you",
                self.path.display()
            )
        }))
    }

    /// Returns whether the file is in use.
    pub(super) const fn is_open(&self) -> bool {
        self.sqlite.is_some()
    }

    /// Returns the secret for names that must be stable for this file.
    pub(super) const fn secret(&self) -> InstallationSecret {
        self.secret
    }

    fn set_aside_damaged(
        &mut self,
        why: &str,
        is_sound: impl FnOnce() -> bool,
        now: Duration,
    ) -> String {
        self.sqlite = None;
        let path = self.path.display();
        match self.id.map(|id| set_aside(&self.path, id, is_sound, now)) {
            Some(Ok(Some(aside))) => format!(
                "memory file {path} cannot be read: {why}; it was set aside as {} and a new one \
                 begun",
                aside.display()
            ),
            Some(Ok(None)) | None => {
                format!(
                    "memory file {path} could not be read: {why}; it has been replaced meanwhile"
                )
            }
            Some(Err(error)) => format!(
                "memory file {path} cannot be read: {why}; it could not be set aside either: {error}"
            ),
        }
    }

    /// Executes an operation on the file, and reports repeated failures only once.
    fn with_file<T: Default>(
        &mut self,
        action: impl FnOnce(&mut SqliteFile) -> Result<T, FileError>,
    ) -> (Option<T>, Vec<String>) {
        let Some(sqlite) = &mut self.sqlite else { return (None, Vec::new()) };
        match action(sqlite) {
            Ok(value) => (Some(value), Vec::new()),
            Err(FileError::Damaged(why)) => {
                // No other process replaces the companions of an open file, so this is real damage.
                let warning = self.set_aside_damaged(&why, || false, super::now());
                let mut warnings = vec![warning];
                // Holders of the secret continue to name networks with it.
                let opened = self.reopen(self.secret, &MemoryConfig::default(), super::now());
                warnings.extend(opened.err().map(|error| error.to_string()));
                (None, warnings)
            }
            Err(_) if self.is_failing => (None, Vec::new()),
            Err(error) => {
                self.is_failing = true;
                let warning = format!(
                    "memory file {}: {error}; what is learnt stays in this process meanwhile",
                    self.path.display()
                );
                (None, vec![warning])
            }
        }
    }

    pub(super) fn records(&mut self) -> WithWarnings<Vec<MemoryRecord>> {
        let (records, warnings) = self.with_file(|sqlite| sqlite.records());
        let mut rows: BTreeMap<MemoryKey, MemoryEntry> = records
            .unwrap_or_default()
            .into_iter()
            .map(|record| (record.key, record.entry))
            .collect();
        rows.extend(self.unwritten.clone());
        let value = rows.into_iter().map(|(key, entry)| MemoryRecord { key, entry }).collect();
        WithWarnings { value, warnings }
    }

    pub(super) fn rows_for(
        &mut self,
        network: &NetworkId,
        host: &TargetHost,
    ) -> WithWarnings<BTreeMap<MemoryKey, MemoryEntry>> {
        let (rows, warnings) = self.with_file(|sqlite| sqlite.rows_for(network, host));
        let mut rows: BTreeMap<MemoryKey, MemoryEntry> =
            rows.unwrap_or_default().into_iter().collect();
        let matching = self.unwritten.iter().filter(|(key, _)| {
            key.network == *network && key.host().is_none_or(|row_host| row_host == host)
        });
        rows.extend(matching.map(|(key, entry)| (key.clone(), entry.clone())));
        WithWarnings { value: rows, warnings }
    }

    /// Returns one row.
    #[cfg(feature = "encrypted-dns")]
    pub(super) fn row(&mut self, key: &MemoryKey) -> WithWarnings<Option<MemoryEntry>> {
        if let Some(entry) = self.unwritten.get(key) {
            return WithWarnings { value: Some(entry.clone()), warnings: Vec::new() };
        }
        let (row, warnings) = self.with_file(|sqlite| sqlite.row(key));
        WithWarnings { value: row.flatten(), warnings }
    }

    pub(super) fn learn(&mut self, learnt: &[Learning], config: &MemoryConfig) -> WithWarnings<()> {
        let (written, warnings) = self.with_file(|sqlite| sqlite.learn(learnt, config));
        if written.is_some() {
            self.is_failing = false;
        }
        let unwritten = &mut self.unwritten;
        if written.is_some() && unwritten.is_empty() {
            return WithWarnings { value: (), warnings };
        }
        for learning in learnt {
            let rows = match learning {
                Learning::Outcome(ObservedOutcome { evidence, trust, network_name: _ }) => {
                    let existing = &mut |key: &MemoryKey| unwritten.get(key).cloned();
                    learn_rows(existing, evidence, trust, config)
                }
                #[cfg(feature = "encrypted-dns")]
                Learning::Row(MemoryRecord { key, entry }) => vec![(key.clone(), entry.clone())],
            };
            for (key, entry) in rows {
                if written.is_some() {
                    // The row is in the file again.
                    unwritten.remove(&key);
                } else {
                    unwritten.insert(key, entry);
                }
            }
        }
        while unwritten.len() > MAX_UNWRITTEN {
            unwritten.pop_first();
        }
        WithWarnings { value: (), warnings }
    }

    pub(super) fn forget(&mut self, host: &TargetHost) -> WithWarnings<usize> {
        let before = self.unwritten.len();
        let rows = std::mem::take(&mut self.unwritten);
        self.unwritten = rows
            .into_iter()
            .filter_map(|(key, entry)| forget_row(&key, entry, host).map(|entry| (key, entry)))
            .collect();
        let unwritten = before - self.unwritten.len();
        let (deleted, warnings) = self.with_file(|sqlite| sqlite.forget(host));
        WithWarnings { value: unwritten + deleted.unwrap_or_default(), warnings }
    }

    pub(super) fn clear(&mut self) -> WithWarnings<()> {
        self.unwritten.clear();
        let (_, warnings) = self.with_file(SqliteFile::clear);
        WithWarnings { value: (), warnings }
    }
}

#[cfg(test)]
impl MemoryFile {
    pub(super) fn make_read_only(&mut self) {
        self.pragma("query_only", "ON");
    }

    pub(super) fn make_full(&mut self) {
        self.pragma("max_page_count", "1");
    }

    /// Simulates a query that detects a damaged page.
    pub(super) fn find_damage(&mut self) -> Vec<String> {
        self.with_file::<()>(|_| Err(FileError::Damaged("simulated by a test".into()))).1
    }

    fn pragma(&mut self, name: &str, value: &str) {
        if let Some(sqlite) = &mut self.sqlite {
            sqlite.set_pragma(name, value);
        }
    }
}
