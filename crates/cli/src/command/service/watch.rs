//! Notices that files have changed, by looking at them: this sees every way to replace a file, and links that are
//! changed to lead elsewhere, as certbot and Kubernetes do.

use std::fs;
use std::path::{Path, PathBuf};

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as platform;
#[cfg(windows)]
use windows as platform;

/// Distinguishes a changed file from an unchanged one, without needing a descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::command) struct FileStamp([i128; 5]);

impl FileStamp {
    pub(in crate::command) fn from_path(path: &Path) -> Option<Self> {
        platform::stamp(&fs::metadata(path).ok()?).map(Self)
    }
}

/// Files, and what they were when they were last loaded.
#[derive(Debug, Default)]
pub(super) struct FileWatch {
    files: Vec<PathBuf>,
    loaded: Vec<Option<FileStamp>>,
    /// What they were when a change was noticed.
    seen: Option<Vec<Option<FileStamp>>>,
}

impl FileWatch {
    pub(super) fn new(files: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut watch = Self { files: files.into_iter().collect(), ..Self::default() };
        watch.note_loaded();
        watch
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Records that they are loaded as they are now.
    pub(super) fn note_loaded(&mut self) {
        self.loaded = self.look();
        self.seen = None;
    }

    /// Returns whether they have changed since they were loaded, and not since the last look.
    pub(super) fn has_changed(&mut self) -> bool {
        let now = self.look();
        self.observe(now)
    }

    fn look(&self) -> Vec<Option<FileStamp>> {
        self.files.iter().map(|file| FileStamp::from_path(file)).collect()
    }

    /// A certificate and its key are written one after the other, and a file in pieces: a change is
    /// complete once it is seen twice.
    fn observe(&mut self, now: Vec<Option<FileStamp>>) -> bool {
        if now == self.loaded {
            self.seen = None;
            return false;
        }
        let is_complete = self.seen.as_ref() == Some(&now);
        self.seen = (!is_complete).then_some(now);
        is_complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_changes_with_its_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("keys");
        assert_eq!(FileStamp::from_path(&path), None);
        fs::write(&path, "a").expect("writes");
        let previous = FileStamp::from_path(&path);
        assert!(previous.is_some());
        assert_eq!(FileStamp::from_path(&path), previous);
        fs::write(&path, "ab").expect("writes");
        assert_ne!(FileStamp::from_path(&path), previous);
        let other = directory.path().join("other");
        fs::write(&other, "ab").expect("writes");
        let previous = FileStamp::from_path(&path);
        fs::rename(&other, &path).expect("renames");
        assert_ne!(FileStamp::from_path(&path), previous);
        let (reading, _writing) = std::io::pipe().expect("a pipe");
        let pipe = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reading));
        assert_eq!(FileStamp::from_path(Path::new(&pipe)), None);
    }

    #[test]
    fn a_change_is_complete_once_it_is_seen_twice() {
        let stamp = |number| Some(FileStamp([number, 0, 0, 0, 0]));
        let mut watch = FileWatch { loaded: vec![stamp(1), stamp(1)], ..FileWatch::default() };
        for (now, is_complete) in [
            ([1, 1], false),
            ([2, 1], false),
            ([2, 2], false),
            ([2, 2], true),
            // It was not loaded.
            ([2, 2], false),
            ([1, 1], false),
            ([2, 2], false),
            ([2, 2], true),
        ] {
            let now: Vec<_> = now.into_iter().map(stamp).collect();
            assert_eq!(watch.observe(now.clone()), is_complete, "{now:?}");
        }
    }
}
