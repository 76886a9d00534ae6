//! A TUN device: reads packets from a host and writes packets to it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::error::EmulatorError;
use super::frame::{PREFIX, TunFrame};
use super::kernel;

/// The maximum number of bytes that a device delivers at once: a TCP packet before segmentation.
const LARGEST: usize = PREFIX + 65_536 + 128;
/// Accept packets with incomplete checksums, and unsegmented TCP and UDP packets: `TUN_F_CSUM`,
/// `TSO4`, `TSO6`, `TSO_ECN`, `USO4`, `USO6` of linux/if_tun.h.
const OFFLOAD: usize = 0x01 | 0x02 | 0x04 | 0x08 | 0x20 | 0x40;
/// The same without UDP, which kernels before 6.2 do not support.
const OFFLOAD_TCP: usize = 0x01 | 0x02 | 0x04 | 0x08;

/// The device of a host on a path.
#[derive(Debug)]
pub(super) struct TunDevice {
    tun: OwnedFd,
}

/// The result of reading from a device.
pub(super) enum DeviceRead {
    /// A packet.
    Packet(TunFrame),
    /// Something that is not an IP packet.
    NotIp,
    /// There is nothing to read at the moment.
    WouldBlock,
    /// There is nothing more to read, because the interface was deleted.
    Closed,
}

/// A buffer for reading, shared by all devices.
pub(super) struct ReadBuffer(Vec<u8>);

impl ReadBuffer {
    pub(super) fn new() -> Self {
        Self(vec![0; LARGEST])
    }
}

impl TunDevice {
    pub(super) const fn new(tun: OwnedFd) -> Self {
        Self { tun }
    }

    /// Sets whether packets are delivered unsegmented and with incomplete checksums (offloading), which is
    /// allowed if single packets are not examined here.
    pub(super) fn set_offload(&self, offload: bool) -> Result<(), EmulatorError> {
        let set = |bits| kernel::set_offload(&self.tun, bits);
        let result = if offload { set(OFFLOAD).or_else(|_| set(OFFLOAD_TCP)) } else { set(0) };
        result.map_err(EmulatorError::system("set up a TUN device"))
    }

    /// Reads the next packet that the host sends.
    pub(super) fn read(&self, buffer: &mut ReadBuffer) -> DeviceRead {
        match rustix::io::read(&self.tun, &mut buffer.0[..]) {
            Ok(length) => {
                TunFrame::read(&buffer.0[..length]).map_or(DeviceRead::NotIp, DeviceRead::Packet)
            }
            Err(rustix::io::Errno::INTR) => DeviceRead::NotIp,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::IO) => DeviceRead::WouldBlock,
            Err(_) => DeviceRead::Closed,
        }
    }

    /// Passes a packet to the host.
    pub(super) fn write(&self, frame: &TunFrame) -> io::Result<()> {
        rustix::io::write(&self.tun, frame.with_prefix())?;
        Ok(())
    }
}

impl AsFd for TunDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }
}
