//! The resource usage of this process.

use std::{fs, time::Duration};

use eyas::host::limits::{CpuTime, cpu_time};

/// The resources that this process has used or holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    /// CPU time in our own code.
    pub(super) user: Duration,
    /// CPU time in the kernel on our behalf.
    pub(super) system: Duration,
    /// Resident memory in bytes.
    pub(super) resident: u64,
    /// The number of open descriptors.
    pub(super) descriptors: u64,
    /// The number of threads.
    pub(super) threads: u64,
}

impl Process {
    /// Reads the current values; `None` if the system does not provide them.
    pub(super) fn read() -> Option<Self> {
        let CpuTime { user, system } = cpu_time()?;
        // Only Linux lists the rest.
        let status = fs::read_to_string("/proc/self/status").ok()?;
        Some(Self {
            user,
            system,
            // In kB, which are KiB here (proc_pid_status(5)).
            resident: field(&status, "VmRSS:")?.saturating_mul(1024),
            threads: field(&status, "Threads:")?,
            descriptors: fs::read_dir("/proc/self/fd").ok()?.count() as u64,
        })
    }
}

/// Returns the number after this name in `/proc/self/status`.
fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_memory_and_time() {
        let process = Process::read().expect("available on Linux");
        assert!(process.resident > 0 && process.threads > 0 && process.descriptors > 0);
    }

    #[test]
    fn fields_are_found_by_their_names() {
        let status = "Name:\teyas\nVmRSS:\t   12345 kB\nThreads:\t3\n";
        assert_eq!(field(status, "VmRSS:"), Some(12_345));
        assert_eq!(field(status, "Threads:"), Some(3));
        assert_eq!(field(status, "VmSize:"), None);
    }
}
