//! What a file name of the user's stands for: a file that appears when it is whole, or a device.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use crate::failure::Failure;

/// What a name stands for, opened.
pub(super) enum Place {
    /// A device or pipe, which cannot be replaced by a file.
    Device(File),
    /// A file beside its name, to be moved there when it is whole; deleted otherwise.
    File {
        /// What is written to.
        file: File,
        /// Where it is as long as it is not whole.
        beside: TempPath,
        /// Where it is to be.
        target: PathBuf,
    },
}

impl Place {
    /// Opens what the name means: an existing device or pipe itself, else a file beside the name.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let target = match fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(found) if !found.is_file() => {
                let device = fs::OpenOptions::new().write(true).open(path)?;
                return Ok(Self::Device(device));
            }
            // A link stays a link: what it points to is replaced.
            Ok(_) => fs::canonicalize(path)?,
            Err(_) => path.to_owned(),
        };
        let directory = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let name = target.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
        let mut prefix = std::ffi::OsString::from(".");
        prefix.push(name);
        prefix.push(".");
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(".part");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // As any new file: the umask takes away what the user does not want.
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        let (file, beside) = builder.tempfile_in(directory)?.into_parts();
        Ok(Self::File { file, beside, target })
    }
}

/// A file that appears under its name when it is whole.
pub(crate) struct WholeFile {
    name: String,
    out: BufWriter<File>,
    moved: Option<(TempPath, PathBuf)>,
}

impl WholeFile {
    /// Begins it.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let place = Place::open(path).map_err(|cause| Failure::write(&name, &cause))?;
        let (file, moved) = match place {
            Place::Device(file) => (file, None),
            Place::File { file, beside, target } => (file, Some((beside, target))),
        };
        Ok(Self { name, out: BufWriter::new(file), moved })
    }

    /// It is whole.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        let written = self.out.flush().and_then(|()| match self.moved.take() {
            Some((beside, target)) => beside.persist(target).map_err(|failed| failed.error),
            None => Ok(()),
        });
        written.map_err(|cause| Failure::write(&self.name, &cause))
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
