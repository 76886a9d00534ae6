//! Trains of datagrams that the system segments and assembles (GSO and GRO), the destination of each, and ECN, as far as
//! a UDP socket of this system has them.

use std::io::{self, IoSliceMut};

use socket2::Socket;

#[cfg(windows)]
mod windows;

#[cfg(not(windows))]
use quinn_udp::UdpSocketState as PlatformState;
pub use quinn_udp::{EcnCodepoint, RecvMeta, Transmit};
#[cfg(windows)]
use windows::PlatformState;

/// What a UDP socket has beyond sending and receiving one datagram: trains (udp(7)) and ECN (RFC 3168). Each call has to
/// be given the same socket.
#[derive(Debug)]
pub struct UdpOffload(PlatformState);

impl UdpOffload {
    /// Enables what the system has, and makes the socket non-blocking.
    ///
    /// # Errors
    /// If the system refuses what is required.
    pub fn new(socket: &Socket) -> io::Result<Self> {
        PlatformState::new(socket.into()).map(Self)
    }

    /// Sends a train.
    ///
    /// # Errors
    /// Those of sendmsg(2).
    pub fn send(&self, socket: &Socket, transmit: &Transmit<'_>) -> io::Result<()> {
        self.0.try_send(socket.into(), transmit)
    }

    /// Receives a train into each of these buffers, and returns how many have one.
    ///
    /// # Errors
    /// Those of recvmsg(2).
    pub fn receive(
        &self,
        socket: &Socket,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> io::Result<usize> {
        self.0.recv(socket.into(), buffers, meta)
    }

    /// Returns how many datagrams a train that is sent may have. It becomes 1 for good if the network card turns out
    /// not to segment trains.
    pub fn max_gso_segments(&self) -> usize {
        self.0.max_gso_segments()
    }

    /// Returns whether the system may fragment datagrams, so that their size tells nothing about the path's MTU.
    pub fn may_fragment(&self) -> bool {
        self.0.may_fragment()
    }
}

#[cfg(test)]
mod tests {
    use std::io::IoSliceMut;
    use std::net::{Ipv4Addr, SocketAddr};

    use socket2::{Domain, Socket, Type};

    use super::*;

    #[test]
    fn a_datagram_comes_with_its_source_and_its_length() {
        let open = || {
            let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
            socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
            let offload = UdpOffload::new(&socket).unwrap();
            socket.set_nonblocking(false).unwrap();
            (socket, offload)
        };
        let ((from, sending), (to, receiving)) = (open(), open());
        let address = |socket: &Socket| socket.local_addr().unwrap().as_socket().unwrap();
        let (destination, contents) = (address(&to), b"hello");
        let (ecn, segment_size, src_ip) = (None, None, None);
        let transmit = Transmit { destination, ecn, contents, segment_size, src_ip };
        sending.send(&from, &transmit).unwrap();
        let (mut buffer, mut meta) = ([0; 1500], [RecvMeta::default()]);
        let buffers = &mut [IoSliceMut::new(&mut buffer)];
        assert_eq!(receiving.receive(&to, buffers, &mut meta).unwrap(), 1);
        assert_eq!((meta[0].addr, meta[0].len, meta[0].stride), (address(&from), 5, 5));
        assert_eq!(buffer[..5], *contents);
    }
}
