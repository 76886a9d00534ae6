//! The destination of a capture: a file that gets its name once it is complete, or a pipe.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, OFlags, linkat};

/// A file that is not visible before it is complete. Until then it has no name if the file system
/// supports that, so that nothing is left behind if the program is killed.
#[derive(Debug)]
pub(super) struct CaptureDestination {
    file: File,
    completion: FileCompletion,
}

#[derive(Debug)]
enum FileCompletion {
    /// It is still unnamed and will get this name.
    Link(PathBuf),
    /// It has the first name and will get the second.
    Rename(PathBuf, PathBuf),
    /// It is read while it is being written.
    Streamed,
}

impl CaptureDestination {
    /// Creates the file. If the path is not a regular file (a named pipe, `/dev/stdout`), it is
    /// written directly.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            let file = OpenOptions::new().write(true).open(path)?;
            return Ok(Self { file, completion: FileCompletion::Streamed });
        }
        let unnamed = OpenOptions::new()
            .write(true)
            .custom_flags(OFlags::TMPFILE.bits() as i32)
            .open(directory(path));
        if let Ok(file) = unnamed {
            return Ok(Self { file, completion: FileCompletion::Link(path.to_owned()) });
        }
        let partial = partial_name(path);
        let file = File::create(&partial)?;
        Ok(Self { file, completion: FileCompletion::Rename(partial, path.to_owned()) })
    }

    /// Completes the file: gives it its name, replacing any file of that name.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.file.flush()?;
        match &self.completion {
            FileCompletion::Link(path) => {
                let partial = partial_name(path);
                let unnamed = format!("/proc/self/fd/{}", self.file.as_raw_fd());
                // A link does not replace a file, so the name is assigned in two steps.
                linkat(CWD, unnamed, CWD, &partial, AtFlags::SYMLINK_FOLLOW)?;
                fs::rename(&partial, path)
            }
            FileCompletion::Rename(partial, path) => fs::rename(partial, path),
            FileCompletion::Streamed => Ok(()),
        }
    }
}

impl Write for CaptureDestination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns a name in the same directory that no other process uses.
fn partial_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.partial", std::process::id()));
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_is_visible_once_it_is_complete() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("all.pcapng");
        fs::write(&path, "an older one").unwrap();
        let mut destination = CaptureDestination::create(&path).unwrap();
        destination.write_all(b"packets").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"an older one");
        destination.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"packets");
        assert_eq!(names(directory.path()), ["all.pcapng"]);
    }

    #[test]
    fn an_unfinished_capture_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("all.pcapng");
        let mut destination = CaptureDestination::create(&path).unwrap();
        destination.write_all(b"pack").unwrap();
        let is_unnamed = matches!(destination.completion, FileCompletion::Link(_));
        drop(destination);
        let left = if is_unnamed { 0 } else { 1 };
        assert_eq!(names(directory.path()).len(), left);
        assert!(!path.exists());
    }

    #[test]
    fn a_pipe_is_written_immediately() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("live");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let reader = std::thread::spawn({
            let path = path.clone();
            move || fs::read(path).unwrap()
        });
        let mut destination = CaptureDestination::create(&path).unwrap();
        destination.write_all(b"packets").unwrap();
        destination.finish().unwrap();
        assert_eq!(reader.join().unwrap(), b"packets");
    }

    #[test]
    fn a_missing_directory_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        assert!(CaptureDestination::create(&directory.path().join("no/all.pcapng")).is_err());
    }
}
