//! Windows, where a file inherits from its directory who may read it: those of a user's profile are the user's own. So
//! there is neither a mode to set nor one to check.

use std::fs::{Metadata, OpenOptions};
use std::io;
use std::path::Path;

pub(super) fn set_private(_: &mut OpenOptions) {}

pub(super) fn create_directory(path: &Path) -> io::Result<()> {
    std::fs::create_dir_all(path)
}

pub(super) fn is_open_to_others(_: &Metadata) -> bool {
    false
}
