//! timerfd_create(2), with microsecond resolution.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::net::unix::pipe::Receiver;

/// A kernel timer. To the runtime it is a non-blocking pipe from which eight bytes can be read
/// whenever it has expired.
#[derive(Debug)]
pub(in super::super) struct KernelTimer(Receiver);

impl KernelTimer {
    /// Creates a timer. Must be called inside a tokio runtime.
    pub(in super::super) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self(Receiver::from_owned_fd_unchecked(timer)?))
    }

    /// Waits for this time.
    pub(in super::super) async fn sleep(&self, wait: Duration) -> io::Result<()> {
        if wait.is_zero() {
            return Ok(());
        }
        let no_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let once = Itimerspec { it_interval: no_interval, it_value: timespec(wait) };
        timerfd_settime(self.0.as_fd(), TimerfdTimerFlags::empty(), &once)?;
        loop {
            self.0.readable().await?;
            match self.0.try_read(&mut [0; 8]) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn timespec(wait: Duration) -> Timespec {
    Timespec {
        tv_sec: wait.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: wait.subsec_nanos().into(),
    }
}
