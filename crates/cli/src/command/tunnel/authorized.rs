//! The keys that may connect, always according to the current content of their file.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use eyas::KeyFingerprint;
use eyas::sockets::is_out_of_descriptors;
use eyas_tunnel::keys::{AuthorizedKeys, KeyGrant};

use super::super::ownership;
use super::super::service::FileStamp;
use super::{NoticePrinter, files};
use crate::failure::Failure;

/// A file of keys, which is read again for each connection.
pub(super) struct AuthorizedKeysFile {
    path: PathBuf,
    printer: NoticePrinter,
    cached: Mutex<Option<CachedKeys>>,
    /// The content that was reported as unusable.
    reported: Mutex<Option<FileStamp>>,
}

/// The last usable content of the file, and its identity.
struct CachedKeys {
    stamp: FileStamp,
    keys: Arc<AuthorizedKeys>,
}

impl AuthorizedKeysFile {
    pub(super) fn new(path: PathBuf, printer: NoticePrinter) -> Self {
        Self { path, printer, cached: Mutex::default(), reported: Mutex::default() }
    }

    /// Returns what this key may do, if it may connect. If the file has become unusable, that is what
    /// it said before.
    pub(super) fn grant(&self, key: &KeyFingerprint) -> Option<KeyGrant> {
        match self.read() {
            Ok(keys) => keys.grant(key).cloned(),
            Err(failure) => {
                let former = self.former();
                self.report(failure, former.is_some());
                former?.grant(key).cloned()
            }
        }
    }

    /// Reads the file, and reports what came of it.
    pub(super) fn load(&self) {
        match self.read() {
            Ok(_) => self.printer.info("keys", format!("loaded {}", self.path.display())),
            Err(failure) => self.report(failure, self.former().is_some()),
        }
    }

    /// Returns what the file said when it was last usable.
    fn former(&self) -> Option<Arc<AuthorizedKeys>> {
        let cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        cached.as_ref().map(|cached| Arc::clone(&cached.keys))
    }

    /// Reports why the file cannot be used, once for each content, since strangers decide how often it is
    /// read.
    fn report(&self, failure: Failure, has_former: bool) {
        let stamp = FileStamp::from_path(&self.path);
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if stamp.is_some() && std::mem::replace(&mut *reported, stamp.clone()) == stamp {
            return;
        }
        let consequence = match has_former {
            true => "the keys from before stay in use",
            false => "no one may connect",
        };
        self.printer.warn("keys", format!("{}; {consequence}", failure.message));
    }

    /// Returns the content of the file. If there is no descriptor to read it with, this is the
    /// earlier content, if the file has not changed: an attacker who exhausts all descriptors must
    /// not lock out the owners of keys.
    pub(super) fn read(&self) -> Result<Arc<AuthorizedKeys>, Failure> {
        // It is read whenever it has changed and a client comes, which a pipe would hold up.
        if fs::metadata(&self.path).is_ok_and(|found| !found.is_file()) {
            return Err(files::unusable(&self.path, &"it is not a regular file"));
        }
        let stamp = FileStamp::from_path(&self.path);
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => String::new(),
            Err(cause) => {
                let is_same = |cached: &&CachedKeys| stamp.as_ref() == Some(&cached.stamp);
                return match cached.as_ref().filter(is_same) {
                    Some(cached) if is_out_of_descriptors(&cause) => Ok(Arc::clone(&cached.keys)),
                    _ => Err(files::unusable(&self.path, &cause)),
                };
            }
        };
        if stamp.is_some()
            && let Err(failure) = ownership::check(&self.path)
        {
            // Others may have changed it before, too.
            *cached = None;
            return Err(failure);
        }
        let keys = AuthorizedKeys::parse(&text).map(Arc::new);
        let keys = keys.map_err(|cause| files::unusable(&self.path, &cause))?;
        *cached = stamp.map(|stamp| CachedKeys { stamp, keys: Arc::clone(&keys) });
        Ok(keys)
    }
}
