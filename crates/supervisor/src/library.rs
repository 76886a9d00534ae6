//! The preloaded library, carried inside.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, memfd_create};

const LIBRARY: &[u8] = include_bytes!(env!("EYAS_PRELOAD"));

/// The library, for as long as this lives. It is in no directory, so nothing is left of it however this
/// process ends.
#[derive(Debug)]
pub struct Library(File);

impl Library {
    /// Puts it where programs of this user find it.
    ///
    /// # Errors
    /// If the kernel gives no memory for it.
    pub fn new() -> io::Result<Self> {
        let mut file = File::from(memfd_create("libeyas-sctp.so", MemfdFlags::CLOEXEC)?);
        file.write_all(LIBRARY)?;
        Ok(Self(file))
    }

    /// What stands in `LD_PRELOAD`.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()).into()
    }
}

/// The library as a file, for programs that have no eyas: another container of the same pod. It goes with
/// this, but not where the process is killed.
#[derive(Debug)]
pub struct LibraryFile(PathBuf);

impl LibraryFile {
    /// Writes it. A program that has an older one in use keeps that.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(path: &Path) -> io::Result<Self> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".new");
        std::fs::write(&beside, LIBRARY)?;
        std::fs::rename(&beside, path)?;
        Ok(Self(path.to_owned()))
    }
}

impl Drop for LibraryFile {
    fn drop(&mut self) {
        // Somebody may have taken it away already.
        let _ = std::fs::remove_file(&self.0);
    }
}
