//! Unix: the mode of a file.

use std::fs::{DirBuilder, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

pub(super) fn set_private(options: &mut OpenOptions) {
    options.mode(0o600);
}

pub(super) fn create_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

pub(super) fn is_open_to_others(metadata: &Metadata) -> bool {
    metadata.permissions().mode() & 0o077 != 0
}
