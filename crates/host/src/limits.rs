//! What the system allows this process, and what the process has used: getrlimit(2) and getrusage(2) of Linux and others.

use std::time::Duration;

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as platform;
#[cfg(windows)]
use windows as platform;

/// The CPU time of a process (getrusage(2)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// In its own code.
    pub user: Duration,
    /// In the kernel on its behalf.
    pub system: Duration,
}

/// Returns how many descriptors this process may have; `None` if there is no limit but memory, as for the sockets of
/// Windows.
pub fn descriptors() -> Option<u64> {
    platform::descriptors()
}

/// Returns the CPU time that this process has used; `None` if the system does not tell.
pub fn cpu_time() -> Option<CpuTime> {
    platform::cpu_time()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_limits_and_uses_time() {
        assert!(descriptors().is_none_or(|limit| limit > 0));
        let before = cpu_time().unwrap();
        let mut sum = 0_u64;
        while cpu_time().unwrap() == before {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
    }
}
