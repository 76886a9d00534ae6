//! Sends packets with the fields of the IP header that were asked for.

use std::io;

use eyas_sctp::io::Transmit;
use socket2::Socket;

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod other;

#[cfg(any(target_os = "linux", target_os = "android"))]
use linux as platform;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
use other as platform;

/// Returns whether the packets need [`send`]: fields were asked for, and the platform can set them.
pub(super) fn applies(transmit: &Transmit) -> bool {
    platform::applies(transmit)
}

/// Sends one packet from its source address and with its marking.
pub(super) fn send(
    socket: &Socket,
    is_ipv4: bool,
    transmit: &Transmit,
    packet: &[u8],
) -> io::Result<()> {
    platform::send(socket, is_ipv4, transmit, packet)
}
