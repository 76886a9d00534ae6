//! A descriptor of Unix.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The device that a program opened.
pub type DeviceHandle = OwnedFd;

/// A non-blocking device without packet headers.
#[derive(Debug)]
pub struct PacketDevice(AsyncFd<File>);

impl PacketDevice {
    /// Removing the interface is reported as an error of its device, not as readable.
    const INTEREST: Interest = Interest::READABLE.add(Interest::ERROR);

    /// Registers the device. Must be called within a tokio runtime.
    pub fn new(device: DeviceHandle) -> io::Result<Self> {
        // The file is never replaced, which is what the successor requires.
        #[expect(deprecated, reason = "its successor is unsafe, and there is no unsafe code here")]
        AsyncFd::with_interest(File::from(device), Self::INTEREST).map(Self)
    }

    /// Waits for the next packet, and returns its length.
    ///
    /// # Errors
    /// If the interface was removed.
    pub async fn read(&self, packet: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut ready = self.0.ready(Self::INTEREST).await?;
            match ready.try_io(|device| device.get_ref().read(packet)) {
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(read) => return read,
                Err(_) => {}
            }
        }
    }

    /// Writes a packet, and returns whether the device accepted it. Otherwise it is lost, as on any link.
    pub fn write(&self, packet: &[u8]) -> bool {
        self.0.get_ref().write(packet).is_ok()
    }
}
