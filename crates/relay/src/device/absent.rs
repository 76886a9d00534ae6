//! Windows has no TUN devices of its own: those of drivers such as Wintun are not used.

use std::convert::Infallible;
use std::io;

/// The device that a program opened: there is none.
pub type DeviceHandle = Infallible;

/// A non-blocking device without packet headers: there is none.
#[derive(Debug)]
pub struct PacketDevice(Infallible);

impl PacketDevice {
    /// Registers the device.
    ///
    /// # Errors
    /// None.
    pub fn new(device: DeviceHandle) -> io::Result<Self> {
        match device {}
    }

    /// Waits for the next packet.
    ///
    /// # Errors
    /// None.
    pub async fn read(&self, _: &mut [u8]) -> io::Result<usize> {
        match self.0 {}
    }

    /// Writes a packet.
    pub fn write(&self, _: &[u8]) -> bool {
        match self.0 {}
    }
}
