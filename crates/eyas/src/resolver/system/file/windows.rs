//! The stamp of a file on Windows.

use std::fs::Metadata;
use std::os::windows::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What tells two states of a file apart. One that was replaced was created at another time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileStamp {
    len: u64,
    /// In units of 100 ns.
    created: u64,
    modified: Option<SystemTime>,
}

impl FileStamp {
    pub(super) fn from_metadata(file: &Metadata) -> Self {
        Self { len: file.len(), created: file.creation_time(), modified: file.modified().ok() }
    }

    /// Returns the time of the last change since the epoch.
    pub(super) fn changed(&self) -> Option<Duration> {
        let since = self.modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Some(since.unwrap_or_default())
    }
}
