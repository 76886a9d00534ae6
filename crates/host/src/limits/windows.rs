//! `GetProcessTimes`.

use std::time::Duration;

use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::System::Threading::{GetCurrentProcess, GetProcessTimes};

use super::CpuTime;

pub(super) fn descriptors() -> Option<u64> {
    None
}

#[expect(unsafe_code, reason = "the standard library does not tell a process's CPU time")]
pub(super) fn cpu_time() -> Option<CpuTime> {
    let [mut created, mut ended, mut system, mut user] = [FILETIME::default(); 4];
    // SAFETY: the pseudo handle of this process is always valid, and each pointer is to a value of its own.
    let succeeded = unsafe {
        GetProcessTimes(GetCurrentProcess(), &mut created, &mut ended, &mut system, &mut user)
    };
    (succeeded != 0).then(|| CpuTime { user: duration(user), system: duration(system) })
}

/// Returns the time that is counted in units of 100 ns.
fn duration(time: FILETIME) -> Duration {
    let units = u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
    Duration::from_nanos(units.saturating_mul(100))
}
