//! Files of incomplete bodies: their names, their locks, and those that killed runs have left.
//!
//! Beside the file `NAME` that it becomes, such a file is called `.NAME.X.eyas.part`. Its writer holds a lock on it, which
//! the kernel releases when the process ends, however that happens. A file without a lock was therefore left behind: the
//! next run that writes `NAME` continues or removes it. `X` is random until the head of the response has arrived. From
//! then on it is the [`RepresentationId`] of what the file is a part of.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tempfile::TempPath;

use super::replacement::directory_of;

const SUFFIX: &str = ".eyas.part";

/// How many letters of a random name.
const RANDOM_LETTERS: usize = 6;

/// How many bytes of `NAME` are in the name of a part: a file name has at most 255.
const MAX_STEM: usize = 200;

/// How often a name is chosen, in case another run takes the new file for one that was left behind.
const TRIES: usize = 4;

/// Identifies the representation (RFC 9110 §3.2) that a file is a part of: only equal ones may be put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RepresentationId(pub(crate) u64);

/// A file that a run has left behind, locked for this one.
pub(super) struct LeftPart {
    path: PathBuf,
    pub(super) file: File,
    pub(super) length: u64,
    pub(super) identity: Option<RepresentationId>,
    written_at: SystemTime,
}

impl LeftPart {
    /// Removes it.
    pub(super) fn remove(self) {
        // The lock is held, so no other run can have begun to continue it.
        let _ = fs::remove_file(&self.path);
    }

    /// Returns the file and its name, which is removed on drop.
    pub(super) fn into_parts(self) -> io::Result<(File, TempPath)> {
        Ok((self.file, TempPath::try_from_path(self.path)?))
    }
}

/// Returns what runs have left behind of this file, the latest first.
pub(super) fn left_of(target: &Path) -> Vec<LeftPart> {
    let start = prefix(target);
    // A directory may be writable and not readable.
    let Ok(entries) = fs::read_dir(directory_of(target)) else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name());
    let tags = names.filter_map(|name| {
        let tag = name.to_str()?.strip_prefix(&start)?.strip_suffix(SUFFIX)?;
        tag.bytes().all(|letter| letter.is_ascii_alphanumeric()).then(|| tag.to_owned())
    });
    let mut left: Vec<LeftPart> = tags.filter_map(|tag| claim(target, &tag)).collect();
    left.sort_by_key(|part| std::cmp::Reverse(part.written_at));
    left
}

/// Creates and locks a new file with a random name.
pub(super) fn create(target: &Path, mode: u32) -> io::Result<(File, TempPath)> {
    let start = prefix(target);
    let mut builder = tempfile::Builder::new();
    builder.prefix(&start).suffix(SUFFIX).rand_bytes(RANDOM_LETTERS);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(mode));
    }
    let _ = mode;
    for _ in 0..TRIES {
        let (file, path) = builder.tempfile_in(directory_of(target))?.into_parts();
        // A file system without locks has no parts that can be claimed, either.
        let is_taken = matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock));
        if !is_taken && is_at(&file, &path) {
            return Ok((file, path));
        }
    }
    Err(io::Error::other("other runs take the temporary files"))
}

/// Gives a part the name of what it is a part of, unless another run is writing one with that name.
pub(super) fn identify(target: &Path, path: &mut TempPath, identity: RepresentationId) -> bool {
    let tag = format!("{:016x}", identity.0);
    let name = named(target, &tag);
    if *name == **path {
        return true;
    }
    if name.exists() && claim(target, &tag).is_none() {
        return false;
    }
    let renamed = fs::rename(&*path, &name).and_then(|()| TempPath::try_from_path(&name));
    renamed.map(|renamed| *path = renamed).is_ok()
}

fn prefix(target: &Path) -> String {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let stem = &name[..name.floor_char_boundary(MAX_STEM)];
    format!(".{stem}.")
}

fn named(target: &Path, tag: &str) -> PathBuf {
    directory_of(target).join(format!("{}{tag}{SUFFIX}", prefix(target)))
}

/// Opens and locks a part with this tag, if it is a file of this user that nobody writes.
fn claim(target: &Path, tag: &str) -> Option<LeftPart> {
    let identity = match tag.len() {
        RANDOM_LETTERS => None,
        16 => Some(RepresentationId(u64::from_str_radix(tag, 16).ok()?)),
        _ => return None,
    };
    let path = named(target, tag);
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // In a directory of all users, somebody may have put a link or a pipe there.
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.custom_flags(flags.bits().cast_signed());
    }
    let file = options.open(&path).ok()?;
    let metadata =
        file.metadata().ok().filter(|metadata| metadata.is_file() && is_own(metadata))?;
    file.try_lock().ok()?;
    // Meanwhile, its writer may have completed it under its real name.
    let (length, written_at) = (file.metadata().ok()?.len(), metadata.modified().ok()?);
    is_at(&file, &path).then_some(LeftPart { path, file, length, identity, written_at })
}

#[cfg(unix)]
fn is_own(metadata: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::uid(metadata) == rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn is_own(_: &fs::Metadata) -> bool {
    true
}

/// Returns whether this file is the one that has this name.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let which = |metadata: io::Result<fs::Metadata>| {
        metadata.ok().map(|metadata| (metadata.dev(), metadata.ino()))
    };
    let named = which(fs::symlink_metadata(path));
    named.is_some() && named == which(file.metadata())
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("a directory");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<String> =
            names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn only_files_without_a_writer_are_left_behind() {
        let directory = tempfile::tempdir().expect("a directory");
        let target = directory.path().join("page");
        let (_file, _path) = create(&target, 0o600).expect("created");
        for name in [
            ".page.abcdef.eyas.part",
            ".page.0123456789abcdef.eyas.part",
            ".page.backup.part",
            ".page.abc.eyas.part",
            ".page.ab-def.eyas.part",
            ".pages.abcdef.eyas.part",
        ] {
            fs::write(directory.path().join(name), b"part").expect("writes");
        }
        std::os::unix::fs::symlink("/etc/hosts", directory.path().join(".page.linked.eyas.part"))
            .expect("links");
        let left = left_of(&target);
        let mut identities: Vec<_> = left.iter().map(|part| part.identity).collect();
        identities.sort_by_key(Option::is_some);
        assert_eq!(identities, [None, Some(RepresentationId(0x0123_4567_89ab_cdef))]);
        assert!(left_of(&target).is_empty(), "they are claimed");
        left.into_iter().for_each(LeftPart::remove);
        assert_eq!(names(directory.path()).len(), 6, "{:?}", names(directory.path()));
    }

    #[test]
    fn a_part_is_named_after_what_it_is_a_part_of() {
        let directory = tempfile::tempdir().expect("a directory");
        let target = directory.path().join("é".repeat(120));
        let (file, mut path) = create(&target, 0o600).expect("created");
        assert!(identify(&target, &mut path, RepresentationId(7)));
        let (_other, mut another) = create(&target, 0o600).expect("created");
        assert!(!identify(&target, &mut another, RepresentationId(7)), "it is being written");
        path.disable_cleanup(true);
        drop((file, path));
        let left = left_of(&target);
        assert_eq!(
            left.iter().map(|part| part.identity).collect::<Vec<_>>(),
            [Some(RepresentationId(7))]
        );
    }
}
