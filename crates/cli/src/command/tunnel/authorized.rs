//! The keys that may connect, always according to the current content of their file.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use eyas::KeyFingerprint;
use eyas::sockets::is_out_of_descriptors;
use eyas_relay::tunnel::keys::{AuthorizedKeys, Grant};

use super::super::ownership;
use super::{NoticePrinter, files};
use crate::failure::Failure;

/// A file of keys, which is read again for each connection.
pub(super) struct Authorized {
    path: PathBuf,
    printer: NoticePrinter,
    cached: Mutex<Option<Cached>>,
}

/// The last content of the file, and its identity.
struct Cached {
    stamp: Stamp,
    keys: Arc<AuthorizedKeys>,
}

/// Distinguishes a changed file from an unchanged one, without needing a descriptor.
#[derive(Debug, PartialEq, Eq)]
struct Stamp([i128; 5]);

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        let changed = (i128::from(found.ctime()) << 32) | i128::from(found.ctime_nsec());
        let modified = (i128::from(found.mtime()) << 32) | i128::from(found.mtime_nsec());
        Some(Self([found.dev().into(), found.ino().into(), found.size().into(), changed, modified]))
    }
}

impl Authorized {
    pub(super) fn new(path: PathBuf, printer: NoticePrinter) -> Self {
        Self { path, printer, cached: Mutex::default() }
    }

    /// Returns what this key may do, if it may connect.
    pub(super) fn grant(&self, key: &KeyFingerprint) -> Option<Grant> {
        match self.read() {
            Ok(keys) => keys.grant(key).cloned(),
            // If the file cannot be read, no one may connect.
            Err(failure) => {
                self.printer.warn("keys", failure.message);
                None
            }
        }
    }

    /// Returns the content of the file. If there is no descriptor to read it with, this is the
    /// earlier content, if the file has not changed: an attacker who exhausts all descriptors must
    /// not lock out the owners of keys.
    pub(super) fn read(&self) -> Result<Arc<AuthorizedKeys>, Failure> {
        let stamp = Stamp::of(&self.path);
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => String::new(),
            Err(cause) => {
                let is_same = |cached: &&Cached| stamp.as_ref() == Some(&cached.stamp);
                return match cached.as_ref().filter(is_same) {
                    Some(cached) if is_out_of_descriptors(&cause) => Ok(Arc::clone(&cached.keys)),
                    _ => Err(files::unusable(&self.path, &cause)),
                };
            }
        };
        if stamp.is_some() {
            ownership::check(&self.path)?;
        }
        let keys = AuthorizedKeys::parse(&text).map(Arc::new);
        let keys = keys.map_err(|cause| files::unusable(&self.path, &cause))?;
        *cached = stamp.map(|stamp| Cached { stamp, keys: Arc::clone(&keys) });
        Ok(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_changes_with_its_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("keys");
        assert_eq!(Stamp::of(&path), None);
        fs::write(&path, "a").expect("writes");
        let previous = Stamp::of(&path);
        assert!(previous.is_some());
        assert_eq!(Stamp::of(&path), previous);
        fs::write(&path, "ab").expect("writes");
        assert_ne!(Stamp::of(&path), previous);
        let other = directory.path().join("other");
        fs::write(&other, "ab").expect("writes");
        let previous = Stamp::of(&path);
        fs::rename(&other, &path).expect("renames");
        assert_ne!(Stamp::of(&path), previous);
    }
}
