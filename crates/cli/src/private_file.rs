//! Files that only this user may read: keys, passwords, traces with host names.

use std::fs::{Metadata, OpenOptions};
use std::io;
use std::path::Path;

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as platform;
#[cfg(windows)]
use windows as platform;

/// Has a file that is created be readable by its owner only.
pub(crate) fn set_private(options: &mut OpenOptions) {
    platform::set_private(options);
}

/// Creates a directory for its owner only, and those above it.
pub(crate) fn create_directory(path: &Path) -> io::Result<()> {
    platform::create_directory(path)
}

/// Returns whether other users may read the file.
pub(crate) fn is_open_to_others(metadata: &Metadata) -> bool {
    platform::is_open_to_others(metadata)
}
