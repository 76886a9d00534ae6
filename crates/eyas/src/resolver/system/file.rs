//! Files of the host's configuration, which are read again when they have changed.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[cfg(unix)]
#[path = "file/unix.rs"]
mod stamp;
#[cfg(windows)]
#[path = "file/windows.rs"]
mod stamp;

use stamp::FileStamp;

/// What tells two states of a path apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathStamp {
    Absent(io::ErrorKind),
    Present(FileStamp),
}

impl PathStamp {
    fn from_metadata(found: io::Result<&Metadata>) -> Self {
        match found {
            Err(error) => Self::Absent(error.kind()),
            Ok(file) => Self::Present(FileStamp::from_metadata(file)),
        }
    }

    /// Returns whether a change after `now` cannot have this stamp.
    fn is_settled(&self, now: Duration) -> bool {
        let Self::Present(stamp) = self else { return true };
        let Some(changed) = stamp.changed() else { return true };
        // The clock of another host, or one that was set back, says nothing.
        changed > now || now - changed > SETTLING
    }
}

/// The number of octets that are read of a file; lists of blocked names have a few megabytes.
const MAX_OCTETS: u64 = 64 << 20;

/// How long what was read counts as the file's present state: the files of a name are looked at once for all the
/// questions of a race, and of the races that a busy program starts at the same time.
const SAME_MOMENT: Duration = Duration::from_millis(1);

/// How long two changes may have the same time stamp: a tick of the kernel's clock is at most 10 ms.
const SETTLING: Duration = Duration::from_millis(100);

/// A file, as it was when it was last read.
#[derive(Debug)]
pub(super) struct WatchedFile<T> {
    path: Box<Path>,
    state: Mutex<Option<FileSnapshot<T>>>,
}

/// What was read.
#[derive(Debug)]
struct FileSnapshot<T> {
    stamp: PathStamp,
    /// Whether every later change has another stamp.
    is_settled: bool,
    /// When the file was last looked at.
    seen_at: Instant,
    value: Arc<T>,
}

impl<T: PartialEq> WatchedFile<T> {
    pub(super) fn new(path: impl AsRef<Path>) -> Self {
        Self { path: path.as_ref().into(), state: Mutex::default() }
    }

    /// Returns what `parse` makes of the file as it is now: of its contents, or of the reason why
    /// there are none. As long as that is equal, it is the same `Arc`.
    pub(super) fn current(&self, parse: impl FnOnce(io::Result<&[u8]>) -> T) -> Arc<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let seen_at = Instant::now();
        let settled = state.as_mut().filter(|read| read.is_settled);
        if let Some(read) = &settled
            && seen_at.duration_since(read.seen_at) < SAME_MOMENT
        {
            return Arc::clone(&read.value);
        }
        let found = std::fs::metadata(&self.path);
        if let Some(read) = settled
            && read.stamp == PathStamp::from_metadata(found.as_ref().map_err(copy))
        {
            read.seen_at = seen_at;
            return Arc::clone(&read.value);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (stamp, contents) = match found.and_then(|found| self.read(&found)) {
            Ok((metadata, contents)) => (PathStamp::from_metadata(Ok(&metadata)), Ok(contents)),
            Err(error) => (PathStamp::from_metadata(Err(copy(&error))), Err(error)),
        };
        let value = parse(contents.as_deref().map_err(copy));
        let value = match state.take() {
            Some(before) if *before.value == value => before.value,
            _ => Arc::new(value),
        };
        let is_settled = stamp.is_settled(now);
        *state = Some(FileSnapshot { stamp, is_settled, seen_at, value: Arc::clone(&value) });
        value
    }

    /// Reads the file that was found.
    fn read(&self, found: &Metadata) -> io::Result<(Metadata, Vec<u8>)> {
        // Opening a FIFO would wait for a writer.
        if !found.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        let file = File::open(&self.path)?;
        // It may have been replaced since.
        let metadata = file.metadata()?;
        let mut contents = Vec::new();
        file.take(MAX_OCTETS).read_to_end(&mut contents)?;
        Ok((metadata, contents))
    }
}

/// Returns an error of the same kind.
fn copy(error: &io::Error) -> io::Error {
    io::Error::from(error.kind())
}
