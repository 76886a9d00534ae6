//! Inodes and their times.

use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};

/// Returns what tells the file from others and from its other states; `None` for a pipe, whose times change as it is read.
pub(super) fn stamp(found: &Metadata) -> Option<[i128; 5]> {
    if found.file_type().is_fifo() {
        return None;
    }
    let changed = (i128::from(found.ctime()) << 32) | i128::from(found.ctime_nsec());
    let modified = (i128::from(found.mtime()) << 32) | i128::from(found.mtime_nsec());
    Some([found.dev().into(), found.ino().into(), found.size().into(), changed, modified])
}
