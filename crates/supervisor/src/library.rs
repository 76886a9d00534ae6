//! The embedded preload library.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, memfd_create};

const LIBRARY: &[u8] = include_bytes!(env!("EYAS_PRELOAD"));

/// The library in memory, for as long as this value exists. No directory contains it, so nothing is
/// left behind however this process ends.
#[derive(Debug)]
pub struct PreloadedLibrary(File);

impl PreloadedLibrary {
    /// Writes the library to memory, where programs of this user can open it.
    ///
    /// # Errors
    /// If the kernel does not provide memory for it.
    pub fn new() -> io::Result<Self> {
        let mut file = File::from(memfd_create("libeyas-sctp.so", MemfdFlags::CLOEXEC)?);
        file.write_all(LIBRARY)?;
        Ok(Self(file))
    }

    /// Returns the value for `LD_PRELOAD`.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()).into()
    }
}

/// The library as a file, for programs that run where eyas is not installed, such as another
/// container of the same pod. It is removed on drop, but not if the process is killed.
#[derive(Debug)]
pub struct PreloadedLibraryFile(PathBuf);

impl PreloadedLibraryFile {
    /// Writes the file. A program that already uses an older version keeps it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(path: &Path) -> io::Result<Self> {
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(".new");
        std::fs::write(&temporary, LIBRARY)?;
        std::fs::rename(&temporary, path)?;
        Ok(Self(path.to_owned()))
    }
}

impl Drop for PreloadedLibraryFile {
    fn drop(&mut self) {
        // It may have been removed already.
        let _ = std::fs::remove_file(&self.0);
    }
}
