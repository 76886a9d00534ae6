//! A file that replaces another once it is complete.
//!
//! It is written next to the other one, and moved there in one step, so that a reader finds either
//! the old or the new one, even after a crash. Mode and owner of the file are kept, and a link to
//! it remains a link.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use super::part::{self, LeftPart, RepresentationId};

/// The maximum number of links to follow, as in the kernel.
#[cfg(unix)]
const MAX_LINKS: usize = 40;

/// An incomplete file, which is deleted on drop without any other effect.
pub(super) struct FileReplacement {
    temporary: TempPath,
    target: PathBuf,
    /// Whether it replaces nothing: what has appeared under its name meanwhile stays.
    is_new: bool,
    /// The existing file, if it must be overwritten because a new one could not take its place.
    #[cfg(unix)]
    kept: Option<File>,
}

impl FileReplacement {
    /// Starts a replacement of the file at `path`, if there is one, and returns the file to write
    /// to. What killed runs have left of such replacements is removed.
    pub(super) fn start(path: &Path, existing: Option<&Metadata>) -> io::Result<(File, Self)> {
        let target = target_of(path, existing)?;
        part::left_of(&target).into_iter().for_each(LeftPart::remove);
        // A new file has the usual mode, restricted by the umask.
        let mode = if existing.is_some() { 0o600 } else { 0o666 };
        Self::with_temporary(target, existing, |target| part::create(target, mode))
    }

    /// Starts a file that replaces nothing, and is no link's target.
    pub(super) fn start_new(path: &Path) -> io::Result<(File, Self)> {
        part::left_of(path).into_iter().for_each(LeftPart::remove);
        let (file, replacement) =
            Self::with_temporary(path.to_owned(), None, |target| part::create(target, 0o666))?;
        Ok((file, Self { is_new: true, ..replacement }))
    }

    /// Starts the replacement with this part of it.
    pub(super) fn go_on(
        path: &Path,
        existing: Option<&Metadata>,
        left: LeftPart,
    ) -> io::Result<(File, Self)> {
        Self::with_temporary(target_of(path, existing)?, existing, |_| left.into_parts())
    }

    fn with_temporary(
        target: PathBuf,
        existing: Option<&Metadata>,
        temporary: impl FnOnce(&Path) -> io::Result<(File, TempPath)>,
    ) -> io::Result<(File, Self)> {
        #[cfg(unix)]
        let writable = existing.map(|_| is_writable(&target)).transpose()?.flatten();
        target.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
        let (file, temporary) = temporary(&target).map_err(|cause| without_path(&cause))?;
        // Only Unix has an owner and a mode that a new file could keep.
        #[cfg(not(unix))]
        let _ = existing;
        #[cfg(unix)]
        let kept = match existing {
            Some(existing) if !copy_owner_and_mode(&file, existing)? => writable,
            _ => None,
        };
        let replacement = Self {
            temporary,
            target,
            is_new: false,
            #[cfg(unix)]
            kept,
        };
        Ok((file, replacement))
    }

    /// Returns the path of the temporary file.
    pub(super) fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Notes what the file is a part of, so that a later run can continue it. With `keep`, it is not
    /// deleted on drop either.
    pub(super) fn identify(&mut self, identity: RepresentationId, keep: bool) {
        if part::identify(&self.target, &mut self.temporary, identity) {
            self.temporary.disable_cleanup(keep);
        }
    }

    /// Completes the file: it replaces the other one, on disk too.
    pub(super) fn finish(self, file: &mut File) -> io::Result<()> {
        #[cfg(unix)]
        if let Some(mut kept) = self.kept {
            return write_over(file, &mut kept);
        }
        on_disk(file.sync_all())?;
        let moved = match self.is_new {
            true => self.temporary.persist_noclobber(&self.target),
            false => self.temporary.persist(&self.target),
        };
        moved.map_err(|failed| failed.error)?;
        // Elsewhere directories cannot be opened as files, and their entries are written with the file.
        #[cfg(unix)]
        on_disk(File::open(directory_of(&self.target)).and_then(|directory| directory.sync_all()))?;
        Ok(())
    }
}

/// Returns the file that a path names, through links.
pub(super) fn target_of(path: &Path, existing: Option<&Metadata>) -> io::Result<PathBuf> {
    match existing {
        Some(_) => fs::canonicalize(path),
        None => resolve_links(path),
    }
}

/// Returns an error without the name of the temporary file, which the user does not know.
fn without_path(cause: &io::Error) -> io::Error {
    let text = cause.to_string();
    let what = text.split_once(" at path ").map_or(&*text, |(what, _)| what);
    io::Error::new(cause.kind(), what)
}

/// Ignores the error of file systems that do not support synchronisation.
fn on_disk(synchronised: io::Result<()>) -> io::Result<()> {
    match synchronised {
        Err(cause)
            if matches!(cause.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) =>
        {
            Ok(())
        }
        outcome => outcome,
    }
}

/// Returns the directory of a file.
pub(super) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Resolves a name without a file, which may be a link to nothing.
#[cfg(unix)]
fn resolve_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(to) => path = directory_of(&path).join(to),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many links"))
}

#[cfg(not(unix))]
fn resolve_links(path: &Path) -> io::Result<PathBuf> {
    Ok(path.to_owned())
}

/// Opens the existing file for writing, to respect its protection. A running program cannot be
/// written, but can be replaced.
#[cfg(unix)]
fn is_writable(target: &Path) -> io::Result<Option<File>> {
    use std::os::unix::fs::OpenOptionsExt;
    // It was not a pipe a moment ago; if it is one now, do not wait for a reader.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    match fs::OpenOptions::new().write(true).custom_flags(flags).open(target) {
        Ok(file) => Ok(Some(file)),
        Err(cause) if cause.kind() == io::ErrorKind::ExecutableFileBusy => Ok(None),
        Err(cause) => Err(cause),
    }
}

/// Gives a new file the owner and mode of another. Returns `false` if that is not possible, or if
/// the other one has several names, which would then differ.
#[cfg(unix)]
fn copy_owner_and_mode(file: &File, existing: &Metadata) -> io::Result<bool> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let new = file.metadata()?;
    if existing.nlink() > 1 {
        return Ok(false);
    }
    let is_other = (new.uid(), new.gid()) != (existing.uid(), existing.gid());
    if is_other && fchown(file, Some(existing.uid()), Some(existing.gid())).is_err() {
        return Ok(false);
    }
    // The privileges of a program belong to its old content, not to something from the network.
    file.set_permissions(fs::Permissions::from_mode(existing.mode() & 0o777))?;
    Ok(true)
}

/// Overwrites a file with a complete one, keeping its identity. The old content is lost if this is
/// interrupted.
#[cfg(unix)]
fn write_over(file: &mut File, kept: &mut File) -> io::Result<()> {
    use std::io::Seek;
    file.rewind()?;
    kept.set_len(0)?;
    io::copy(file, kept)?;
    on_disk(kept.sync_all())
}
