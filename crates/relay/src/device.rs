//! A TUN device, or whatever else hands over one packet of IP with each call.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The longest packet of IP.
pub(crate) const LONGEST: usize = 65_535;

/// A device whose packets have no header of its own, and that does not block.
#[derive(Debug)]
pub(crate) struct Device(AsyncFd<File>);

impl Device {
    /// An interface that is taken away is an error of its device, and nothing to read.
    const INTEREST: Interest = Interest::READABLE.add(Interest::ERROR);

    /// Takes the device. To be called inside a tokio runtime.
    pub(crate) fn new(device: OwnedFd) -> io::Result<Self> {
        // What its successor has its caller promise holds for a file that is never replaced.
        #[expect(deprecated, reason = "its successor is unsafe, and there is no unsafe code here")]
        AsyncFd::with_interest(File::from(device), Self::INTEREST).map(Self)
    }

    /// Waits for the next packet, and gives its length.
    ///
    /// # Errors
    /// If no more come: the interface was taken away.
    pub(crate) async fn read(&self, packet: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut ready = self.0.ready(Self::INTEREST).await?;
            match ready.try_io(|device| device.get_ref().read(packet)) {
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(read) => return read,
                Err(_) => {}
            }
        }
    }

    /// Hands over a packet, and says whether it was taken. What is not is lost, as on any line.
    pub(crate) fn write(&self, packet: &[u8]) -> bool {
        self.0.get_ref().write(packet).is_ok()
    }
}
