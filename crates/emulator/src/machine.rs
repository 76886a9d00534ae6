//! What the emulator takes from this machine: cores for its threads, and where system programs are.

use std::ffi::OsString;
use std::num::NonZeroU64;
use std::path::PathBuf;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};

use super::error::EmulatorError;
use super::kernel;

/// Sets the scheduling of the calling thread: prompt wake-ups, and a fixed core.
pub(crate) fn configure_scheduling(
    core: Option<usize>,
    real_time: bool,
) -> Result<(), EmulatorError> {
    if real_time {
        // Without permission, times are less exact.
        let _ = kernel::use_real_time_priority();
    }
    set_current_timer_slack(NonZeroU64::new(1))
        .map_err(EmulatorError::system("set the timer slack"))?;
    core.map_or(Ok(()), |core| pin_thread(None, core))
}

/// Returns whether a thread of this program may run on this core.
pub(crate) fn is_allowed(core: usize) -> bool {
    core < CpuSet::MAX_CPU && sched_getaffinity(None).is_ok_and(|allowed| allowed.is_set(core))
}

/// Pins a thread, or the calling one, to this core.
///
/// # Errors
/// If there is no such core, or the kernel does not allow it.
pub fn pin_thread(thread: Option<Pid>, core: usize) -> Result<(), EmulatorError> {
    let mut set = CpuSet::new();
    if core >= CpuSet::MAX_CPU {
        return Err(EmulatorError::Topology(format!("there is no core {core}")));
    }
    set.set(core);
    sched_setaffinity(thread, &set).map_err(EmulatorError::system("pin a thread to the core"))
}

/// Returns the search path for system programs, including directories that are not in a user's
/// path.
pub(crate) fn search_path() -> OsString {
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"].map(PathBuf::from);
    let directories =
        std::env::split_paths(&inherited).filter(|path| path.is_absolute()).chain(system);
    // Only a path that contains a colon cannot be joined, and those were split above.
    std::env::join_paths(directories).unwrap_or(inherited)
}
