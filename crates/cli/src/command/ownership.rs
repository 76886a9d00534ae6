//! Whether only trusted users can change a file that says who may enter (as OpenSSH's `StrictModes`).

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::process::geteuid;

use crate::failure::{Failure, FailureKind};

/// The permission of the group and of others to write.
const OTHERS_WRITE: u32 = 0o022;
/// The sticky bit: users can delete and rename only their own files in such a folder.
const STICKY: u32 = 0o1000;

/// Checks that only root and this user can change a file that says who may enter.
pub(super) fn check(path: &Path) -> Result<(), Failure> {
    let unusable = |cause: &dyn std::fmt::Display| {
        Failure::new(FailureKind::Identity, format!("cannot use {}: {cause}", path.display()))
    };
    match changeable_by_others(path) {
        Ok(None) => Ok(()),
        Ok(Some(why)) => Err(unusable(&format_args!("{why}: they could let themselves in"))
            .hint("chmod go-w takes the permission from them")),
        Err(cause) => Err(unusable(&cause)),
    }
}

/// Returns why somebody other than root and this user could change the file, or put another one in
/// its place.
fn changeable_by_others(path: &Path) -> io::Result<Option<String>> {
    if !fs::metadata(path)?.is_file() {
        // A pipe, as of `<(command)`, belongs to this process.
        return Ok(None);
    }
    let path = fs::canonicalize(path)?;
    for (depth, place) in path.ancestors().enumerate() {
        let found = fs::metadata(place)?;
        let name = place.display();
        if found.uid() != 0 && found.uid() != geteuid().as_raw() {
            return Ok(Some(format!("{name} belongs to another user (id {})", found.uid())));
        }
        let is_sticky_folder = depth > 0 && found.mode() & STICKY != 0;
        if found.mode() & OTHERS_WRITE != 0 && !is_sticky_folder {
            let mode = found.mode() & 0o7777;
            return Ok(Some(format!("others can write to {name} (mode {mode:o})")));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn files_and_folders_that_others_can_write_to_are_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("inner");
        let file = inner.join("keys");
        fs::create_dir(&inner).expect("a folder");
        fs::write(&file, "").expect("a file");
        let mode = |path: &Path, mode: u32| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("own file");
        };
        let cases = [
            (0o755, 0o644, true),
            (0o700, 0o600, true),
            // Nobody can replace another user's file there.
            (0o1777, 0o644, true),
            (0o755, 0o664, false),
            (0o755, 0o646, false),
            (0o755, 0o1646, false),
            (0o775, 0o644, false),
            (0o777, 0o600, false),
        ];
        for (of_folder, of_file, is_safe) in cases {
            mode(&inner, of_folder);
            mode(&file, of_file);
            let found = changeable_by_others(&file).expect("it exists");
            assert_eq!(found.is_none(), is_safe, "{of_folder:o} {of_file:o}: {found:?}");
        }
        mode(&inner, 0o777);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        assert!(changeable_by_others(&link).expect("it exists").is_some(), "through a link");
    }
}
