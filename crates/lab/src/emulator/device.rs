//! A TUN device: reads packets from a host and writes packets to it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::error::EmulatorError;
use super::frame::{Frame, PREFIX};
use super::kernel;

/// The most bytes that a device hands over at once: an unfinished packet of TCP, before it is cut.
const LARGEST: usize = PREFIX + 65_536 + 128;
/// Checksums left to us, and packets of TCP and UDP uncut: `TUN_F_CSUM`, `TSO4`, `TSO6`, `TSO_ECN`,
/// `USO4`, `USO6` of linux/if_tun.h.
const OFFLOAD: usize = 0x01 | 0x02 | 0x04 | 0x08 | 0x20 | 0x40;
/// The same without UDP, which kernels before 6.2 do not know.
const OFFLOAD_TCP: usize = 0x01 | 0x02 | 0x04 | 0x08;

/// The device of a host on a path.
#[derive(Debug)]
pub(super) struct Device {
    tun: OwnedFd,
}

/// What a device gave.
pub(super) enum Arrival {
    /// A packet.
    Packet(Frame),
    /// Something that is no packet of IP.
    Nothing,
    /// No more for now.
    Empty,
    /// Nor ever again: the interface was deleted.
    Gone,
}

/// Room to read into, once for all devices.
pub(super) struct Scratch(Vec<u8>);

impl Scratch {
    pub(super) fn new() -> Self {
        Self(vec![0; LARGEST])
    }
}

impl Device {
    pub(super) const fn new(tun: OwnedFd) -> Self {
        Self { tun }
    }

    /// Whether packets come uncut, with checksums still to be made. They may if nothing here looks
    /// at single packets.
    pub(super) fn set_uncut(&self, uncut: bool) -> Result<(), EmulatorError> {
        let set = |bits| kernel::set_offload(&self.tun, bits);
        let result = if uncut { set(OFFLOAD).or_else(|_| set(OFFLOAD_TCP)) } else { set(0) };
        result.map_err(EmulatorError::system("set up a TUN device"))
    }

    /// The next packet that the host sends.
    pub(super) fn read(&self, scratch: &mut Scratch) -> Arrival {
        match rustix::io::read(&self.tun, &mut scratch.0[..]) {
            Ok(length) => {
                Frame::read(&scratch.0[..length]).map_or(Arrival::Nothing, Arrival::Packet)
            }
            Err(rustix::io::Errno::INTR) => Arrival::Nothing,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::IO) => Arrival::Empty,
            Err(_) => Arrival::Gone,
        }
    }

    /// Hands a packet to the host.
    pub(super) fn write(&self, frame: &Frame) -> io::Result<()> {
        rustix::io::write(&self.tun, frame.with_prefix())?;
        Ok(())
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }
}
