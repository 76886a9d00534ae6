//! A memory file, and the handling of its failures.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use eyas_race::evidence::NetworkId;
use eyas_race::memory::{Config, Entry, Key, Record, forget_row, learn_rows};
use eyas_race::target::Host;

use super::place::{self, FileId, Found, Trouble};
use super::set_aside::set_aside;
use super::sqlite::Sqlite;
use super::{Lesson, Secret};

/// Rows kept in this process because the file did not take them.
const MAX_UNWRITTEN: usize = 1_000;

/// A result that always exists, with warnings for the caller.
#[must_use]
pub(super) struct Outcome<T> {
    pub(super) value: T,
    pub(super) warnings: Vec<String>,
}

/// Returns whether a file in which damage was detected opens now without errors.
fn is_sound(path: &Path, config: &Config, now: Duration) -> bool {
    let opened = Sqlite::open(path, Secret::drawn(), config, now);
    opened.and_then(|file| file.check()).is_ok()
}

/// A memory file. What it does not take stays in this process.
#[derive(Debug)]
pub(super) struct File {
    path: PathBuf,
    sqlite: Option<Sqlite>,
    /// Which file was opened last under that path.
    id: Option<FileId>,
    secret: Secret,
    /// Newer than the contents of the file.
    unwritten: BTreeMap<Key, Entry>,
    /// Whether the last write failed: a problem is reported once.
    in_trouble: bool,
}

impl File {
    pub(super) fn open(
        path: &Path,
        config: &Config,
        now: Duration,
        warnings: &mut Vec<String>,
    ) -> Self {
        let mut file = Self {
            path: path.to_owned(),
            sqlite: None,
            id: None,
            secret: Secret::of_process(),
            unwritten: BTreeMap::new(),
            in_trouble: false,
        };
        let mut opened = file.reopen(Secret::drawn(), config, now);
        if let Err(Trouble::Damaged(why)) = &opened {
            let is_sound = || is_sound(path, config, now);
            warnings.push(file.put_aside(why, is_sound, now));
            opened = file.reopen(Secret::drawn(), config, now);
        }
        match opened {
            Ok(warning) => warnings.extend(warning),
            Err(trouble @ Trouble::NotOurs(_)) => warnings.push(format!(
                "{} {trouble}; nothing was changed, and what is learnt is lost when the program ends",
                path.display()
            )),
            Err(trouble) => warnings.push(format!(
                "memory file {} cannot be used: {trouble}; what is learnt is lost when the \
                 program ends",
                path.display()
            )),
        }
        file
    }

    /// Opens the file, or creates it with this secret. Returns warnings for the user.
    fn reopen(
        &mut self,
        secret: Secret,
        config: &Config,
        now: Duration,
    ) -> Result<Option<String>, Trouble> {
        let found = place::inspect(&self.path)?;
        let place = match found {
            Found::Nothing => place::make(&self.path)?,
            Found::Usable(place) => place,
        };
        self.id = Some(place.id);
        let sqlite = Sqlite::open(&place.path, secret, config, now)?;
        self.secret = sqlite.secret()?;
        self.sqlite = Some(sqlite);
        Ok(place.is_open_to_others().then(|| {
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
    pub(super) const fn secret(&self) -> Secret {
        self.secret
    }

    fn put_aside(&mut self, why: &str, is_sound: impl FnOnce() -> bool, now: Duration) -> String {
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

    /// Executes an operation on the file, and reports a failure at most once.
    fn with_file<T: Default>(
        &mut self,
        action: impl FnOnce(&mut Sqlite) -> Result<T, Trouble>,
    ) -> (Option<T>, Vec<String>) {
        let Some(sqlite) = &mut self.sqlite else { return (None, Vec::new()) };
        match action(sqlite) {
            Ok(value) => (Some(value), Vec::new()),
            Err(Trouble::Damaged(why)) => {
                // What was open has its files to itself: damage there is damage.
                let warning = self.put_aside(&why, || false, super::now());
                let mut warnings = vec![warning];
                // Holders of the secret continue to name networks with it.
                let opened = self.reopen(self.secret, &Config::default(), super::now());
                warnings.extend(opened.err().map(|trouble| trouble.to_string()));
                (None, warnings)
            }
            Err(_) if self.in_trouble => (None, Vec::new()),
            Err(trouble) => {
                self.in_trouble = true;
                let warning = format!(
                    "memory file {}: {trouble}; what is learnt stays in this process meanwhile",
                    self.path.display()
                );
                (None, vec![warning])
            }
        }
    }

    pub(super) fn records(&mut self) -> Outcome<Vec<Record>> {
        let (records, warnings) = self.with_file(|sqlite| sqlite.records());
        let mut rows: BTreeMap<Key, Entry> = records
            .unwrap_or_default()
            .into_iter()
            .map(|record| (record.key, record.entry))
            .collect();
        rows.extend(self.unwritten.clone());
        let value = rows.into_iter().map(|(key, entry)| Record { key, entry }).collect();
        Outcome { value, warnings }
    }

    pub(super) fn rows_for(
        &mut self,
        network: &NetworkId,
        host: &Host,
    ) -> Outcome<BTreeMap<Key, Entry>> {
        let (rows, warnings) = self.with_file(|sqlite| sqlite.rows_for(network, host));
        let mut rows: BTreeMap<Key, Entry> = rows.unwrap_or_default().into_iter().collect();
        let of_race = self.unwritten.iter().filter(|(key, _)| {
            key.network == *network && key.host().is_none_or(|about| about == host)
        });
        rows.extend(of_race.map(|(key, entry)| (key.clone(), entry.clone())));
        Outcome { value: rows, warnings }
    }

    pub(super) fn learn(&mut self, lesson: &Lesson, config: &Config) -> Outcome<()> {
        let (learnt, warnings) = self.with_file(|sqlite| sqlite.learn(lesson, config));
        if learnt.is_some() {
            self.in_trouble = false;
        }
        let unwritten = &mut self.unwritten;
        if learnt.is_some() && unwritten.is_empty() {
            return Outcome { value: (), warnings };
        }
        let existing = &mut |key: &Key| unwritten.get(key).cloned();
        let rows = learn_rows(existing, &lesson.evidence, &lesson.trust, config);
        for (key, entry) in rows {
            if learnt.is_some() {
                // The file has taken it, and speaks for itself again.
                unwritten.remove(&key);
            } else {
                unwritten.insert(key, entry);
            }
        }
        while unwritten.len() > MAX_UNWRITTEN {
            unwritten.pop_first();
        }
        Outcome { value: (), warnings }
    }

    pub(super) fn forget(&mut self, host: &Host) -> Outcome<usize> {
        let before = self.unwritten.len();
        let rows = std::mem::take(&mut self.unwritten);
        self.unwritten = rows
            .into_iter()
            .filter_map(|(key, entry)| forget_row(&key, entry, host).map(|entry| (key, entry)))
            .collect();
        let here = before - self.unwritten.len();
        let (deleted, warnings) = self.with_file(|sqlite| sqlite.forget(host));
        Outcome { value: here + deleted.unwrap_or_default(), warnings }
    }

    pub(super) fn clear(&mut self) -> Outcome<()> {
        self.unwritten.clear();
        let (_, warnings) = self.with_file(Sqlite::clear);
        Outcome { value: (), warnings }
    }
}

#[cfg(test)]
impl File {
    pub(super) fn make_read_only(&mut self) {
        self.pragma("query_only", "ON");
    }

    pub(super) fn make_full(&mut self) {
        self.pragma("max_page_count", "1");
    }

    /// Simulates a query that detects a damaged page.
    pub(super) fn find_damage(&mut self) -> Vec<String> {
        self.with_file::<()>(|_| Err(Trouble::Damaged("the test wants it so".into()))).1
    }

    fn pragma(&mut self, name: &str, value: &str) {
        if let Some(sqlite) = &mut self.sqlite {
            sqlite.set_pragma(name, value);
        }
    }
}
