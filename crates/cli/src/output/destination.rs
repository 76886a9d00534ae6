//! What a file name given by the user refers to: a file that appears when it is complete, or a
//! device.

use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, Write};
use std::path::Path;

use super::part::{self, LeftPart, RepresentationId};
use super::replacement::{FileReplacement, target_of};
use crate::failure::Failure;

/// The opened destination.
pub(super) struct FileDestination {
    /// The file that is written to.
    pub(super) file: File,
    /// The name that it takes when it is complete; a device or pipe has none, because it cannot be
    /// replaced by a file.
    pub(super) replacement: Option<FileReplacement>,
}

impl FileDestination {
    /// Opens the destination: an existing device or pipe itself, otherwise a temporary file next to
    /// it.
    ///
    /// Blocks as long as a pipe has no reader.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let existing = match fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(found) if !found.is_file() => {
                let file = fs::OpenOptions::new().write(true).open(path)?;
                return Ok(Self { file, replacement: None });
            }
            Ok(found) => Some(found),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => None,
            Err(cause) => return Err(cause),
        };
        let (file, replacement) = FileReplacement::start(path, existing.as_ref())?;
        Ok(Self { file, replacement: Some(replacement) })
    }

    /// Opens a destination that must not exist yet, not even as a link (curl's CVE-2010-3842).
    pub(super) fn create_new(path: &Path) -> io::Result<Self> {
        if fs::symlink_metadata(path).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let (file, replacement) = FileReplacement::start_new(path)?;
        Ok(Self { file, replacement: Some(replacement) })
    }

    /// Like [`open`](Self::open), but goes on with what a run before has left; otherwise with the existing file, which is
    /// then written itself.
    pub(super) fn go_on(path: &Path) -> io::Result<(Self, ExistingPart)> {
        let existing = match fs::metadata(path) {
            Ok(found) if found.is_file() => Some(found),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => None,
            _ => return Ok((Self::open(path)?, ExistingPart::Nothing)),
        };
        let target = target_of(path, existing.as_ref())?;
        let mut parts = part::left_of(&target);
        let usable = |part: &LeftPart| part.identity.is_some() && part.length > 0;
        if let Some(index) = parts.iter().position(usable) {
            let latest = parts.swap_remove(index);
            parts.into_iter().for_each(LeftPart::remove);
            let (length, identity) =
                (latest.length, latest.identity.unwrap_or(RepresentationId(0)));
            let (mut file, replacement) = FileReplacement::go_on(path, existing.as_ref(), latest)?;
            file.seek(io::SeekFrom::End(0))?;
            let destination = Self { file, replacement: Some(replacement) };
            return Ok((destination, ExistingPart::Part { length, identity }));
        }
        // Nothing says what the others are parts of.
        parts.into_iter().for_each(LeftPart::remove);
        match existing {
            Some(existing) if existing.len() > 0 => {
                let beginning = ExistingPart::File { length: existing.len() };
                Ok((Self::append(path)?, beginning))
            }
            _ => Ok((Self::open(path)?, ExistingPart::Nothing)),
        }
    }

    /// Opens a file to write at its end.
    pub(super) fn append(path: &Path) -> io::Result<Self> {
        let file = fs::OpenOptions::new().append(true).create(true).open(path)?;
        Ok(Self { file, replacement: None })
    }

    /// Completes the file.
    pub(super) fn finish(mut self) -> io::Result<()> {
        match self.replacement {
            Some(replacement) => replacement.finish(&mut self.file),
            None => Ok(()),
        }
    }
}

/// What is there of a body already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExistingPart {
    /// Nothing.
    Nothing,
    /// So many bytes, in a file that becomes the wanted one.
    Part {
        /// The number of bytes.
        length: u64,
        /// What they are a part of.
        identity: RepresentationId,
    },
    /// So many bytes, in the wanted file itself.
    File {
        /// The number of bytes.
        length: u64,
    },
}

impl ExistingPart {
    /// Returns the number of bytes.
    pub(crate) const fn length(self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Part { length, .. } | Self::File { length } => length,
        }
    }
}

/// A file that appears under its name when it is complete.
pub(crate) struct AtomicFile {
    name: String,
    out: BufWriter<File>,
    replacement: Option<FileReplacement>,
}

impl AtomicFile {
    /// Creates it.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let destination =
            FileDestination::open(path).map_err(|cause| Failure::write(&name, &cause))?;
        let FileDestination { file, replacement } = destination;
        Ok(Self { name, out: BufWriter::new(file), replacement })
    }

    /// Lets only this user read and write it.
    #[cfg(unix)]
    pub(crate) fn make_private(&self) -> io::Result<()> {
        use std::os::unix::fs::PermissionsExt;
        self.out.get_ref().set_permissions(fs::Permissions::from_mode(0o600))
    }

    /// Completes the file.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let Self { name, out, replacement } = self;
        out.into_inner()
            .map_err(io::IntoInnerError::into_error)
            .and_then(|file| FileDestination { file, replacement }.finish())
            .map_err(|cause| Failure::write(&name, &cause))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
