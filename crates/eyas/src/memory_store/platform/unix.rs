//! Unix.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use nix::unistd::geteuid;

/// Identifies a file independently of its name: device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct FileId(u64, u64);

impl FileId {
    /// Returns the identity of the file with this name, if there is one.
    pub(in super::super) fn from_path(path: &Path) -> Option<Self> {
        Self::of_file(path, &std::fs::symlink_metadata(path).ok()?)
    }

    /// Returns the identity of the file with this name and this metadata.
    pub(in super::super) fn of_file(_: &Path, metadata: &Metadata) -> Option<Self> {
        Some(Self(metadata.dev(), metadata.ino()))
    }
}

pub(super) fn is_open_to_others(metadata: &Metadata) -> bool {
    metadata.mode() & 0o077 != 0
}

pub(super) fn is_of_another_user(metadata: &Metadata) -> bool {
    let user = geteuid();
    metadata.uid() != user.as_raw() && !user.is_root()
}

pub(super) fn create_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

pub(super) fn create_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

pub(super) fn open_lock(directory: &Path, _: &Path) -> io::Result<File> {
    File::open(directory)
}

pub(super) fn uri_path(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}
