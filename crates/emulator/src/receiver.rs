//! Processes received packets in kernel threads, whose CPU time can be measured.
//!
//! Otherwise the kernel's part of receiving is executed by the process that writes to the device,
//! which is the emulator, and counts as its CPU time. With `IFF_NAPI` and `threaded` the kernel has
//! a thread for each device (Documentation/networking/napi.rst), which can be pinned to a core, and
//! whose time `/proc/PID/schedstat` gives in nanoseconds, however busy the machine is.

use std::fs;
use std::process::{Command, Stdio};

use rustix::process::Pid;

use super::error::EmulatorError;
use super::topology::Topology;

/// Mounts its own view of the devices, because `/sys` shows those of the namespace in which it was
/// mounted.
const SCRIPT: &str = "mount -t sysfs sysfs /sys && for name in \"$@\"; do \
                      echo 1 >\"/sys/class/net/$name/threaded\" || exit 1; done";

/// Gives the devices of the topology, in the namespace of the calling thread, kernel threads on
/// this core.
pub(super) fn start_threads(topology: &Topology, core: usize) -> Result<Vec<Pid>, EmulatorError> {
    let names: Vec<String> = topology.interfaces().collect();
    let before = threads_of(&names);
    let failed =
        |cause| EmulatorError::Program { program: "unshare", cause, package: "util-linux" };
    let output = Command::new("unshare")
        .env("PATH", super::machine::search_path())
        .args(["--mount", "--propagation", "private", "sh", "-c", SCRIPT, "sh"])
        .args(&names)
        .stdin(Stdio::null())
        .output()
        .map_err(failed)?;
    if !output.status.success() {
        let output = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(EmulatorError::Receivers(output));
    }
    let mut started = threads_of(&names);
    started.retain(|thread| !before.contains(thread));
    if started.len() < names.len() {
        let cause = "none is in /proc, which must be that of the whole machine";
        return Err(EmulatorError::Receivers(cause.to_owned()));
    }
    for thread in &started {
        // Only root of the whole machine can control kernel threads.
        let pinned = super::machine::pin_thread(Some(*thread), core);
        pinned.map_err(|cause| EmulatorError::Receivers(cause.to_string()))?;
    }
    Ok(started)
}

/// Returns the kernel threads for devices with these names, in any namespace.
fn threads_of(names: &[String]) -> Vec<Pid> {
    let is_one = |thread: &Pid| {
        let path = format!("/proc/{}/comm", thread.as_raw_nonzero());
        let name = fs::read_to_string(path).unwrap_or_default();
        let device = name.trim().strip_prefix("napi/").and_then(|rest| rest.rsplit_once('-'));
        device.is_some_and(|(device, _)| names.iter().any(|name| name == device))
    };
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers.filter_map(Pid::from_raw).filter(is_one).collect()
}
