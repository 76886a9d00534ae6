//! The stamp of a file on Unix.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

/// What tells two states of a file apart. One that was replaced is another inode, and its inode change time cannot be
/// set back as its modification time can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileStamp {
    device: u64,
    inode: u64,
    len: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    pub(super) fn from_metadata(file: &Metadata) -> Self {
        Self {
            device: file.dev(),
            inode: file.ino(),
            len: file.len(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }

    /// Returns the time of the last change since the epoch, if it was after that.
    pub(super) fn changed(&self) -> Option<Duration> {
        let (seconds, nanoseconds) = self.changed;
        Some(Duration::new(seconds.try_into().ok()?, nanoseconds.try_into().ok()?))
    }
}
