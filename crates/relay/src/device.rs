//! A TUN device, or any other file that reads and writes one IP packet with each call.

#[cfg(windows)]
mod absent;
#[cfg(unix)]
mod unix;

#[cfg(windows)]
pub use absent::{DeviceHandle, PacketDevice};
#[cfg(unix)]
pub use unix::{DeviceHandle, PacketDevice};

/// The length of the longest IP packet.
pub const MAX_PACKET: usize = 65_535;
