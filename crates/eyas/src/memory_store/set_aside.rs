//! Renames a memory that cannot be used, so that a new one can take its place and nothing is lost.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::place::{BESIDE, FileId, beside};

/// Names tried in one second.
const MAX_NAMES: u32 = 1_000;
/// How long one process waits for another that sets a file of the same directory aside.
const LOCK_TIME: Duration = Duration::from_millis(250);
const LOCK_AGAIN: Duration = Duration::from_millis(5);

/// Renames the file to `NAME.damaged-SECONDS`, or to the first such name with a number that nothing
/// has, and what SQLite keeps beside it likewise. `None` if another file is there by now, or nothing
/// is wrong with it any more: somebody else was quicker, and what they left beside the file for a
/// moment looked like damage.
pub(super) fn set_aside(
    path: &Path,
    id: FileId,
    is_sound: impl FnOnce() -> bool,
    now: Duration,
) -> io::Result<Option<PathBuf>> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = File::open(parent.unwrap_or(Path::new(".")))?;
    // Held until this is over, or two processes that see the same damage would set the second's new
    // file aside as well.
    lock(&directory)?;
    if FileId::of(path) != Some(id) || is_sound() {
        return Ok(None);
    }
    let aside = take_name(path, now)?;
    std::fs::rename(path, &aside)?;
    for suffix in BESIDE {
        // Left behind, the old log would be replayed into the new file.
        match std::fs::rename(beside(path, suffix), beside(&aside, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(Some(aside))
}

fn lock(directory: &File) -> io::Result<()> {
    let give_up = Instant::now() + LOCK_TIME;
    loop {
        match directory.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if Instant::now() < give_up => {
                std::thread::sleep(LOCK_AGAIN);
            }
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::other("another process holds its directory locked"));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Takes a name by an empty file, which then is replaced: a rename would replace anything.
fn take_name(path: &Path, now: Duration) -> io::Result<PathBuf> {
    for number in 0..MAX_NAMES {
        let suffix = match number {
            0 => format!(".damaged-{}", now.as_secs()),
            number => format!(".damaged-{}-{number}", now.as_secs()),
        };
        let aside = beside(path, &suffix);
        if BESIDE.iter().any(|suffix| FileId::of(&beside(&aside, suffix)).is_some()) {
            continue;
        }
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside) {
            Ok(_) => return Ok(aside),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("every name for it is taken"))
}
