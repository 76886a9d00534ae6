//! Keeps the cores awake while times are measured.
//!
//! A core without work is halted, and where it is a virtual one its host may take long to run it
//! again: the more often a handshake passes from one thread to another, the longer it seems to
//! take. So the kernel is asked for cores that wake up at once, as cyclictest asks it.

/// Keeps them awake until what it gives is dropped, or the process ends. Where this user may not
/// ask, and on a kernel that cannot, they sleep as they like.
#[must_use]
pub(super) fn keep() -> Option<std::fs::File> {
    use std::io::Write;
    // Microseconds that a core may take to wake up, as long as this is open
    // (`Documentation/power/pm_qos_interface.rst` of Linux).
    let mut file = std::fs::File::options().write(true).open("/dev/cpu_dma_latency").ok()?;
    file.write_all(&0_i32.to_ne_bytes()).ok()?;
    Some(file)
}
