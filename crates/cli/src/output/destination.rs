//! What a file name given by the user refers to: a file that appears when it is complete, or a
//! device.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::replacement::Replacement;
use crate::failure::Failure;

/// The opened destination.
pub(super) struct Destination {
    /// The file that is written to.
    pub(super) file: File,
    /// The name that it takes when it is complete; a device or pipe has none, because it cannot be
    /// replaced by a file.
    pub(super) replacement: Option<Replacement>,
}

impl Destination {
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
        let (file, replacement) = Replacement::start(path, existing.as_ref())?;
        Ok(Self { file, replacement: Some(replacement) })
    }

    /// Completes the file.
    pub(super) fn finish(mut self) -> io::Result<()> {
        match self.replacement {
            Some(replacement) => replacement.finish(&mut self.file),
            None => Ok(()),
        }
    }
}

/// A file that appears under its name when it is complete.
pub(crate) struct AtomicFile {
    name: String,
    out: BufWriter<File>,
    replacement: Option<Replacement>,
}

impl AtomicFile {
    /// Creates it.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let destination = Destination::open(path).map_err(|cause| Failure::write(&name, &cause))?;
        let Destination { file, replacement } = destination;
        Ok(Self { name, out: BufWriter::new(file), replacement })
    }

    /// Completes the file.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let Self { name, out, replacement } = self;
        out.into_inner()
            .map_err(io::IntoInnerError::into_error)
            .and_then(|file| Destination { file, replacement }.finish())
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
