//! What a file of the memory is to the system: whose it is, who may read it, and which one it is.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as of_system;
#[cfg(windows)]
use windows as of_system;

pub(super) use of_system::FileId;

/// Returns whether other users may read the file, which is a browsing history.
pub(super) fn is_open_to_others(metadata: &Metadata) -> bool {
    of_system::is_open_to_others(metadata)
}

/// Returns whether the file belongs to a user whose files this process should leave alone.
pub(super) fn is_of_another_user(metadata: &Metadata) -> bool {
    of_system::is_of_another_user(metadata)
}

/// Creates an empty file for its owner only, unless there is one.
pub(super) fn create_file(path: &Path) -> io::Result<File> {
    of_system::create_file(path)
}

/// Creates a directory for its owner only, and those above it.
pub(super) fn create_directory(path: &Path) -> io::Result<()> {
    of_system::create_directory(path)
}

/// Opens what processes lock that rename the file at this path in this directory.
pub(super) fn open_lock(directory: &Path, path: &Path) -> io::Result<File> {
    of_system::open_lock(directory, path)
}

/// Returns the octets of an absolute path as it stands in a URI of SQLite, before they are encoded
/// (<https://sqlite.org/uri.html>).
pub(super) fn uri_path(path: &Path) -> Vec<u8> {
    of_system::uri_path(path)
}
