//! Detects signals that interrupt a call.

use libc::c_int;

use super::Errno;

/// The kernel's internal errno for a call that is restarted after the signal handler or fails with
/// `EINTR`, depending on the handler (`SA_RESTART`). Programs never see it.
const ERESTARTSYS: Errno = Errno(512);

/// The pending and blocked signals of a thread, as bits of their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Signals {
    /// The signals sent to the thread.
    to_thread: u64,
    /// The signals sent to its process.
    to_process: u64,
    blocked: u64,
    process: c_int,
}

impl Signals {
    /// Parses `/proc/PID/status`.
    fn parse(status: &str) -> Option<Self> {
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        let bits = |name: &str| u64::from_str_radix(field(name)?.trim(), 16).ok();
        Some(Self {
            to_thread: bits("SigPnd:")?,
            to_process: bits("ShdPnd:")?,
            blocked: bits("SigBlk:")?,
            process: field("Tgid:")?.trim().parse().ok()?,
        })
    }

    fn from_thread(thread: c_int) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(format!("/proc/{thread}/status")).ok()?)
    }
}

/// Returns the result of the call of a thread if a signal interrupts it.
pub(super) fn errno(thread: c_int) -> Option<Errno> {
    let signals = Signals::from_thread(thread)?;
    let main_thread =
        (signals.process != thread).then(|| Signals::from_thread(signals.process)).flatten();
    decide(&signals, main_thread.as_ref())
}

/// Decides whether a thread is interrupted; `main_thread` is the main thread of its process if that is
/// another one.
fn decide(thread: &Signals, main_thread: Option<&Signals>) -> Option<Errno> {
    if thread.to_thread & !thread.blocked != 0 {
        return Some(ERESTARTSYS);
    }
    let shared = thread.to_process & !thread.blocked;
    match main_thread {
        // For signals to the process, the kernel prefers the main thread.
        None => (shared != 0).then_some(ERESTARTSYS),
        // If the main thread blocks the signal, it is not known which thread the kernel chose, and
        // any other thread must not see the result that is meant for the kernel.
        Some(main_thread) => (shared & main_thread.blocked != 0).then_some(Errno(libc::EINTR)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: u64 = 1 << 9;

    #[test]
    fn a_thread_is_interrupted_by_its_own_signals() {
        let (waits, is_blocked) = (ONE, ONE);
        let thread = Signals { to_thread: waits, process: 7, ..Signals::default() };
        assert_eq!(decide(&thread, Some(&Signals::default())), Some(ERESTARTSYS));
        assert_eq!(decide(&Signals { blocked: is_blocked, ..thread }, None), None);
        assert_eq!(decide(&Signals::default(), None), None);
    }

    #[test]
    fn the_main_thread_is_interrupted_by_signals_to_the_process() {
        let thread = Signals { to_process: ONE, ..Signals::default() };
        assert_eq!(decide(&thread, None), Some(ERESTARTSYS));
        let mut main_thread = thread;
        assert_eq!(decide(&thread, Some(&main_thread)), None);
        main_thread.blocked = ONE;
        assert_eq!(decide(&thread, Some(&main_thread)), Some(Errno(libc::EINTR)));
    }

    #[test]
    fn the_kernels_status_file_is_parsed() {
        let own = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        assert_eq!(Signals::parse(&own).unwrap().process as u32, std::process::id());
        let status = "Tgid:\t12\nSigPnd:\t0000000000000200\nShdPnd:\t1\nSigBlk:\tff\n";
        let wanted = Signals { to_thread: 0x200, to_process: 1, blocked: 0xff, process: 12 };
        assert_eq!(Signals::parse(status), Some(wanted));
    }
}
