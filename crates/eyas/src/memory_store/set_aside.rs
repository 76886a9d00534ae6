//! Renames a memory that cannot be used, so that a new one can take its place and nothing is lost.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::inspection::{COMPANION_SUFFIXES, companion};
use super::platform::{self, FileId};

/// The maximum number of names that are tried for one second.
const MAX_NAMES: u32 = 1_000;
/// How long one process waits for another one that sets aside a file of the same directory.
const LOCK_TIMEOUT: Duration = Duration::from_millis(250);
const LOCK_RETRY: Duration = Duration::from_millis(5);

/// Renames the file to `NAME.damaged-SECONDS`, or to the first such name with a number that is
/// free, and its companions likewise. Returns `None` if the file has been replaced or is sound now:
/// another process was faster, and its companion files briefly looked like damage.
pub(super) fn set_aside(
    path: &Path,
    id: FileId,
    is_sound: impl FnOnce() -> bool,
    now: Duration,
) -> io::Result<Option<PathBuf>> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = platform::open_lock(parent.unwrap_or(Path::new(".")), path)?;
    // Held until the end: otherwise, of two processes that detect the same damage, the second would
    // set aside the first one's new file as well.
    lock(&directory)?;
    if FileId::from_path(path) != Some(id) || is_sound() {
        return Ok(None);
    }
    let aside = reserve_name(path, now)?;
    std::fs::rename(path, &aside)?;
    for suffix in COMPANION_SUFFIXES {
        // Left behind, the old log would be replayed into the new file.
        match std::fs::rename(companion(path, suffix), companion(&aside, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(Some(aside))
}

fn lock(directory: &File) -> io::Result<()> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match directory.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                std::thread::sleep(LOCK_RETRY);
            }
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::other("another process holds its directory locked"));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Reserves a name with an empty file, which the rename then replaces; a rename alone would replace
/// any file.
fn reserve_name(path: &Path, now: Duration) -> io::Result<PathBuf> {
    for number in 0..MAX_NAMES {
        let suffix = match number {
            0 => format!(".damaged-{}", now.as_secs()),
            number => format!(".damaged-{}-{number}", now.as_secs()),
        };
        let aside = companion(path, &suffix);
        if COMPANION_SUFFIXES
            .iter()
            .any(|suffix| FileId::from_path(&companion(&aside, suffix)).is_some())
        {
            continue;
        }
        match platform::create_file(&aside) {
            Ok(_) => return Ok(aside),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("every name for it is taken"))
}
