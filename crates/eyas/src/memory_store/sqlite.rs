//! Stores the rows of the memory in a SQLite file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use eyas_race::evidence::NetworkId;
use eyas_race::memory::{
    MemoryConfig, MemoryEntry, MemoryKey, MemoryRecord, SCHEMA_VERSION, forget_row, learn_rows,
    name_row,
};
use eyas_race::target::TargetHost;
use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params,
};

use super::inspection::{APPLICATION_ID, FileError};
use super::{InstallationSecret, Learning, ObservedOutcome};

/// How long one process waits for another one that writes.
const BUSY_TIMEOUT: Duration = Duration::from_millis(250);
/// After this many written rows, expired rows and those over the cap are deleted.
const TIDY_AFTER: u32 = 64;

const COUNT_TABLES: &str = "SELECT count(*) FROM sqlite_schema";
const INSERT_SECRET: &str = "INSERT INTO installation (secret) VALUES (?1)";

/// An open file.
#[derive(Debug)]
pub(super) struct SqliteFile {
    connection: Connection,
    written: u32,
}

impl SqliteFile {
    /// Opens a file that was [inspected](super::inspection::inspect). An empty one gets its tables
    /// and this secret.
    pub(super) fn open(
        path: &Path,
        secret: InstallationSecret,
        config: &MemoryConfig,
        now: Duration,
    ) -> Result<Self, FileError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        let mut file = Self { connection, written: 0 };
        file.check_or_create(secret)?;
        file.use_wal()?;
        // Durable enough: a power cut may lose the last outcomes, never the file.
        file.connection.pragma_update(None, "synchronous", "NORMAL")?;
        file.tidy(config, now)?;
        Ok(file)
    }

    /// Checks or creates the file's header, which must be ours from the first commit on. So this
    /// must happen before the write-ahead log is enabled, which would hold the header back.
    fn check_or_create(&mut self, secret: InstallationSecret) -> Result<(), FileError> {
        // The file may have been replaced since the inspection, so only read it first.
        let (tables, application) = (self.tables()?, self.header("application_id")?);
        if application != i64::from(APPLICATION_ID) && (tables, application) != (0, 0) {
            return Err(FileError::NotOurs("it is the database of another program".into()));
        }
        if tables == 0 {
            return self.create(secret);
        }
        let version = self.header("user_version")?;
        if version != i64::from(SCHEMA_VERSION) {
            return Err(FileError::Damaged(format!(
                "its version is {version}, and this program knows version {SCHEMA_VERSION}"
            )));
        }
        Ok(())
    }

    fn create(&mut self, secret: InstallationSecret) -> Result<(), FileError> {
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let tables: i64 = transaction.query_row(COUNT_TABLES, [], |row| row.get(0))?;
        // Another process may have created them first.
        if tables == 0 {
            transaction.execute_batch(&format!(
                "CREATE TABLE rows (
                     key TEXT PRIMARY KEY NOT NULL,
                     at REAL NOT NULL,
                     entry TEXT NOT NULL
                 ) WITHOUT ROWID;
                 CREATE TABLE installation (secret BLOB NOT NULL);
                 PRAGMA application_id = {APPLICATION_ID};
                 PRAGMA user_version = {SCHEMA_VERSION};"
            ))?;
            transaction.execute(INSERT_SECRET, [secret.as_bytes()])?;
        }
        transaction.commit()?;
        Ok(())
    }

    fn tables(&self) -> rusqlite::Result<i64> {
        self.connection.query_row(COUNT_TABLES, [], |row| row.get(0))
    }

    fn header(&self, field: &str) -> rusqlite::Result<i64> {
        self.connection.query_row(&format!("PRAGMA {field}"), [], |row| row.get(0))
    }

    fn use_wal(&self) -> Result<(), FileError> {
        let mode = self
            .connection
            .query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0));
        match mode {
            Ok(mode) if mode.eq_ignore_ascii_case("wal") => {}
            Ok(mode) => tracing::debug!(mode, "the memory file's file system has no WAL"),
            // The process that has the file open right now enables it.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Checks the whole file for damage.
    pub(super) fn check(&self) -> Result<(), FileError> {
        self.secret()?;
        let result: String =
            self.connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        if result == "ok" { Ok(()) } else { Err(FileError::Damaged(result)) }
    }

    /// Returns the secret for names in this file.
    pub(super) fn secret(&self) -> Result<InstallationSecret, FileError> {
        let bytes: Option<Vec<u8>> = self
            .connection
            .query_row("SELECT secret FROM installation", [], |row| row.get(0))
            .optional()?;
        bytes
            .and_then(|bytes| InstallationSecret::from_bytes(&bytes))
            .ok_or_else(|| FileError::Damaged("it has no secret".into()))
    }

    /// Returns every row. Unreadable ones are ignored.
    pub(super) fn records(&self) -> Result<Vec<MemoryRecord>, FileError> {
        let mut statement =
            self.connection.prepare_cached("SELECT key, entry FROM rows ORDER BY key")?;
        let rows = statement.query_map([], text_pair)?;
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        Ok(rows
            .iter()
            .filter_map(|(key, entry)| parse(key, entry))
            .map(|(key, entry)| MemoryRecord { key, entry })
            .collect())
    }

    /// Returns the rows of one host on one network, and of that network.
    pub(super) fn rows_for(
        &self,
        network: &NetworkId,
        host: &TargetHost,
    ) -> Result<Vec<(MemoryKey, MemoryEntry)>, FileError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT key, entry FROM rows
             WHERE (key >= ?1 AND key < ?2) OR (key >= ?3 AND key < ?4)",
        )?;
        let peer = MemoryKey::peer_prefix(network, host);
        let path = MemoryKey::path_prefix(network);
        let rows = statement
            .query_map(params![peer, after_prefix(&peer), path, after_prefix(&path)], text_pair)?;
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        Ok(rows.iter().filter_map(|(key, entry)| parse(key, entry)).collect())
    }

    /// Returns one row.
    #[cfg(feature = "encrypted-dns")]
    pub(super) fn row(&self, key: &MemoryKey) -> Result<Option<MemoryEntry>, FileError> {
        Ok(read_row(&self.connection, key)?)
    }

    /// Stores what was learnt, merged with what other processes write at the same time.
    pub(super) fn learn(
        &mut self,
        learnt: &[Learning],
        config: &MemoryConfig,
    ) -> Result<(), FileError> {
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut rows = TransactionRows::new(&transaction);
        let mut prefixes = BTreeSet::new();
        let mut latest = Duration::ZERO;
        for learning in learnt {
            match learning {
                Learning::Outcome(ObservedOutcome { evidence, trust, network_name }) => {
                    let changed = learn_rows(&mut |key| rows.row(key), evidence, trust, config);
                    rows.change(changed);
                    if let Some(name) = network_name {
                        let known = rows.row(&MemoryKey::network(&evidence.network));
                        rows.change(name_row(known.as_ref(), &evidence.network, name, evidence.at));
                    }
                    prefixes.insert(MemoryKey::peer_prefix(&evidence.network, &evidence.host));
                    latest = evidence.at;
                }
                #[cfg(feature = "encrypted-dns")]
                Learning::Row(MemoryRecord { key, entry }) => {
                    rows.change([(key.clone(), entry.clone())]);
                    prefixes.insert(MemoryKey::resolver_prefix(&key.network));
                    latest = entry.updated_at();
                }
            }
        }
        rows.write()?;
        for prefix in prefixes {
            keep_newest(&transaction, &prefix, config)?;
        }
        transaction.commit()?;
        let before = self.written;
        self.written = before.wrapping_add(learnt.len() as u32);
        if before / TIDY_AFTER != self.written / TIDY_AFTER {
            self.tidy(config, latest)?;
        }
        Ok(())
    }

    /// Deletes what is known about one host on every network. Returns the number of rows deleted.
    pub(super) fn forget(&mut self, host: &TargetHost) -> Result<usize, FileError> {
        let records = self.records()?;
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut deleted = 0;
        for MemoryRecord { key, entry } in records {
            match forget_row(&key, entry.clone(), host) {
                None => deleted += delete_row(&transaction, &key)?,
                Some(remaining) if remaining != entry => write_row(&transaction, &key, &remaining)?,
                Some(_) => {}
            }
        }
        transaction.commit()?;
        self.erase_deleted()?;
        Ok(deleted)
    }

    /// Deletes everything.
    pub(super) fn clear(&mut self) -> Result<(), FileError> {
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch("DELETE FROM rows; DELETE FROM installation;")?;
        transaction.execute(INSERT_SECRET, [InstallationSecret::random().as_bytes()])?;
        transaction.commit()?;
        self.erase_deleted()
    }

    /// Erases deleted rows, so that they cannot be read in the file's free pages or in the log.
    fn erase_deleted(&mut self) -> Result<(), FileError> {
        self.connection.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);")?;
        Ok(())
    }

    fn tidy(&mut self, config: &MemoryConfig, now: Duration) -> Result<(), FileError> {
        let oldest = now.saturating_sub(config.keep_for.max(config.silent_for)).as_secs_f64();
        self.connection.execute("DELETE FROM rows WHERE at < ?1", [oldest])?;
        let cap = i64::try_from(config.max_rows).unwrap_or(i64::MAX);
        self.connection.execute(
            "DELETE FROM rows WHERE key IN (SELECT key FROM rows ORDER BY at DESC LIMIT -1 OFFSET ?1)",
            [cap],
        )?;
        Ok(())
    }
}

fn text_pair(row: &rusqlite::Row<'_>) -> rusqlite::Result<(String, String)> {
    Ok((row.get(0)?, row.get(1)?))
}

fn parse(key: &str, entry: &str) -> Option<(MemoryKey, MemoryEntry)> {
    Some((key.parse().ok()?, serde_json::from_str(entry).ok()?))
}

/// Returns the smallest text that is greater than every text with this prefix, which ends in `/`.
fn after_prefix(prefix: &str) -> String {
    let mut after = prefix.strip_suffix('/').unwrap_or(prefix).to_owned();
    after.push('0');
    after
}

/// The rows that a transaction changes: each is read and written once, however often it changes.
struct TransactionRows<'a> {
    transaction: &'a Transaction<'a>,
    rows: BTreeMap<MemoryKey, Option<MemoryEntry>>,
    changed: BTreeSet<MemoryKey>,
    error: Option<rusqlite::Error>,
}

impl<'a> TransactionRows<'a> {
    fn new(transaction: &'a Transaction<'a>) -> Self {
        Self { transaction, rows: BTreeMap::new(), changed: BTreeSet::new(), error: None }
    }

    /// Returns the current state of a row; an error is returned by [`write`](Self::write).
    fn row(&mut self, key: &MemoryKey) -> Option<MemoryEntry> {
        if let Some(row) = self.rows.get(key) {
            return row.clone();
        }
        let row = read_row(self.transaction, key).unwrap_or_else(|error| {
            self.error = Some(error);
            None
        });
        self.rows.insert(key.clone(), row.clone());
        row
    }

    fn change(&mut self, rows: impl IntoIterator<Item = (MemoryKey, MemoryEntry)>) {
        for (key, entry) in rows {
            self.changed.insert(key.clone());
            self.rows.insert(key, Some(entry));
        }
    }

    fn write(self) -> Result<(), FileError> {
        if let Some(error) = self.error {
            return Err(error.into());
        }
        for (key, row) in &self.rows {
            if let Some(entry) = row.as_ref().filter(|_| self.changed.contains(key)) {
                write_row(self.transaction, key, entry)?;
            }
        }
        Ok(())
    }
}

fn read_row(connection: &Connection, key: &MemoryKey) -> rusqlite::Result<Option<MemoryEntry>> {
    let mut statement = connection.prepare_cached("SELECT entry FROM rows WHERE key = ?1")?;
    let entry: Option<String> =
        statement.query_row([key.to_string()], |row| row.get(0)).optional()?;
    Ok(entry.and_then(|entry| serde_json::from_str(&entry).ok()))
}

fn write_row(
    transaction: &Transaction<'_>,
    key: &MemoryKey,
    entry: &MemoryEntry,
) -> Result<(), FileError> {
    let text =
        serde_json::to_string(entry).map_err(|error| FileError::Unusable(error.to_string()))?;
    transaction
        .prepare_cached("INSERT OR REPLACE INTO rows (key, at, entry) VALUES (?1, ?2, ?3)")?
        .execute(params![key.to_string(), entry.updated_at().as_secs_f64(), text])?;
    Ok(())
}

fn delete_row(transaction: &Transaction<'_>, key: &MemoryKey) -> rusqlite::Result<usize> {
    transaction.prepare_cached("DELETE FROM rows WHERE key = ?1")?.execute([key.to_string()])
}

/// Deletes the oldest rows with this prefix, if they are too many.
fn keep_newest(
    transaction: &Transaction<'_>,
    prefix: &str,
    config: &MemoryConfig,
) -> rusqlite::Result<()> {
    let cap = i64::try_from(config.max_rows_per_host).unwrap_or(i64::MAX);
    transaction
        .prepare_cached(
            "DELETE FROM rows WHERE key IN (
                 SELECT key FROM rows WHERE key >= ?1 AND key < ?2
                 ORDER BY at DESC LIMIT -1 OFFSET ?3)",
        )?
        .execute(params![prefix, after_prefix(prefix), cap])?;
    Ok(())
}

#[cfg(test)]
impl SqliteFile {
    pub(super) fn set_pragma(&self, name: &str, value: &str) {
        let sql = format!("PRAGMA {name} = {value}");
        self.connection.query_row(&sql, [], |_| Ok(())).optional().unwrap();
    }
}
