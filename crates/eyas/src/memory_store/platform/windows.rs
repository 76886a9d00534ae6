//! Windows, where a file inherits from its directory who may read it: those of a user's profile are the user's own. So
//! there is neither a mode to set nor one to warn of.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::path::Path;

/// Identifies a file independently of its name: volume and index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct FileId(file_id::FileId);

impl FileId {
    /// Returns the identity of the file with this name, if there is one.
    pub(in super::super) fn from_path(path: &Path) -> Option<Self> {
        file_id::get_file_id(path).ok().map(Self)
    }

    /// Returns the identity of the file with this name and this metadata; `None` if it has just been removed.
    pub(in super::super) fn of_file(path: &Path, _: &Metadata) -> Option<Self> {
        Self::from_path(path)
    }
}

pub(super) fn is_open_to_others(_: &Metadata) -> bool {
    false
}

pub(super) fn is_of_another_user(_: &Metadata) -> bool {
    false
}

pub(super) fn create_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

pub(super) fn create_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).create(path)
}

/// A directory cannot be locked here, so a file beside the memory is.
pub(super) fn open_lock(_: &Path, path: &Path) -> io::Result<File> {
    let mut name = OsString::from(path);
    name.push(".lock");
    OpenOptions::new().write(true).create(true).truncate(false).open(name)
}

/// `file:///C:/Data/a.db`, and `file:////server/share/a.db`. A canonical path begins with `\\\\?\\`, or with
/// `\\\\?\\UNC\\` if it is on a server.
pub(super) fn uri_path(path: &Path) -> Vec<u8> {
    let text = path.to_string_lossy();
    let plain = match (text.strip_prefix(r"\\?\UNC\"), text.strip_prefix(r"\\?\")) {
        (Some(on_server), _) => format!("//{on_server}"),
        (None, Some(local)) => local.to_owned(),
        (None, None) => text.into_owned(),
    };
    format!("///{}", plain.replace('\\', "/")).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_slashes_in_uris() {
        for (path, uri) in [
            (r"\\?\C:\Data\a b.db", "///C:/Data/a b.db"),
            (r"C:\a.db", "///C:/a.db"),
            (r"\\?\UNC\server\share\a.db", "/////server/share/a.db"),
        ] {
            assert_eq!(uri_path(Path::new(path)), uri.as_bytes(), "{path}");
        }
    }
}
