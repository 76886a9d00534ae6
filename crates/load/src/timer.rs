//! A timer with microsecond resolution: the runtime's own timer rounds up to the next millisecond,
//! which is longer than most requests on a fast network take.

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
pub(super) struct KernelTimer(Receiver);

impl KernelTimer {
    /// Creates a timer. Must be called inside a tokio runtime.
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self(Receiver::from_owned_fd_unchecked(timer)?))
    }

    /// Waits for this time.
    pub(super) async fn sleep(&self, wait: Duration) -> io::Result<()> {
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

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[tokio::test]
    async fn it_never_wakes_early() {
        let timer = KernelTimer::new().expect("a timer");
        for micros in [0, 1, 300, 1_500] {
            let (start, wait) = (Instant::now(), Duration::from_micros(micros));
            timer.sleep(wait).await.expect("it expires");
            assert!(start.elapsed() >= wait, "{wait:?}");
        }
    }
}
