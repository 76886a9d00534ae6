//! A socket of the kernel, each message of which tells of a change.

use std::io;

use tokio::net::UdpSocket;

use super::platform;
use crate::errno;

/// Only the fact of a change counts, so longer messages are truncated.
const BUFFER: usize = 4096;

#[derive(Debug)]
pub(super) struct Notifications(UdpSocket);

impl Notifications {
    pub(super) fn new() -> io::Result<Self> {
        platform::subscribe().map(Self)
    }

    pub(super) async fn changed(&self) -> io::Result<()> {
        ignore_overflow(self.0.recv(&mut [0; BUFFER]).await)
    }

    pub(super) fn drain(&self) {
        while ignore_overflow(self.0.try_recv(&mut [0; BUFFER])).is_ok() {}
    }
}

fn ignore_overflow(received: io::Result<usize>) -> io::Result<()> {
    match received {
        Ok(_) => Ok(()),
        // The queue overflowed, so something has changed.
        Err(error) if error.raw_os_error() == Some(errno::ENOBUFS) => Ok(()),
        Err(error) => Err(error),
    }
}
