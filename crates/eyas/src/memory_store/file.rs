//! A memory file with all that can go wrong with one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use eyas_race::evidence::{Evidence, NetworkId};
use eyas_race::memory::{Config, Entry, Key, Record, forget_row, learn_rows};
use eyas_race::target::Host;

use super::set_aside::set_aside;
use super::sqlite::{Sqlite, Trouble};

/// Rows kept in this process because the file did not take them.
const MAX_UNWRITTEN: usize = 1_000;

/// A result that is always there, and what the caller should know.
#[must_use]
pub(super) struct Outcome<T> {
    pub(super) value: T,
    pub(super) warnings: Vec<String>,
}

/// A memory file. What it does not take stays in this process.
#[derive(Debug)]
pub(super) struct File {
    path: PathBuf,
    sqlite: Option<Sqlite>,
    /// Newer than what the file says.
    unwritten: BTreeMap<Key, Entry>,
    /// Whether the last write failed: one trouble is told once.
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
            unwritten: BTreeMap::new(),
            in_trouble: false,
        };
        let mut opened = Sqlite::open(path, config, now);
        if let Err(Trouble::Damaged(why)) = &opened {
            warnings.push(file.put_aside(why, now));
            opened = Sqlite::open(path, config, now);
        }
        match opened {
            Ok(sqlite) => file.sqlite = Some(sqlite),
            Err(trouble) => warnings.push(format!(
                "memory file {} cannot be used: {trouble}; what is learnt is lost when the \
                 program ends",
                path.display()
            )),
        }
        file
    }

    fn put_aside(&mut self, why: &str, now: Duration) -> String {
        self.sqlite = None;
        let path = self.path.display();
        match set_aside(&self.path, now) {
            Ok(aside) => format!(
                "memory file {path} cannot be read: {why}; it was set aside as {} and a new one \
                 begun",
                aside.display()
            ),
            Err(error) => format!(
                "memory file {path} cannot be read: {why}; nor could it be set aside: {error}"
            ),
        }
    }

    /// Carries out what needs the file, and says at most once that it went wrong.
    fn with_file<T: Default>(
        &mut self,
        action: impl FnOnce(&mut Sqlite) -> Result<T, Trouble>,
    ) -> (Option<T>, Vec<String>) {
        let Some(sqlite) = &mut self.sqlite else { return (None, Vec::new()) };
        match action(sqlite) {
            Ok(value) => (Some(value), Vec::new()),
            Err(Trouble::Damaged(why)) => {
                let warning = self.put_aside(&why, super::now());
                self.sqlite = Sqlite::open(&self.path, &Config::default(), super::now()).ok();
                (None, vec![warning])
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

    pub(super) fn learn(&mut self, evidence: &Evidence, config: &Config) -> Outcome<()> {
        let (learnt, warnings) = self.with_file(|sqlite| sqlite.learn(evidence, config));
        if learnt.is_some() {
            self.in_trouble = false;
        }
        let unwritten = &mut self.unwritten;
        if learnt.is_some() && unwritten.is_empty() {
            return Outcome { value: (), warnings };
        }
        let rows = learn_rows(&mut |key| unwritten.get(key).cloned(), evidence, config);
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

    fn pragma(&mut self, name: &str, value: &str) {
        if let Some(sqlite) = &mut self.sqlite {
            sqlite.set_pragma(name, value);
        }
    }
}
