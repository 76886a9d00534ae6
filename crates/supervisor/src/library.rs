//! The preloaded library, carried inside.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

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
