//! Keeps the cores awake while times are measured.
//!
//! An idle core is halted, and if it is virtual, its host may take long to run it again: the more
//! often a handshake passes from one thread to another, the longer it seems to take. The kernel is
//! therefore asked for cores with no wake-up latency, as cyclictest does.

/// Keeps the cores awake until the result is dropped or the process ends. Does nothing if this user
/// lacks permission or the kernel does not support it.
#[must_use]
pub(super) fn keep() -> Option<std::fs::File> {
    use std::io::Write;
    // The maximum wake-up latency of a core in microseconds, as long as this is open
    // (`Documentation/power/pm_qos_interface.rst` of Linux).
    let mut file = std::fs::File::options().write(true).open("/dev/cpu_dma_latency").ok()?;
    file.write_all(&0_i32.to_ne_bytes()).ok()?;
    Some(file)
}
