//! The CPU time and memory of a process.

use std::fs;
use std::time::Duration;

use nix::errno::Errno;
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

/// The kernel's page size, in KiB.
const PAGE: f64 = 4.0;

/// Returns the user and system CPU time of a process so far, in milliseconds: from its clock, because `/proc` counts in
/// hundredths of a second.
pub(crate) fn cpu_time(id: u32) -> Result<f64, String> {
    let error = |error| format!("the CPU clock of process {id}: {error}");
    let id = i32::try_from(id).map_err(|_| error(Errno::ESRCH))?;
    let spent = clock_getcpuclockid(Pid::from_raw(id)).and_then(clock_gettime).map_err(error)?;
    Ok(Duration::from(spent).as_secs_f64() * 1000.0)
}

/// Returns the resident memory of a process, in KiB.
pub(crate) fn resident(id: u32) -> Result<f64, String> {
    let path = format!("/proc/{id}/statm");
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let pages = text.split_whitespace().nth(1).and_then(|word| word.parse::<f64>().ok());
    pages.map(|pages| pages * PAGE).ok_or_else(|| format!("cannot parse {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_this_process_is_measured() {
        let id = std::process::id();
        assert!(resident(id).unwrap() > 0.0);
        let before = cpu_time(id).unwrap();
        let mut after = before;
        // Its resolution is far below a tick.
        while after == before {
            after = cpu_time(id).unwrap();
        }
        assert!(before > 0.0 && after - before < 10.0, "{before}, {after}");
        assert!(cpu_time(u32::MAX).is_err());
    }
}
