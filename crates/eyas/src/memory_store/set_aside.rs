//! A file that cannot be used makes room for a new one, without being lost.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Renames the file to `NAME.damaged-SECONDS`, and what SQLite keeps beside it likewise.
pub(super) fn set_aside(path: &Path, now: Duration) -> io::Result<PathBuf> {
    let aside = beside(path, &format!(".damaged-{}", now.as_secs()));
    std::fs::rename(path, &aside)?;
    for suffix in ["-wal", "-shm"] {
        // Left behind, the old log would be replayed into the new file.
        match std::fs::rename(beside(path, suffix), beside(&aside, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(aside)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}
