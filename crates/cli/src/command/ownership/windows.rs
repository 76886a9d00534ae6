//! Windows, where the access control lists of files and folders are not read: OpenSSH's server there does that, with a
//! rule for each of its groups. A file in a user's profile is the user's own by default.

use std::fs;
use std::io;
use std::path::Path;

/// Returns `None`: it is not looked at.
pub(super) fn changeable_by_others(path: &Path) -> io::Result<Option<String>> {
    fs::metadata(path).map(|_| None)
}

/// Reads a file that says who may enter.
pub(in super::super) fn read_to_string(path: &Path) -> io::Result<String> {
    fs::read_to_string(path)
}
