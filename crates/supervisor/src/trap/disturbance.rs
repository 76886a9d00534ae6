//! Signals that a call in the kernel has to make way for.

use libc::c_int;

use super::Errno;

/// What a call inside the kernel says so that it is made again after the signal's handler, or fails with
/// `EINTR`, as the handler has it (`SA_RESTART`). Programs never see it.
const ERESTARTSYS: Errno = Errno(512);

/// What the kernel tells of a thread's signals, in the bits of their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Signals {
    /// Those sent to the thread.
    to_thread: u64,
    /// Those sent to its process.
    to_process: u64,
    blocked: u64,
    process: c_int,
}

impl Signals {
    /// Reads `/proc/PID/status`.
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

    fn of(thread: c_int) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(format!("/proc/{thread}/status")).ok()?)
    }
}

/// What the call of a thread says, if a signal waits for that.
pub(super) fn errno(thread: c_int) -> Option<Errno> {
    let signals = Signals::of(thread)?;
    let first = (signals.process != thread).then(|| Signals::of(signals.process)).flatten();
    decide(&signals, first.as_ref())
}

/// `first` is the first thread of the process, where that is another one.
fn decide(thread: &Signals, first: Option<&Signals>) -> Option<Errno> {
    if thread.to_thread & !thread.blocked != 0 {
        return Some(ERESTARTSYS);
    }
    let shared = thread.to_process & !thread.blocked;
    match first {
        // The kernel prefers the first thread for what is sent to the process.
        None => (shared != 0).then_some(ERESTARTSYS),
        // Where that does not want it, it is not known which thread was chosen, and who was not must not
        // see what was for the kernel.
        Some(first) => (shared & first.blocked != 0).then_some(Errno(libc::EINTR)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: u64 = 1 << 9;

    #[test]
    fn a_thread_makes_way_for_its_own_signals() {
        let (waits, is_blocked) = (ONE, ONE);
        let thread = Signals { to_thread: waits, process: 7, ..Signals::default() };
        assert_eq!(decide(&thread, Some(&Signals::default())), Some(ERESTARTSYS));
        assert_eq!(decide(&Signals { blocked: is_blocked, ..thread }, None), None);
        assert_eq!(decide(&Signals::default(), None), None);
    }

    #[test]
    fn the_first_thread_makes_way_for_those_of_the_process() {
        let thread = Signals { to_process: ONE, ..Signals::default() };
        assert_eq!(decide(&thread, None), Some(ERESTARTSYS));
        let mut first = thread;
        assert_eq!(decide(&thread, Some(&first)), None);
        first.blocked = ONE;
        assert_eq!(decide(&thread, Some(&first)), Some(Errno(libc::EINTR)));
    }

    #[test]
    fn the_kernel_s_words_are_read() {
        let own = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        assert_eq!(Signals::parse(&own).unwrap().process as u32, std::process::id());
        let said = "Tgid:\t12\nSigPnd:\t0000000000000200\nShdPnd:\t1\nSigBlk:\tff\n";
        let wanted = Signals { to_thread: 0x200, to_process: 1, blocked: 0xff, process: 12 };
        assert_eq!(Signals::parse(said), Some(wanted));
    }
}
