//! The stamp of a file on Unix.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use super::SETTLING;

/// What tells two states of a path apart. A file that was replaced is another inode, and its inode
/// change time cannot be set back as its modification time can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileStamp {
    Absent(io::ErrorKind),
    Present { device: u64, inode: u64, len: u64, modified: (i64, i64), changed: (i64, i64) },
}

impl FileStamp {
    pub(super) fn from_metadata(found: io::Result<&Metadata>) -> Self {
        match found {
            Err(error) => Self::Absent(error.kind()),
            Ok(file) => Self::Present {
                device: file.dev(),
                inode: file.ino(),
                len: file.len(),
                modified: (file.mtime(), file.mtime_nsec()),
                changed: (file.ctime(), file.ctime_nsec()),
            },
        }
    }

    /// Returns whether a change after `now` cannot have this stamp.
    pub(super) fn is_settled(&self, now: Duration) -> bool {
        let Self::Present { changed: (seconds, nanoseconds), .. } = self else { return true };
        let (Ok(seconds), Ok(nanoseconds)) = (u64::try_from(*seconds), u32::try_from(*nanoseconds))
        else {
            return true;
        };
        let changed = Duration::new(seconds, nanoseconds);
        // The clock of another host, or one that was set back, says nothing.
        changed > now || now - changed > SETTLING
    }
}
