//! The stamp of a file on Windows.

use std::fs::Metadata;
use std::io;
use std::os::windows::fs::MetadataExt;
use std::time::{Duration, UNIX_EPOCH};

use super::SETTLING;

/// What tells two states of a path apart. A file that was replaced was created at another time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileStamp {
    Absent(io::ErrorKind),
    /// Times in units of 100 ns.
    Present {
        len: u64,
        created: u64,
        modified: u64,
        /// Since the epoch of Unix.
        changed: Duration,
    },
}

impl FileStamp {
    pub(super) fn from_metadata(found: io::Result<&Metadata>) -> Self {
        match found {
            Err(error) => Self::Absent(error.kind()),
            Ok(file) => Self::Present {
                len: file.len(),
                created: file.creation_time(),
                modified: file.last_write_time(),
                changed: file
                    .modified()
                    .ok()
                    .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
                    .unwrap_or_default(),
            },
        }
    }

    /// Returns whether a change after `now` cannot have this stamp.
    pub(super) fn is_settled(&self, now: Duration) -> bool {
        let Self::Present { changed, .. } = self else { return true };
        // The clock of another host, or one that was set back, says nothing.
        *changed > now || now - *changed > SETTLING
    }
}
