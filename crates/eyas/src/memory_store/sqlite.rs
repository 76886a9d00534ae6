//! The memory's rows in a SQLite file.

use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use eyas_race::evidence::{Evidence, NetworkId};
use eyas_race::memory::{Config, Entry, Key, Record, SCHEMA_VERSION, forget_row, learn_rows};
use eyas_race::target::Host;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

/// How long one process waits for another that writes.
const BUSY_TIME: Duration = Duration::from_millis(250);
/// "eyas", so that a file of somebody else is known as such.
const APPLICATION_ID: i32 = i32::from_be_bytes(*b"eyas");
/// After so many rows written, expired rows and those over the cap are deleted.
const TIDY_AFTER: u32 = 64;

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    /// It is not what it should be, and a new one can take its place.
    #[error("{0}")]
    Damaged(String),
    /// It belongs to another program.
    #[error("it is the database of another program")]
    Foreign,
    /// For the moment, or for this process, it cannot be read or written.
    #[error("{0}")]
    Unusable(String),
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                Self::Damaged(error.to_string())
            }
            _ => Self::Unusable(error.to_string()),
        }
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Unusable(error.to_string())
    }
}

/// An open file.
#[derive(Debug)]
pub(super) struct Sqlite {
    connection: Connection,
    written: u32,
}

impl Sqlite {
    /// Opens the file, or makes it.
    pub(super) fn open(path: &Path, config: &Config, now: Duration) -> Result<Self, Trouble> {
        make_private(path)?;
        let connection = Connection::open(path)?;
        connection.busy_timeout(BUSY_TIME)?;
        let mut file = Self { connection, written: 0 };
        file.check_or_create()?;
        // Durable enough: a power cut may lose the last outcomes, never the file.
        file.connection.pragma_update(None, "synchronous", "NORMAL")?;
        file.tidy(config, now)?;
        Ok(file)
    }

    fn check_or_create(&mut self) -> Result<(), Trouble> {
        let mode: String =
            self.connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
        if !mode.eq_ignore_ascii_case("wal") {
            tracing::debug!(mode, "the memory file's file system has no WAL");
        }
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let pragma = |name: &str| {
            transaction.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i64>(0))
        };
        let tables: i64 =
            transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        let (version, application) = (pragma("user_version")?, pragma("application_id")?);
        match (tables, application) {
            (0, _) => {
                transaction.execute_batch(&format!(
                    "CREATE TABLE rows (
                         key TEXT PRIMARY KEY NOT NULL,
                         at REAL NOT NULL,
                         entry TEXT NOT NULL
                     ) WITHOUT ROWID;
                     PRAGMA application_id = {APPLICATION_ID};
                     PRAGMA user_version = {SCHEMA_VERSION};"
                ))?;
            }
            (_, application) if application != i64::from(APPLICATION_ID) => {
                return Err(Trouble::Foreign);
            }
            _ if version != i64::from(SCHEMA_VERSION) => {
                return Err(Trouble::Damaged(format!(
                    "its version is {version}, and this program knows version {SCHEMA_VERSION}"
                )));
            }
            _ => {}
        }
        transaction.commit()?;
        Ok(())
    }

    /// Every row. What cannot be read says nothing.
    pub(super) fn records(&self) -> Result<Vec<Record>, Trouble> {
        let mut statement =
            self.connection.prepare_cached("SELECT key, entry FROM rows ORDER BY key")?;
        let rows = statement.query_map([], text_pair)?;
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        Ok(rows
            .iter()
            .filter_map(|(key, entry)| parse(key, entry))
            .map(|(key, entry)| Record { key, entry })
            .collect())
    }

    /// The rows of one host on one network, and of that network.
    pub(super) fn rows_for(
        &self,
        network: &NetworkId,
        host: &Host,
    ) -> Result<Vec<(Key, Entry)>, Trouble> {
        let mut statement = self.connection.prepare_cached(
            "SELECT key, entry FROM rows
             WHERE (key >= ?1 AND key < ?2) OR (key >= ?3 AND key < ?4)",
        )?;
        let peer = Key::peer_prefix(network, host);
        let path = Key::path_prefix(network);
        let rows = statement
            .query_map(params![peer, after_prefix(&peer), path, after_prefix(&path)], text_pair)?;
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        Ok(rows.iter().filter_map(|(key, entry)| parse(key, entry)).collect())
    }

    /// Takes one outcome in, together with what other processes write at the same time.
    pub(super) fn learn(&mut self, evidence: &Evidence, config: &Config) -> Result<(), Trouble> {
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut read_error = None;
        let mut existing = |key: &Key| {
            read_row(&transaction, key).unwrap_or_else(|error| {
                read_error = Some(error);
                None
            })
        };
        let rows = learn_rows(&mut existing, evidence, config);
        if let Some(error) = read_error {
            return Err(error.into());
        }
        for (key, entry) in &rows {
            write_row(&transaction, key, entry)?;
        }
        let prefix = Key::peer_prefix(&evidence.network, &evidence.host);
        keep_newest_of_host(&transaction, &prefix, config)?;
        transaction.commit()?;
        self.written = self.written.saturating_add(1);
        if self.written.is_multiple_of(TIDY_AFTER) {
            self.tidy(config, evidence.at)?;
        }
        Ok(())
    }

    /// Forgets one host on every network. Gives the number of rows deleted.
    pub(super) fn forget(&mut self, host: &Host) -> Result<usize, Trouble> {
        let records = self.records()?;
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut deleted = 0;
        for Record { key, entry } in records {
            match forget_row(&key, entry.clone(), host) {
                None => deleted += delete_row(&transaction, &key)?,
                Some(left) if left != entry => write_row(&transaction, &key, &left)?,
                Some(_) => {}
            }
        }
        transaction.commit()?;
        self.scrub()?;
        Ok(deleted)
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) -> Result<(), Trouble> {
        self.connection.execute("DELETE FROM rows", [])?;
        self.scrub()
    }

    /// What was forgotten must not be readable in the file's free pages or in the log.
    fn scrub(&mut self) -> Result<(), Trouble> {
        self.connection.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);")?;
        Ok(())
    }

    fn tidy(&mut self, config: &Config, now: Duration) -> Result<(), Trouble> {
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

/// Makes the file, and its directory, for its owner only; SQLite gives `-wal` and `-shm` the mode
/// of the file.
fn make_private(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent()
        && !parent.as_os_str().is_empty()
        && !parent.exists()
    {
        DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let metadata = std::fs::metadata(path)?;
            if metadata.is_file() && metadata.permissions().mode() & 0o077 != 0 {
                // Somebody else's file stays as it is; SQLite says whether it can be used.
                let _ = std::fs::set_permissions(path, Permissions::from_mode(0o600));
            }
            Ok(())
        }
        Err(error) => Err(error),
    }
}

fn text_pair(row: &rusqlite::Row<'_>) -> rusqlite::Result<(String, String)> {
    Ok((row.get(0)?, row.get(1)?))
}

fn parse(key: &str, entry: &str) -> Option<(Key, Entry)> {
    Some((key.parse().ok()?, serde_json::from_str(entry).ok()?))
}

/// The least text that is greater than every text with this prefix, which ends in `/`.
fn after_prefix(prefix: &str) -> String {
    let mut after = prefix.strip_suffix('/').unwrap_or(prefix).to_owned();
    after.push('0');
    after
}

fn read_row(transaction: &Transaction<'_>, key: &Key) -> rusqlite::Result<Option<Entry>> {
    let mut statement = transaction.prepare_cached("SELECT entry FROM rows WHERE key = ?1")?;
    let entry: Option<String> =
        statement.query_row([key.to_string()], |row| row.get(0)).optional()?;
    Ok(entry.and_then(|entry| serde_json::from_str(&entry).ok()))
}

fn write_row(transaction: &Transaction<'_>, key: &Key, entry: &Entry) -> Result<(), Trouble> {
    let text =
        serde_json::to_string(entry).map_err(|error| Trouble::Unusable(error.to_string()))?;
    transaction
        .prepare_cached("INSERT OR REPLACE INTO rows (key, at, entry) VALUES (?1, ?2, ?3)")?
        .execute(params![key.to_string(), entry.at().as_secs_f64(), text])?;
    Ok(())
}

fn delete_row(transaction: &Transaction<'_>, key: &Key) -> rusqlite::Result<usize> {
    transaction.prepare_cached("DELETE FROM rows WHERE key = ?1")?.execute([key.to_string()])
}

fn keep_newest_of_host(
    transaction: &Transaction<'_>,
    prefix: &str,
    config: &Config,
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
impl Sqlite {
    pub(super) fn set_pragma(&self, name: &str, value: &str) {
        let sql = format!("PRAGMA {name} = {value}");
        self.connection.query_row(&sql, [], |_| Ok(())).optional().unwrap();
    }
}
